package verbstest

import (
	"errors"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// trespass is a request for what the peer has not allowed.
type trespass struct {
	name   string
	access verbs.Access // of the region
	op     verbs.Op
	handle func(uint32) uint32 // makes the handle of that of the region; nil leaves it
	at     int64               // from the beginning of the region
	n      int
	gone   bool // the region is closed
}

// refusedSize is the size of the region in bytes.
const refusedSize = 10000

// trespasses are all that testRefused does.
func trespasses() []trespass {
	const size = refusedSize
	all := verbs.RemoteRead | verbs.RemoteWrite
	return []trespass{
		{"Write, handle zero", all, verbs.OpWrite, func(uint32) uint32 { return 0 }, 0, 100, false},
		{"Write, next handle", all, verbs.OpWrite, func(h uint32) uint32 { return h + 1 }, 0, 100, false},
		{"Write, other index", all, verbs.OpWrite, func(h uint32) uint32 { return h + 0x100 }, 0, 100, false},
		{"Write, before the region", all, verbs.OpWrite, nil, -1, 100, false},
		{"Write, over its end", all, verbs.OpWrite, nil, size - 99, 100, false},
		{"Write, over its end by segments", all, verbs.OpWrite, nil, 1, size, false},
		{"Write, behind it", all, verbs.OpWrite, nil, size + 1, 1, false},
		{"Write, far away", all, verbs.OpWrite, nil, 1 << 40, 100, false},
		{"Write, to memory open for Reads", verbs.RemoteRead, verbs.OpWrite, nil, 0, 100, false},
		{"Write, to memory that is closed", all, verbs.OpWrite, nil, 0, 100, true},
		{"Read, handle zero", all, verbs.OpRead, func(uint32) uint32 { return 0 }, 0, 100, false},
		{"Read, next handle", all, verbs.OpRead, func(h uint32) uint32 { return h + 1 }, 0, 100, false},
		{"Read, other index", all, verbs.OpRead, func(h uint32) uint32 { return h + 0x100 }, 0, 100, false},
		{"Read, before the region", all, verbs.OpRead, nil, -1, 100, false},
		{"Read, over its end", all, verbs.OpRead, nil, size - 99, 100, false},
		{"Read, behind it", all, verbs.OpRead, nil, size + 1, 1, false},
		{"Read, far away", all, verbs.OpRead, nil, 1 << 40, 100, false},
		{"Read, of memory open for Writes", verbs.RemoteWrite, verbs.OpRead, nil, 0, 100, false},
		{"Read, of memory that is closed", all, verbs.OpRead, nil, 0, 100, true},
	}
}

// testRefused does what the peer has not allowed. The requester learns it as
// StatusRemoteAccess (IBTA 9.9.3, RFC 5040 7.1), the connection is over on both
// sides, and no byte of the peer has changed.
func testRefused(t *testing.T, p *pair) {
	for _, c := range trespasses() {
		t.Run(c.name, func(t *testing.T) {
			if p.o.Foreign && c.op == verbs.OpRead && c.access&verbs.RemoteRead == 0 {
				return // the kernel's siw lets it pass
			}
			c.run(t, p)
		})
	}
}

func (c *trespass) run(t *testing.T, p *pair) {
	client, server := p.connect(t, verbs.Params{})
	server.recv(t, 9, server.alloc(t, 10))
	mem, local := server.alloc(t, refusedSize+2*4096), client.alloc(t, refusedSize)
	fill(local, 1)
	set(mem, 0xa5)
	r := server.register(t, mem[4096:4096+refusedSize], c.access)
	h := r.Handle
	if c.handle != nil {
		h = c.handle(h)
	}
	if c.gone {
		if err := server.Deregister(r.Handle); err != nil {
			t.Fatal(err)
		}
	}
	client.post(t,
		verbs.WorkRequest{ID: 1, Op: c.op, Signaled: true, Handle: h, Offset: r.Offset + uint64(c.at), Local: one(local[:c.n])},
		verbs.WorkRequest{ID: 2, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(local[:1])})
	d := client.sent(t)
	// On iWARP a Write is done when TCP has it.
	written := c.op == verbs.OpWrite && client.Info().Fabric == "iwarp" && (d.Status == verbs.StatusSuccess || d.Status == verbs.StatusFlushed)
	if p.o.Foreign && d.Status != verbs.StatusSuccess {
		written = true
	}
	if d.ID != 1 || d.Status != verbs.StatusRemoteAccess && !written {
		t.Errorf("%+v", d)
	}
	if d := client.sent(t); d.ID != 2 || d.Status != verbs.StatusFlushed && d.Status != verbs.StatusRemoteAccess {
		t.Errorf("the request after it: %+v", d)
	}
	client.failedWith(t, verbs.StatusRemoteAccess)
	if r := server.received(t); r.ID != 9 || r.Status != verbs.StatusFlushed {
		t.Errorf("the server's receive: %+v", r)
	}
	server.failed(t)
	c.untouched(t, mem, local)
}

// untouched checks the memory of both sides after the request has failed.
func (c *trespass) untouched(t *testing.T, mem, local []byte) {
	rest := mem
	// Of a Write that begins inside the region, the part inside may have arrived.
	if c.op == verbs.OpWrite && c.handle == nil && !c.gone && c.access&verbs.RemoteWrite != 0 && c.at >= 0 && c.at < refusedSize {
		rest = mem[4096+refusedSize:]
		if at := changed(mem[:4096+int(c.at)], 0xa5); at >= 0 {
			t.Errorf("byte %d before the Write has changed", at)
		}
	}
	if at := changed(rest, 0xa5); at >= 0 {
		t.Errorf("byte %d of memory that is not open has changed", at)
	}
	if c.op == verbs.OpRead && filled(local, 1) >= 0 {
		t.Error("a Read that was refused has changed local memory")
	}
}

// testHandleOfOther: handles are valid on the connection that made them.
func testHandleOfOther(t *testing.T, p *pair) {
	c1, s1 := p.connect(t, verbs.Params{})
	c2, s2 := p.connect(t, verbs.Params{})
	mem := s1.alloc(t, 4096)
	fill(mem, 1)
	r := s1.register(t, mem, verbs.RemoteRead|verbs.RemoteWrite)
	in := c2.alloc(t, 4096)
	c2.post(t, verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(in)})
	if d := c2.sent(t); d.Status != verbs.StatusRemoteAccess && (!p.o.Foreign || d.Status == verbs.StatusSuccess) {
		t.Errorf("%+v", d)
	}
	c2.failedWith(t, verbs.StatusRemoteAccess)
	s2.failed(t)
	if changed(in, 0) >= 0 {
		t.Error("memory of another connection was read")
	}
	c1.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(c1.alloc(t, 4096))})
}

