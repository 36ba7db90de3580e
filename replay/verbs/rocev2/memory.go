package rocev2

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"unsafe"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Handles are 24 bits of index and 8 of key. A freed place is used again only
// when this many others are free, with the next key, so that an old handle
// stays invalid for long.
const (
	minFree    = 256
	maxRegions = 1 << 20
)

var (
	errOffset  = errors.New("rocev2: the region would not end below 2^64")
	errLength  = errors.New("rocev2: a region has less than 2^32 bytes")
	errRegions = errors.New("rocev2: too many regions")
)

// region is a place for memory that the peer may reach.
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

// memory is what the peer of one connection may reach. Whoever touches it on
// behalf of the peer holds mu for reading.
type memory struct {
	mu    sync.RWMutex
	slots []region
	free  []uint32 // first in, first out
	base  uint32   // index of the first slot
	next  uint64   // the next address that nobody chose
	ended bool
}

func (m *memory) init() {
	m.base = 1 + rand.Uint32()&0xffff
	m.next = 1<<32 + uint64(rand.Uint32())<<12
}

// slot is the place that a handle names by its index, in use.
func (m *memory) slot(handle uint32) *region {
	i := handle>>8 - m.base
	if uint64(i) >= uint64(len(m.slots)) || !m.slots[i].used {
		return nil
	}
	return &m.slots[i]
}

// add takes a free place.
func (m *memory) add() (*region, error) {
	if m.ended {
		return nil, verbs.ErrClosed
	}
	if len(m.free) <= minFree && len(m.slots) < maxRegions {
		m.slots = append(m.slots, region{handle: (m.base + uint32(len(m.slots))) << 8})
		r := &m.slots[len(m.slots)-1]
		r.handle |= rand.Uint32() & 0xff
		r.used = true
		return r, nil
	}
	if len(m.free) == 0 {
		return nil, errRegions
	}
	r := &m.slots[m.free[0]]
	m.free = m.free[1:]
	*r = region{handle: verbs.NextHandle(r.handle), used: true}
	return r, nil
}

func (m *memory) remove(r *region) {
	if r.access&verbs.WindowBind != 0 && !r.window {
		for i := range m.slots {
			if w := &m.slots[i]; w.window && w.open && w.parent == r.handle {
				w.open, w.mem = false, nil
			}
		}
	}
	*r = region{handle: r.handle}
	m.free = append(m.free, r.handle>>8-m.base)
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

// at is n bytes of memory that the peer names and may access; mu is held. It
// is nil if there is nothing of the kind.
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

// write copies b to where the peer says.
func (m *memory) write(handle uint32, va uint64, b []byte) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.at(handle, va, uint32(len(b)), verbs.RemoteWrite)
	if p == nil {
		return false
	}
	copy(p, b)
	return true
}

// end closes everything for good.
func (m *memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots, m.free, m.ended = nil, nil, true
}
