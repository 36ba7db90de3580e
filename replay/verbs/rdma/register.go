//go:build verbs && cgo && linux

package rdma

// #include "lib.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/rpcrdma/toolkit/replay/internal/arena"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

var errMemory = errors.New("rdma: memory that Alloc has not returned")

// localKey is the key for a slice in work requests. Blocks are registered on
// first use, for local access only.
func (c *conn) localKey(b []byte) (C.uint32_t, error) {
	block := c.p.mem.Find(b)
	if block == nil {
		return 0, errMemory
	}
	c.regMu.RLock()
	mr := c.locals[block]
	c.regMu.RUnlock()
	if mr != nil {
		return mr.lkey, nil
	}
	c.regMu.Lock()
	defer c.regMu.Unlock()
	if c.locals == nil {
		return 0, verbs.ErrClosed
	}
	if mr = c.locals[block]; mr == nil {
		var err error
		if mr, err = c.reg(block.Mem(), C.IBV_ACCESS_LOCAL_WRITE, verbs.OffsetAny); err != nil {
			return 0, err
		}
		c.locals[block] = mr
	}
	return mr.lkey, nil
}

// forget closes the registration of a block before it is freed.
func (c *conn) forget(b *arena.Block) {
	c.regMu.Lock()
	defer c.regMu.Unlock()
	if mr := c.locals[b]; mr != nil {
		delete(c.locals, b)
		C.rc_dereg(mr)
	}
}

// reg registers memory; regMu is held.
func (c *conn) reg(b []byte, access C.int, offset uint64) (*C.struct_ibv_mr, error) {
	at := unsafe.Pointer(unsafe.SliceData(b))
	if offset == verbs.OffsetAny {
		offset = uint64(uintptr(at))
	}
	var mr *C.struct_ibv_mr
	err := errno(fmt.Sprintf("registering %d bytes (is RLIMIT_MEMLOCK large enough?)", len(b)),
		C.rc_reg(c.res.pd, at, C.size_t(len(b)), C.uint64_t(offset), access, &mr))
	return mr, err
}

// sink opens the memory of one Read of ours for the peer's answer.
func (c *conn) sink(b []byte) (*C.struct_ibv_mr, error) {
	if c.p.mem.Find(b) == nil {
		return nil, errMemory
	}
	return c.reg(b, C.IBV_ACCESS_LOCAL_WRITE|C.IBV_ACCESS_REMOTE_WRITE, verbs.OffsetAny)
}

func flags(a verbs.Access) (f C.int) {
	if a&verbs.RemoteRead != 0 {
		f |= C.IBV_ACCESS_REMOTE_READ
	}
	if a&verbs.RemoteWrite != 0 {
		f |= C.IBV_ACCESS_REMOTE_WRITE | C.IBV_ACCESS_LOCAL_WRITE
	}
	if a&verbs.WindowBind != 0 {
		f |= C.IBV_ACCESS_MW_BIND | C.IBV_ACCESS_LOCAL_WRITE
	}
	return f
}

// pageMask masks the offset in the smallest page that devices have.
const pageMask = 4095

// Register can give memory an offset of the caller's if it has the same place
// in a page as the memory: devices translate addresses by page. The kernel's
// siw takes such offsets and forgets them, so there are none.
func (c *conn) Register(mem []byte, access verbs.Access, offset uint64) (verbs.Region, error) {
	if len(mem) == 0 || uint64(len(mem)) > 1<<32-1 {
		return verbs.Region{}, fmt.Errorf("rdma: a region of %d bytes", len(mem))
	}
	if c.p.mem.Find(mem) == nil {
		return verbs.Region{}, errMemory
	}
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	if offset != verbs.OffsetAny && offset != at {
		switch {
		case offset+uint64(len(mem)) < offset:
			return verbs.Region{}, fmt.Errorf("rdma: %d bytes at offset %#x", len(mem), offset)
		case (offset^at)&pageMask != 0:
			return verbs.Region{}, fmt.Errorf("%w: offset %#x for memory at %#x of its page", verbs.ErrUnsupported, offset, at&pageMask)
		case c.dev.vendor == vendorSIW:
			return verbs.Region{}, fmt.Errorf("%w: siw has no offsets but addresses", verbs.ErrUnsupported)
		}
	}
	c.regMu.Lock()
	defer c.regMu.Unlock()
	if c.regions == nil {
		return verbs.Region{}, verbs.ErrClosed
	}
	mr, err := c.reg(mem, flags(access), offset)
	if err != nil {
		return verbs.Region{}, err
	}
	if offset == verbs.OffsetAny {
		offset = at
	}
	c.regions[uint32(mr.rkey)] = region{mr: mr, mem: mem, offset: offset, access: access}
	return verbs.Region{Handle: uint32(mr.rkey), Offset: offset, Length: uint32(len(mem))}, nil
}

func (c *conn) Deregister(handle uint32) error {
	c.regMu.Lock()
	defer c.regMu.Unlock()
	if r, ok := c.regions[handle]; ok {
		if err := errno("deregistering", C.rc_dereg(r.mr)); err != nil {
			return err
		}
		delete(c.regions, handle)
		return nil
	}
	if w, ok := c.windows[handle&^0xff]; ok {
		if err := errno("giving back a window", C.rc_window_free(w)); err != nil {
			return err
		}
		delete(c.windows, handle&^0xff)
		return nil
	}
	return verbs.ErrHandle
}

func (c *conn) AllocWindow() (uint32, error) {
	if !c.p.caps.MemoryWindows {
		return 0, verbs.ErrUnsupported
	}
	c.regMu.Lock()
	defer c.regMu.Unlock()
	if c.windows == nil {
		return 0, verbs.ErrClosed
	}
	var w *C.struct_ibv_mw
	if err := errno("allocating a window", C.rc_window(c.res.pd, &w)); err != nil {
		return 0, err
	}
	c.windows[uint32(w.rkey)&^0xff] = w
	return uint32(w.rkey), nil
}

// bind fills in the request that binds a window. A window has the addresses of the region
// below it.
func (c *conn) bind(w *verbs.WorkRequest, x *C.struct_rc_wr) error {
	if len(w.Local) != 1 {
		return fmt.Errorf("rdma: a window binds one slice, not %d", len(w.Local))
	}
	b := w.Local[0]
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	c.regMu.RLock()
	defer c.regMu.RUnlock()
	mw := c.windows[w.Handle&^0xff]
	if mw == nil {
		return verbs.ErrHandle
	}
	for _, r := range c.regions {
		base := uintptr(unsafe.Pointer(unsafe.SliceData(r.mem)))
		if r.access&verbs.WindowBind == 0 || at < base || at+uintptr(len(b)) > base+uintptr(len(r.mem)) {
			continue
		}
		offset := r.offset + uint64(at-base)
		if w.Offset != offset {
			return fmt.Errorf("%w: a window at %#x over memory at %#x of its region", verbs.ErrUnsupported, w.Offset, offset)
		}
		x.mw, x.mr = mw, r.mr
		x.bind_addr, x.bind_len = C.uint64_t(offset), C.uint64_t(len(b))
		x.access = C.uint32_t(flags(w.Access) &^ C.IBV_ACCESS_LOCAL_WRITE)
		return nil
	}
	return fmt.Errorf("rdma: no region for windows holds this memory: %w", verbs.ErrHandle)
}
