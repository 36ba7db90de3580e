package session

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// ways are a Recorder that takes the short way, one that has all open calls in its table, and one that takes the long way.
var ways = map[string]func(s *Recorder) decode.MessageObserver{
	"short": func(s *Recorder) decode.MessageObserver { return s },
	"table": func(s *Recorder) decode.MessageObserver { return collecting{s} },
	"long":  func(s *Recorder) decode.MessageObserver { return longWay{s} },
}

// known is what a Recorder with SlotsOnly has in mind.
func known(s *Recorder) string {
	b := fmt.Sprintln(s.held, s.paid, s.pending(), s.lost)
	for _, x := range s.order {
		b += fmt.Sprintln(x.id, x.target, x.least, x.grant, x.meter.last, x.fore.limit, x.fore.inUse, x.fore.busy, x.back.inUse)
		for _, c := range x.conns.list {
			b += fmt.Sprint(" ", c.c.ID, c.last, c.open, c.most)
		}
	}
	return b
}

// slotsOnly runs COMPOUNDs of many sessions on many connections, with memory for some of them, and returns how long each waited, and
// what is known at the end.
func slotsOnly(t *testing.T, seed uint64, way func(*Recorder) decode.MessageObserver) (waits []time.Duration, end string) {
	t.Helper()
	m, s := newCompounds(seed), New(nil)
	s.Live()
	s.SlotsOnly()
	if seed%3 == 0 {
		s.Limit(sessionSize * (1 + m.rng.IntN(6)))
	}
	opt := transaction.Options{Messages: way(s), Ended: s.Ended}
	tracker := transaction.NewTracker(opt, func(tx *transaction.Transaction) { waits = append(waits, tx.Slots) })
	conns := make([]rdma.Connection, 1+m.rng.IntN(4))
	if seed%5 == 0 {
		conns, m.ids, m.odd = make([]rdma.Connection, maxConnections+9), m.ids[:1], 300 // more than a session may have
	}
	if seed%5 == 1 { // little but the short way
		conns, m.ids, m.odd = conns[:1], m.ids[:1], 500
	}
	for i := range conns {
		c := &conns[i]
		if c.ID, c.Fabric = 1+i%2*16+i, rdma.RoCEv2; len(conns) > maxConnections {
			c.ID = 16*i + 1/(i+1) // all but one share a place in Recorder.recent
		}
		c.Ends[0].Addr, c.Ends[1].Addr = netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + i)}), netip.AddrFrom4([4]byte{192, 0, 2, 1})
	}
	var ref rdma.Ref
	send := func(c *rdma.Connection, from rdma.Side, data []byte) {
		ref.Number++
		if ref.Time += int64(m.rng.IntN(100_000)); m.rarely() {
			ref.Time -= 150_000
		}
		tag := tracker.Send(c, &rdma.Send{From: from, Data: data, Length: len(data), First: ref, Last: ref, Packets: 1})
		tracker.SendAcked(c, from, tag, ref)
	}
	type open struct {
		c           *rdma.Connection
		call, reply []byte
	}
	var list []open
	most := 1 + m.rng.IntN(2)*m.rng.IntN(90)
	for range 500 {
		x := open{c: &conns[m.rng.IntN(len(conns))]}
		call, reply := m.next()
		x.call, x.reply = onRDMA(m.xid, call), onRDMA(m.xid, reply)
		send(x.c, 0, x.call)
		list = append(list, x)
		for len(list) > 0 && (len(list) >= most || m.rng.IntN(3) == 0) {
			i := m.rng.IntN(len(list))
			x := list[i]
			list = slices.Delete(list, i, i+1)
			if m.rarely() && m.rng.IntN(3) == 0 {
				continue // it gets no reply
			}
			if m.rarely() {
				send(x.c, 0, x.call) // again
			}
			send(x.c, 1, x.reply)
		}
	}
	end = known(s)
	tracker.Flush()
	return waits, end + known(s)
}

// TestSlotsOnly: calls have waited as long, and as much is known, whatever way is taken, also while sessions and connections are dropped.
func TestSlotsOnly(t *testing.T) {
	waited := 0
	for seed := range uint64(90) {
		want, end := slotsOnly(t, seed, ways["long"])
		for _, w := range []string{"table", "short"} {
			if waits, got := slotsOnly(t, seed, ways[w]); !slices.Equal(waits, want) || got != end {
				t.Fatalf("%d: the long way\n%v\n%s\n%s\n%v\n%s", seed, want, end, w, waits, got)
			}
		}
		if slices.Max(want) > 0 {
			waited++
		}
	}
	if waited < 30 {
		t.Errorf("calls of only %d runs had to wait", waited)
	}
}

// TestSlotsOnlyChanged: so it is in captures that were changed at random, and with a Recorder that counts, too.
func TestSlotsOnlyChanged(t *testing.T) {
	run := func(which uint8, program []byte, only bool, way func(*Recorder) decode.MessageObserver) (waits []time.Duration) {
		s := New(nil)
		if only {
			s.Live()
			s.SlotsOnly()
		}
		opt := decode.Options{Observer: way(s)}
		opt.Transactions.Ended = s.Ended
		traffic.Run(decode.New(opt, func(tx *transaction.Transaction) {
			waits = append(waits, tx.Slots)
		}), traffic.Apply(which, program), 64)
		return waits
	}
	for which := range traffic.Count() {
		rng := rand.New(rand.NewPCG(uint64(which), 29))
		for round := range 5 {
			var program []byte
			for range 9 * round {
				program = append(program, byte(rng.Uint32()))
			}
			want := run(uint8(which), program, false, ways["long"])
			for name, way := range ways {
				if got := run(uint8(which), program, true, way); !slices.Equal(got, want) {
					t.Fatalf("capture %d, program %v: all is counted\n%v\n%s\n%v", which, program, want, name, got)
				}
			}
		}
	}
}
