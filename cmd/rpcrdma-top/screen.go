package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/internal/units"
)

// markWidth is the room for the cursor and the mark of a row.
const markWidth = 2

// View implements tea.Model.
func (u *ui) View() string {
	if u.width < 1 || u.height < 1 {
		return ""
	}
	var lines []string
	u.tableRow, u.cut = 0, ""
	switch {
	case u.help:
		lines = u.helpLines()
	default:
		lines = append(lines, u.title())
		if u.height > 2 {
			lines = append(lines, u.tabs())
		}
		body := u.bodyLines(u.body())
		for len(body) < u.body() {
			body = append(body, u.st.line(u.width, normal))
		}
		lines = append(lines, body[:u.body()]...)
		if u.height > 1 {
			lines = append(lines, u.foot())
		}
	}
	if len(lines) > u.height {
		lines = lines[:u.height]
	}
	return strings.Join(lines, "\n")
}

func (u *ui) bodyLines(height int) []string {
	if height <= 0 {
		return nil
	}
	if u.chooser.on {
		return u.chooserLines(height)
	}
	if u.detail {
		return u.detailLines(height)
	}
	var out []string
	put := func(spans []span) { out = append(out, u.st.line(u.width, normal, spans...)) }
	switch u.view {
	case heatmap:
		for _, l := range u.heatLines(u.snap, u.width, height) {
			put(l)
		}
		return out
	case causes:
		return u.whyLines(height)
	case overview:
		for i, l := range u.head(u.snap, u.width, u.totals) {
			if height < 8 && i > 1 {
				break // a small window is for the table
			}
			put(l)
		}
	case transactions:
		put(u.counts())
	}
	var below []string
	if u.view == connections {
		if l := u.connectionLines(); height >= len(l)+5 {
			below = l
		}
	}
	if u.view == sessions {
		below = u.sessionLines(max(height/2, height-6))
	}
	out = append(out, u.tableLines(len(out), height-len(out)-len(below))...)
	if len(below) > 0 {
		for len(out)+len(below) < height {
			out = append(out, u.st.line(u.width, normal))
		}
		out = append(out, below...)
	}
	return out
}

// counts is the line above the transactions.
func (u *ui) counts() []span {
	s := u.snap
	if s.Paged {
		return []span{{"all " + number(s.PageAll), bold}, {" that have ended, in the order of their end; a: back", normal}}
	}
	out := []span{{strconv.Itoa(s.Open), bold}, {" in flight", normal}}
	if s.Stuck > 0 {
		out = append(out, span{", ", normal}, span{fmt.Sprintf("%d stuck", s.Stuck), bad})
	}
	if s.Open > 0 {
		out = append(out, span{", oldest " + u.g.plain(units.Elapsed(s.Oldest)), normal})
	}
	if s.Unacked > 0 {
		out = append(out, span{fmt.Sprintf(", %d replies not acknowledged", s.Unacked), normal})
	}
	if s.Beyond > 0 {
		out = append(out, span{fmt.Sprintf(", %d not listed", s.Beyond), warn})
	}
	if done := listedEnded(s); done > 0 {
		of := ""
		if all := endedInAll(s); all > uint64(done) {
			of = fmt.Sprintf(" of %d", all)
		}
		out = append(out, span{fmt.Sprintf("; %d%s ended: slow, failed, latest", done, of), dim})
	}
	return out
}

// listedEnded is how many of the listed transactions have ended.
func listedEnded(s *monitor.Snapshot) (n int) {
	for i := range s.Rows {
		if s.Rows[i].Ended != 0 {
			n++
		}
	}
	return n
}

// endedInAll is how many have ended, listed or not.
func endedInAll(s *monitor.Snapshot) uint64 {
	if s.Total == nil {
		return 0
	}
	return s.Total.Count
}

// tableOf makes the table of a view, as the user wants it.
func (u *ui) tableOf(v view) *table {
	t := u.layout.apply(v, u.drawing.tableOf(u.snap, v, u.totals))
	if t != nil {
		t.order(u.at[v].sort, u.at[v].turn)
	}
	return t
}

