package kernel

import (
	"cmp"
	"fmt"
	"github.com/rpcrdma/toolkit/internal/units"
	"slices"
)

// Result is what a Join found.
type Result struct {
	Schema string `json:"schema"`
	Files  []File `json:"files"`
	Counts Counts `json:"counts"`
	// Clients and Servers tell how many records of traces there are, and what
	// became of them; null without a trace of that side.
	Clients *Records    `json:"client_records"`
	Servers *Records    `json:"server_records"`
	Clocks  []*Clock    `json:"clocks"`
	Client  []*ClientOp `json:"client"`
	Server  []*ServerOp `json:"server"`
	// Order reports whether wire and kernel agree about what took long.
	ClientOrder *Order         `json:"client_order"`
	ServerOrder *Order         `json:"server_order"`
	Mounts      []*MountResult `json:"mounts"`
}

// Records of one side.
type Records struct {
	Records int `json:"records"`
	Joined  int `json:"joined"` // with a transaction of the capture
	// Several are those that more than one transaction belongs to: the call was retransmitted.
	Several int `json:"several_transactions"`
	// Unfinished were seen to begin, but not to end, and are no Callbacks.
	Unfinished int `json:"unfinished"`
	// Callbacks are records of a server that are replies to its own calls.
	Callbacks int `json:"callback_replies"`
	// NotAwaited are calls of a client that did not wait for the reply, so
	// that there is no round trip.
	NotAwaited int `json:"not_awaited"`
	// Absent are finished ones that the capture does not show, by operation.
	Absent   int      `json:"absent"`
	AbsentOf []Absent `json:"absent_operations"`
	// Ambiguous are XIDs that came too often to be distinguished.
	Ambiguous int `json:"ambiguous"`
}

// Absent counts calls that are in the trace but not in the capture.
type Absent struct {
	Operation string `json:"operation"`
	Calls     int    `json:"calls"`
}

// ClientOp is one operation as clients saw it. The name is the kernel's.
type ClientOp struct {
	Operation string `json:"operation"`
	Program   string `json:"program"`
	Version   uint32 `json:"version"`
	Calls     int    `json:"calls"` // with a whole transaction
	// Queue is the time from the start of the task to the transmission,
	// RTT from there to the reply, Wire the total of the transaction, Outside
	// what of RTT is not on the wire, After the time from the reply to the end
	// of the task.
	Queue   Spread `json:"queue_ns"`
	RTT     Spread `json:"rtt_ns"`
	Wire    Spread `json:"wire_ns"`
	Outside Spread `json:"outside_ns"`
	After   Spread `json:"after_ns"`
	// SendSide and ReplySide are the two parts of Outside, before the first packet of the call and after the
	// last one of the reply; as uncertain as the clock, and without values if that does not tell.
	SendSide  Spread `json:"send_side_ns"`
	ReplySide Spread `json:"reply_side_ns"`
	// Explained is the sum of Wire through that of RTT.
	Explained float64 `json:"wire_share"`
}

// ServerOp is one operation as servers saw it.
type ServerOp struct {
	Operation string `json:"operation"`
	Program   string `json:"program"`
	Version   uint32 `json:"version"`
	Calls     int    `json:"calls"`
	// Phase is the phase "server" of the transaction, Execute what of it the
	// server counted as execution, Rest what remains: the call waits for a
	// thread before, the response for the adapter behind.
	Phase   Spread `json:"server_ns"`
	Execute Spread `json:"execute_ns"`
	Rest    Spread `json:"rest_ns"`
	// Before and Behind are the two parts of Rest; as uncertain as the clock.
	Before    Spread  `json:"before_ns"`
	Behind    Spread  `json:"behind_ns"`
	Explained float64 `json:"execute_share"`
}

