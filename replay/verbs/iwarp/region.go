package iwarp

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// region is memory that the peer may reach.
type region struct {
	mem    []byte
	offset uint64
	access verbs.Access
	dead   atomic.Bool
	// responses counts the Read Responses that use the region.
	responses atomic.Int32
}

// gone reports whether the region was closed. A Read of zero bytes has no region.
func (r *region) gone() bool { return r != nil && r.dead.Load() }

// regions holds the regions of a connection by STag. The lock is held while a segment is
// placed, so that a region is not written to after it was removed.
type regions struct {
	mu      sync.Mutex
	byTag   map[uint32]*region
	windows map[uint32]struct{} // by STag without its low byte
	closed  bool
}

// refusal is the reason for refusing an access. The values are the remote protection
// errors of RFC 5040.
type refusal uint8

const (
	refusedSTag   refusal = 0
	refusedBounds refusal = 1
	refusedAccess refusal = 2
	refusedWrap   refusal = 4
	allowed       refusal = 0xff
)

// find checks an access of the peer; mu is held.
func (t *regions) find(tag uint32, to uint64, n int, access verbs.Access) (*region, int, refusal) {
	r := t.byTag[tag]
	switch {
	case r == nil:
		return nil, 0, refusedSTag
	case to+uint64(n) < to:
		return nil, 0, refusedWrap
	case to < r.offset || to-r.offset > uint64(len(r.mem)) || uint64(n) > uint64(len(r.mem))-(to-r.offset):
		return nil, 0, refusedBounds
	case r.access&access != access:
		return nil, 0, refusedAccess
	}
	return r, int(to - r.offset), allowed
}

// newTag returns an STag that nobody can guess and that the provider has not used for a
// long time. The low byte is the key of memory windows.
func (p *Provider) newTag() uint32 {
	for {
		if tag := p.stags.Next(); tag>>8 != 0 {
			return tag
		}
	}
}

var errTooLarge = errors.New("iwarp: a region has at most 4294967295 bytes")

func checkRange(mem []byte, offset uint64) error {
	if uint64(len(mem)) > 1<<32-1 {
		return errTooLarge
	}
	if offset+uint64(len(mem)) < offset {
		return errors.New("iwarp: the region would end beyond the largest offset")
	}
	return nil
}

// Register implements verbs.Conn.
func (c *conn) Register(mem []byte, access verbs.Access, offset uint64) (verbs.Region, error) {
	t := &c.regions
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return verbs.Region{}, verbs.ErrDisconnected
	}
	tag := c.p.newTag()
	for t.taken(tag) {
		tag = c.p.newTag()
	}
	if offset == verbs.OffsetAny {
		offset = uint64(tag) << 28
	}
	if err := checkRange(mem, offset); err != nil {
		return verbs.Region{}, err
	}
	t.byTag[tag] = &region{mem: mem, offset: offset, access: access}
	return verbs.Region{Handle: tag, Offset: offset, Length: uint32(len(mem))}, nil
}

func (t *regions) taken(tag uint32) bool {
	_, window := t.windows[tag&^0xff]
	return window || t.byTag[tag] != nil
}

// Deregister implements verbs.Conn.
func (c *conn) Deregister(handle uint32) error {
	if !c.closeRegion(handle, true) {
		return verbs.ErrHandle
	}
	return nil
}

// closeRegion removes a region. When it has returned, nothing is placed in the region any
// more; with wait set, nothing is read from it either.
func (c *conn) closeRegion(tag uint32, wait bool) bool {
	t := &c.regions
	t.mu.Lock()
	r := t.byTag[tag]
	if r != nil {
		delete(t.byTag, tag)
		r.dead.Store(true)
	}
	t.mu.Unlock()
	if r == nil {
		return false
	}
	if wait && r.responses.Load() > 0 {
		c.mu.Lock()
		c.awaitAttempt()
		c.tx.detach()
		c.mu.Unlock()
	}
	return true
}

// AllocWindow implements verbs.Conn.
func (c *conn) AllocWindow() (uint32, error) {
	t := &c.regions
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, verbs.ErrDisconnected
	}
	tag := c.p.newTag()
	for t.taken(tag) {
		tag = c.p.newTag()
	}
	t.windows[tag&^0xff] = struct{}{}
	return tag, nil
}

// bind opens a window under a new handle.
func (c *conn) bind(e *entry) verbs.Status {
	var mem []byte
	if len(e.sge) > 0 {
		mem = e.sge[0]
	}
	if len(e.sge) > 1 || checkRange(mem, e.offset) != nil {
		return verbs.StatusBind
	}
	t := &c.regions
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.windows[e.handle&^0xff]; !ok {
		return verbs.StatusBind
	}
	// A window that is bound has to be invalidated first (IBTA 10.6.7.2.6).
	if t.byTag[e.handle] != nil {
		return verbs.StatusBind
	}
	t.byTag[e.handle] = &region{mem: mem, offset: e.offset, access: e.access}
	return verbs.StatusSuccess
}
