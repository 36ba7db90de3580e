package html

import (
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Bounds of the page: a browser has to draw it.
const (
	maxRows = 200 // groups in tables
	maxBars = 40  // groups in drawings
	maxSlow = 100
	// maxDrawings bounds the drawings of the slowest transactions, in bytes.
	maxDrawings = 160 << 10
	maxListed   = 64 // connections
	maxXIDs     = 8
	slowWidth   = 260.0
	slowHeight  = 14.0
)

// view is what the template shows.
type view struct {
	Title    string
	Subtitle string
	Cards    []card
	By       []string
	Groups   []groupRow
	MoreRows int
	Ranges   *plot.Chart
	Shares   *plot.Chart
	Legend   []legend
	Lost     []lostRow
	LostNote string
	Heat     *plot.Chart
	Cells    *heatCells
	Ran      []ranRow
	MoreSlow int
	NoDraw   int // slowest transactions without a drawing, for lack of room
	HeatNote string
	Rates    *plot.Chart
	Volume   *plot.Chart
	Flight   *plot.Chart
	Credits  bool
	Troubles *plot.Chart
	Kinds    []legend
	Costs    []costRow
	Slow     []slowRow
	Chunks   []chunkRow
	Inline   []latency.Inline
	Copied   []string
	Sessions *sessionsView
	Why      *whyView // nil: not known
	Tool     string
	Conns    []connRow
	MoreConn int
	Notes    []string
	Interval string
	Start    string
}

type card struct{ Name, Value, Note string }

type legend struct{ Class, Name, Note string }

type groupRow struct {
	Key    []string
	Cells  []cell
	Errors string // by status
}

// cell is a number with what it is sorted by.
type cell struct {
	Text string
	Sort string
}

type costRow struct {
	Kind                          string
	Events, Touched               uint64
	Mean, Others, Slower, Example string
}

type slowRow struct {
	Total, Sort, XID, What, Details, Time string
	ID                                    string
	Drawing                               drawing // of its packets, if there is one
	Bar                                   *plot.Chart
	Notes                                 []string
	Bad                                   bool
}

type lostRow struct {
	Cause, Time, Share string
	Touched            uint64
	Phases             []string
}

type chunkRow struct {
	Kind                     string
	Use                      latency.ChunkUse
	Offered, Used, Wasted, P string
}

type connRow struct {
	Title   string
	Facts   []card
	Remarks []latency.Remark
}

// phases in the order of a transaction, the wait before the pull that contains
// it.
var phases = []phase{
	{transaction.PhaseCall, "first to last packet of the call"},
	{transaction.PhaseWait, "until the first Read Request; a part of the pull"},
	{transaction.PhasePull, "RDMA Reads of the call's chunks"},
	{transaction.PhaseServer, "until the first RDMA Write or the reply"},
	{transaction.PhasePush, "RDMA Writes of the reply's chunks"},
	{transaction.PhaseReply, "until the last packet of the reply"},
}

type phase struct {
	transaction.Phase
	note string
}

// class colors it.
func (p phase) class() string { return p.Short() }

func nsCell(ns int64) cell { return cell{units.Duration(ns), fmt.Sprint(ns)} }

func newView(rep *latency.Report) *view {
	v := &view{
		Title: strings.Join(rep.Inputs, ", "), By: rep.By, Notes: rep.Notes,
		Interval: units.Round(time.Duration(rep.Series.Interval)), Start: rep.Start.String(),
	}
	if v.Title == "" {
		v.Title = "capture"
	}
	v.Subtitle = fmt.Sprintf("%s in %s from %s", units.Plural(rep.Packets, "packet"), rep.Span, v.Start)
	if rep.Packets == 0 {
		v.Subtitle = "no packets"
	}
	if rep.Account != nil && rep.Packets > 0 {
		v.Subtitle = fmt.Sprintf("%s from %s; %s", rep.Span, v.Start, rep.Account.Line)
	}
	if rep.Filter != "" {
		v.Subtitle += "; transactions for which " + rep.Filter + " holds"
	}
	v.cards(rep)
	for _, p := range phases {
		v.Legend = append(v.Legend, legend{p.class(), p.Short(), p.note})
	}
	if rep.All.Parts()[latency.PathPart] > 0 {
		v.Legend = append(v.Legend, legend{"path", "path", "packets between the capture point and the server, there and back, by the transport's acknowledgements; of groups, not a part of pull, server and push"})
	}
	if rep.All.Count > 0 {
		v.groups(rep)
		v.ranges(rep)
		v.shares(rep)
		v.chunks(rep)
		v.slow(rep)
		v.lost(rep)
		v.costs(rep)
	}
	if len(rep.Series.Slots) > 0 {
		v.heat(rep)
		v.rates(rep)
		v.flight(rep)
		v.troubles(rep)
		v.ran(rep)
	}
	v.connections(rep)
	return v
}

func (v *view) cards(rep *latency.Report) {
	a := rep.All
	d := a.Latency
	v.Cards = []card{
		{"transactions", fmt.Sprint(a.Count), a.Rate.Rounded(1000) + " a second"},
		{"failed", fmt.Sprint(a.Errors), units.Part(a.Errors, a.Count) + " %"},
		{"not whole", fmt.Sprint(a.NoReply + a.NoCall + a.Incomplete), fmt.Sprintf("%d without reply", a.NoReply)},
		{"mean latency", units.Duration(d.Mean), fmt.Sprintf("of %d", d.Count)},
		{"median", units.Duration(d.P50), "p50"},
		{"p99", units.Duration(d.P99), "max " + units.Duration(d.Max)},
		{"moved by RDMA", units.BytesUnit(float64(a.ReadBytes + a.WriteBytes)), fmt.Sprintf("%s read, %s written", units.BytesUnit(float64(a.ReadBytes)), units.BytesUnit(float64(a.WriteBytes)))},
		{"packets again", fmt.Sprint(a.Retransmits), "of transactions"},
	}
}

func (v *view) groups(rep *latency.Report) {
	for i, g := range rep.Groups {
		if i == maxRows {
			v.MoreRows = len(rep.Groups) - maxRows
			break
		}
		d := g.Latency
		r := groupRow{Key: g.Key, Cells: []cell{
			{fmt.Sprint(g.Count), fmt.Sprint(g.Count)},
			{g.Rate.Rounded(1000), fmt.Sprint(g.Rate)},
			{fmt.Sprint(g.Errors), fmt.Sprint(g.Errors)},
		}}
		if len(g.Key) == 0 {
			r.Key = []string{"all"}
		}
		var bad []string
		for _, s := range slices.Sorted(maps.Keys(g.Statuses)) {
			bad = append(bad, fmt.Sprintf("%d %s", g.Statuses[s], s))
		}
		r.Errors = strings.Join(bad, ", ")
		for _, ns := range []int64{d.Mean, d.Min, d.P50, d.P90, d.P99, d.P999, d.Max} {
			if d.Count == 0 {
				r.Cells = append(r.Cells, cell{"–", "-1"})
			} else {
				r.Cells = append(r.Cells, nsCell(ns))
			}
		}
		share := 0.0
		if rep.All.Latency.Sum > 0 {
			share = float64(d.Sum) / float64(rep.All.Latency.Sum)
		}
		r.Cells = append(r.Cells, cell{fmt.Sprintf("%.1f %%", 100*share), fmt.Sprint(share)})
		v.Groups = append(v.Groups, r)
	}
	if len(v.By) == 0 {
		v.By = []string{"group"}
	}
}

// name is the name of a group, short enough for an axis.
func name(g *latency.Group) string {
	s := strings.Join(g.Key, " ")
	if s == "" {
		s = "all"
	}
	r := []rune(s)
	if len(r) > 26 {
		return string(r[:10]) + "…" + string(r[len(r)-15:])
	}
	return s
}

// timed are the groups with a latency, as many as can be drawn.
func timed(rep *latency.Report) []*latency.Group {
	var out []*latency.Group
	for _, g := range rep.Groups {
		if g.Latency.Count > 0 && len(out) < maxBars {
			out = append(out, g)
		}
	}
	return out
}

const (
	rowHeight = 22.0
	nameWidth = 190.0
)

// ranges draws percentiles of each group on one logarithmic scale.
func (v *view) ranges(rep *latency.Report) {
	groups := timed(rep)
	if len(groups) == 0 {
		return
	}
	p := plot.New(plot.Top+plot.Bottom+float64(len(groups))*rowHeight, "Latency percentiles by "+strings.Join(rep.By, ", "))
	p.X0 = nameWidth
	lo, hi := int64(math.MaxInt64), int64(1)
	for _, g := range groups {
		lo, hi = min(lo, g.Latency.Min), max(hi, g.Latency.Max)
	}
	s := newLogScale(lo, hi, p.X0, p.X1-8)
	p.AddLine(p.X0, p.Y1, p.X1, p.Y1, "axis")
	s.decades(func(x float64, text string) {
		p.AddLine(x, p.Y0, x, p.Y1, "grid")
		p.XTick(x, text)
	})
	p.XTitle("latency, first packet of the call to last of the reply (logarithmic)")
	for i, g := range groups {
		y := p.Y0 + (float64(i)+0.5)*rowHeight
		d := g.Latency
		p.AddText(p.X0-8, y+4, "end", "name", name(g))
		p.AddLine(s.at(d.Min), y, s.at(d.Max), y, "whisker")
		a, b := s.at(d.P50), s.at(d.P99)
		p.AddRect(a, y-5, max(b-a, 1), 10, "p99", 0,
			fmt.Sprintf("%s: %d timed, min %s, p50 %s, p90 %s, p99 %s, p99.9 %s, max %s", name(g), d.Count,
				units.Duration(d.Min), units.Duration(d.P50), units.Duration(d.P90), units.Duration(d.P99), units.Duration(d.P999), units.Duration(d.Max)))
		p.AddRect(a, y-5, max(s.at(d.P90)-a, 1), 10, "p90", 0, "")
		p.AddLine(a, y-8, a, y+8, "median")
		x := s.at(d.P999)
		p.AddLine(x, y-5, x, y+5, "p999")
		x = s.at(d.Max)
		p.AddLine(x, y-3, x, y+3, "whisker")
	}
	v.Ranges = &p.Chart
}

// shares draws the phases of each group as parts of a bar.
func (v *view) shares(rep *latency.Report) {
	groups := timed(rep)
	if rep.All.Latency.Sum == 0 {
		return
	}
	if len(groups) > 1 {
		groups = append([]*latency.Group{rep.All}, groups...)
	}
	p := plot.New(plot.Top+plot.Bottom+float64(len(groups))*rowHeight, "Share of each phase")
	p.X0 = nameWidth
	p.X1 -= 70
	p.AddLine(p.X0, p.Y1, p.X1, p.Y1, "axis")
	for v := 0; v <= 100; v += 20 {
		p.XTick(p.X0+(p.X1-p.X0)*float64(v)/100, fmt.Sprintf("%d %%", v))
	}
	p.XTitle("share of the group's time; at the right its mean")
	for i, g := range groups {
		y := p.Y0 + (float64(i)+0.5)*rowHeight
		p.AddText(p.X0-8, y+4, "end", "name", name(g))
		p.AddText(p.X1+8, y+4, "start", "tick", units.Duration(g.Latency.Mean))
		if g.Latency.Sum == 0 {
			continue
		}
		parts := g.Parts()
		drawBars(&p.Chart, p.X0, y-7, p.X1-p.X0, 14, append(phaseBars(func(ph transaction.Phase) int64 {
			if ph == transaction.PhaseWait {
				return min(g.Phase(ph).Sum, parts[transaction.PhasePull])
			}
			return parts[ph]
		}), bar{"path", "path", parts[latency.PathPart]}, bar{"rest", "not known", parts[latency.UndividedPart]}), g.Latency.Sum, name(g)+": ")
	}
	v.Shares = &p.Chart
}

// bar is a part of a bar.
type bar struct {
	class, name string
	time        int64
}

// phaseBars are the phases one after the other. The argument pull is drawn without the wait that it contains.
func phaseBars(time func(transaction.Phase) int64) []bar {
	var list []bar
	for _, ph := range phases {
		n := time(ph.Phase)
		if ph.Phase == transaction.PhasePull {
			n -= time(transaction.PhaseWait)
		}
		list = append(list, bar{ph.class(), ph.Short(), n})
	}
	return list
}

// drawBars draws parts of a total one after the other.
func drawBars(p *plot.Chart, x, y, width, height float64, parts []bar, total int64, prefix string) {
	if total <= 0 {
		return
	}
	for _, b := range parts {
		if b.time <= 0 {
			continue
		}
		w := width * float64(b.time) / float64(total)
		p.AddRect(x, y, w, height, b.class, 0, fmt.Sprintf("%s%s %s, %.1f %%", prefix, b.name, units.Duration(b.time), 100*float64(b.time)/float64(total)))
		x += w
	}
}

func (v *view) chunks(rep *latency.Report) {
	c := &rep.All.Chunks
	for _, k := range []struct {
		name string
		use  latency.ChunkUse
	}{{"Read", c.Read}, {"Position-Zero", c.PositionZero}, {"Write", c.Write}, {"Reply", c.Reply}} {
		if k.use.Messages == 0 {
			continue
		}
		v.Chunks = append(v.Chunks, chunkRow{k.name, k.use, units.BytesUnit(float64(k.use.Offered)), units.BytesUnit(float64(k.use.Used)),
			units.BytesUnit(float64(k.use.Wasted)), units.Part(k.use.Wasted, k.use.Offered) + " %"})
	}
	if c.Transactions > 0 {
		v.Inline = rep.All.Inline
	}
	for i := range v.Inline {
		v.Copied = append(v.Copied, units.BytesUnit(float64(v.Inline[i].Copied)))
	}
}

func (v *view) slow(rep *latency.Report) {
	drawn := 0
	list := rep.SlowestOfWork()
	for i, x := range list {
		if i == maxSlow {
			v.MoreSlow = len(list) - maxSlow
			break
		}
		p := &plot.Chart{Width: slowWidth, Height: slowHeight, Label: "phases of this transaction"}
		drawBars(p, 0, 0, slowWidth, slowHeight, phaseBars(func(ph transaction.Phase) int64 { return x.Phases[ph.String()] }), x.Total, "")
		r := slowRow{
			Total: units.Duration(x.Total), Sort: fmt.Sprint(x.Total), XID: fmt.Sprintf("%08x", x.XID), What: x.Operation,
			Time: x.Time.Format("15:04:05.000000"), Bar: p, Notes: x.Notes, Bad: x.Failed,
		}
		if len(x.Drawing) > 0 {
			if drawn += len(x.Drawing); drawn <= maxDrawings {
				r.ID, r.Drawing = "x"+strconv.Itoa(i), drawing(x.Drawing)
			} else {
				v.NoDraw++
			}
		}
		if x.File != "" {
			r.What += " " + x.File
		}
		if x.Count > 0 {
			r.What += fmt.Sprintf(" @%s+%s", units.Size(x.Offset), units.Size(x.Count))
		}
		details := []string{
			fmt.Sprintf("connection %d", x.Connection), fmt.Sprintf("frames %d–%d", x.CallFrame, x.ReplyFrame), x.Model, x.Status,
		}
		if x.InFlight > 1 {
			details = append(details, fmt.Sprintf("%d in flight", x.InFlight))
		}
		if x.Retransmit > 0 {
			details = append(details, units.Plural(x.Retransmit, "packet")+" again")
		}
		if x.Cause != "" {
			details = append(details, fmt.Sprintf("%s lost to %s", units.Duration(x.Lost[x.Cause]), strings.ReplaceAll(x.Cause, "_", " ")))
		}
		r.Details = strings.Join(append(details, x.Troubles...), ", ")
		v.Slow = append(v.Slow, r)
	}
}

// lost says what the time was lost to.
func (v *view) lost(rep *latency.Report) {
	l := rep.All.Lost
	if !l.Some() && !l.Waited() {
		return
	}
	for i := 1; l.Some() && i <= rdma.NumCauses; i++ { // the rest last
		c := rdma.Cause(i % rdma.NumCauses)
		x := l.To(c)
		if x.Time == 0 {
			continue
		}
		r := lostRow{Cause: strings.ReplaceAll(c.String(), "_", " "), Time: units.Duration(x.Time), Share: fmt.Sprintf("%.1f %%", 100*x.Share), Touched: x.Transactions}
		for ph := range transaction.Parts() {
			r.Phases = append(r.Phases, units.Duration(x.Phases[ph.String()]))
		}
		v.Lost = append(v.Lost, r)
	}
	var notes []string
	if l.Looked() {
		notes = append(notes, fmt.Sprintf("Of %s over RDMA.", units.Plural(l.Transactions, "transaction")))
	}
	if l.CreditWaits > 0 {
		notes = append(notes, fmt.Sprintf("%s may have waited for a credit, %s in sum: all were in use until a reply freed one just before the call.", units.Plural(l.CreditWaits, "call"), units.Duration(l.CreditWait)))
	}
	if l.SlotWaits > 0 {
		notes = append(notes, fmt.Sprintf("%s may have waited for a slot of the session, %s in sum: all were in use until a reply freed one just before the call.", units.Plural(l.SlotWaits, "call"), units.Duration(l.SlotWait)))
	}
	v.LostNote = strings.Join(notes, " ")
}

func (v *view) costs(rep *latency.Report) {
	for i := range rep.Troubles {
		t := &rep.Troubles[i]
		r := costRow{Kind: t.Kind, Events: t.Events, Touched: t.Transactions, Mean: "–", Others: "–", Slower: "–"}
		if t.Compared > 0 {
			r.Mean, r.Others = units.Duration(t.Mean), units.Duration(t.Others)
			if t.Others > 0 {
				r.Slower = fmt.Sprintf("%+.0f %%", 100*(float64(t.Mean)/float64(t.Others)-1))
			}
		}
		var xids []string
		for _, x := range t.XIDs[:min(len(t.XIDs), maxXIDs)] {
			xids = append(xids, fmt.Sprintf("%08x", x.XID))
		}
		if uint64(len(xids)) < t.Transactions {
			xids = append(xids, "…")
		}
		r.Example = strings.Join(xids, " ")
		v.Costs = append(v.Costs, r)
	}
}

func (v *view) connections(rep *latency.Report) {
	for i := range rep.Connections {
		c := &rep.Connections[i]
		rdma := c.Fabric != "tcp" && c.Fabric != "udp"
		if !rdma && len(c.Remarks) == 0 {
			continue
		}
		if len(v.Conns) == maxListed {
			v.MoreConn++
			continue
		}
		r := connRow{
			Title:   fmt.Sprintf("%d: %s, client %s, server %s", c.Connection, c.Fabric, endName(c.Fabric, &c.Client), endName(c.Fabric, &c.Server)),
			Remarks: c.Remarks,
		}
		fact := func(name, value string) { r.Facts = append(r.Facts, card{Name: name, Value: value}) }
		if c.MTU > 0 {
			fact(text.MTU(c.Fabric), fmt.Sprint(c.MTU))
		}
		if c.Depth >= 0 {
			fact("Read depth", fmt.Sprint(c.Depth))
		}
		if c.InlineCall > 0 {
			fact("inline, calls / replies", fmt.Sprintf("%d / %d", c.InlineCall, c.InlineReply))
		}
		if a, b := c.Client.Setup, c.Server.Setup; a != nil && b != nil {
			if c.Fabric == "iwarp" {
				fact("MPA revision", fmt.Sprint(min(a.MPARevision, b.MPARevision)))
				fact("CRC, markers", onOff(a.CRC || b.CRC)+", "+onOff(a.Markers || b.Markers))
			} else {
				fact("retries", fmt.Sprint(a.RetryCount))
				fact("RNR retries, client / server", fmt.Sprintf("%d / %d", a.RNRRetryCount, b.RNRRetryCount))
				timeout := "none"
				if a.AckTimeout > 0 {
					timeout = units.Duration(a.AckTimeout)
				}
				fact("ACK timeout", timeout)
			}
		}
		if f := c.Forward; f != nil {
			fact("calls in flight, most / mean", fmt.Sprintf("%d / %.2f", f.Most, f.Mean))
			if f.Granted.Max > 0 {
				fact("credits asked / granted", fmt.Sprintf("%d / %d", f.Requested.Max, f.Granted.Max))
				fact("time at the credit limit", units.Duration(f.AtLimit))
			}
		}
		if x := c.Reads; x != nil {
			fact("RDMA Reads in flight, most / mean", fmt.Sprintf("%d / %.2f", x.Most, x.Mean))
			fact("time at the Read depth", units.Duration(x.AtLimit))
		}
		if c.Ending != "" {
			fact("ended", c.Ending)
		}
		v.Conns = append(v.Conns, r)
	}
}

// endName writes an end as the other outputs do: queue pairs are hexadecimal, ports decimal.
func endName(fabric string, e *latency.Endpoint) string {
	switch {
	case fabric == "tcp" || fabric == "udp" || fabric == "iwarp":
		return net.JoinHostPort(e.Address, fmt.Sprint(e.Endpoint))
	case e.Endpoint == 0:
		return e.Address
	}
	return fmt.Sprintf("%s QP 0x%x", e.Address, e.Endpoint)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
