package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// ReportSchema is the value of the key "schema" of a Report.
const ReportSchema = "rpcrdma.fabric/1"

// Report is what a Recorder found. Durations are nanoseconds.
type Report struct {
	Schema      string         `json:"schema"`
	Inputs      []string       `json:"inputs"`
	Totals      Totals         `json:"totals"`
	Operations  []Group        `json:"operations"` // by kind
	Services    []Group        `json:"services"`
	Sizes       []Group        `json:"sizes"`
	Connections []Connection   `json:"connections"`
	Recovery    []Recovery     `json:"recovery"`
	Episodes    []*EpisodeView `json:"episodes"` // the longest
	Blocked     []Blocked      `json:"blocked"`
	Fatal       []Fatal        `json:"fatal_naks"`
	Congestion  Congestion     `json:"congestion"`
	Series      Series         `json:"series"`
	Notes       []string       `json:"notes"`
}

// Group is operations that have something in common.
type Group struct {
	Service   string                `json:"service,omitempty"`
	Source    string                `json:"source,omitempty"` // of the service: setup, port, user, guess, unknown
	Size      string                `json:"size,omitempty"`   // at most this many bytes, and more than half of it
	Kind      string                `json:"kind"`             // send, write, read, atomic
	Count     uint64                `json:"count"`
	Completed uint64                `json:"completed"`
	Bytes     uint64                `json:"bytes"`
	Packets   uint64                `json:"packets"`
	Again     uint64                `json:"again"`
	InFlight  int                   `json:"in_flight_max"`
	Latency   *latency.Distribution `json:"latency"`
	// Lost divides the sum of the latencies by rdma.Cause, in nanoseconds, the rest included.
	Lost map[string]int64 `json:"lost_ns"`
}

// Connection is a connection with what its sides sent.
type Connection struct {
	ID       int        `json:"connection"`
	Fabric   string     `json:"fabric"`
	Service  string     `json:"service"`
	Source   string     `json:"source"`
	Ends     [2]End     `json:"ends"`
	Terms    Terms      `json:"setup"`
	InFlight int        `json:"in_flight_max"`
	Fatal    uint64     `json:"fatal_naks"`
	Ops      []Group    `json:"operations"`
	Recovery []Recovery `json:"recovery"`
	End      string     `json:"end"`
}

// End is one side of a connection: its address and queue pair or port, and what it
// sent.
type End struct {
	Address  string `json:"address"`
	Endpoint uint32 `json:"endpoint"`
	Packets  uint64 `json:"packets"`
	Bytes    uint64 `json:"bytes"`
	Again    uint64 `json:"again"`
	NAKs     uint64 `json:"naks"`
	RNRs     uint64 `json:"rnr_naks"`
	Marked   uint64 `json:"marked"`
	CNPs     uint64 `json:"cnps"`
	Gaps     uint64 `json:"gaps"`
}

// Terms are what the setup announced about recovery.
type Terms struct {
	Captured   bool  `json:"captured"`
	AckTimeout int64 `json:"ack_timeout_ns"` // 0 if none
	Retries    uint8 `json:"retries"`
	RNRRetries uint8 `json:"rnr_retries"` // 7 is without end
}

// Recovery sums up the episodes of one kind.
type Recovery struct {
	Notice       string `json:"noticed_by"`
	Count        uint64 `json:"episodes"`
	NotRecovered uint64 `json:"not_recovered"`
	NAKs         uint64 `json:"naks"`
	Timeouts     uint64 `json:"timeouts"`
	Resent       uint64 `json:"resent"`
	ResentBytes  uint64 `json:"resent_bytes"`
	Needless     uint64 `json:"needless"`
	GoBackN      uint64 `json:"go_back_n"`
	Selective    uint64 `json:"selective"`
	Partly       uint64 `json:"partly"`
	Time         int64  `json:"time_ns"` // of those that were recovered from, together
}

// Frame is a packet of an episode.
type Frame struct {
	Number uint64 `json:"frame"`
	At     int64  `json:"at_ns"` // since the episode began
}

