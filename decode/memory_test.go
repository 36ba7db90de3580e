package decode_test

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/floods"
)

// heap is the live memory in bytes.
func heap() int {
	runtime.GC()
	runtime.GC() // the first leaves what pools and finalizers hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestAccountant floods a Decoder in every way that is known, and wants three
// things: that what it counts is what it holds, that this is within the limit,
// and that nothing is counted any more in the end.
func TestAccountant(t *testing.T) {
	const limit = 8 << 20
	options := map[string]func(*decode.Options){
		"":           func(*decode.Options) {},
		" completed": func(o *decode.Options) { o.Transactions.OnCompletion = true },
		" with data": func(o *decode.Options) { o.Transactions.KeepData = true },
		" traced":    func(o *decode.Options) { o.Transactions.Packets = 65536 },
	}
	for i := range floods.All {
		f := &floods.All[i]
		for name, set := range options {
			t.Run(f.Name+name, func(t *testing.T) {
				n := f.N / 6
				if name != "" {
					n /= 5
				}
				if testing.Short() {
					n = f.N / 240
				}
				opt := decode.Options{Memory: limit}
				set(&opt)
				before := heap()
				emitted := 0
				d := decode.New(opt, func(*transaction.Transaction) { emitted++ })
				m := d.Memory()
				r := f.Read(n)
				var b capture.Batch
				for batches, half := 0, false; ; batches++ {
					err := r.Read(&b)
					if errors.Is(err, io.EOF) {
						break
					}
					d.Batch(&b)
					if m.Used() > limit {
						t.Fatalf("%d bytes held, limit %d", m.Used(), limit)
					}
					if !half && m.Used() > limit/2 {
						half = true
						clear(b.Packets)
						check(t, before, m.Used())
					}
				}
				clear(b.Packets[:cap(b.Packets)])
				check(t, before, m.Used())
				d.Flush()
				if held := m.Used(); held > limit/2 { // what is kept for later
					t.Errorf("%d bytes held in the end", held)
				}
				for d.EvictAll() {
				}
				if m.Used() > 512<<10 { // calls of closed connections
					t.Errorf("%d bytes counted when nothing is left", m.Used())
				}
				if m.Peak() > limit {
					t.Errorf("peak %d", m.Peak())
				}
				runtime.KeepAlive(d)
			})
		}
	}
}

// check compares what is counted with the heap, of which before was there
// before.
func check(t *testing.T, before, counted int) {
	t.Helper()
	// What is held beside: the headers of a batch, tables of no connection.
	const fixed = 2 << 20
	most := counted + counted/5 + fixed
	held := heap() - before
	for range 10 { // on a busy machine, what is not alive may outlast two collections
		if held <= most {
			break
		}
		held = min(held, heap()-before)
	}
	t.Logf("%d KiB counted, %d KiB held", counted>>10, held>>10)
	if held > most {
		t.Errorf("%d KiB held, %d KiB counted", held>>10, counted>>10)
	}
}
