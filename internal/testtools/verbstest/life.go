package verbstest

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// flushed checks that receives complete in order, as flushed.
func flushed(t *testing.T, e *end, ids ...uint64) {
	t.Helper()
	for _, id := range ids {
		if r := e.received(t); r.ID != id || r.Status != verbs.StatusFlushed || r.Op != verbs.OpRecv {
			t.Errorf("%s: receive %d: %+v, want it flushed", e.name, id, r)
		}
	}
}

func recvs(t *testing.T, p verbs.Provider, n int) verbs.Params {
	t.Helper()
	var params verbs.Params
	for i := range n {
		params.Recvs = append(params.Recvs, verbs.RecvRequest{ID: uint64(i + 1), Buffer: alloc(t, p, 4096)})
	}
	return params
}

func testDisconnect(t *testing.T, p *pair) {
	for _, byServer := range []bool{false, true} {
		c, s := p.connectWith(t, recvs(t, p.client, 3), recvs(t, p.server, 3))
		first, second := c, s
		if byServer {
			first, second = s, c
		}
		// One message each way, so that there is something before the end.
		first.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: true, Local: one(first.alloc(t, 9))})
		if r := second.received(t); r.Status != verbs.StatusSuccess || r.Length != 9 {
			t.Errorf("%+v", r)
		}
		if err := first.Disconnect(p.ctx); err != nil {
			t.Errorf("Disconnect: %v", err)
		}
		flushed(t, second, 2, 3)
		flushed(t, first, 1, 2, 3)
		first.disconnected(t)
		second.disconnected(t)
		for _, e := range []*end{first, second} {
			// Either answer is right: it is refused, or flushed.
			if e.Post(verbs.WorkRequest{ID: 77, Op: verbs.OpSend, Signaled: true, Local: one(e.alloc(t, 1))}) == nil {
				if d := e.sent(t); d.Status != verbs.StatusFlushed || d.ID != 77 {
					t.Errorf("%s: request after the end: %+v", e.name, d)
				}
			}
			if e.PostRecv(verbs.RecvRequest{ID: 78, Buffer: e.alloc(t, 1)}) == nil {
				flushed(t, e, 78)
			}
			if e.Wait() == nil && e.Poll(e.batch[:]) == 0 {
				t.Errorf("%s: Wait returned for nothing", e.name)
			}
			if err := e.Disconnect(p.ctx); err != nil && err != verbs.ErrDisconnected { //nolint:errorlint // the plain error is meant
				t.Errorf("%s: Disconnect again: %v", e.name, err)
			}
		}
	}
}

// testDisconnectDrains: what was posted before Disconnect arrives.
func testDisconnectDrains(t *testing.T, p *pair) {
	const count, size = 100, 10000
	params := recvs(t, p.server, count)
	for i := range params.Recvs {
		params.Recvs[i].Buffer = alloc(t, p.server, size)
	}
	c, s := p.connectWith(t, verbs.Params{}, params)
	out := c.alloc(t, size)
	fill(out, 1)
	for i := range count {
		c.post(t, verbs.WorkRequest{ID: uint64(i), Op: verbs.OpSend, Local: one(out)})
	}
	if err := c.Disconnect(p.ctx); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		r := s.received(t)
		if r.Status != verbs.StatusSuccess || r.ID != uint64(i+1) || r.Length != size || filled(params.Recvs[i].Buffer, 1) >= 0 {
			t.Fatalf("message %d: %+v", i, r)
		}
	}
	s.disconnected(t)
	c.disconnected(t)
	if len(c.sends) > 0 {
		t.Errorf("a Send that went out completed as %+v", c.sends[0])
	}
}

