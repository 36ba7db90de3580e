package verbstest

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// transfers are places and sizes in a region: empty, odd, around the MTU, large.
func transfers(p *pair, mtu int) [][2]int {
	large := p.o.Megabytes << 20
	all := [][2]int{
		{0, 0}, {0, 1}, {1, 1}, {3, 2}, {5, 3}, {0, 4}, {7, 100}, {13, mtu - 1}, {0, mtu}, {1, mtu + 1}, {17, 3*mtu + 5},
		{1001, 65535}, {4096, 65536}, {4097, 65537}, {0, 1 << 20}, {33, 1<<20 + 7}, {99, large - 200},
	}
	return slices.DeleteFunc(all, func(w [2]int) bool { return w[0]+w[1] > large })
}

func testWrite(t *testing.T, p *pair) {
	size := p.o.Megabytes << 20
	in := alloc(t, p.server, 8)
	c, s := p.connectWith(t, verbs.Params{}, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 1, Buffer: in}}})
	mem, out := s.alloc(t, size+8192), c.alloc(t, size)
	r := s.register(t, mem[4096:4096+size], verbs.RemoteWrite)
	for i, w := range transfers(p, c.Info().MTU) {
		at, n := w[0], w[1]
		set(mem, 0)
		fill(out[:n], i)
		local := one(out[:n])
		if p.client.Caps().MaxSGE > 1 && n > 10 {
			local = [][]byte{out[:n/3], out[n/3 : n]}
		}
		// What a Write has put down is there when the Send after it is.
		c.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpWrite, Handle: r.Handle, Offset: r.Offset + uint64(at), Local: local},
			verbs.WorkRequest{ID: 2, Op: verbs.OpSend, Signaled: true, Local: one(out[:0])})
		if d := s.received(t); d.Status != verbs.StatusSuccess || d.Length != 0 {
			t.Fatalf("%+v", d)
		}
		s.recv(t, 1, in)
		if x := filled(mem[4096+at:4096+at+n], i); x >= 0 {
			t.Fatalf("%d bytes at %d: byte %d is wrong", n, at, x)
		}
		if x := changed(mem[:4096+at], 0); x >= 0 {
			t.Fatalf("%d bytes at %d: byte %d before them was written", n, at, x-4096)
		}
		if x := changed(mem[4096+at+n:], 0); x >= 0 {
			t.Fatalf("%d bytes at %d: byte %d behind them was written", n, at, x)
		}
	}
}

func testRead(t *testing.T, p *pair) {
	size := p.o.Megabytes << 20
	c, s := p.connect(t, verbs.Params{})
	mem, in := s.alloc(t, size), c.alloc(t, size+8192)
	fill(mem, 3)
	r := s.register(t, mem, verbs.RemoteRead)
	for i, w := range transfers(p, c.Info().MTU) {
		at, n := w[0], w[1]
		set(in, 0)
		local := one(in[4096 : 4096+n])
		if p.client.Caps().MaxSGE > 1 && n > 10 && i%2 == 0 {
			local = [][]byte{in[4096 : 4096+n/3], in[4096+n/3 : 4096+n]}
		}
		c.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset + uint64(at), Local: local})
		if string(in[4096:4096+n]) != string(mem[at:at+n]) {
			t.Fatalf("%d bytes at %d are wrong", n, at)
		}
		if changed(in[:4096], 0) >= 0 || changed(in[4096+n:], 0) >= 0 {
			t.Fatalf("%d bytes at %d: memory around them was written", n, at)
		}
	}
}

// testChosenOffset: xprtrdma's offsets have the XID in the upper half.
func testChosenOffset(t *testing.T, p *pair) {
	c, s := p.connect(t, verbs.Params{})
	mem := s.alloc(t, 8192)
	fill(mem, 3)
	for _, offset := range []uint64{0, 0x138a93830500d000, ^uint64(0) - 8192, 1} {
		r, err := s.Register(mem, verbs.RemoteRead, offset)
		if err != nil {
			continue // what it cannot do, it has to say
		}
		if r.Offset != offset {
			t.Fatalf("offset %#x was asked for and %#x given", offset, r.Offset)
		}
		in := c.alloc(t, 8000)
		c.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset + 192, Local: one(in)})
		if string(in) != string(mem[192:]) {
			t.Errorf("offset %#x: wrong bytes", offset)
		}
		if err := s.Deregister(r.Handle); err != nil {
			t.Error(err)
		}
	}
	// The end of the region would not have an address.
	if r, err := s.Register(mem, verbs.RemoteRead, ^uint64(0)-1); err == nil {
		t.Errorf("%+v ends where there are no addresses", r)
	}
}

