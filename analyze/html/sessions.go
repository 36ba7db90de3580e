package html

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/internal/units"
)

//go:embed sessions.tmpl
var sessionsText string

// maxSessions is how many sessions the page shows, and how many clients of versions without sessions.
const maxSessions = 32

// sessionsView is the section on sessions, connections and layouts.
type sessionsView struct {
	Sessions     []sessionRow
	MoreSessions int
	Trunks       []string
	MoreTrunks   int
	Clients      []clientRow
	MoreClients  int
	Tables       []shownTable // layouts and devices
	Notes        []string
}

type sessionRow struct {
	clientRow
	Facts    []card
	Remarks  []string
	Slots    *plot.Chart
	Target   bool // the chart has a line for it
	SlotNote string
}

// clientRow is a client, or a session, with its connections.
type clientRow struct {
	Title string
	Even  string
	Bound bool // the last columns are shown
	Conns []carriedRow
}

type carriedRow struct {
	session.Connection
	Calls, Bytes *plot.Chart // shares as bars
	CallShare    cell
	ByteShare    cell
	ReadCell     cell
	WrittenCell  cell
	MeanCell     cell
}

func newSessionsView(rep *session.Report) *sessionsView {
	if rep == nil {
		return nil
	}
	v := &sessionsView{Notes: rep.Notes}
	v.MoreSessions = max(len(rep.Sessions)-maxSessions, 0)
	for i := range rep.Sessions[:len(rep.Sessions)-v.MoreSessions] {
		v.Sessions = append(v.Sessions, newSessionRow(&rep.Sessions[i]))
	}
	v.MoreTrunks = max(len(rep.Trunks)-maxSessions, 0)
	for _, t := range rep.Trunks[:len(rep.Trunks)-v.MoreTrunks] {
		v.Trunks = append(v.Trunks, fmt.Sprintf("%s: client %s, server %s, %s from %s to %s", t.Kind, t.Client, t.Server,
			units.Plural(len(t.Sessions), "session"), strings.Join(t.Clients, ", "), strings.Join(t.Servers, ", ")))
	}
	v.MoreClients = max(len(rep.Clients)-maxSessions, 0)
	for i := range rep.Clients[:len(rep.Clients)-v.MoreClients] {
		c := &rep.Clients[i]
		v.Clients = append(v.Clients, newClientRow(fmt.Sprintf("NFSv%s client %s, server %s", c.Version, c.Client, c.Server), c.Connections, false))
	}
	v.layouts(rep)
	return v
}

func newClientRow(title string, list []session.Connection, bound bool) clientRow {
	r := clientRow{Title: title, Bound: bound}
	if calls, bytes, busy := session.Even(list); busy > 1 {
		r.Even = fmt.Sprintf("The busiest of %d connections carried %.2f times its share of the calls", busy, calls)
		if bytes > 0 {
			r.Even += fmt.Sprintf("; by bytes, the busiest carried %.2f times its share", bytes)
		}
		r.Even += "."
	}
	for _, c := range list {
		x := carriedRow{
			Connection: c, CallShare: share(c.Share), ByteShare: share(c.Bytes), MeanCell: cell{"–", "-1"},
			Calls: shareBar(c.Share, "share of the calls"), Bytes: shareBar(c.Bytes, "share of the bytes"),
			ReadCell:    cell{units.BytesUnit(float64(c.Read)), fmt.Sprint(c.Read)},
			WrittenCell: cell{units.BytesUnit(float64(c.Written)), fmt.Sprint(c.Written)},
		}
		if c.Mean > 0 {
			x.MeanCell = nsCell(c.Mean)
		}
		r.Conns = append(r.Conns, x)
	}
	return r
}

func share(f float64) cell { return cell{fmt.Sprintf("%.1f %%", 100*f), fmt.Sprintf("%.6f", f)} }

// shareBar draws a share of 1 as a bar.
func shareBar(f float64, label string) *plot.Chart {
	c := &plot.Chart{Width: slowWidth, Height: slowHeight, Label: label}
	c.AddRect(0, 0, slowWidth, slowHeight, "rest", 0, "")
	if w := slowWidth * min(max(f, 0), 1); w > 0 {
		c.AddRect(0, 0, w, slowHeight, "bar", 0, fmt.Sprintf("%s: %.1f %%", label, 100*f))
	}
	return c
}

