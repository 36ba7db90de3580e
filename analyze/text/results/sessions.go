package results

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Sessions prints sessions and connections. What peers sent is escaped. A brief table lists, of many, only those that are unusual.
func Sessions(w io.Writer, rep *session.Report, verbose, brief bool) error {
	p := sessionPrinter{w: w, rep: rep, verbose: verbose, short: brief}
	return p.print()
}

// sessionPrinter is a table of sessions under way.
type sessionPrinter struct {
	w       io.Writer
	rep     *session.Report
	verbose bool
	short   bool // a part of a report: see brief
	err     error
}

func (p *sessionPrinter) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

func (p *sessionPrinter) table(header []string, right []bool, rows [][]string) {
	if len(rows) == 0 || p.err != nil {
		return
	}
	p.err = table.Print(p.w, header, right, rows)
}

func (p *sessionPrinter) print() error {
	if len(p.rep.Sessions)+len(p.rep.Clients) == 0 {
		p.printf("no NFS\n")
	}
	sessions := listed(p, p.rep.Sessions, "session", func(s *session.Session) []session.Connection { return s.Connections }, unusual)
	for i, x := range sessions {
		if i > 0 || len(sessions) < len(p.rep.Sessions) {
			p.printf("\n")
		}
		p.session(x)
	}
	p.trunks()
	p.servers()
	if len(p.rep.Sessions) > 0 && len(p.rep.Clients) > maxListed {
		p.printf("\n")
	}
	clients := listed(p, p.rep.Clients, "client", func(c *session.Client) []session.Connection { return c.Connections },
		func(c *session.Client) bool { return uneven(c.Connections) })
	for i, c := range clients {
		if i > 0 || len(p.rep.Sessions) > 0 || len(clients) < len(p.rep.Clients) {
			p.printf("\n")
		}
		p.printf("NFSv%s client %s, server %s\n\n", c.Version, c.Client, c.Server)
		p.connections(c.Connections, false)
	}
	p.layouts()
	if len(p.rep.Notes) > 0 {
		p.printf("\n")
	}
	for _, n := range p.rep.Notes {
		p.printf("note: %s\n", n)
	}
	return p.err
}

// servers names the addresses at which EXCHANGE_ID succeeded, and those that the client then gave up.
func (p *sessionPrinter) servers() {
	var lines []string
	for i := range p.rep.Servers {
		s := &p.rep.Servers[i]
		l := fmt.Sprintf("EXCHANGE_ID at %s: server %s (minor ID %d), scope %s", s.Address, safe(s.Owner), s.Minor, safe(s.Scope))
		if s.ServerProgram != "" {
			l += "; it is " + safe(s.ServerProgram)
		}
		if s.ClientProgram != "" {
			l += "; the client is " + safe(s.ClientProgram)
		}
		switch {
		case s.Used:
		case s.SameAs != "":
			l += fmt.Sprintf("; the same server as at %s; given up after EXCHANGE_ID: no session uses it", s.SameAs)
		default:
			l += "; no session uses it"
		}
		lines = append(lines, l)
	}
	if len(lines) > 0 {
		p.printf("\n")
		p.limited(lines)
	}
}

func (p *sessionPrinter) session(s *session.Session) {
	p.printf("session %s", s.ID)
	if s.Captured {
		p.printf(", client ID %s", s.ClientID)
	}
	if s.Client != "" {
		p.printf("\n  client %s\n  server %s (minor ID %d), scope %s", safe(s.Client), safe(s.Server), s.ServerMinor, safe(s.Scope))
	}
	p.printf("\n")
	if s.Granted != nil {
		p.printf("  granted: %d of %d slots asked for; requests of %d bytes, replies of %d, %d operations; backward %d slots%s\n",
			s.Granted.Slots, s.Asked.Slots, s.Granted.Request, s.Granted.Response, s.Granted.Ops, s.Backward.Slots, map[bool]string{true: "; persistent"}[s.Persistent])
	} else {
		p.printf("  granted: not known; CREATE_SESSION was not captured\n")
	}
	t := &s.Slots
	p.printf("  slots: target %s, highest used %d, in use %.2f on average, %d at most; all in use %s of %v\n",
		target(t), t.Used, t.Mean, t.Most, units.Part(t.Full, t.Time)+"%", time.Duration(t.Time).Round(time.Microsecond))
	if t.After > 0 {
		p.printf("  %s came after all slots had been in use, the soonest %v after one became free, %v on average\n",
			units.Plural(t.After, "call"), time.Duration(t.Soonest).Round(time.Microsecond), time.Duration(t.Soon).Round(time.Microsecond))
	}
	if len(s.Failed) > 0 {
		p.printf("  SEQUENCE failed: %s\n", counts(s.Failed))
	}
	for _, name := range slices.Sorted(maps.Keys(s.StatusFlags)) {
		p.printf("  the server says %s in %d of %s\n", name, s.StatusFlags[name], units.Plural(s.Replies, "reply"))
	}
	if s.BackSlots.Used > 0 {
		p.printf("  backward: %s; %s used, %d at once\n", counts(s.Callbacks), units.Plural(s.BackSlots.Used, "slot"), s.BackSlots.Most)
	}
	if s.Destroyed {
		p.printf("  destroyed\n")
	}
	p.printf("\n")
	p.connections(s.Connections, true)
	if p.verbose && len(s.Series) > 0 {
		p.printf("\n")
		var rows [][]string
		for _, v := range s.Series {
			target := "-"
			if v.Target > 0 {
				target = strconv.Itoa(int(v.Target))
			}
			rows = append(rows, []string{
				time.Duration(v.Start).String(), strconv.FormatUint(v.Calls, 10), strconv.FormatFloat(float64(v.Busy)/float64(s.Interval), 'f', 2, 64),
				strconv.Itoa(int(v.Highest)), target,
			})
		}
		p.table([]string{"START", "CALLS", "IN USE", "HIGHEST", "TARGET"}, []bool{true, true, true, true, true}, rows)
	}
}