func testDeregister(t *testing.T, p *pair) {
	c, _ := p.connect(t, verbs.Params{})
	mem := c.alloc(t, 4096)
	seen := make(map[uint32]bool)
	for range 300 {
		r := c.register(t, mem, verbs.RemoteRead)
		if seen[r.Handle] {
			t.Fatalf("handle %#x again", r.Handle)
		}
		seen[r.Handle] = true
		if err := c.Deregister(r.Handle); err != nil {
			t.Fatal(err)
		}
		if err := c.Deregister(r.Handle); err == nil {
			t.Fatal("a handle was closed twice")
		}
	}
	if err := c.Deregister(0xdeadbeef); err == nil {
		t.Error("a handle that never was has been closed")
	}
}

// testDeregisterBusy closes memory that the peer is writing to and reading
// from: after Deregister it does not change any more.
func testDeregisterBusy(t *testing.T, p *pair) {
	const size = 1 << 20
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead} {
		c, s := p.connect(t, verbs.Params{SendDepth: 64})
		mem, local := s.alloc(t, size), c.alloc(t, size)
		r := s.register(t, mem, verbs.RemoteWrite|verbs.RemoteRead)
		running := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				fill(local[:64], i)
				if c.Post(verbs.WorkRequest{ID: uint64(i), Op: op, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: one(local)}) != nil {
					return
				}
				if i == 3 {
					close(running)
				}
				for len(c.sends) == 0 {
					if !c.more() {
						return
					}
				}
				if c.sends[0].Status != verbs.StatusSuccess {
					return
				}
				c.sends = c.sends[:0]
			}
		}()
		select {
		case <-running:
		case <-done:
			t.Fatal(c.Err())
		}
		if err := s.Deregister(r.Handle); err != nil {
			t.Fatal(err)
		}
		set(mem, 0x3c)
		<-done
		c.failedWith(t, verbs.StatusRemoteAccess)
		s.failed(t)
		if at := changed(mem, 0x3c); at >= 0 {
			t.Errorf("%v has changed byte %d of closed memory", op, at)
		}
	}
}

func testWindows(t *testing.T, p *pair) {
	if !p.server.Caps().MemoryWindows {
		c, _ := p.connect(t, verbs.Params{})
		if _, err := c.AllocWindow(); err == nil {
			t.Error("AllocWindow works, but Caps say that it does not")
		}
		return
	}
	c, s := p.connect(t, verbs.Params{})
	mem := s.alloc(t, 8192)
	fill(mem, 1)
	region := s.register(t, mem, verbs.WindowBind|verbs.RemoteRead|verbs.RemoteWrite)
	w, err := s.AllocWindow()
	if err != nil {
		t.Fatal(err)
	}
	h := verbs.NextHandle(w)
	offset := uint64(0x7700000000)
	in := c.alloc(t, 1000)
	if err := s.Post(verbs.WorkRequest{Op: verbs.OpBind, Access: verbs.RemoteRead, Handle: h, Offset: offset, Local: one(mem[1024:2048])}); errors.Is(err, verbs.ErrUnsupported) {
		offset = region.Offset + 1024 // that of the memory below is always possible
	} else if err != nil {
		t.Fatal(err)
	} else {
		s.ok(t, verbs.WorkRequest{ID: 3, Op: verbs.OpLocalInvalidate, Signaled: true, Handle: h})
		h = verbs.NextHandle(h)
	}
	for round := range 3 {
		s.ok(t, verbs.WorkRequest{ID: 1, Op: verbs.OpBind, Signaled: true, Access: verbs.RemoteRead, Handle: h, Offset: offset, Local: one(mem[1024:2048])})
		c.ok(t, verbs.WorkRequest{ID: 2, Op: verbs.OpRead, Signaled: true, Handle: h, Offset: offset + 24, Local: one(in)})
		if string(in) != string(mem[1048:2048]) {
			t.Fatalf("round %d: wrong bytes", round)
		}
		s.ok(t, verbs.WorkRequest{ID: 3, Op: verbs.OpLocalInvalidate, Signaled: true, Handle: h})
		if round < 2 {
			h = verbs.NextHandle(h)
		}
	}
	c.post(t, verbs.WorkRequest{ID: 2, Op: verbs.OpRead, Signaled: true, Handle: h, Offset: offset, Local: one(in)})
	if d := c.sent(t); d.Status != verbs.StatusRemoteAccess && (!p.o.Foreign || d.Status == verbs.StatusSuccess) {
		t.Errorf("Read of an invalidated window: %+v", d)
	}
	c.failedWith(t, verbs.StatusRemoteAccess)
	s.failed(t)
}
