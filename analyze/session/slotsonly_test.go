package session

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// waited runs COMPOUNDs of many sessions on many connections, and returns how long each waited.
func waited(t *testing.T, seed uint64, only bool) (waits []time.Duration) {
	t.Helper()
	m, s := newCompounds(seed), New(nil)
	s.Live()
	if only {
		s.SlotsOnly()
	}
	opt := transaction.Options{Message: s.Message, Ended: s.Ended}
	tracker := transaction.NewTracker(opt, func(tx *transaction.Transaction) { waits = append(waits, tx.Slots) })
	conns := make([]rdma.Connection, 1+m.rng.IntN(4))
	if seed%5 == 0 {
		conns, m.ids, m.odd = make([]rdma.Connection, maxConnections+9), m.ids[:1], 300 // more than a session may have
	}
	if seed%5 == 1 {
		conns, m.ids, m.odd = conns[:1], m.ids[:1], 500
	}
	for i := range conns {
		c := &conns[i]
		if c.ID, c.Fabric = 1+i%2*16+i, rdma.RoCEv2; len(conns) > maxConnections {
			c.ID = 16*i + 1/(i+1)
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
	tracker.Flush()
	return waits
}

// TestSlotsOnly: calls have waited as long with SlotsOnly as without, also while connections are dropped.
func TestSlotsOnly(t *testing.T) {
	some := 0
	for seed := range uint64(sampled.Rounds(90)) {
		want := waited(t, seed, false)
		if waits := waited(t, seed, true); !slices.Equal(waits, want) {
			t.Fatalf("%d: %v, want %v", seed, waits, want)
		}
		if slices.Max(want) > 0 {
			some++
		}
	}
	if some < sampled.Rounds(90)/3 {
		t.Errorf("calls of only %d runs had to wait", some)
	}
}

// TestSlotsOnlyChanged: so it is in captures that were changed at random, and with a Recorder that counts, too.
func TestSlotsOnlyChanged(t *testing.T) {
	run := func(which uint8, program []byte, only bool) (waits []time.Duration) {
		s := New(nil)
		if only {
			s.Live()
			s.SlotsOnly()
		}
		opt := decode.Options{Observers: []decode.Observer{s.Observer()}}
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
			if got, want := run(uint8(which), program, true), run(uint8(which), program, false); !slices.Equal(got, want) {
				t.Fatalf("capture %d, program %v: all is counted\n%v\nslots only\n%v", which, program, want, got)
			}
		}
	}
}
