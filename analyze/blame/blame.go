package blame

import (
	"time"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Blame fills in Transaction.Blame. It belongs to the goroutine that decodes.
type Blame struct {
	// Recorder must be the only Watcher of the Decoder.
	Recorder *fabric.Recorder

	list    []fabric.Stall
	scratch []int64
}

// New makes a Blame with a Recorder of its own.
func New(opt fabric.Options) *Blame { return &Blame{Recorder: fabric.New(opt)} }

// Lean makes a Blame whose Recorder records nothing else.
func Lean(memory int) *Blame { return New(fabric.Options{Memory: memory, Lean: true}) }

// moments are the times between the phases of a transaction.
type moments [transaction.NumParts + 1]int64

// Ended is for transaction.Options.Ended.
func (b *Blame) Ended(tx *transaction.Transaction) {
	c := tx.Connection.Resolve()
	if c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
		return
	}
	start := tx.Call.First.Time
	var p transaction.Phases
	if !tx.SetPhases(&p) || !p.Divided() {
		return
	}
	if b.Recorder.Unstalled(c, start) {
		tx.NewClean(&p)
		if c.Fabric == rdma.IWARP {
			b.Recorder.Served(c, tx.From.Other(), work(tx), int64(p.Server))
		}
		return
	}
	if _, ok := b.Recorder.Stalls(c, 0, start, func(*fabric.Stall) {}); !ok {
		return
	}
	s := tx.NewBlame()
	var at moments
	at[0] = start
	for ph := range transaction.Parts() {
		at[ph+1] = at[ph] + int64(p.Of(ph))
	}
	for ph := range transaction.Parts() {
		b.phase(tx, c, ph, &at, &s.Shares[ph])
	}
}

// phase divides a phase.
//
// Packets of a queue pair, and of a stream of TCP, arrive in order: while one of them is missing,
// nothing behind it is delivered. So a stall counts in full if the transaction has packets in
// flight in that direction. If it has none, the server is working, and whether it had something
// to send is unknown.
func (b *Blame) phase(tx *transaction.Transaction, c *rdma.Connection, ph transaction.Phase, at *moments, out *[rdma.NumCauses]time.Duration) {
	from, to := at[ph], at[ph+1]
	if from == to {
		return
	}
	client, server := tx.From, tx.From.Other()
	called := at[transaction.PhaseCall+1]
	b.list = b.list[:0]
	before := int64(0)
	add := func(side rdma.Side, f func(x *fabric.Stall) bool) {
		forgotten, _ := b.Recorder.Stalls(c, side, from, func(x *fabric.Stall) {
			if n := len(b.list); x.From < to {
				b.list = append(b.list, x.At(to))
				if !f(&b.list[n]) {
					b.list = b.list[:n]
				}
			}
		})
		before = max(before, forgotten)
	}
	all := func(x *fabric.Stall) bool { return x.Cause != rdma.CauseReadSlot && !x.Between }
	// held says that the missing packet preceded the call, which was received, but not delivered
	// to the server.
	held := func(x *fabric.Stall) bool { return all(x) && x.From <= called && x.Cause != rdma.CauseCongestion }
	switch ph {
	case transaction.PhaseCall:
		add(client, all)
	case transaction.PhasePull:
		last := lastRead(tx, server)
		add(client, func(x *fabric.Stall) bool {
			if c.Fabric == rdma.IWARP {
				return all(x) // the responses are a part of the client's stream
			}
			return held(x) && (!tx.Times.FirstRead.Seen() || x.Before(tx.Times.FirstRead.Time))
		})
		add(server, func(x *fabric.Stall) bool {
			if x.Cause == rdma.CauseReadSlot {
				return x.Before(last)
			}
			return !x.Between
		})
	case transaction.PhaseServer:
		add(client, held)
		n := tx.Reply.First
		if p := tx.Times.FirstPush; p.Seen() {
			n = p
		}
		// ready is when the server would usually have had its reply.
		ready := b.Recorder.Service(c, server, work(tx))
		if ready > 0 {
			ready += from
		}
		add(server, func(x *fabric.Stall) bool { return delayed(x, c.Fabric, n, ready) })
		if len(b.list) == 0 && c.Fabric == rdma.IWARP {
			b.Recorder.Served(c, server, work(tx), to-from)
		}
		if n := b.Recorder.Patience(c); n > 0 && to-from >= n {
			b.list = append(b.list, fabric.Stall{From: from, To: to, Lost: to - from, Cause: rdma.CauseUnknown})
		}
	case transaction.PhasePush, transaction.PhaseReply:
		// The server has the whole result when it begins to push it.
		add(server, func(x *fabric.Stall) bool { return x.Cause != rdma.CauseReadSlot })
	}
	var share fabric.Share
	share, b.scratch = fabric.Divide(from, to, b.list, before, b.scratch)
	for i, n := range share {
		out[i] += time.Duration(n)
	}
}

// delayed reports whether a stall of the server's requests may have delayed n, the first packet that it sent, and
// makes the stall what is known of that. ready is when the server would usually have had its reply; 0 if unknown.
func delayed(x *fabric.Stall, f rdma.Fabric, n rdma.Ref, ready int64) bool {
	switch {
	case x.Cause == rdma.CauseReadSlot || x.Cause == rdma.CauseCongestion && f != rdma.IWARP:
		return false
	case x.Late != 0 && n.Number >= x.Late && n.Number <= x.LateTo:
		return true // the missing packet is the first that the server sent
	case x.Until != 0 && x.Until < n.Time:
		return false // the sender had caught up, and nothing came: nothing was waiting
	case x.Cause != rdma.CauseCongestion && x.To > n.Time:
		return false // it sent during the stall, which therefore did not hold it up
	case f == rdma.IWARP:
		// The first packet followed directly on what the stall had delayed: the sender had it by then. If it
		// usually has its reply sooner, the reply waited in the queue since.
		if ready == 0 {
			x.Cause = rdma.CauseUnknown
		} else if !x.After(ready) {
			return false
		}
		return x.Before(n.Time)
	}
	x.Cause, x.To, x.Lost = rdma.CauseUnknown, n.Time, n.Time-x.From
	return x.To > x.From
}

// work is what the server has to do for a call.
func work(tx *transaction.Transaction) fabric.Work {
	switch {
	case tx.Times.FirstPush.Seen():
		return fabric.WorkPush
	case tx.Times.FirstRead.Seen():
		return fabric.WorkPull
	}
	return fabric.WorkInline
}

// lastRead is when the server asked for the last piece of the call.
func lastRead(tx *transaction.Transaction, server rdma.Side) (at int64) {
	for i := range tx.Operations {
		if o := &tx.Operations[i]; o.Kind == rdma.Read && o.From == server && o.Chunk == transaction.ReadList {
			at = max(at, o.First.Time)
		}
	}
	return at
}