func target(t *session.Slots) string {
	switch {
	case t.Target == 0:
		return "not known"
	case t.Least != t.Target:
		return fmt.Sprintf("%d (at least %d)", t.Target, t.Least)
	}
	return strconv.Itoa(int(t.Target))
}

// counts is "NAME 3, NAME 1", by name.
func counts(m map[string]uint64) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %d", safe(k), m[k]))
	}
	if len(out) == 0 {
		return "no operation"
	}
	return strings.Join(out, ", ")
}

func (p *sessionPrinter) connections(list []session.Connection, bound bool) {
	header := []string{"CONN", "CLIENT", "SERVER", "CALLS", "SHARE", "READ", "WRITTEN", "SHARE", "IN FLIGHT", "MEAN", "CALLBACKS", "BOUND BY"}
	right := []bool{true, false, false, true, true, true, true, true, true, true, true, false}
	var rows [][]string
	for _, c := range list {
		mean := "-"
		if c.Mean > 0 {
			mean = time.Duration(c.Mean).Round(100 * time.Nanosecond).String()
		}
		row := []string{
			strconv.Itoa(c.ID), c.Client, c.Server, strconv.FormatUint(c.Calls, 10), fmt.Sprintf("%.1f%%", 100*c.Share),
			units.Size(c.Read), units.Size(c.Written), fmt.Sprintf("%.1f%%", 100*c.Bytes), strconv.Itoa(c.InFlight), mean,
			strconv.FormatUint(c.Callbacks, 10), c.Bound,
		}
		if !bound {
			row = row[:len(row)-2]
		}
		rows = append(rows, row)
	}
	if !bound {
		header, right = header[:len(header)-2], right[:len(right)-2]
	}
	p.table(header, right, rows)
	if calls, bytes, busy := session.Even(list); busy > 1 {
		p.printf("\nthe busiest of %d connections carried %.2f times its share of the calls", busy, calls)
		if bytes > 0 {
			p.printf("; by bytes, the busiest carried %.2f times its share", bytes)
		}
		p.printf("\n")
	}
}

func (p *sessionPrinter) layouts() {
	if len(p.rep.Layouts) > 0 {
		p.printf("\nLayouts\n\n")
		var rows [][]string
		for i := range p.rep.Layouts {
			l := &p.rep.Layouts[i]
			name := l.Path
			if name == "" {
				name = l.Handle[:min(len(l.Handle), 40)]
			}
			got := fmt.Sprintf("%d read, %d read-write", l.Read, l.Write)
			if len(l.Refused) > 0 {
				got += "; " + counts(l.Refused)
			}
			var io []string
			for _, d := range l.IO {
				io = append(io, fmt.Sprintf("%s: %d READ of %s, %d WRITE of %s", d.Server, d.Reads, units.Size(d.Read), d.Writes, units.Size(d.Written)))
			}
			rows = append(rows, []string{safe(name), l.Type, got, strconv.FormatUint(l.Returned, 10), strings.Join(l.Devices, " "), strings.Join(io, "; ")})
		}
		p.table([]string{"FILE", "TYPE", "GRANTED", "RETURNED", "DEVICES", "I/O TO DATA SERVERS"}, []bool{false, false, false, true, false, false}, rows)
	}
	if len(p.rep.Devices) > 0 {
		p.printf("\nDevices\n\n")
		var rows [][]string
		for _, d := range p.rep.Devices {
			rows = append(rows, []string{d.ID, d.Type, d.Status, d.Server, safe(strings.Join(d.Addresses, ", "))})
		}
		p.table([]string{"DEVICE", "TYPE", "STATUS", "TOLD BY", "ADDRESSES"}, make([]bool, 5), rows)
	}
}