func testCloseFlushes(t *testing.T, p *pair) {
	c, s := p.connectWith(t, recvs(t, p.client, 4), recvs(t, p.server, 4))
	waiting := make(chan error, 1)
	go func() { waiting <- s.Wait() }()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if err := <-waiting; err != nil {
		t.Errorf("Wait: %v before the flushed receives were taken", err)
	}
	flushed(t, s, 1, 2, 3, 4)
	s.disconnected(t)
	c.drain()
	if c.Err() == nil || c.State() != verbs.StateError {
		t.Errorf("after Close: %v, state %v", c.Err(), c.State())
	}
	if err := c.Post(verbs.WorkRequest{Op: verbs.OpSend}); err == nil {
		t.Error("Post after Close")
	}
	if _, err := c.Register(c.alloc(t, 10), verbs.RemoteRead, verbs.OffsetAny); err == nil {
		t.Error("Register after Close")
	}
}

// testCloseBusy closes one side in the middle of Sends, Reads and Writes.
func testCloseBusy(t *testing.T, p *pair) {
	const size, depth = 300000, 8
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		c, s := p.connect(t, verbs.Params{SendDepth: 64, RecvDepth: 64})
		var wg sync.WaitGroup
		started := make(chan struct{}, 2)
		// What is written and what is read are apart, and so is what is local.
		sources, sinks := make(map[*end]verbs.Region), make(map[*end]verbs.Region)
		for _, e := range []*end{c, s} {
			sources[e] = e.register(t, e.alloc(t, size), verbs.RemoteRead)
			sinks[e] = e.register(t, e.alloc(t, size), verbs.RemoteWrite)
			for i := range depth {
				e.recv(t, uint64(i), e.alloc(t, size))
			}
		}
		for _, ends := range [][2]*end{{c, s}, {s, c}} {
			e, source, sink := ends[0], sources[ends[1]], sinks[ends[1]]
			out, in := e.alloc(t, size), e.alloc(t, size)
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; ; i++ {
					// At most depth Sends, for which receives are posted.
					op := []verbs.Op{verbs.OpWrite, verbs.OpRead, verbs.OpSend}[i%3]
					if op == verbs.OpSend && i/3 >= depth {
						op = verbs.OpWrite
					}
					local, r := out, sink
					if op == verbs.OpRead {
						local, r = in, source
					}
					if e.Post(verbs.WorkRequest{ID: uint64(i), Op: op, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(local)}) != nil {
						break
					}
					if i == 4 {
						started <- struct{}{}
					}
					if i >= 4 && !e.more() {
						break
					}
				}
				e.drain()
			}()
		}
		<-started
		<-started
		if round%2 == 0 {
			c.Close()
		} else {
			s.Close()
		}
		wg.Wait()
		c.Close()
		s.Close()
		c.failed(t)
		s.failed(t)
	}
}

