package verbstest

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

func testSends(t *testing.T, p *pair) {
	c, s := p.connect(t, verbs.Params{RecvDepth: 64})
	mtu := c.Info().MTU
	sizes := []int{0, 1, 2, 3, 4, 5, 64, 1000, mtu - 1, mtu, mtu + 1, 2 * mtu, 2*mtu + 1, 65535, 65536}
	for _, ends := range [][2]*end{{c, s}, {s, c}} {
		from, to := ends[0], ends[1]
		const room = 256 << 10
		in := make([][]byte, len(sizes))
		for i := range in {
			in[i] = to.alloc(t, room)
			set(in[i], 0xee)
			to.recv(t, uint64(100+i), in[i])
		}
		for i, n := range sizes {
			n = min(n, room)
			b := from.alloc(t, n)
			fill(b, i)
			from.post(t, verbs.WorkRequest{ID: uint64(i), Op: verbs.OpSend, Signaled: true, Local: one(b)})
		}
		for i, n := range sizes {
			n = min(n, room)
			r := to.received(t)
			if r.Status != verbs.StatusSuccess || r.ID != uint64(100+i) || int(r.Length) != n || r.Invalidated {
				t.Fatalf("receive %d of %d bytes: %+v", i, n, r)
			}
			if r.Time.IsZero() {
				t.Error("completion without a time")
			}
			if at := filled(in[i][:n], i); at >= 0 {
				t.Fatalf("byte %d of a Send of %d is wrong", at, n)
			}
			if at := changed(in[i][n:], 0xee); at >= 0 {
				t.Fatalf("byte %d after a Send of %d was written", at, n)
			}
		}
		for i := range sizes {
			if d := from.sent(t); d.Status != verbs.StatusSuccess || d.ID != uint64(i) || d.Op != verbs.OpSend {
				t.Fatalf("Send %d: %+v", i, d)
			}
		}
	}
}

func testSendLists(t *testing.T, p *pair) {
	const total = 10000
	in := alloc(t, p.server, total+10)
	c, s := p.connectWith(t, verbs.Params{}, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 1, Buffer: in}}})
	b := c.alloc(t, total)
	for n := 1; n <= p.client.Caps().MaxSGE && n <= 8; n++ {
		fill(b, n)
		var list [][]byte
		at := 0
		for i := range n {
			size := (total / n) | 1
			if i == n-1 {
				size = total - at
			}
			list = append(list, b[at:at+size])
			at += size
		}
		c.ok(t, verbs.WorkRequest{ID: uint64(n), Op: verbs.OpSend, Signaled: true, Local: list})
		if r := s.received(t); r.Status != verbs.StatusSuccess || r.Length != total {
			t.Fatalf("%d slices: %+v", n, r)
		}
		if at := filled(in[:total], n); at >= 0 {
			t.Fatalf("%d slices: byte %d is wrong", n, at)
		}
		s.recv(t, 1, in)
	}
	too := make([][]byte, p.client.Caps().MaxSGE+1)
	for i := range too {
		too[i] = b[i : i+1]
	}
	if err := c.Post(verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: too}); err == nil {
		t.Error("more slices than MaxSGE were taken")
	}
}

// testBothWays has both sides send at once, more than any socket buffers, with
// receives posted again as they complete.
func testBothWays(t *testing.T, p *pair) {
	const count, size, depth = 400, 20000, 16
	c, s := p.connect(t, verbs.Params{SendDepth: count, RecvDepth: depth})
	// Receives are posted before either side starts.
	run := func(e *end, start chan struct{}, done chan string) {
		in := make([][]byte, depth)
		for i := range in {
			in[i] = e.alloc(t, size)
			e.recv(t, uint64(i), in[i])
		}
		out := e.alloc(t, size)
		fill(out, 7)
		done <- ""
		<-start
		sent, completed, received := 0, 0, 0
		allowed := depth / 2 // what the peer has room for
		for received < count || completed < count {
			for sent < count && sent < allowed {
				if err := e.Post(verbs.WorkRequest{ID: uint64(sent), Op: verbs.OpSend, Signaled: true, Local: one(out)}); err != nil {
					done <- err.Error()
					return
				}
				sent++
			}
			if !e.more() {
				done <- e.Err().Error()
				return
			}
			for _, r := range e.recvs {
				if r.Status != verbs.StatusSuccess || filled(in[r.ID][:r.Length], 7) >= 0 || r.Length != size {
					done <- "a receive failed or is wrong"
					return
				}
				if err := e.PostRecv(verbs.RecvRequest{ID: r.ID, Buffer: in[r.ID]}); err != nil {
					done <- err.Error()
					return
				}
				received++
				// The peer sends its k-th message when it has taken and
				// posted again k-depth/2 of ours, so k+depth/2 have room.
				allowed = received + depth/2
			}
			for _, d := range e.sends {
				if d.Status != verbs.StatusSuccess {
					done <- "a Send failed: " + d.Status.String()
					return
				}
				completed++
			}
			e.recvs, e.sends = e.recvs[:0], e.sends[:0]
		}
		done <- ""
	}
	start, done := make(chan struct{}), make(chan string, 4)
	go run(c, start, done)
	go run(s, start, done)
	for i := range 4 {
		if i == 2 {
			close(start)
		}
		if why := <-done; why != "" {
			t.Fatal(why)
		}
	}
}