// Order compares a time on the wire with the kernel's.
type Order struct {
	Pairs int `json:"pairs"`
	// Correlation is Spearman's, of the ranks; null below three pairs.
	Correlation *float64 `json:"rank_correlation"`
	// Violations are pairs whose part was longer than the whole: of a client
	// Wire > RTT, of a server Execute > Phase, both by a microsecond or more,
	// which is as exact as the kernel is.
	Violations int         `json:"violations"`
	List       []Violation `json:"violation_list"` // the first hundred
}

// Violation is one.
type Violation struct {
	XID       uint32 `json:"xid"`
	XIDHex    string `json:"xid_hex"`
	Operation string `json:"operation"`
	Wire      int64  `json:"wire_ns"`
	Kernel    int64  `json:"kernel_ns"`
	// Transactions of this XID, and how often the client put the call
	// together.
	Transactions int `json:"transactions"`
	Sends        int `json:"sends"`
	// Again is how many packets of the transaction were seen again: then it
	// may be another copy that counted for the kernel.
	Again int `json:"packets_again"`
}

func (v Violation) String() string {
	return fmt.Sprintf("xid 0x%08x %s: wire %d ns, kernel %d ns", v.XID, v.Operation, v.Wire, v.Kernel)
}

// Result ends the join.
func (j *Join) Result() *Result {
	p := j.pair()
	r := &Result{Schema: Schema, Files: append([]File{}, j.files...), Counts: j.counts, Client: []*ClientOp{}, Server: []*ServerOp{}}
	if j.traced[sideClient] {
		p.client(r)
	}
	if j.traced[sideServer] {
		p.server(r)
	}
	r.Clocks = p.list()
	r.Mounts = p.compareMounts()
	return r
}

// samples collects the values of one operation.
type samples struct {
	op     uint16
	values [7][]int64
}

func (p *pairing) client(r *Result) {
	n := &Records{Records: len(p.calls), Ambiguous: p.ambiguous}
	r.Clients = n
	order := &ordering{}
	byOp := make(map[uint16]*samples)
	absent := make(map[uint16]int)
	for i := range p.calls {
		c := &p.calls[i]
		switch {
		case c.wire >= 0:
			n.Joined++
			if c.wires > 1 {
				n.Several++
			}
		case c.done:
			n.Absent++
			absent[c.op]++
		}
		if !c.done {
			n.Unfinished++
			continue
		}
		if !c.awaited() {
			n.NotAwaited++
			continue
		}
		if c.wire < 0 || !p.wires[c.wire].whole {
			continue
		}
		w := &p.wires[c.wire]
		order.add(w.total, c.rtt, w.awaited() >= c.rtt+1000, Violation{
			XID: c.xid, XIDHex: units.XID(c.xid), Operation: p.label(c.op), Wire: w.total, Kernel: c.rtt, Transactions: int(c.wires), Sends: int(c.sends), Again: int(w.again),
		})
		s := byOp[c.op]
		if s == nil {
			s = &samples{op: c.op}
			byOp[c.op] = s
		}
		s.add(0, c.backlog)
		s.add(1, c.rtt)
		s.add(2, w.total)
		s.add(3, c.rtt-w.total)
		s.add(4, c.execute-c.backlog-c.rtt)
		if k := p.clocks[clockKey{c.source, sideClient}]; k.usable() {
			sent := k.capture(c.end - c.execute + c.backlog)
			s.add(5, w.first-sent)
			s.add(6, sent+c.rtt-w.last)
		}
	}
	n.AbsentOf = p.absent(absent)
	r.ClientOrder = order.order()
	for _, s := range sorted(byOp, p) {
		o := p.names.value(s.op)
		v := &s.values
		r.Client = append(r.Client, &ClientOp{
			Operation: o.name, Program: o.program, Version: o.version, Calls: len(v[0]), Explained: share(v[2], v[1]),
			Queue: spread(v[0]), RTT: spread(v[1]), Wire: spread(v[2]), Outside: spread(v[3]), After: spread(v[4]),
			SendSide: spread(v[5]), ReplySide: spread(v[6]),
		})
	}
}

