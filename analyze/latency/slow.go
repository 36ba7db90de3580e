package latency

import (
	"math"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/heap"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Slow is one of the slowest transactions.
type Slow struct {
	Time       time.Time        `json:"time"`                     // first packet of the call
	Tap        string           `json:"tap,omitempty"`            // of a fleet: frames and connections are of its captures
	Key        string           `json:"connection_key,omitempty"` // of a fleet, where one connection is told from another
	Capture    string           `json:"capture,omitempty"`        // of a fleet: the file with the first packet of the call
	Packet     uint64           `json:"capture_frame,omitempty"`  // the number of that packet in it
	XID        uint32           `json:"xid"`
	XIDHex     string           `json:"xid_hex"`
	Connection int              `json:"connection"`
	CallFrame  uint64           `json:"call_frame"`  // first packet of the call
	ReplyFrame uint64           `json:"reply_frame"` // last packet of the reply
	Operation  string           `json:"operation"`
	File       string           `json:"file,omitempty"`
	Offset     uint64           `json:"offset,omitempty"`
	Count      uint64           `json:"count,omitempty"`
	Model      string           `json:"model"`
	Status     string           `json:"status"`
	Failed     bool             `json:"failed"`
	Total      int64            `json:"total_ns"`
	Phases     map[string]int64 `json:"phases"`
	Lost       map[string]int64 `json:"lost"`           // by cause, without the rest; null if nobody has looked
	Cause      string           `json:"cause"`          // that most was lost to; empty if to none
	CreditWait int64            `json:"credit_wait_ns"` // before the call, at most
	SlotWait   int64            `json:"slot_wait_ns"`   // before the call, at most
	InFlight   int              `json:"in_flight"`      // calls of the connection in flight when it began, including itself
	Retransmit int              `json:"retransmits"`
	Troubles   []string         `json:"troubles"`
	Notes      []string         `json:"notes"`

	// Drawing is what Options.Draw made of it.
	Drawing []byte `json:"-"`

	number uint64
}

// Setup reports SetsUp of the call. Such calls happen once, and wait for things that no other call waits for.
func (s *Slow) Setup() bool {
	_, op, _ := strings.Cut(s.Operation, " ")
	return SetsUp(op)
}

// SetsUp reports whether an operation sets a mount up, or ends it.
func SetsUp(operation string) bool {
	switch operation {
	case "NULL", "CB_NULL", "EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION", "DESTROY_CLIENTID", "BIND_CONN_TO_SESSION", "RECLAIM_COMPLETE",
		"SECINFO_NO_NAME", "SETCLIENTID", "SETCLIENTID_CONFIRM", "MNT", "UMNT", "EXPORT", "GETPORT", "GETADDR", "DUMP":
		return true
	}
	return false
}

// SlowestOfWork are the slowest without those of setup, unless there are no others.
func (rep *Report) SlowestOfWork() []*Slow {
	if len(rep.working) == 0 {
		return rep.Slowest
	}
	return rep.working
}

// slowest keeps the n slowest transactions in a heap with the fastest of them on top. With equal times, the
// earlier one stays.
type slowest struct {
	n    int
	heap []*Slow
	from int64 // those that took longer are among them
}

func newSlowest(n int) slowest {
	if n == 0 {
		return slowest{from: math.MaxInt64}
	}
	return slowest{n: n, from: math.MinInt64}
}

// faster orders the heap.
func faster(a, b *Slow) bool {
	return a.Total < b.Total || a.Total == b.Total && a.number > b.number
}

// wants reports whether a transaction is among the slowest.
func (s *slowest) wants(total int64) bool { return total > s.from }

// add adds a transaction that it wants.
func (s *slowest) add(x *Slow) {
	if len(s.heap) < s.n {
		s.heap = heap.Push(s.heap, x, faster)
	} else {
		s.heap[0] = x
		heap.Fix(s.heap, faster)
	}
	if len(s.heap) == s.n {
		s.from = s.heap[0].Total
	}
}

// operationName is the program and the operations of a transaction.
func operationName(v *rpc.View) string {
	return string(clip(append(append(text.Program(nil, v), ' '), text.Operations(nil, v)...)))
}

// fileOf is what AppendFile appends, but Names does not keep the path: few files are asked for here, and as long as it keeps none, it
// has none to look for when names change.
func fileOf(v *rpc.View, f *rpc.File) []byte {
	switch path := v.Path(); {
	case path != "":
		return []byte(path)
	case f.Handle != nil && !f.Unnamed:
		return text.Handle(nil, f.Handle)
	}
	return []byte("-")
}

// slow describes a transaction.
func slow(v *rpc.View, p *transaction.Phases, set uint16, inFlight int) *Slow {
	tx := v.Tx
	x := &Slow{
		Time: time.Unix(0, tx.First().Time).UTC(), XID: tx.XID, XIDHex: units.XID(tx.XID), Connection: tx.Connection.ID,
		CallFrame: tx.Call.First.Number, ReplyFrame: tx.Reply.Last.Number,
		Operation: operationName(v),
		Model:     ModelOf(tx).String(), Status: statusName(v), Failed: v.Failed(), Total: int64(p.Total),
		Phases: make(map[string]int64), InFlight: inFlight, Retransmit: tx.Retransmits,
		Troubles: []string{}, Notes: []string{}, number: tx.First().Number,
	}
	if f := v.File(); f != nil {
		x.File = string(clip(fileOf(v, f)))
		x.Offset, x.Count = f.Offset, f.Count
	}
	d := durations(p)
	for i := range d {
		if d[i] >= 0 {
			x.Phases[transaction.Phase(i).String()] = d[i]
		}
	}
	x.CreditWait, x.SlotWait = int64(tx.Credits), int64(tx.Slots)
	if b := tx.Blame; b != nil {
		x.Lost = make(map[string]int64)
		for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
			if d := b.Of(c); d > 0 {
				x.Lost[c.String()] = int64(d)
			}
		}
		if c := b.Worst(); c != rdma.CauseRest {
			x.Cause = c.String()
		}
	}
	for k := range TroubleKind(numTroubles) {
		if set&(1<<k) != 0 {
			x.Troubles = append(x.Troubles, k.String())
		}
	}
	for _, n := range tx.Notes {
		x.Notes = append(x.Notes, n.String())
	}
	return x
}