// EpisodeView is an episode in readable form.
type EpisodeView struct {
	Connection  int     `json:"connection"`
	Service     string  `json:"service"`
	Requester   string  `json:"requester"` // address
	Responder   string  `json:"responder"`
	Notice      string  `json:"noticed_by"`
	Responses   bool    `json:"responses_lost"`
	Overtaken   bool    `json:"overtaken"` // nothing was lost
	Lost        []Range `json:"lost"`
	Exact       bool    `json:"lost_exact"`
	Repeat      string  `json:"repeated"`
	Start       int64   `json:"start_unix_ns"`
	Duration    *int64  `json:"duration_ns"` // null: not recovered from
	LostAt      *Frame  `json:"lost_packet"`
	Detected    *Frame  `json:"detected"`
	NAK         *Frame  `json:"nak"`
	First       *Frame  `json:"first_resent"`
	CaughtUp    *Frame  `json:"caught_up"`
	NAKs        uint32  `json:"naks"`
	RNRs        uint32  `json:"rnr_naks"`
	Timeouts    uint32  `json:"timeouts"`
	Resent      uint32  `json:"resent"`
	ResentBytes uint64  `json:"resent_bytes"`
	Needless    uint32  `json:"needless"`
	Waited      int64   `json:"waited_ns"`
	Announced   int64   `json:"announced_ns"`

	Episode *Episode `json:"-"`
}

// Fatal is a NAK that ends a connection.
type Fatal struct {
	Connection int    `json:"connection"`
	From       string `json:"from"`
	Code       string `json:"code"`
	PSN        uint32 `json:"psn"`
	Frame      uint64 `json:"frame"`
	Time       int64  `json:"time_unix_ns"`
}

// Report returns the report. The Recorder must not be used afterwards.
func (r *Recorder) Report(inputs []string) *Report {
	p := &Report{
		Schema: ReportSchema, Inputs: inputs, Totals: r.totals, Operations: []Group{}, Services: []Group{}, Sizes: []Group{},
		Connections: []Connection{}, Recovery: recoveries(&r.notices), Episodes: []*EpisodeView{}, Fatal: []Fatal{}, Blocked: r.blocked(),
		Congestion: r.congestionReport(), Series: r.series.report(), Notes: []string{},
	}
	for kind := range r.sizes {
		var all group
		for _, g := range r.sizes[kind] {
			if g != nil {
				all.include(g, r.samples)
			}
		}
		p.Operations = all.report(p.Operations, kind)
	}
	for _, k := range r.ended {
		list := r.of(k.service)
		for kind := range list {
			if g := k.groups[kind]; g != nil {
				list[kind].include(g, r.samples)
			}
		}
	}
	var services []Service
	for s := range r.services {
		services = append(services, s)
	}
	slices.SortFunc(services, func(a, b Service) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source)) })
	for _, s := range services {
		n := len(p.Services)
		for kind := range r.services[s] {
			p.Services = r.services[s][kind].report(p.Services, kind)
		}
		for i := range p.Services[n:] {
			p.Services[n+i].Service, p.Services[n+i].Source = s.Name, s.Source.String()
		}
	}
	for kind := range r.sizes {
		for class, g := range r.sizes[kind] {
			if g != nil {
				p.Sizes = g.report(p.Sizes, kind)
				p.Sizes[len(p.Sizes)-1].Size = strconv.FormatUint(1<<class, 10)
			}
		}
	}
	slices.SortStableFunc(r.ended, func(a, b *connReport) int { return cmp.Compare(a.c.ID, b.c.ID) })
	for _, k := range r.ended {
		if x, ok := k.report(); ok {
			p.Connections = append(p.Connections, x)
		}
	}
	for _, e := range r.top {
		p.Episodes = append(p.Episodes, e.Tell())
	}
	for _, f := range r.fatals {
		p.Fatal = append(p.Fatal, Fatal{
			Connection: f.Connection.Resolve().ID, From: link.AddrString(f.Connection.Ends[f.From].Addr), Code: f.Code, PSN: f.PSN, Frame: f.At.Number, Time: f.At.Time,
		})
	}
	if r.lost > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d connections beyond the first %d are not named one by one", r.lost, maxConnections))
	}
	if n := r.totals.NotOperations; n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d operations could not be followed: their beginning, or their headers, were not captured", n))
	}
	if n := r.totals.NotCaptured; n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("the capture lacks %s of what was received: losses among them are not counted", units.Plural(n, "packet")))
	}
	if n := r.totals.Unproven; n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("the capture lacks %s, and nothing says whether they were received: their connections have no acknowledgements, as those of UC", units.Plural(n, "packet")))
	}
	if more := r.totals.FatalNAKs - uint64(len(r.fatals)); more > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d more fatal NAKs are not named", more))
	}
	if r.samples.Scarce() {
		p.Notes = append(p.Notes, "memory was scarce: some percentiles have one digit")
	}
	return p
}