// tableOf makes the table of a view; nil if it has none.
func (d *drawing) tableOf(s *monitor.Snapshot, v view, totals bool) *table {
	switch v {
	case overview:
		return d.operationsTable(s, totals)
	case transactions:
		return d.transactionsTable(s)
	case connections:
		return d.connectionsTable(s, totals)
	case files:
		return d.usageTable(s, s.Files, s.FilesTime, s.FilesRest, "FILE", totals)
	case wire:
		return d.fabricTable(s, totals)
	case sessions:
		return d.sessionsTable(s, totals)
	case clients:
		return d.usageTable(s, s.Clients, s.ClientsTime, s.ClientsRest, "CLIENT", totals)
	}
	return nil
}

// follow keeps the cursor on its row, wherever the row moves. A cursor that has not been moved stays at the
// top.
func (u *ui) follow(rows []row) {
	p := &u.at[u.view]
	if p.id != "" {
		for i := range rows {
			if rows[i].id == p.id {
				p.cursor = i
				return
			}
		}
	}
	p.cursor = min(p.cursor, max(len(rows)-1, 0))
}

// tableLines draws the table of the view.
func (u *ui) tableLines(above, height int) []string {
	t := u.tableOf(u.view)
	if t == nil || height < 1 {
		return nil
	}
	u.table = t
	p := &u.at[u.view]
	u.follow(t.rows)
	at, widths := t.layout(u.g, u.width, markWidth)
	u.columns, u.widths = at, widths
	out := []string{u.st.line(u.width, title, t.header(u.g, at, widths, markWidth)...)}
	u.tableRow = 2 + above + 1
	if len(t.rows) == 0 {
		if u.snap.Filter != "" && u.view != wire {
			t.empty = "no transaction matches the filter"
		}
		return append(out, u.st.line(u.width, normal, span{"  " + t.empty, dim}))
	}
	room := max(height-1, 1)
	p.top = min(p.top, p.cursor)
	p.top = max(p.top, p.cursor-room+1)
	p.top = max(min(p.top, len(t.rows)-room), 0)
	u.cut = t.of(p.top, min(room, len(t.rows)))
	for i := p.top; i < min(p.top+room, len(t.rows)); i++ {
		r := &t.rows[i]
		over, cursor := normal, " "
		if i == p.cursor {
			over, cursor = chosen, u.g.cursor
		}
		mark := r.mark
		if mark == "" {
			mark = " "
		}
		markTone := normal
		if mark != " " {
			markTone = bad
		}
		spans := append([]span{{cursor, normal}, {mark, markTone}}, t.line(u.g, r, at, widths)...)
		out = append(out, u.st.line(u.width, over, spans...))
	}
	return out
}

// detailOf is the transaction that is open.
func (u *ui) detailOf() *monitor.Detail {
	if u.frozen {
		return u.feed.Latest().Detail // asked for since
	}
	return u.snap.Detail
}

// detailText are the lines of the transaction that is open.
func (u *ui) detailText() []string {
	d := u.detailOf()
	if d == nil || d.Row.Serial != u.serial {
		return nil
	}
	return strings.Split(strings.TrimRight(d.Text, "\n"), "\n")
}