func testProviderClose(t *testing.T, p *pair) {
	c, s := p.connectWith(t, recvs(t, p.client, 1), recvs(t, p.server, 1))
	accepting := make(chan error, 1)
	go func() {
		_, err := p.listener.Accept(p.ctx)
		accepting <- err
	}()
	if err := p.server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-accepting; err == nil {
		t.Error("Accept of a closed provider succeeded")
	}
	s.failed(t)
	c.failed(t)
	if _, err := p.server.Listen(p.ctx, p.o.Listen); err == nil {
		t.Error("Listen on a closed provider")
	}
	if err := p.server.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

// testConcurrentPosts posts from many goroutines, in batches that must stay
// together.
func testConcurrentPosts(t *testing.T, p *pair) {
	const workers, batches, each, depth = 8, 50, 3, 1200
	params := verbs.Params{RecvDepth: depth, SendDepth: depth}
	accept := params
	in := make([][]byte, workers*batches*each)
	all := alloc(t, p.server, len(in)*16)
	for i := range in {
		in[i] = all[16*i : 16*i+16]
		accept.Recvs = append(accept.Recvs, verbs.RecvRequest{ID: uint64(i), Buffer: in[i]})
	}
	c, s := p.connectWith(t, params, accept)
	out := c.alloc(t, 16*len(in))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for b := range batches {
				var wrs [each]verbs.WorkRequest
				for i := range wrs {
					n := (w*batches+b)*each + i
					m := out[16*n : 16*n+3+i]
					m[0], m[1], m[2] = byte(w), byte(b), byte(i)
					wrs[i] = verbs.WorkRequest{ID: uint64(n), Op: verbs.OpSend, Signaled: i == each-1, Local: one(m)}
				}
				if err := c.Post(wrs[:]...); err != nil {
					t.Error(err)
					return
				}
				r, err := c.Register(out[:100], verbs.RemoteRead, verbs.OffsetAny)
				if err == nil {
					err = c.Deregister(r.Handle)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	next := make([]byte, workers)
	for i := 0; i < len(in); i += each {
		w := byte(0)
		for j := range each {
			r := s.received(t)
			if r.Status != verbs.StatusSuccess || int(r.Length) != 3+j || r.ID != uint64(i+j) {
				t.Fatalf("%+v", r)
			}
			m := in[i+j]
			if j == 0 {
				w = m[0]
			}
			if m[0] != w || m[1] != next[w] || int(m[2]) != j {
				t.Fatalf("message %d of worker %d, batch %d, number %d: batches were mixed", i+j, m[0], m[1], m[2])
			}
		}
		next[w]++
	}
	wg.Wait()
	for range workers * batches {
		if d := c.sent(t); d.Status != verbs.StatusSuccess {
			t.Fatalf("%+v", d)
		}
	}
}

// testCycles makes many connections, one after the other; none may leave a
// goroutine or memory behind.
func testCycles(t *testing.T, p *pair) {
	note := alloc(t, p.server, 4096)
	region := alloc(t, p.client, 4096)
	out := alloc(t, p.client, 64)
	cycle := func(i int) {
		c, s := p.cycle(t, verbs.Params{}, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 1, Buffer: note}}})
		c.register(t, region, verbs.RemoteRead)
		c.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: true, Local: one(out)})
		if r := s.received(t); r.Status != verbs.StatusSuccess {
			t.Fatalf("%+v", r)
		}
		switch i % 3 {
		case 0:
			if err := c.Disconnect(p.ctx); err != nil {
				t.Fatal(err)
			}
			s.drain()
		case 1:
			c.Close()
			s.drain()
		case 2:
			s.Close()
			c.drain()
		}
		c.Close()
		s.Close()
	}
	for i := range 30 {
		cycle(i)
	}
	goroutines, heap := settled(1 << 30)
	for i := range p.o.Cycles {
		cycle(i)
	}
	after, heapAfter := settled(goroutines)
	if after > goroutines {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines before %d connections, %d after\n%s", goroutines, p.o.Cycles, after, stacks[:runtime.Stack(stacks, true)])
	}
	if grown := int64(heapAfter) - int64(heap); grown > 4<<20+int64(p.o.Cycles)*512 {
		t.Errorf("%d connections left %d bytes behind", p.o.Cycles, grown)
	}
}

// cycle is connectWith that leaves nothing to clean up at the test's end.
func (p *pair) cycle(t *testing.T, dial, accept verbs.Params) (client, server *end) {
	t.Helper()
	accepted := make(chan verbs.Conn, 1)
	go func() {
		defer close(accepted)
		if r, err := p.listener.Accept(p.ctx); err != nil {
			t.Error(err)
		} else if c, err := r.Accept(p.ctx, accept); err != nil {
			t.Error(err)
		} else {
			accepted <- c
		}
	}()
	c, err := p.client.Dial(p.ctx, p.listener.Addr(), dial)
	if err != nil {
		t.Fatal(err)
	}
	s := <-accepted
	if s == nil {
		t.FailNow()
	}
	return &end{Conn: c, provider: p.client, name: "client"}, &end{Conn: s, provider: p.server, name: "server"}
}

// settled counts goroutines and bytes in use when those that are about to end
// have done so: when there are at most want, or when time is up.
func settled(want int) (goroutines int, heap uint64) {
	deadline := time.Now().Add(time.Minute)
	for {
		runtime.GC()
		goroutines = runtime.NumGoroutine()
		if goroutines <= want || time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return goroutines, m.HeapAlloc
}