func (p *pairing) server(r *Result) {
	n := &Records{Records: len(p.requests)}
	r.Servers = n
	order := &ordering{}
	byOp := make(map[uint16]*samples)
	absent := make(map[uint16]int)
	for i := range p.requests {
		q := &p.requests[i]
		switch {
		case q.wire >= 0:
			n.Joined++
			if q.wires > 1 {
				n.Several++
			}
		case q.done:
			n.Absent++
			absent[q.op]++
		}
		if !q.done {
			n.Unfinished++
			continue
		}
		if q.wire < 0 || !p.wires[q.wire].divided {
			continue
		}
		w := &p.wires[q.wire]
		op := p.served(q, w)
		order.add(q.execute, w.serverPhase, q.execute >= w.serverPhase+1000, Violation{
			XID: q.xid, XIDHex: units.XID(q.xid), Operation: p.label(op), Wire: w.serverPhase, Kernel: q.execute, Transactions: int(q.wires), Again: int(w.again),
		})
		s := byOp[op]
		if s == nil {
			s = &samples{op: op}
			byOp[op] = s
		}
		s.add(0, w.serverPhase)
		s.add(1, q.execute)
		s.add(2, w.serverPhase-q.execute)
		if k := p.clocks[clockKey{q.source, sideServer}]; k.usable() {
			s.add(3, k.capture(q.end-q.execute)-w.pulled)
			s.add(4, w.response-k.capture(q.end))
		}
	}
	n.Callbacks = min(p.callbacks, n.Unfinished)
	n.Unfinished -= n.Callbacks
	n.AbsentOf = p.absent(absent)
	r.ServerOrder = order.order()
	for _, s := range sorted(byOp, p) {
		o := p.names.value(s.op)
		v := &s.values
		r.Server = append(r.Server, &ServerOp{
			Operation: o.name, Program: o.program, Version: o.version, Calls: len(v[0]), Explained: share(v[1], v[0]),
			Phase: spread(v[0]), Execute: spread(v[1]), Rest: spread(v[2]), Before: spread(v[3]), Behind: spread(v[4]),
		})
	}
}

// served names the operation of a request. The server has no name for a COMPOUND: the client's name is used,
// otherwise the transaction's.
func (p *pairing) served(q *request, w *wire) uint16 {
	if w.call >= 0 && p.calls[w.call].op != 0 {
		return p.calls[w.call].op
	}
	if q.op == 0 || p.names.value(q.op).name == "COMPOUND" {
		return w.op
	}
	return q.op
}

func (p *pairing) label(op uint16) string { return p.names.value(op).String() }

// String is the label of an operation: nfs4 READ.
func (o operation) String() string {
	if o == (operation{}) {
		return "unknown"
	}
	return fmt.Sprintf("%s%d %s", o.program, o.version, o.name)
}

func (p *pairing) absent(counts map[uint16]int) []Absent {
	list := []Absent{}
	for op, n := range counts {
		list = append(list, Absent{p.label(op), n})
	}
	slices.SortFunc(list, func(a, b Absent) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Operation, b.Operation))
	})
	return list
}

// sorted lists the operations by program, version and name.
func sorted(byOp map[uint16]*samples, p *pairing) []*samples {
	list := make([]*samples, 0, len(byOp))
	for _, s := range byOp {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *samples) int {
		x, y := p.names.value(a.op), p.names.value(b.op)
		return cmp.Or(cmp.Compare(x.program, y.program), cmp.Compare(x.version, y.version), cmp.Compare(x.name, y.name))
	})
	return list
}

func (s *samples) add(i int, v int64) { s.values[i] = append(s.values[i], v) }

// share is the sum of part through that of whole.
func share(part, whole []int64) float64 {
	var a, b float64
	for i := range part {
		a += float64(part[i])
	}
	for i := range whole {
		b += float64(whole[i])
	}
	if b == 0 {
		return 0
	}
	return rounded(a / b)
}