// detailLines shows one transaction in full.
func (u *ui) detailLines(height int) []string {
	d := u.detailOf()
	var out []string
	put := func(spans ...span) { out = append(out, u.st.line(u.width, normal, spans...)) }
	if d == nil || d.Row.Serial != u.serial {
		put(span{"looking it up", dim})
		return out
	}
	if d.Text == "" {
		put(span{"this transaction has ended and is no longer kept", warn})
		return out
	}
	x := &d.Row
	state := x.Phase.String()
	t := phaseTone(x.Phase)
	switch {
	case x.Stuck:
		state, t = "stuck in "+x.Phase.Short()+": nothing for "+u.g.plain(units.Elapsed(x.Idle)), bad
	case x.Ended != 0:
		state, t = x.State.String()+" "+x.Status, normal
	case !d.Found:
		state, t = "ended; no longer kept", warn
	}
	put(span{"XID " + units.XID(x.XID) + " ", bold}, span{u.g.plain(x.Operation) + " ", normal},
		span{u.g.plain(units.Elapsed(x.Age)) + "  ", normal}, span{state, t})
	for i := range x.Progress {
		if i == 4 && len(x.Progress) > 5 {
			put(span{fmt.Sprintf("  and %d more chunks", len(x.Progress)-i), dim})
			break
		}
		c := &x.Progress[i]
		put(u.chunk(c.Kind.String(), monitor.KindLetter(c), c.Index, c.Segments, c.InFlight, c.Offered, c.Asked, c.Moved)...)
	}
	all := u.detailText()
	room := max(height-len(out), 1)
	widest := 0
	for _, l := range all {
		widest = max(widest, runewidth.StringWidth(l))
	}
	u.detailLeft = max(min(u.detailLeft, widest-u.width), 0)
	u.detailTop = max(min(u.detailTop, len(all)-room), 0)
	for _, l := range all[u.detailTop:min(u.detailTop+room, len(all))] {
		put(span{u.g.from(u.g.plain(strings.ReplaceAll(l, "\t", " ")), u.detailLeft), normal})
	}
	return out
}

// chunk is the progress of one chunk.
func (u *ui) chunk(kind, letter string, index, segments, flying int, offered, asked, moved uint64) []span {
	name := fmt.Sprintf("  %s %s chunk", letter, kind)
	if index > 0 {
		name += " " + strconv.Itoa(index)
	}
	w := min(max(u.width-68, 6), 40)
	out := []span{
		{u.g.fit(name, 17, false), normal}, {u.g.bar(moved, offered, w), part3},
		{" " + units.Rounded(float64(moved), 1024) + " of " + units.Size(offered) + " bytes", normal},
	}
	if segments > 1 {
		out = append(out, span{fmt.Sprintf(" in %d segments", segments), normal})
	}
	if asked > moved {
		out = append(out, span{fmt.Sprintf(", %s asked for", units.Rounded(float64(asked-moved), 1024)), accent})
	}
	if flying > 0 {
		out = append(out, span{fmt.Sprintf(", %d in flight", flying), accent})
	}
	return out
}

// foot is the last line: the filter being typed, a message, or keys.
func (u *ui) foot() string {
	switch {
	case u.typing:
		label := u.prompt.label()
		room := u.width - len(label) - 1 // the cursor may stand behind the text
		if room < 8 {
			return u.st.line(u.width, normal, span{u.g.from(u.input.Value(), len(u.input.Value())-u.width+1), normal})
		}
		head := u.st.line(len(label), normal, span{label, bold})
		left := room - u.input.Width - 1
		if u.wrong == "" || left < 12 {
			return head + u.input.View()
		}
		return head + u.input.View() + " " + u.st.line(left, normal, span{u.g.name(strings.TrimPrefix(u.wrong, "filter: "), left), bad})
	case u.message != "":
		return u.st.line(u.width, normal, span{" " + u.g.name(u.message, max(u.width-2, 3)), accent})
	}
	var keys string
	switch {
	case u.chooser.on:
		keys = " Space show  < > move  s sort  d usual  w keep in the configuration  Esc back"
	case u.detail:
		keys = " Esc back  arrows scroll  f search  y copy XID  w write packets  ? help"
	case u.view == causes:
		keys = " 1-9 views  arrows scroll  f search  w write the screen  Space freeze  ? help  q quit"
	case u.view == heatmap:
		keys = " 1-9 views  +/- interval  / filter  Space freeze  ? help  q quit"
	case u.view == overview:
		what := "totals"
		if u.totals {
			what = "interval"
		}
		keys = " Enter narrow  t " + what + "  <> sort  / filter  w write  c columns  +/- interval  ? help"
	case u.view == transactions:
		keys = " Enter open  / filter  f search  w write  y copy XID  c columns  a all  ? help"
	default:
		keys = " Enter its transactions  </> sort  / filter  f search  w write  c columns  ? help"
	}
	if u.snap.Paced && !u.snap.Ended && !u.detail && u.width > 100 {
		keys += "  p pause  [ ] speed"
	}
	if u.cut == "" || u.detail || u.chooser.on {
		return u.st.line(u.width, normal, span{shorten(keys, u.width), dim})
	}
	return u.st.line(u.width, normal, span{u.g.fit(shorten(keys, u.width-len(u.cut)-3), max(u.width-len(u.cut)-1, 0), false), dim}, span{u.cut, accent})
}

