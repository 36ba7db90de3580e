package blame_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// queue is an iWARP server that writes results to its client one after the other. Times are in nanoseconds since the
// first packet, segments are numbered from 0.
type queue struct {
	lose          int   // the segment that is lost; -1 for none
	before, after int   // segments of the window before and after the loss
	first, second int   // segments of the two results
	taught        int   // calls before
	usual         int64 // what the server takes for each
	service       int64 // what it takes for the second of the two, which came with the first
}

const (
	mss  = 1000
	trip = 10_000_000
	pace = 100_000
)

// run plays the queue, and returns the second of the two transactions.
func (q *queue) run(t *testing.T) *transaction.Transaction {
	t.Helper()
	b := blame.Lean(0)
	c := &rdma.Connection{ID: 1, Fabric: rdma.IWARP}
	const base = int64(1e18)
	type packet struct {
		at int64
		s  rdma.Sighting
		tx *transaction.Transaction
	}
	var list []packet
	ref := func(at int64) rdma.Ref { return rdma.Ref{Time: base + at, Number: uint64(at/1000) + 1} }
	put := func(at int64, s rdma.Sighting) {
		s.Ref, s.Class, s.Placed, s.WindowScale = ref(at), rdma.ClassSegment, true, 10
		list = append(list, packet{at: at, s: s})
	}
	acknowledge := func(at int64, n int) {
		put(at, rdma.Sighting{From: 0, HasAck: true, Acked: uint64(n * mss), Window: 1000})
	}
	call := func(at, push, end int64) *transaction.Transaction {
		x := &transaction.Transaction{Connection: c, From: 0}
		x.Call.First, x.Call.Last = ref(at), ref(at)
		x.Times.FirstPush, x.Times.LastPush = ref(push), ref(end)
		x.Reply.First, x.Reply.Last = ref(end), ref(end)
		list = append(list, packet{at: end, tx: x})
		return x
	}
	sent := []int64{}
	end, repaired := int64(0), int64(0)
	send := func(from int64, count int) (first, last int64) {
		for i := range count {
			k := len(sent)
			at := max(from, end+pace)
			if w := q.before; q.lose < 0 || k <= q.lose {
				if k >= w {
					at = max(at, sent[k-w]+trip)
				}
			} else {
				if k >= q.lose+w { // the window is full until the lost segment has come
					if repaired == 0 {
						repaired = sent[q.lose] + trip + 4*pace
						for d := range 3 { // what came behind it is noticed
							acknowledge(sent[q.lose+1+d]+trip, q.lose)
						}
						put(repaired, rdma.Sighting{From: 1, Start: uint64(q.lose * mss), End: uint64((q.lose + 1) * mss), Bytes: mss, Inside: true})
						acknowledge(repaired+trip, q.lose+w)
					}
					at = max(at, repaired+trip)
				}
				if k >= q.lose+w+q.after {
					at = max(at, sent[k-q.after]+trip)
				}
			}
			put(at, rdma.Sighting{From: 1, Start: uint64(k * mss), End: uint64((k + 1) * mss), Bytes: mss, Inside: i > 0})
			if q.lose < 0 || k < q.lose || k >= q.lose+q.before {
				acknowledge(at+trip, k+1)
			}
			if sent, end = append(sent, at), at; i == 0 {
				first = at
			}
		}
		return first, end
	}
	now := int64(1_000_000)
	for range q.taught {
		first, last := send(now+q.usual, 30)
		call(now, first, last)
		now = last + 2*trip
	}
	f1, l1 := send(now+q.usual, q.first)
	call(now, f1, l1)
	f2, l2 := send(now+q.service, q.second)
	x := call(now, f2, l2)
	slices.SortStableFunc(list, func(a, b packet) int { return int(a.at - b.at) })
	for i := range list {
		p := &list[i]
		if p.tx != nil {
			b.Ended(p.tx)
			continue
		}
		stamp := uint32(p.at / 1_000_000)
		c.Stamp = rdma.Stamp{Present: true, Value: stamp, Echo: stamp}
		b.Recorder.Saw(c, &p.s)
	}
	return x
}

// TestQueue: a reply that waits behind one that a loss has slowed down. What it waited longer than without the loss is
// found, and nothing else.
func TestQueue(t *testing.T) {
	const ms = 1_000_000
	usual := queue{lose: 430, before: 40, after: 10, first: 550, second: 100, taught: 5, usual: 2 * ms, service: 2 * ms}
	server := func(x *transaction.Transaction) (all, found, unknown time.Duration) {
		p, ok := x.Phases()
		if !ok || x.Blame == nil {
			t.Fatal("no phases")
		}
		sum := time.Duration(0)
		for _, n := range x.Blame.Shares[transaction.PhaseServer] {
			sum += n
		}
		if sum != p.Server {
			t.Errorf("%v of %v", sum, p.Server)
		}
		s := &x.Blame.Shares[transaction.PhaseServer]
		return p.Server, s[rdma.CauseRecovery] + s[rdma.CauseCongestion], s[rdma.CauseUnknown]
	}
	for _, x := range []struct {
		name    string
		change  func(q *queue)
		none    bool // nothing waited
		unknown bool
	}{
		{name: "usual", change: func(*queue) {}},
		{name: "the window is nearly as large", change: func(q *queue) { q.after = 35 }},
		{name: "a long queue", change: func(q *queue) { q.first = 900 }},
		{name: "ready in the middle of the queue", change: func(q *queue) { q.usual, q.service = 20*ms, 20*ms }},
		{name: "a slow server", change: func(q *queue) { q.service = 800 * ms }, none: true},
		{name: "too few calls to know", change: func(q *queue) { q.taught, q.lose = 2, 340 }, unknown: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			q := usual
			x.change(&q)
			clean := q
			clean.lose = -1
			without, none, guess := server(clean.run(t))
			if none != 0 || guess != 0 {
				t.Errorf("without a loss: %v, %v", none, guess)
			}
			with, found, unknown := server(q.run(t))
			t.Logf("%v, with a loss %v, of it %v, unknown %v", without, with, found, unknown)
			diff := with - without
			switch {
			case x.none:
				if found+unknown != 0 {
					t.Error("it did not wait")
				}
			case x.unknown:
				if found != 0 || unknown == 0 || unknown > diff+diff/20 {
					t.Error("it is not known how long it waited")
				}
			case diff < 5*ms:
				t.Error("no difference")
			// During recovery itself the window is neither the old nor the new one.
			case unknown != 0 || found < diff*95/100 || found > diff+diff/50+trip/2:
				t.Error("not what it waited for")
			}
		})
	}
}