// report appends a group, if there is anything in it.
func (g *group) report(list []Group, kind int) []Group {
	if g.count == 0 {
		return list
	}
	return append(list, Group{
		Kind: rdma.WorkKind(kind).String(), Count: g.count, Completed: g.completed, Bytes: g.bytes, Packets: g.packets, Again: g.again,
		InFlight: g.inFlight, Latency: g.latency.Distribution(), Lost: g.lost.byName(),
	})
}

// byName are the parts of a Share without read slots: an operation that waits for one has not
// begun.
func (s Share) byName() map[string]int64 {
	m := make(map[string]int64)
	for c, n := range s {
		if c := rdma.Cause(c); c != rdma.CauseReadSlot {
			m[c.String()] = n
		}
	}
	return m
}

func recoveries(list *[numNotices]noticeGroup) []Recovery {
	out := []Recovery{}
	if list == nil {
		return out
	}
	for n := range list {
		if g := &list[n]; g.count > 0 {
			out = append(out, Recovery{
				Notice: Notice(n).String(), Count: g.count, NotRecovered: g.unrecovered, NAKs: g.naks, Timeouts: g.timeouts, Resent: g.resent,
				ResentBytes: g.resentBytes, Needless: g.needless, GoBackN: g.goBackN, Selective: g.selective, Partly: g.partly, Time: g.time,
			})
		}
	}
	return out
}

// report is a connection in readable form; ok is false for one that carried nothing.
func (k *connReport) report() (x Connection, ok bool) {
	c := k.c
	if c.ID == 0 || c.MergedInto != nil {
		return x, false
	}
	x = Connection{
		ID: c.ID, Fabric: c.Fabric.String(), Service: k.service.Name, Source: k.service.Source.String(), InFlight: k.inFlight, Fatal: k.fatal,
		Ops: []Group{}, Recovery: recoveries(k.notices), End: c.Terminated,
	}
	for side := range c.Ends {
		n := &c.Sent[side]
		x.Ends[side] = End{
			Address: link.AddrString(c.Ends[side].Addr), Endpoint: c.Ends[side].Number(), Packets: n.Packets, Bytes: n.Bytes,
			Again: n.Retransmitted, NAKs: n.NAKs, RNRs: n.RNRs, Marked: n.ECN, CNPs: n.CNPs, Gaps: n.Gaps,
		}
		if s := &c.Setup[side]; s.Message == rdma.SetupREQ && !s.Cut {
			x.Terms = Terms{Captured: true, Retries: s.RetryCount, RNRRetries: s.RNRRetryCount}
			if s.AckTimeout != 0 {
				x.Terms.AckTimeout = 4096 << (s.AckTimeout & 31)
			}
		}
	}
	for kind, g := range k.groups {
		if g != nil {
			x.Ops = g.report(x.Ops, kind)
		}
	}
	return x, true
}

// Tell converts an episode to readable form.
func (e *Episode) Tell() *EpisodeView {
	start := e.Start()
	frame := func(r rdma.Ref) *Frame {
		if !r.Seen() {
			return nil
		}
		return &Frame{r.Number, r.Time - start.Time}
	}
	c := e.Connection.Resolve()
	t := &EpisodeView{
		Connection: c.ID, Service: e.Service.String(),
		Requester: link.AddrString(c.Ends[e.From].Addr), Responder: link.AddrString(c.Ends[e.From.Other()].Addr),
		Notice: e.Notice.String(), Responses: e.Responses, Overtaken: e.Overtaken, Lost: append([]Range{}, e.Lost...), Exact: e.Exact, Repeat: e.Repeat.String(),
		Start: start.Time, LostAt: frame(e.LostAt), Detected: frame(e.Detected), NAK: frame(e.NAK), First: frame(e.First), CaughtUp: frame(e.CaughtUp),
		NAKs: e.NAKs, RNRs: e.RNRs, Timeouts: e.Timeouts, Resent: e.Resent, ResentBytes: e.ResentBytes, Needless: e.Needless,
		Waited: int64(e.Waited), Announced: int64(e.Announced), Episode: e,
	}
	if d, ok := e.Duration(); ok {
		n := int64(d)
		t.Duration = &n
	}
	return t
}
