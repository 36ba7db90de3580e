package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/internal/units"
)

// sessionName is the ID of a session without zeros at its end, or the version of a client without sessions.
func sessionName(x *session.Use) string {
	if x.ID == "" {
		return "NFSv" + x.Version
	}
	id := x.ID
	for len(id) > 2 && strings.HasSuffix(id, "00") {
		id = id[:len(id)-2]
	}
	return id
}

// uneven is what the busiest connection carried, in equal shares.
func uneven(calls float64, busy int) string {
	if busy < 2 {
		return "-"
	}
	return strconv.FormatFloat(calls, 'f', 2, 64)
}

// sessionsTable lists sessions, and clients of versions without.
func (d *drawing) sessionsTable(s *monitor.Snapshot, totals bool) *table {
	t := &table{
		columns: []column{
			{title: "SESSION", width: 8, want: 12, most: 32, name: true},
			{title: "CLIENT", width: 9, want: addressWidth, most: 40, rank: 1, short: distinct, apart: true},
			{title: "SERVER", width: 9, want: addressWidth, most: 40, rank: 1, short: distinct, apart: true},
			{title: "CONNS", width: 5, right: true, rank: 2},
			{title: "OPS/S", width: 5, right: true, rank: 2},
			{title: "B/S", width: 6, right: true, rank: 4},
			{title: "SLOTS", width: 5, rank: 1},
			{title: "MEAN", width: 5, right: true, rank: 3},
			{title: "FULL%", width: 5, right: true, rank: 2},
			{title: "AFTER", width: 5, right: true, rank: 3},
			{title: "UNEVEN", width: 6, right: true, rank: 3},
			{title: "COUNT", width: 5, right: true, rank: 5},
			{title: "REFUSED", width: 7, right: true, rank: 6},
			{title: "CALLBACKS", width: 9, right: true, rank: 6},
			{title: "IN USE OVER TIME", width: 8, most: 64, share: 2, rank: 7},
		},
		empty: "no call of NFS yet",
		more:  uint64(s.SessionsRest),
	}
	for i := range s.Sessions {
		x := &s.Sessions[i]
		w, seconds := &x.Now, s.NowSpan.Seconds()
		if totals {
			w, seconds = &x.Total, float64(s.Time-s.First)/1e9
		}
		ops, bytes := 0.0, 0.0
		if seconds > 0 {
			ops, bytes = float64(w.Calls)/seconds, float64(w.Bytes)/seconds
		}
		slots, full, slotTone := strconv.Itoa(x.InUse), 0.0, normal
		if x.Limit > 0 {
			slots += "/" + strconv.FormatUint(uint64(x.Limit), 10)
			slotTone = toneIf(x.InUse >= int(x.Limit), bad)
		}
		if w.Time > 0 {
			full = 100 * float64(w.Full) / float64(w.Time)
		}
		fullText := "-"
		if full > 0 {
			fullText = strconv.FormatFloat(full, 'f', 1, 64)
		}
		calls, _, busy := session.Even(x.Connections)
		r := row{id: strconv.Itoa(x.Number), cells: []cell{
			{text: sessionName(x)},
			{text: d.hosts.name(x.Client)},
			{text: d.hosts.name(x.Server)},
			{text: strconv.Itoa(len(x.Connections)), key: float64(len(x.Connections))},
			{text: units.Rate(ops), key: ops},
			{text: units.Bytes(bytes), key: bytes},
			{text: slots, key: float64(x.InUse), tone: slotTone},
			{text: strconv.FormatFloat(w.Mean(), 'f', 2, 64), key: w.Mean()},
			{text: fullText, key: full, tone: toneIf(full > 0, warn)},
			{text: units.CountCell(w.After), key: float64(w.After), tone: toneIf(w.After > 0, warn)},
			{text: uneven(calls, busy), key: calls},
			{text: units.CountCell(x.Total.Calls), key: float64(x.Total.Calls)},
			{text: units.CountCell(x.Refused), key: float64(x.Refused), tone: toneIf(x.Refused > 0, bad)},
			{text: units.CountCell(x.Callbacks), key: float64(x.Callbacks)},
			{key: w.Mean(), draw: func(w int) []span { return []span{{d.g.sparkline(x.Past, w), accent}} }},
		}}
		if x.Destroyed || !totals && w.Calls == 0 && x.InUse == 0 {
			r.tone = dim
		}
		t.rows = append(t.rows, r)
	}
	return t
}

