package verbstest

import (
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Bench runs all benchmarks of a provider, and next to each the same movement
// of bytes over a bare socket of the kind that the provider uses, so that one
// run gives the ratio.
func Bench(b *testing.B, o Options, bare Bare) {
	b.Run("Read1M", func(b *testing.B) { BenchRead(b, o) })
	b.Run("Write1M", func(b *testing.B) { BenchWrite(b, o) })
	b.Run("Stream1M/bare", bare.Stream)
	b.Run("PingPong64", func(b *testing.B) { BenchPingPong(b, o) })
	b.Run("PingPong64/bare", bare.PingPong)
	b.Run("RPC64x32", func(b *testing.B) { BenchRPC(b, o) })
	b.Run("RPC64x32/bare", bare.RPC)
	b.Run("Sends64", func(b *testing.B) { BenchSends(b, o) })
}

// Bare is the same over a bare socket: TCP or UDP.
type Bare struct {
	Stream, PingPong, RPC func(*testing.B)
}

// outstanding is how many operations the benchmarks keep under way.
const outstanding = 32

func benchPair(b *testing.B, o Options, receives, size int) (client, server *end, serverIn [][]byte) {
	b.Helper()
	if !o.Listen.IsValid() {
		o.Listen = loopback
	}
	o.Hang = time.Hour
	p := newPair(b, o)
	params := verbs.Params{SendDepth: 256, RecvDepth: 256}
	dial, accept := params, params
	for i := range receives {
		dial.Recvs = append(dial.Recvs, verbs.RecvRequest{ID: uint64(i), Buffer: alloc(b, p.client, size)})
		in := alloc(b, p.server, size)
		accept.Recvs = append(accept.Recvs, verbs.RecvRequest{ID: uint64(i), Buffer: in})
		serverIn = append(serverIn, in)
	}
	client, server = p.connectWith(b, dial, accept)
	return client, server, serverIn
}

// BenchRead measures RDMA Reads of 1 MiB, 8 at a time.
func BenchRead(b *testing.B, o Options) { benchTransfer(b, o, verbs.OpRead) }

// BenchWrite measures RDMA Writes of 1 MiB, 8 at a time, the last followed by a
// Read that tells that all have arrived.
func BenchWrite(b *testing.B, o Options) { benchTransfer(b, o, verbs.OpWrite) }

func benchTransfer(b *testing.B, o Options, op verbs.Op) {
	const size, depth = 1 << 20, 8
	c, s, _ := benchPair(b, o, 0, 0)
	mem, local := s.alloc(b, size), c.alloc(b, depth*size)
	r := s.register(b, mem, verbs.RemoteRead|verbs.RemoteWrite)
	b.SetBytes(size)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := CPU(b)
	lists := make([][][]byte, depth)
	for i := range lists {
		lists[i] = one(local[i*size : (i+1)*size])
	}
	for posted, completed := 0, 0; completed < b.N; {
		for posted < b.N && posted-completed < depth {
			c.post(b, verbs.WorkRequest{ID: 1, Op: op, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: lists[posted%depth]})
			posted++
		}
		c.mustPoll(b, &completed)
	}
	if op == verbs.OpWrite {
		c.ok(b, verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(local[:1])})
	}
	cpu()
	b.StopTimer()
}

// mustPoll waits for completions and adds their number.
func (e *end) mustPoll(b *testing.B, completed *int) []verbs.Completion {
	n := e.Poll(e.batch[:])
	for n == 0 {
		if err := e.Wait(); err != nil {
			b.Fatal(err)
		}
		n = e.Poll(e.batch[:])
	}
	for _, c := range e.batch[:n] {
		if c.Status != verbs.StatusSuccess {
			b.Fatalf("%s: %+v: %v", e.name, c, e.Err())
		}
	}
	*completed += n
	return e.batch[:n]
}

// echo answers each Send with one of the same size, until the connection ends.
func (e *end) echo(in [][]byte, done chan<- struct{}) {
	defer close(done)
	out := make([]byte, 0)
	if b, err := e.provider.Alloc(64); err == nil {
		out = b
	}
	list := one(out)
	wrs := make([]verbs.WorkRequest, 0, len(e.batch))
	recvs := make([]verbs.RecvRequest, 0, len(e.batch))
	sent := 0
	for {
		n := e.Poll(e.batch[:])
		if n == 0 {
			if e.Wait() != nil {
				return
			}
			continue
		}
		wrs, recvs = wrs[:0], recvs[:0]
		for _, c := range e.batch[:n] {
			if c.Op != verbs.OpRecv {
				continue
			}
			if c.Status != verbs.StatusSuccess {
				return
			}
			recvs = append(recvs, verbs.RecvRequest{ID: c.ID, Buffer: in[c.ID]})
			sent++
			wrs = append(wrs, verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: sent%outstanding == 0, Local: list})
		}
		if len(recvs) == 0 {
			continue
		}
		if e.PostRecv(recvs...) != nil || e.Post(wrs...) != nil {
			return
		}
	}
}