// shorten leaves off keys that there is no room for, but not the help.
func shorten(keys string, room int) string {
	help := "  ? help"
	if len(keys) <= room {
		return keys
	}
	keys, _, found := strings.Cut(keys, help)
	if !found {
		help = ""
	}
	for len(keys)+len(help) > room {
		i := strings.LastIndex(keys, "  ")
		if i < 0 {
			return ""
		}
		keys = keys[:i]
	}
	return keys + help
}

// connectionLines describe the connection under the cursor.
func (u *ui) connectionLines() []string {
	rows := u.rows()
	if len(rows) == 0 {
		return nil
	}
	u.follow(rows)
	id, _ := strconv.Atoi(rows[u.at[connections].cursor].id)
	var c *monitor.Connection
	for i := range u.snap.Connections {
		if u.snap.Connections[i].ID == id {
			c = &u.snap.Connections[i]
		}
	}
	if c == nil {
		return nil
	}
	var out []string
	put := func(label, value string) {
		out = append(out, u.st.line(u.width, normal, span{" " + u.g.fit(label, 10, false), dim}, span{u.g.plain(value), normal}))
	}
	from := u.g.name(u.hosts.both(c.Client.Address), 200) + " " + c.Client.Endpoint
	to := u.g.name(u.hosts.both(c.Server.Address), 200) + " " + c.Server.Endpoint
	ends := from + " to " + to + ", "
	head, state := fmt.Sprintf(" Connection %d", c.ID), span{c.State, toneIf(c.State != "open", warn)}
	long := len(head)+2+len(c.Fabric)+2+len(ends)+len(c.State)+len(dashed(c.Ending, c.State)) > u.width
	if long {
		ends = ""
	}
	out = append(out, u.st.line(u.width, normal, span{head, bold}, span{": " + c.Fabric + ", " + ends, normal},
		state, span{u.g.plain(dashed(c.Ending, c.State)), normal}))
	if long {
		put("from", from)
		put("to", to)
	}
	if c.Tunnel != nil {
		put("network", text.NetworkName(c.Tunnel))
	}
	setup := "not captured"
	if c.InlineCall > 0 {
		setup = fmt.Sprintf("inline %d bytes to the server, %d to the client", c.InlineCall, c.InlineReply)
	}
	if c.MTU > 0 {
		setup = fmt.Sprintf("MTU %d, ", c.MTU) + setup
	}
	put("setup", setup)
	credits := "none seen"
	if c.Granted > 0 || c.Asked > 0 {
		credits = fmt.Sprintf("%d in use of %d granted, %d asked for", c.Used, c.Granted, c.Asked)
	}
	if c.Backward > 0 {
		credits += fmt.Sprintf("; %d calls of the server in flight", c.Backward)
	}
	put("credits", credits)
	var models []string
	for _, m := range c.Models {
		models = append(models, fmt.Sprintf("%s %s (%s)", m.Model, units.Count(m.Count), units.PartCell(m.Count, c.Count)))
	}
	put("model", strings.Join(models, ", "))
	for i, p := range [2]*monitor.Peer{&c.Client, &c.Server} {
		s := fmt.Sprintf("%s packets, %s bytes", units.Count(p.Packets), units.Bytes(p.Bytes))
		for _, x := range []struct {
			name string
			n    uint64
		}{
			{"seen again", p.Retransmits}, {"NAKs", p.NAKs}, {"RNR", p.RNRs}, {"CNPs", p.CNPs}, {"ECN marks", p.ECN}, {"missing", p.Gaps}, {"wrong CRC", p.BadCRC},
		} {
			if x.n > 0 {
				s += fmt.Sprintf(", %s %s", units.Count(x.n), x.name)
			}
		}
		put([2]string{"client", "server"}[i], s)
	}
	return out
}

func dashed(s, state string) string {
	if s == "" || s == state {
		return ""
	}
	return ": " + s
}