// testServerSpeaksFirst: verbs know no order of who sends first, whatever MPA
// says.
func testServerSpeaksFirst(t *testing.T, p *pair) {
	in := alloc(t, p.client, 100)
	c, s := p.connectWith(t, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 5, Buffer: in}}}, verbs.Params{})
	s.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: true, Local: one(s.alloc(t, 50))})
	if r := c.received(t); r.Status != verbs.StatusSuccess || r.ID != 5 || r.Length != 50 {
		t.Errorf("%+v", r)
	}
}

func testSendInvalidate(t *testing.T, p *pair) {
	if !p.client.Caps().SendInvalidate || !p.server.Caps().SendInvalidate || p.client.Caps().Invalidates != verbs.InvalidatesAll {
		return
	}
	in := alloc(t, p.client, 100)
	c, s := p.connectWith(t, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 5, Buffer: in}}}, verbs.Params{})
	mem := c.alloc(t, 4096)
	fill(mem, 1)
	kept, given := c.register(t, mem, verbs.RemoteRead), c.register(t, mem, verbs.RemoteRead|verbs.RemoteWrite)
	into := s.alloc(t, 4096)
	for _, r := range []verbs.Region{kept, given} {
		s.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(into)})
	}
	s.ok(t, verbs.WorkRequest{ID: 2, Op: verbs.OpSendInvalidate, Signaled: true, Handle: given.Handle, Local: one(into[:33])})
	r := c.received(t)
	if r.Status != verbs.StatusSuccess || r.Length != 33 || !r.Invalidated || r.Handle != given.Handle {
		t.Fatalf("%+v, want handle %#x invalidated", r, given.Handle)
	}
	s.ok(t, verbs.WorkRequest{ID: 3, Op: verbs.OpRead, Signaled: true, Handle: kept.Handle, Offset: kept.Offset, Local: one(into)})
	s.post(t, verbs.WorkRequest{ID: 4, Op: verbs.OpRead, Signaled: true, Handle: given.Handle, Offset: given.Offset, Local: one(into)})
	if d := s.sent(t); d.ID != 4 || d.Status != verbs.StatusRemoteAccess {
		t.Errorf("Read of an invalidated handle: %+v", d)
	}
	s.failedWith(t, verbs.StatusRemoteAccess)
	c.failed(t)
}

// testSendInvalidateUnknown: the peer may close only what was opened to it.
func testSendInvalidateUnknown(t *testing.T, p *pair) {
	if !p.client.Caps().SendInvalidate || !p.server.Caps().SendInvalidate {
		return
	}
	in := alloc(t, p.client, 100)
	c, s := p.connectWith(t, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 5, Buffer: in}}}, verbs.Params{})
	r := c.register(t, c.alloc(t, 64), verbs.RemoteRead)
	s.post(t, verbs.WorkRequest{ID: 2, Op: verbs.OpSendInvalidate, Signaled: true, Handle: r.Handle + 0x100, Local: one(s.alloc(t, 10))})
	if c.failed(t); len(c.recvs) > 0 && c.recvs[0].Status == verbs.StatusSuccess && c.recvs[0].Invalidated {
		t.Errorf("%+v", c.recvs[0])
	}
	s.failed(t)
}

func testReceiveTooSmall(t *testing.T, p *pair) {
	in := alloc(t, p.server, 100)
	c, s := p.connectWith(t, verbs.Params{}, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 5, Buffer: in[:50]}, {ID: 6, Buffer: in[60:]}}})
	b := c.alloc(t, 51)
	fill(b, 1)
	c.post(t, verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: true, Local: one(b)})
	if r := s.received(t); r.ID != 5 || r.Status != verbs.StatusLocalLength && (!p.o.Foreign || r.Status == verbs.StatusSuccess) {
		t.Errorf("a receive that is too small: %+v", r)
	}
	if r := s.received(t); r.ID != 6 || r.Status != verbs.StatusFlushed {
		t.Errorf("the receive after it: %+v", r)
	}
	if at := changed(in[50:], 0); at >= 0 {
		t.Errorf("byte %d after the receive was written", at)
	}
	s.failed(t)
	c.failedWith(t, verbs.StatusRemoteInvalid)
}

func testNoReceive(t *testing.T, p *pair) {
	c, s := p.connect(t, verbs.Params{RNRRetryCount: 0, RetryCount: 6})
	c.post(t, verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Signaled: true, Local: one(c.alloc(t, 51))})
	c.failedWith(t, verbs.StatusRNRRetryExceeded)
	// On InfiniBand the responder's queue pair stays as it is.
	s.Close()
	s.failed(t)
}
