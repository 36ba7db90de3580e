package loop

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// region is memory that the peer may reach: a registration, or a window.
type region struct {
	mem    []byte
	access verbs.Access
	offset uint64
	window bool
}

// within reports whether b lies in the n bytes from base.
func within(b []byte, base *byte, n int) bool {
	at, from := uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(base))
	return at >= from && at+uintptr(len(b)) <= from+uintptr(n)
}

func (c *conn) Register(mem []byte, access verbs.Access, offset uint64) (verbs.Region, error) {
	if !c.p.owns(mem) {
		return verbs.Region{}, verbs.ErrUnsupported
	}
	if offset != verbs.OffsetAny && c.p.opts.NoOffsets || len(mem) > 1<<30 {
		return verbs.Region{}, verbs.ErrUnsupported
	}
	if offset == verbs.OffsetAny {
		offset = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	}
	if offset+uint64(len(mem)) < offset {
		return verbs.Region{}, verbs.ErrUnsupported
	}
	if c.State() == verbs.StateError {
		return verbs.Region{}, verbs.ErrDisconnected
	}
	c.memMu.Lock()
	defer c.memMu.Unlock()
	h := c.newHandle()
	c.regions[h] = &region{mem: mem, access: access, offset: offset}
	return verbs.Region{Handle: h, Offset: offset, Length: uint32(len(mem))}, nil
}

// newHandle returns a handle that no connection has. memMu is held.
func (c *conn) newHandle() uint32 {
	for {
		n := c.p.net.handle.Add(1)
		h := n<<8 | n*61&0xff
		if c.regions[h] == nil && h != 0 {
			return h
		}
	}
}

func (c *conn) Deregister(handle uint32) error {
	c.memMu.Lock()
	defer c.memMu.Unlock()
	if r := c.regions[handle]; r == nil || r.window {
		return verbs.ErrHandle
	}
	delete(c.regions, handle)
	return nil
}

// close closes a region or window on behalf of the peer.
func (c *conn) close(handle uint32) bool {
	c.memMu.Lock()
	defer c.memMu.Unlock()
	r := c.regions[handle]
	if r == nil || r.window && r.access == 0 {
		return false
	}
	if r.window {
		r.mem, r.access = nil, 0
		return true
	}
	delete(c.regions, handle)
	return true
}

func (c *conn) AllocWindow() (uint32, error) {
	if c.p.opts.NoWindows {
		return 0, verbs.ErrUnsupported
	}
	if c.State() == verbs.StateError {
		return 0, verbs.ErrDisconnected
	}
	c.memMu.Lock()
	defer c.memMu.Unlock()
	if c.windows >= maxWindows {
		return 0, verbs.ErrQueueFull
	}
	c.windows++
	h := c.newHandle()
	c.regions[h] = &region{window: true}
	return h, nil
}

// bind opens a window. Its handle replaces the previous one.
func (c *conn) bind(wr *verbs.WorkRequest) verbs.Status {
	if len(wr.Local) != 1 || wr.Offset+uint64(len(wr.Local[0])) < wr.Offset {
		return verbs.StatusBind
	}
	mem := wr.Local[0]
	c.memMu.Lock()
	defer c.memMu.Unlock()
	var w *region
	for key := range uint32(0x100) {
		h := wr.Handle&^0xff | key
		if r := c.regions[h]; r != nil && r.window {
			if r.access != 0 {
				return verbs.StatusBind // it is open
			}
			w = r
			delete(c.regions, h)
			break
		}
	}
	if w == nil {
		return verbs.StatusBind
	}
	c.regions[wr.Handle] = w
	for _, r := range c.regions {
		if !r.window && r.access&verbs.WindowBind != 0 && len(r.mem) > 0 && within(mem, &r.mem[0], len(r.mem)) {
			w.mem, w.access, w.offset = mem, wr.Access, wr.Offset
			return verbs.StatusSuccess
		}
	}
	return verbs.StatusBind
}

func (c *conn) invalidateWindow(handle uint32) verbs.Status {
	c.memMu.Lock()
	defer c.memMu.Unlock()
	w := c.regions[handle]
	if w == nil || !w.window || w.access == 0 {
		return verbs.StatusLocalProtection
	}
	w.mem, w.access = nil, 0
	return verbs.StatusSuccess
}

// transfer executes an RDMA Write or Read.
func (c *conn) transfer(wr *verbs.WorkRequest) verbs.Status {
	if wr.Op == verbs.OpRead && c.info.InitiatorDepth == 0 {
		return verbs.StatusLocalQP
	}
	n := size(wr)
	if n == 0 {
		return verbs.StatusSuccess // IBTA 9.7.4.1.3: a length of zero is not checked
	}
	need := verbs.RemoteRead
	if wr.Op == verbs.OpWrite {
		need = verbs.RemoteWrite
	}
	p := c.peer
	p.memMu.RLock()
	defer p.memMu.RUnlock()
	r := p.regions[wr.Handle]
	if r == nil || r.access&need == 0 || wr.Offset < r.offset || wr.Offset-r.offset > uint64(len(r.mem)) ||
		uint64(n) > uint64(len(r.mem))-(wr.Offset-r.offset) {
		return verbs.StatusRemoteAccess
	}
	mem := r.mem[wr.Offset-r.offset:]
	for _, b := range wr.Local {
		if wr.Op == verbs.OpWrite {
			copy(mem, b)
		} else {
			copy(b, mem)
		}
		mem = mem[len(b):]
	}
	return verbs.StatusSuccess
}
