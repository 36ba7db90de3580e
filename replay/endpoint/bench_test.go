package endpoint

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/internal/testtools/verbstest"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// bare answers with as little work as can be: a header, and an item if there is
// a Write chunk.
type bare struct {
	replies sync.Pool
	data    []byte
	want    []byte // what calls have to carry
	wrong   atomic.Int64
}

// arrived reports whether b is what was sent, by eight bytes of each page, and
// wipes those, so that the next transfer has to bring them again.
func arrived(b, want []byte) bool {
	ok := len(b) == len(want)
	for i := 0; ok && i+8 <= len(want); i += 4096 {
		ok = bytes.Equal(b[i:i+8], want[i:i+8])
		clear(b[i : i+8])
	}
	return ok
}

func newBare(data []byte) *bare {
	b := &bare{data: data}
	b.replies.New = func() any {
		m := &transport.Message{Stream: make([]byte, 28), Items: make([]transport.Item, 0, 1)}
		m.Release = func() { b.replies.Put(m) }
		return m
	}
	return b
}

func (b *bare) ServeRPC(x transport.Exchange) {
	if c := x.Call(); b.want != nil && (len(c.Items) != 1 || !arrived(c.Items[0].Data, b.want)) {
		b.wrong.Add(1)
	}
	m := b.replies.Get().(*transport.Message)
	m.Stream = m.Stream[:24]
	m.Items = m.Items[:0]
	copy(m.Stream, x.Call().Stream[:4])
	binary.BigEndian.PutUint32(m.Stream[4:], 1)
	if n := x.MaxResult(0); n > 0 && b.data != nil {
		m.Stream = binary.BigEndian.AppendUint32(m.Stream, uint32(len(b.data)))
		m.Items = append(m.Items, transport.Item{Position: 28, Data: b.data})
	}
	x.Reply(m)
}

// flood keeps window calls under way until n are done. The first Results of each
// call have to be want, if there is one.
func flood(b testing.TB, r transport.Requester, n, window int, want []byte, prepare func(c *transport.Call)) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range min(window, n) {
		c := new(transport.Call)
		prepare(c)
		wg.Add(1)
		c.Done = func(c *transport.Call) {
			if c.Err != nil {
				b.Error(c.Err)
				wg.Done()
				return
			}
			if want != nil && !arrived(c.Results[0], want) {
				b.Error("data that were not sent")
				wg.Done()
				return
			}
			if left.Add(-1) < 0 {
				wg.Done()
				return
			}
			c.XID = 0
			r.Start(c)
		}
		r.Start(c)
	}
	wg.Wait()
}

func benchStart(b *testing.B, f fabric, h transport.Handler, so, co Options) (*Responder, *Requester) {
	sp, at, cp := f.pair(b, nil)
	return startAt(b, sp, at, cp, h, so, co)
}

func BenchmarkNull(b *testing.B) {
	for _, f := range fabrics {
		b.Run(f.name, func(b *testing.B) {
			_, r := benchStart(b, f, newBare(nil), Options{}, Options{})
			flood(b, r, 1000, 32, nil, func(c *transport.Call) { c.Stream = rpctest.AppendCall(nil, 0) })
			b.ReportAllocs()
			b.ResetTimer()
			defer verbstest.CPU(b)()
			defer verbstest.CPU(b)()
			flood(b, r, b.N, 32, nil, func(c *transport.Call) { c.Stream = rpctest.AppendCall(nil, 0) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rpc/s")
		})
	}
}

func BenchmarkLatency(b *testing.B) {
	for _, f := range fabrics {
		b.Run(f.name, func(b *testing.B) {
			_, r := benchStart(b, f, newBare(nil), Options{}, Options{})
			c := transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
			times := make([]time.Duration, 0, b.N)
			b.ReportAllocs()
			defer verbstest.CPU(b)()
			for b.Loop() {
				c.XID = 0
				t := time.Now()
				if err := r.Do(b.Context(), &c); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(t))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs-p50")
		})
	}
}

func BenchmarkRead1M(b *testing.B) {
	for _, f := range fabrics {
		b.Run(f.name, func(b *testing.B) {
			sp, at, cp := f.pair(b, nil)
			h := newBare(nil)
			s, r := startAt(b, sp, at, cp, h, Options{}, Options{})
			data := must(s.Alloc(1 << 20))
			rpctest.Fill(data, 1)
			h.data = data
			prepare := func(c *transport.Call) {
				c.Stream = rpctest.AppendCall(nil, 0)
				c.Results = [][]byte{must(r.Alloc(1 << 20))}
				c.MaxReply = 128
			}
			flood(b, r, 20, 8, data, prepare)
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			b.ResetTimer()
			defer verbstest.CPU(b)()
			defer verbstest.CPU(b)()
			flood(b, r, b.N, 8, data, prepare)
		})
	}
}

func BenchmarkWrite1M(b *testing.B) {
	for _, f := range fabrics {
		b.Run(f.name, func(b *testing.B) {
			h := newBare(nil)
			h.want = make([]byte, 1<<20)
			rpctest.Fill(h.want, 1)
			_, r := benchStart(b, f, h, Options{}, Options{})
			prepare := func(c *transport.Call) {
				c.Stream = binary.BigEndian.AppendUint32(rpctest.AppendCall(nil, 0), 1<<20)
				data := must(r.Alloc(1 << 20))
				rpctest.Fill(data, 1)
				c.Items = []transport.Item{{Position: uint32(len(c.Stream)), Data: data}}
				c.MaxReply = 128
			}
			flood(b, r, 20, 8, nil, prepare)
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			b.ResetTimer()
			defer verbstest.CPU(b)()
			defer verbstest.CPU(b)()
			flood(b, r, b.N, 8, nil, prepare)
			if n := h.wrong.Load(); n > 0 {
				b.Errorf("%d calls arrived with other data than was sent", n)
			}
		})
	}
}
