package check

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// allocations counts what decoding a capture allocates, with or without a
// Checker.
func allocations(packets []capture.Packet, checked bool) (mallocs, bytes uint64) {
	c := New(Options{Rules: All()}, func(*Finding) {})
	var v rpc.View
	opt := decode.Options{}
	if checked {
		o := c.Observer()
		o.Headers = nil
		opt.Observe(o)
	}
	d := decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		if checked {
			c.Transaction(&v)
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d.Batch(&capture.Batch{Packets: packets})
	runtime.ReadMemStats(&after)
	d.Flush()
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}

// A transaction that breaks no rule costs no allocation.
func TestAllocations(t *testing.T) {
	s := newScene()
	s.connect()
	const rounds = 400
	for i := range rounds {
		s.small()
		s.readData(3000+i, nil)
		s.writeData(4000, nil)
		s.longReply(nil)
		s.longCall(nil)
	}
	packets := s.frames()
	// The least of some runs, since the runtime allocates occasionally, too.
	least := func(checked bool) uint64 {
		n := ^uint64(0)
		for range 5 {
			m, _ := allocations(packets, checked)
			n = min(n, m)
		}
		return n
	}
	with, without := least(true), least(false)
	if with > without+rounds/2 {
		t.Errorf("%d transactions: %d allocations with a Checker, %d without", 5*rounds, with, without)
	}
}

// What a Checker remembers is bounded, however long the capture is.
func TestMemory(t *testing.T) {
	c := New(Options{Rules: All()}, func(*Finding) {})
	m, k := &c.memory.mem, &conn{}
	add := func(key uint32) *offered {
		h := k.handle(0, key)
		o, _, _ := m.add(k.lost, h, m.of(h))
		return o
	}
	for i := range 3 * maxMemory {
		add(uint32(i)).length = 1
	}
	if len(m.ring)*memoryPage != maxMemory || len(m.newest) != maxMemory {
		t.Errorf("%d segments, %d handles remembered", len(m.ring)*memoryPage, len(m.newest))
	}
	for i := range 3 * maxMemory {
		add(1 + uint32(i%3))
	}
	if len(m.newest) != 3 {
		t.Errorf("%d handles remembered, want 3", len(m.newest))
	}
	n := 0
	m.eachOpen(m.of(k.handle(0, 1)), func(*offered) bool { n++; return false })
	if n != maxChain {
		t.Errorf("%d segments of a handle looked at, want %d", n, maxChain)
	}
}

// TestOpenSegments: of each handle it is known how many segments are open, whatever is answered and dropped.
func TestOpenSegments(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	c := New(Options{Rules: All()}, func(*Finding) {})
	m, k, tx := &c.memory.mem, &conn{}, transaction.Transaction{}
	check := func(step int) {
		open := make(map[handle]uint32)
		for seq := m.next - min(m.next, maxMemory); seq < m.next; seq++ {
			if o := m.at(seq); o.state == segmentOpen {
				open[o.handle]++
			}
		}
		for h, seq := range m.newest {
			if got := m.at(seq).open; got != open[h] {
				t.Fatalf("step %d: %d segments of handle %d are open, want %d", step, got, h.key(), open[h])
			}
		}
	}
	for step := range 4 * maxMemory {
		h := k.handle(0, uint32(random.IntN(4))*uint32(random.IntN(maxMemory)))
		newest := m.of(h)
		if random.IntN(2) == 0 {
			m.add(k.lost, h, newest)
		} else {
			m.eachOpen(newest, func(o *offered) bool {
				if random.IntN(3) > 0 {
					m.end(newest, o, &tx)
				}
				return random.IntN(4) == 0
			})
		}
		if step%(maxMemory/8) == 0 {
			check(step)
		}
	}
}

// What is remembered of an open call fills a cache line, with its transaction.
func TestCallState(t *testing.T) {
	if n := unsafe.Sizeof(callState{}) + unsafe.Sizeof(&transaction.Transaction{}); n != 64 {
		t.Errorf("%d bytes", n)
	}
}