// BenchPingPong measures a Send of 64 bytes and its answer, one at a time.
func BenchPingPong(b *testing.B, o Options) { benchRPC(b, o, 1) }

// BenchRPC measures the same with 32 under way.
func BenchRPC(b *testing.B, o Options) { benchRPC(b, o, outstanding) }

func benchRPC(b *testing.B, o Options, window int) {
	const size = 64
	c, s, serverIn := benchPair(b, o, 2*outstanding, size)
	var in [][]byte
	for range 2 * outstanding {
		in = append(in, c.alloc(b, size)) // the first ones were posted at setup
	}
	done := make(chan struct{})
	go s.echo(serverIn, done)
	list := one(c.alloc(b, size))
	times := make([]time.Duration, 0, b.N)
	wrs := make([]verbs.WorkRequest, 0, outstanding)
	recvs := make([]verbs.RecvRequest, 0, outstanding)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := CPU(b)
	start := time.Now()
	begun, sent, received, completions := start, 0, 0, 0
	for received < b.N {
		if n := min(window-(sent-received), b.N-sent); n > 0 {
			if window == 1 {
				begun = time.Now()
			}
			wrs = wrs[:0]
			for range n {
				sent++
				wrs = append(wrs, verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: sent%outstanding == 0, Local: list})
			}
			c.post(b, wrs...)
		}
		recvs = recvs[:0]
		for _, x := range c.mustPoll(b, &completions) {
			if x.Op == verbs.OpRecv {
				received++
				recvs = append(recvs, verbs.RecvRequest{ID: x.ID, Buffer: in[x.ID]})
			}
		}
		if len(recvs) > 0 {
			if window == 1 {
				times = append(times, time.Since(begun))
			}
			if err := c.PostRecv(recvs...); err != nil {
				b.Fatal(err)
			}
		}
	}
	report(b, time.Since(start), times)
	cpu()
	b.StopTimer()
	c.Close()
	<-done
}

// report adds the rate and, if there are any, the median of times.
func report(b *testing.B, d time.Duration, times []time.Duration) {
	b.ReportMetric(float64(b.N)/d.Seconds(), "rpc/s")
	if len(times) > 0 {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2])/1e3, "p50-µs")
	}
}

// BenchSends measures Sends of 64 bytes in one direction, in batches; the
// receiver gives credit with a Send for each batch.
func BenchSends(b *testing.B, o Options) {
	const size, batch = 64, outstanding
	c, s, serverIn := benchPair(b, o, 4*batch, size)
	done := make(chan struct{})
	go func() {
		defer close(done)
		credit := one(s.alloc(b, 8))
		recvs := make([]verbs.RecvRequest, 0, len(s.batch))
		for total := 0; ; {
			n := s.Poll(s.batch[:])
			if n == 0 {
				if s.Wait() != nil {
					return
				}
				continue
			}
			recvs = recvs[:0]
			for _, x := range s.batch[:n] {
				if x.Op == verbs.OpRecv && x.Status == verbs.StatusSuccess {
					recvs = append(recvs, verbs.RecvRequest{ID: x.ID, Buffer: serverIn[x.ID]})
				}
			}
			if len(recvs) == 0 || s.PostRecv(recvs...) != nil {
				continue
			}
			before := total / batch
			total += len(recvs)
			if total/batch > before && s.Post(verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: true, Local: credit}) != nil {
				return
			}
		}
	}()
	list := one(c.alloc(b, size))
	in := c.alloc(b, 8)
	wrs := make([]verbs.WorkRequest, batch)
	for i := range wrs {
		wrs[i] = verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: i == batch-1, Local: list}
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu := CPU(b)
	start := time.Now()
	completions := 0
	rounds := (b.N + batch - 1) / batch
	for sent, credits := 0, 0; credits < rounds; {
		for sent < rounds && sent-credits < 3 {
			c.post(b, wrs...)
			sent++
		}
		for _, x := range c.mustPoll(b, &completions) {
			if x.Op == verbs.OpRecv {
				credits++
				c.recv(b, x.ID, in)
			}
		}
	}
	b.ReportMetric(float64(rounds*batch)/time.Since(start).Seconds(), "sends/s")
	cpu()
	b.StopTimer()
	c.Close()
	<-done
}