// testManyReads has more Reads posted than may be in flight.
func testManyReads(t *testing.T, p *pair) {
	const count, size = 200, 9000
	c, s := p.connect(t, verbs.Params{SendDepth: count, ResponderResources: 4, InitiatorDepth: 4})
	mem, in := s.alloc(t, count*size), c.alloc(t, count*size)
	fill(mem, 3)
	r := s.register(t, mem, verbs.RemoteRead)
	wrs := make([]verbs.WorkRequest, count)
	for i := range wrs {
		wrs[i] = verbs.WorkRequest{ID: uint64(i), Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset + uint64(i*size), Local: one(in[i*size : (i+1)*size])}
	}
	c.ok(t, wrs...)
	if string(in) != string(mem) {
		t.Error("wrong bytes")
	}
}

// testFence: a fenced Send may tell the peer that its memory is no longer needed.
func testFence(t *testing.T, p *pair) {
	const size = 300000
	note := alloc(t, p.server, 8)
	c, s := p.connectWith(t, verbs.Params{}, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 1, Buffer: note}}})
	mem, in := s.alloc(t, size), c.alloc(t, size)
	r := s.register(t, mem, verbs.RemoteRead)
	for i := range 20 {
		fill(mem, i)
		c.post(t,
			verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(in)},
			verbs.WorkRequest{ID: 2, Op: verbs.OpSend, Signaled: true, Fence: true, Local: one(in[:3])})
		if d := s.received(t); d.Status != verbs.StatusSuccess {
			t.Fatalf("%+v", d)
		}
		set(mem, 0)
		// Local is read after the fence, too.
		if at := filled(note[:3], i); at >= 0 {
			t.Fatal("the Send went before the Read")
		}
		s.recv(t, 1, note)
		for id := uint64(1); id <= 2; id++ {
			if d := c.sent(t); d.ID != id || d.Status != verbs.StatusSuccess {
				t.Fatalf("%+v", d)
			}
		}
		if at := filled(in, i); at >= 0 {
			t.Fatalf("round %d: byte %d is wrong", i, at)
		}
	}
}

// testCross has both sides read and write at the same time.
func testCross(t *testing.T, p *pair) {
	const rounds, size = 12, 700001
	c, s := p.connect(t, verbs.Params{})
	type side struct {
		e             *end
		open, into    []byte
		region        verbs.Region
		target, local []byte
		write         verbs.Region
	}
	make1 := func(e *end, seed int) *side {
		x := &side{e: e, open: e.alloc(t, size), into: e.alloc(t, size), target: e.alloc(t, size), local: e.alloc(t, size)}
		fill(x.open, seed)
		fill(x.local, seed+10)
		x.region, x.write = e.register(t, x.open, verbs.RemoteRead), e.register(t, x.target, verbs.RemoteWrite)
		return x
	}
	a, b := make1(c, 1), make1(s, 2)
	done := make(chan string, 2)
	run := func(x, peer *side) {
		for i := range rounds {
			err := x.e.Post(
				verbs.WorkRequest{ID: 1, Op: verbs.OpWrite, Handle: peer.write.Handle, Offset: peer.write.Offset, Local: one(x.local)},
				verbs.WorkRequest{ID: uint64(i), Op: verbs.OpRead, Signaled: true, Handle: peer.region.Handle, Offset: peer.region.Offset, Local: one(x.into)})
			if err != nil {
				done <- err.Error()
				return
			}
			for len(x.e.sends) == 0 {
				if !x.e.more() {
					done <- x.e.Err().Error()
					return
				}
			}
			if d := x.e.sends[0]; d.Status != verbs.StatusSuccess || d.ID != uint64(i) {
				done <- d.Status.String()
				return
			}
			x.e.sends = x.e.sends[:0]
			if string(x.into) != string(peer.open) {
				done <- "a Read has wrong bytes"
				return
			}
		}
		done <- ""
	}
	go run(a, b)
	go run(b, a)
	for range 2 {
		if why := <-done; why != "" {
			t.Fatal(why)
		}
	}
	// A Read that was answered means that the Writes before it have arrived
	// (RFC 5040 5.5, IBTA 9.5).
	if string(a.target) != string(b.local) || string(b.target) != string(a.local) {
		t.Error("a Write has wrong bytes")
	}
}

