package rocev2

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/verbstest"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

func BenchmarkVerbs(b *testing.B) {
	o := suite(b, Options{})
	counted := func(f func(testing.TB) verbs.Provider) func(testing.TB) verbs.Provider {
		return func(t testing.TB) verbs.Provider {
			p := f(t)
			t.Cleanup(func() {
				if s := p.(*Provider).Stats(); s != (Stats{}) {
					t.Logf("%+v", s)
				}
			})
			return p
		}
	}
	o.New, o.NewPeer = counted(o.New), counted(o.NewPeer)
	verbstest.Bench(b, o, verbstest.Bare{Stream: bareStream, PingPong: barePingPong, RPC: bareRPC})
}

// pair is two sockets with the options and the system calls of the provider.
type pair struct {
	a, b   *bare
	at, bt netip.AddrPort
}

func barePair(b *testing.B) *pair {
	p := &pair{at: netip.AddrPortFrom(address(b), 4791), bt: netip.AddrPortFrom(address(b), 4791)}
	p.a, p.b = openBare(b, p.at), openBare(b, p.bt)
	return p
}

// bareBatch is n packets of size bytes.
func bareBatch(n, size int) *batch {
	var c icrc
	c.set(netip.MustParseAddrPort("127.0.0.1:4791"), netip.MustParseAddrPort("127.0.0.2:4791"))
	t := newBatch(&c, true)
	payload := make([]byte, size)
	for range n {
		t.header(12)
		t.payload(payload)
		t.finish(kindRequest, 0, 0, 0)
	}
	return t
}

// bareStream is the same datagrams with the same offloads, without checksums,
// without anything done with what arrives, and a window against loss.
func bareStream(b *testing.B) {
	const size, window = 1 << 20, 256
	p := barePair(b)
	go func() {
		ack := bareBatch(1, 0)
		for got := 0; ; {
			n, err := p.b.recv()
			if err != nil {
				return
			}
			for i := range n {
				m, size, _ := p.b.message(i)
				got += (len(m) + size - 1) / size
			}
			for ; got >= 32; got -= 32 {
				if _, err := p.b.send(ack, 0, p.at); err != nil {
					return
				}
			}
		}
	}()
	data := bareBatch(32, 4096)
	b.SetBytes(size)
	b.ResetTimer()
	defer verbstest.CPU(b)()
	flying := 0
	for range b.N * (size / 4096 / 32) {
		for flying >= window {
			n, err := p.a.recv()
			if err != nil {
				b.Fatal(err)
			}
			for i := range n {
				m, size, _ := p.a.message(i)
				flying -= 32 * ((len(m) + size - 1) / size)
			}
		}
		if _, err := p.a.send(data, 0, p.bt); err != nil {
			b.Fatal(err)
		}
		flying += 32
	}
}

func bareEcho(p *pair) {
	reply := bareBatch(1, 64)
	for {
		n, err := p.b.recv()
		if err != nil {
			return
		}
		for range n {
			if _, err := p.b.send(reply, 0, p.at); err != nil {
				return
			}
		}
	}
}

func barePingPong(b *testing.B) { bareCalls(b, 1) }

// bareRPC sends each call and each reply with a system call of its own.
func bareRPC(b *testing.B) { bareCalls(b, 32) }

func bareCalls(b *testing.B, window int) {
	p := barePair(b)
	go bareEcho(p)
	call := bareBatch(1, 64)
	var times []time.Duration
	b.ResetTimer()
	defer verbstest.CPU(b)()
	start := time.Now()
	for sent, received := 0, 0; received < b.N; {
		begun := time.Now()
		for ; sent < b.N && sent-received < window; sent++ {
			if _, err := p.a.send(call, 0, p.bt); err != nil {
				b.Fatal(err)
			}
		}
		n, err := p.a.recv()
		if err != nil {
			b.Fatal(err)
		}
		received += n
		if window == 1 {
			times = append(times, time.Since(begun))
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "rpc/s")
	if len(times) > 0 {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2])/1e3, "p50-µs")
	}
}
