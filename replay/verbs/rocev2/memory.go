package rocev2

import (
	"errors"
	"math"
	"sync"
	"unsafe"

	"github.com/rpcrdma/toolkit/replay/internal/unguessable"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// maxRegions bounds the regions and windows of a connection. Handles are 24 bits
// of index and 8 of key, as verbs.NextHandle needs it; both are drawn from the
// provider's sequence, so that a peer who knows some handles knows no others, and
// an old handle stays invalid for long.
const maxRegions = 1 << 20

var (
	errOffset  = errors.New("rocev2: the region would not end below 2^64")
	errLength  = errors.New("rocev2: a region has less than 2^32 bytes")
	errRegions = errors.New("rocev2: too many regions")
)

// region is memory that the peer may reach.
type region struct {
	mem    []byte
	base   uint64
	handle uint32
	parent uint32 // handle of the region that a window is bound to
	access verbs.Access
	used   bool
	window bool
	open   bool
}

// memory holds the regions that the peer of one connection may reach. mu is held for
// reading during every access on behalf of the peer.
type memory struct {
	mu    sync.RWMutex
	slots []region
	free  []uint32          // free places in slots
	index map[uint32]uint32 // places in slots by the upper bits of the handle
	seq   *unguessable.Sequence
	next  uint64 // the next address for OffsetAny
	ended bool
}

func (m *memory) init(seq *unguessable.Sequence) {
	m.index = make(map[uint32]uint32)
	m.seq = seq
	m.next = 1<<32 + unguessable.Uint64()>>32<<12
}

// slot returns the place of a handle, if it is in use.
func (m *memory) slot(handle uint32) *region {
	i, ok := m.index[handle>>8]
	if !ok {
		return nil
	}
	return &m.slots[i]
}

// add takes a free place and assigns a handle to it.
func (m *memory) add() (*region, error) {
	if m.ended {
		return nil, verbs.ErrClosed
	}
	var i uint32
	switch n := len(m.free); {
	case n > 0:
		i = m.free[n-1]
		m.free = m.free[:n-1]
	case len(m.slots) == maxRegions:
		return nil, errRegions
	default:
		i = uint32(len(m.slots))
		m.slots = append(m.slots, region{})
	}
	for {
		h := m.seq.Next()
		if _, taken := m.index[h>>8]; taken || h>>8 == 0 {
			continue
		}
		m.index[h>>8] = i
		m.slots[i] = region{handle: h, used: true}
		return &m.slots[i], nil
	}
}

func (m *memory) remove(r *region) {
	if r.access&verbs.WindowBind != 0 && !r.window {
		for i := range m.slots {
			if w := &m.slots[i]; w.window && w.open && w.parent == r.handle {
				w.open, w.mem = false, nil
			}
		}
	}
	i := m.index[r.handle>>8]
	delete(m.index, r.handle>>8)
	*r = region{}
	m.free = append(m.free, i)
}

func (m *memory) register(mem []byte, access verbs.Access, offset uint64) (verbs.Region, error) {
	if uint64(len(mem)) > math.MaxUint32 {
		return verbs.Region{}, errLength
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if offset == verbs.OffsetAny {
		offset = m.next
		m.next += (uint64(len(mem)) + 0x1fff) &^ 0xfff
	}
	if offset > math.MaxUint64-uint64(len(mem)) {
		return verbs.Region{}, errOffset
	}
	r, err := m.add()
	if err != nil {
		return verbs.Region{}, err
	}
	r.mem, r.base, r.access, r.open = mem, offset, access, true
	return verbs.Region{Handle: r.handle, Offset: offset, Length: uint32(len(mem))}, nil
}

func (m *memory) deregister(handle uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.slot(handle)
	if r == nil || r.handle != handle {
		return verbs.ErrHandle
	}
	m.remove(r)
	return nil
}

func (m *memory) allocWindow() (uint32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.add()
	if err != nil {
		return 0, err
	}
	r.window = true
	return r.handle, nil
}

// bind opens mem, part of a region that allows it, under a window's new handle.
func (m *memory) bind(handle uint32, mem []byte, offset uint64, access verbs.Access) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.slot(handle)
	if w == nil || !w.window || w.open || w.handle == handle || offset > math.MaxUint64-uint64(len(mem)) {
		return false
	}
	for i := range m.slots {
		r := &m.slots[i]
		if r.used && !r.window && r.access&verbs.WindowBind != 0 && r.access&access == access&^verbs.WindowBind && within(r.mem, mem) {
			w.handle, w.mem, w.base, w.access, w.open, w.parent = handle, mem, offset, access, true, r.handle
			return true
		}
	}
	return false
}

// within reports whether part lies in whole.
func within(whole, part []byte) bool {
	if len(part) == 0 || len(part) > len(whole) {
		return false
	}
	d := uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	return d <= uintptr(len(whole)-len(part))
}

// invalidate closes a window, or, if the peer asks for it, a region.
func (m *memory) invalidate(handle uint32, byPeer bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.slot(handle)
	switch {
	case r == nil || r.handle != handle || !r.open:
		return false
	case r.window:
		r.open, r.mem = false, nil
		return true
	case byPeer:
		m.remove(r)
		return true
	}
	return false
}

// at returns n bytes of memory that the peer names, if it may access them, or else nil. mu
// is held.
func (m *memory) at(handle uint32, va uint64, n uint32, access verbs.Access) []byte {
	r := m.slot(handle)
	if r == nil || r.handle != handle || !r.open || r.access&access == 0 {
		return nil
	}
	off := va - r.base
	if off > uint64(len(r.mem)) || uint64(n) > uint64(len(r.mem))-off {
		return nil
	}
	return r.mem[off : off+uint64(n) : off+uint64(n)]
}

func (m *memory) reaches(handle uint32, va uint64, n uint32, access verbs.Access) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.at(handle, va, n, access) != nil
}

// write copies b to memory that the peer names.
func (m *memory) write(handle uint32, va uint64, b []byte) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.at(handle, va, uint32(len(b)), verbs.RemoteWrite)
	if p == nil {
		return false
	}
	place(p, b)
	return true
}

// end closes all regions.
func (m *memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots, m.free, m.index, m.ended = nil, nil, nil, true
}