func testUnsignaled(t *testing.T, p *pair) {
	const count, depth = 2000, 32
	c, s := p.connect(t, verbs.Params{SendDepth: depth})
	mem, out := s.alloc(t, count*4), c.alloc(t, count*4)
	fill(out, 5)
	r := s.register(t, mem, verbs.RemoteWrite|verbs.RemoteRead)
	for i := range count {
		signaled := i%(depth/2) == depth/2-1 || i == count-1
		c.post(t, verbs.WorkRequest{ID: uint64(i), Op: verbs.OpWrite, Signaled: signaled, Handle: r.Handle, Offset: r.Offset + uint64(4*i), Local: one(out[4*i : 4*i+4])})
		if signaled {
			if d := c.sent(t); d.ID != uint64(i) || d.Status != verbs.StatusSuccess {
				t.Fatalf("%d: %+v", i, d)
			}
		}
	}
	c.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(c.alloc(t, 1))})
	if string(mem) != string(out) {
		t.Error("wrong bytes")
	}
	if len(c.sends) != 0 || c.Poll(c.batch[:]) != 0 {
		t.Error("requests that were not signaled have completed")
	}
}

// testReuse: memory of a request that asks for no completion is the user's again
// when a later one has completed, although the network may not have taken all of
// it (the kernel's siw sends such memory without a copy).
func testReuse(t *testing.T, p *pair) {
	const slots, size, rounds = 8, 100 << 10, 12
	in := alloc(t, p.server, 8)
	c, s := p.connectWith(t, verbs.Params{SendDepth: 2 * slots}, verbs.Params{RecvDepth: slots})
	mem, out := s.alloc(t, slots*size), c.alloc(t, slots*size)
	r := s.register(t, mem, verbs.RemoteWrite)
	for round := range rounds {
		fill(out, round)
		set(mem, 0)
		for i := range slots {
			s.recv(t, uint64(i), in)
		}
		for i := range slots {
			c.post(t, verbs.WorkRequest{ID: 100, Op: verbs.OpWrite, Handle: r.Handle, Offset: r.Offset + uint64(i*size), Local: one(out[i*size : (i+1)*size])},
				verbs.WorkRequest{ID: uint64(i), Op: verbs.OpSend, Signaled: true, Local: one(out[:0])})
		}
		for i := range slots {
			if d := c.sent(t); d.ID != uint64(i) || d.Status != verbs.StatusSuccess {
				t.Fatalf("%d: %+v", i, d)
			}
			set(out[i*size:(i+1)*size], 0xee)
		}
		for i := range slots {
			if d := s.received(t); d.ID != uint64(i) || d.Status != verbs.StatusSuccess {
				t.Fatalf("%d: %+v", i, d)
			}
		}
		if x := filled(mem, round); x >= 0 {
			t.Fatalf("round %d: byte %d of %d is %#x, which was written after the completion", round, x%size, x/size, mem[x])
		}
	}
}

func testQueueFull(t *testing.T, p *pair) {
	const depth = 16
	c, s := p.connect(t, verbs.Params{SendDepth: depth, RecvDepth: depth})
	in := s.alloc(t, 64)
	recvs := make([]verbs.RecvRequest, depth)
	for i := range recvs {
		recvs[i] = verbs.RecvRequest{ID: uint64(i), Buffer: in}
	}
	if err := s.PostRecv(recvs...); err != nil {
		t.Fatal(err)
	}
	wrs := make([]verbs.WorkRequest, depth+1)
	for i := range wrs {
		wrs[i] = verbs.WorkRequest{ID: uint64(i), Op: verbs.OpSend, Signaled: true, Local: one(c.alloc(t, 8))}
	}
	err := c.Post(wrs...)
	if err == nil {
		return // the queue is deeper than was asked for, as libibverbs may have it
	}
	if err != verbs.ErrQueueFull { //nolint:errorlint // callers compare it on the fast path
		t.Fatalf("Post: %v, want %v", err, verbs.ErrQueueFull)
	}
	// None was taken, so all fit.
	c.ok(t, wrs[:depth]...)
	for i := range depth {
		if r := s.received(t); r.ID != uint64(i) || r.Status != verbs.StatusSuccess {
			t.Fatalf("%+v", r)
		}
	}
}

func testTooLong(t *testing.T, p *pair) {
	c, _ := p.connect(t, verbs.Params{})
	limit := p.client.Caps().MaxMessage
	if limit > 256<<20 {
		return // more than a test should allocate
	}
	if err := c.Post(verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: one(c.alloc(t, limit+1))}); err == nil {
		t.Errorf("a Send of more than %d bytes was taken", limit)
	}
}