func newSessionRow(s *session.Session) sessionRow {
	title := "Session " + s.ID
	if s.Client != "" {
		title += fmt.Sprintf(": client %s, server %s", s.Client, s.Server)
	}
	r := sessionRow{clientRow: newClientRow(title, s.Connections, true)}
	fact := func(name, value string) { r.Facts = append(r.Facts, card{Name: name, Value: value}) }
	if s.Granted != nil {
		fact("client ID", s.ClientID)
		fact("slots asked for / granted", fmt.Sprintf("%d / %d", s.Asked.Slots, s.Granted.Slots))
		fact("request / reply, most", units.BytesUnit(float64(s.Granted.Request))+" / "+units.BytesUnit(float64(s.Granted.Response)))
		fact("operations, most", fmt.Sprint(s.Granted.Ops))
		fact("backward slots", fmt.Sprint(s.Backward.Slots))
	} else {
		fact("granted", "not known: CREATE_SESSION was not captured")
	}
	t := &s.Slots
	switch {
	case t.Target == 0:
		fact("target of the server", "not known")
	case t.Least != t.Target:
		fact("target of the server, newest / least", fmt.Sprintf("%d / %d", t.Target, t.Least))
	default:
		fact("target of the server", fmt.Sprint(t.Target))
	}
	fact("highest slot used", fmt.Sprint(t.Used))
	fact("slots in use, most / mean", fmt.Sprintf("%d / %.2f", t.Most, t.Mean))
	fact("all slots in use for", units.Duration(t.Full)+", "+units.Part(t.Full, t.Time)+" %")
	if s.BackSlots.Used > 0 {
		fact("callbacks", counted(s.Callbacks))
		fact("backward slots used, in use at most", fmt.Sprintf("%d, %d", s.BackSlots.Used, s.BackSlots.Most))
	}
	if s.Persistent {
		fact("persistent", "yes")
	}
	if s.Destroyed {
		fact("destroyed", "yes")
	}
	if t.After > 0 {
		r.Remarks = append(r.Remarks, fmt.Sprintf("%s came after all slots had been in use: the soonest %s after one became free, %s on average. They may have waited for it.",
			units.Plural(t.After, "call"), units.Duration(t.Soonest), units.Duration(t.Soon)))
	}
	if len(s.Failed) > 0 {
		r.Remarks = append(r.Remarks, "SEQUENCE failed: "+counted(s.Failed))
	}
	r.slots(s)
	return r
}

// counted is "3 NAME, 1 NAME", by name.
func counted(m map[string]uint64) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%d %s", m[k], k))
	}
	if len(out) == 0 {
		return "no operation"
	}
	return strings.Join(out, ", ")
}

// slots draws the slots in use over time.
func (r *sessionRow) slots(s *session.Session) {
	if len(s.Series) == 0 || s.Interval <= 0 {
		return
	}
	most, target := 0.0, 0.0
	for _, x := range s.Series {
		most = max(most, float64(x.Highest), float64(x.Busy)/float64(s.Interval))
		target = max(target, float64(x.Target))
	}
	if most == 0 {
		return
	}
	switch {
	case target == 0:
	case target > 4*most:
		r.SlotNote = fmt.Sprintf(" The server's target of %.0f slots is far above what was in use.", target)
	default:
		r.Target = true
		most = max(most, target)
	}
	p := plot.New(seriesHeight, "Slots in use over time")
	y := p.Linear(most, true, func(f float64) string { return fmt.Sprintf("%.0f", f) })
	t := newTimes(p, len(s.Series), s.Interval)
	mean, limit := make([]float64, len(s.Series)), make([]float64, len(s.Series))
	newest := uint32(0) // a target holds until the next
	for i, x := range s.Series {
		mean[i] = float64(x.Busy) / float64(s.Interval)
		if x.Target > 0 {
			newest = x.Target
		}
		limit[i] = math.NaN()
		if newest > 0 {
			limit[i] = float64(newest)
		}
		if x.Highest > 0 {
			top := y(float64(x.Highest))
			p.AddRect(t.x(i), top, max(t.w-0.4, 0.6), p.Y1-top, "most", 0,
				fmt.Sprintf("from %s: %s began; slots up to %d in use, as the client said, %.2f on average", units.Duration(x.Start), units.Plural(x.Calls, "call"), x.Highest, mean[i]))
		}
	}
	p.AddPath(t.steps(mean, y), "line-mean")
	if r.Target {
		p.AddPath(t.steps(limit, y), "line-credits")
	}
	p.Frame()
	p.XTitle("seconds since the first call of the session")
	r.Slots = &p.Chart
	r.SlotNote = fmt.Sprintf("An interval is %s long.%s", units.Round(time.Duration(s.Interval)), r.SlotNote)
}

func (v *sessionsView) layouts(rep *session.Report) {
	if len(rep.Layouts) > 0 {
		t := Table{
			Title:  "Layouts",
			Header: []string{"file", "metadata server", "type", "granted to read", "to write", "refused", "returned", "devices", "sent to data servers"},
			Right:  []bool{false, false, false, true, true, false, true, false, false},
		}
		for i := range rep.Layouts {
			l := &rep.Layouts[i]
			name := l.Path
			if name == "" {
				name = "handle " + l.Handle[:min(len(l.Handle), 40)]
			}
			refused := "–"
			if len(l.Refused) > 0 {
				refused = counted(l.Refused)
			}
			var io []string
			for _, d := range l.IO {
				io = append(io, fmt.Sprintf("%s: %d READ of %s, %d WRITE of %s", d.Server, d.Reads, units.BytesUnit(float64(d.Read)), d.Writes, units.BytesUnit(float64(d.Written))))
			}
			t.Rows = append(t.Rows, []string{
				name, l.Server, l.Type, fmt.Sprint(l.Read), fmt.Sprint(l.Write), refused, fmt.Sprint(l.Returned),
				strings.Join(l.Devices, " "), strings.Join(io, "; "),
			})
		}
		v.Tables = append(v.Tables, t.shown())
	}
	if len(rep.Devices) > 0 {
		t := Table{Title: "Devices", Header: []string{"device", "type", "status", "told by", "addresses"}, Right: make([]bool, 5)}
		for _, d := range rep.Devices {
			t.Rows = append(t.Rows, []string{d.ID, d.Type, d.Status, d.Server, strings.Join(d.Addresses, ", ")})
		}
		v.Tables = append(v.Tables, t.shown())
	}
}