// carriedTable lists the connections of sessions and clients with what each of them carried.
func (d *drawing) carriedTable(list []session.Use) *table {
	t := &table{
		columns: []column{
			{title: "SESSION", width: 8, want: 12, most: 32, name: true, rank: 7},
			{title: "CONN", width: 4, right: true},
			{title: "CLIENT", width: 9, want: addressWidth, most: 40, rank: 2, short: distinct, apart: true},
			{title: "SERVER", width: 9, want: addressWidth, most: 40, rank: 1, short: distinct, apart: true},
			{title: "CALLS", width: 5, right: true, rank: 1},
			{title: "%", id: "%calls", width: 5, right: true, rank: 1},
			{title: "", id: "calls-bar", width: 6, most: 24, share: 1, rank: 8},
			{title: "READ", width: 6, right: true, rank: 3},
			{title: "WRITTEN", width: 7, right: true, rank: 3},
			{title: "BYTES%", width: 6, right: true, rank: 1},
			{title: "", id: "bytes-bar", width: 6, most: 24, share: 1, rank: 9},
			{title: "MOST", width: 4, right: true, rank: 4},
			{title: "MEAN", width: 7, right: true, rank: 2},
			{title: "BOUND BY", width: 3, want: 8, most: 20, head: true, rank: 5},
		},
	}
	for i := range list {
		x := &list[i]
		for _, c := range x.Connections {
			bound := c.Bound
			if bound == "" {
				bound = "-"
			}
			bar := func(f float64) func(int) []span {
				return func(w int) []span { return []span{{d.g.bar(uint64(1e6*min(max(f, 0), 1)), 1e6, w), part3}} }
			}
			share := func(f float64) cell {
				return cell{text: strconv.FormatFloat(100*f, 'f', 1, 64), key: f}
			}
			r := row{id: fmt.Sprintf("%d %d", x.Number, c.ID), cells: []cell{
				{text: sessionName(x)},
				{text: strconv.Itoa(c.ID), key: -float64(c.ID)},
				{text: d.hosts.name(c.Client)},
				{text: d.hosts.name(c.Server)},
				{text: units.CountCell(c.Calls), key: float64(c.Calls)},
				share(c.Share),
				{key: c.Share, draw: bar(c.Share)},
				{text: units.Bytes(c.Read), key: float64(c.Read)},
				{text: units.Bytes(c.Written), key: float64(c.Written)},
				share(c.Bytes),
				{key: c.Bytes, draw: bar(c.Bytes)},
				{text: strconv.Itoa(c.InFlight), key: float64(c.InFlight)},
				{text: units.Latency(c.Mean), key: float64(c.Mean)},
				{text: bound},
			}}
			t.rows = append(t.rows, r)
		}
	}
	return t
}

// sessionAt is what has a row.
func (u *ui) sessionAt(id string) *session.Use {
	for i := range u.snap.Sessions {
		if strconv.Itoa(u.snap.Sessions[i].Number) == id {
			return &u.snap.Sessions[i]
		}
	}
	return nil
}

// ofSession is a filter for the calls on the connections of a row.
func (u *ui) ofSession(id string) string {
	x := u.sessionAt(id)
	if x == nil || len(x.Connections) == 0 {
		return ""
	}
	ids := make([]int, 0, len(x.Connections))
	for _, c := range x.Connections {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	var list []string
	for _, id := range ids {
		list = append(list, strconv.Itoa(id))
	}
	return "connection in {" + strings.Join(list, ", ") + "}"
}

// sessionLines tell of the connections of the row under the cursor, in at most as many lines.
func (u *ui) sessionLines(most int) []string {
	rows := u.rows()
	if len(rows) == 0 {
		return nil
	}
	u.follow(rows)
	x := u.sessionAt(rows[u.at[sessions].cursor].id)
	if x == nil {
		return nil
	}
	t := u.carriedTable([]session.Use{*x})
	t.columns = t.columns[1:] // the session is the same for all of them
	for i := range t.rows {
		t.rows[i].cells = t.rows[i].cells[1:]
	}
	head := "NFSv" + x.Version
	if x.ID != "" {
		head = "Session " + x.ID
		if x.Owner != "" {
			head += " of " + u.g.name(x.Owner, 60)
		}
	}
	calls, bytes, busy := session.Even(x.Connections)
	even := fmt.Sprintf("%d of %d connections carry calls", busy, len(x.Connections))
	if busy > 1 {
		even += fmt.Sprintf("; busiest %.2f times its share, %.2f by bytes", calls, bytes)
	}
	out := []string{
		u.st.line(u.width, normal, span{" " + head, bold}),
		u.st.line(u.width, normal, span{" " + u.g.plain(even), normal}),
	}
	at, widths := t.layout(u.g, u.width, markWidth)
	out = append(out, u.st.line(u.width, title, t.header(u.g, at, widths, markWidth)...))
	for i := range t.rows {
		if len(out) >= most-1 && i < len(t.rows)-1 {
			out = append(out, u.st.line(u.width, normal, span{fmt.Sprintf("  and %d more", len(t.rows)-i), dim}))
			break
		}
		out = append(out, u.st.line(u.width, normal, append([]span{{"  ", normal}}, t.line(u.g, &t.rows[i], at, widths)...)...))
	}
	if len(out) > most {
		return nil
	}
	return out
}
