package monitor

import (
	"net/netip"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Row is a transaction in a listing.
type Row struct {
	Serial     uint64 // identifies it, see Model.Watch
	XID        uint32
	Frame      uint64 // number of its first packet, which no other transaction with this XID begins with
	Connection int
	Backward   bool
	Client     string
	Server     string
	Operation  string // "nfs3 READ"
	Subject    string // file and range
	Chunks     string // of the call, in short form: see text.Legend
	Progress   []transaction.ChunkProgress
	Offered    uint64 // bytes of all chunks
	Moved      uint64
	Reads      int               // RDMA Reads waiting for data
	Writes     int               // RDMA Writes that have arrived in part
	Phase      transaction.Phase // current phase, as far as the wire shows, until it has ended
	Start      int64             // first packet, ns since 1970
	Age        int64             // until now; for an ended one its latency; ns, -1 if unknown
	Idle       int64             // since its latest packet, for an open one
	Stuck      bool              // open, and idle beyond the limit
	Open       bool              // not replied
	Ended      int64             // ns since 1970; 0 while it is open
	Status     string
	Failed     bool
	State      transaction.State // set once it has ended
	Retransmit int
}

// phaseOf returns the phase of an open transaction. The Read list comes first: a server pulls the call's data
// before it can answer.
func phaseOf(tx *transaction.Transaction, p []transaction.ChunkProgress) transaction.Phase {
	if tx.Reply.Seen() {
		return transaction.PhaseAck
	}
	var offered, asked, moved uint64
	for i := range p {
		if p[i].Kind == transaction.ReadList {
			offered += p[i].Offered
			asked += p[i].Asked
			moved += p[i].Moved
		}
	}
	switch {
	case tx.Times.FirstPush.Seen():
		return transaction.PhasePush
	case moved >= offered:
		return transaction.PhaseServer
	case asked > 0:
		return transaction.PhasePull
	}
	return transaction.PhaseWait
}

// activity is the time of the latest known packet of a transaction.
func activity(tx *transaction.Transaction) int64 {
	last := tx.First().Time
	for _, r := range [...]rdma.Ref{tx.Call.Last, tx.Times.FirstRead, tx.Times.LastRead, tx.Times.LastPush, tx.Reply.Last} {
		if r.Seen() {
			last = max(last, r.Time)
		}
	}
	if n := len(tx.Operations); n > 0 {
		last = max(last, tx.Operations[n-1].First.Time, tx.Operations[n-1].Last.Time)
	}
	return last
}

// rower builds rows.
type rower struct {
	b     []byte
	hosts map[netip.Addr]string
}

// host is the name of an end's address.
func (r *rower) host(e rdma.End) string {
	if s, ok := r.hosts[e.Addr]; ok {
		return s
	}
	if r.hosts == nil || len(r.hosts) > maxUsage {
		r.hosts = make(map[netip.Addr]string)
	}
	s := link.AddrString(e.Addr)
	r.hosts[e.Addr] = s
	return s
}

// row builds the row of a transaction.
func (r *rower) row(v *rpc.View, now, stuck int64, ended int64) Row {
	tx := v.Tx
	x := Row{
		Serial: tx.Serial(), XID: tx.XID, Frame: tx.First().Number, Connection: tx.Connection.Resolve().ID, Backward: tx.Backward,
		Client: r.host(tx.Client()), Server: r.host(tx.Server()),
		Operation: operationName(v), Start: tx.First().Time, Age: -1, Ended: ended,
		Retransmit: tx.Retransmits,
	}
	r.b = clip(text.Subject(r.b[:0], v))
	x.Subject = string(r.b)
	r.b = text.Chunks(r.b[:0], tx)
	if len(r.b) > 64 {
		r.b = append(r.b[:61], "..."...)
	}
	x.Chunks = string(r.b)
	x.Progress = tx.Progress(nil)
	for i := range x.Progress {
		p := &x.Progress[i]
		x.Offered += p.Offered
		x.Moved += p.Moved
		if p.Kind == transaction.ReadList || p.Kind == transaction.ReplyReadList {
			x.Reads += p.InFlight
		} else {
			x.Writes += p.InFlight
		}
	}
	if tx.Reply.Seen() {
		if p, ok := tx.Phases(); ok && p.Total >= 0 {
			x.Age = int64(p.Total)
		}
		x.Status, x.Failed = text.ShortStatus(v), v.Failed()
	} else {
		x.Age = max(now-x.Start, 0)
	}
	if ended != 0 {
		x.State = tx.State
		if !tx.Reply.Seen() {
			x.Age = max(ended-x.Start, 0)
			x.Status = "no reply"
		}
		if tx.State == transaction.NoCall {
			x.Age = -1
		}
		return x
	}
	x.Phase = phaseOf(tx, x.Progress)
	x.Idle = max(now-activity(tx), 0)
	x.Open = !tx.Reply.Seen()
	x.Stuck = x.Open && x.Idle >= stuck
	return x
}

// KindLetter is the letter of a chunk in its short form.
func KindLetter(c *transaction.ChunkProgress) string {
	switch {
	case c.Kind == transaction.ReadList && c.Index < 0:
		return "Z"
	case c.Kind == transaction.ReadList, c.Kind == transaction.ReplyReadList:
		return "R"
	case c.Kind == transaction.WriteList:
		return "W"
	}
	return "P"
}

// ChunkList is the progress of the chunks in short form: "W1M:512K" means that half of a 1 MiB Write chunk
// has been moved.
func (x *Row) ChunkList() string {
	var b strings.Builder
	for i := range x.Progress {
		c := &x.Progress[i]
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(KindLetter(c))
		b.WriteString(units.Size(c.Offered))
		if c.Moved != c.Offered {
			b.WriteByte(':')
			b.WriteString(units.Rounded(float64(c.Moved), 1024))
		}
	}
	if b.Len() == 0 {
		return x.Chunks
	}
	return b.String()
}
