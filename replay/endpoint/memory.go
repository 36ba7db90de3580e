package endpoint

import (
	"errors"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// memory allocates from the provider: blocks for the endpoint's own use, which are
// recycled, and what callers ask Alloc for.
type memory struct {
	p    verbs.Provider
	caps verbs.Caps

	mu     sync.Mutex
	free   [32][]*block // by the power of two of their size
	kept   int          // bytes in free
	refs   int
	closed bool

	// user lists what Alloc returned, sorted by address. It is maintained only
	// if tracks is set: the provider or the registration mode has to know which
	// memory is from Alloc.
	tracks bool
	userMu sync.RWMutex
	user   []*allocation
}

// block is provider memory; its size in bytes is a power of two.
type block struct {
	b     []byte // the whole block
	class int
	// region is valid while the block belongs to the pool of a connection; see
	// link.block.
	region verbs.Region
}

// allocation is memory that Alloc returned.
type allocation struct {
	b  []byte
	id uint64
}

const (
	minBlock = 12 // 4 KiB
	maxKept  = 64 << 20
)

var lastAllocation struct {
	sync.Mutex
	id uint64
}

func newMemory(p verbs.Provider, o *Options) *memory {
	caps := p.Caps()
	return &memory{p: p, caps: caps, refs: 1, tracks: !caps.AnyMemory || o.Registration == Persistent || o.Registration == Windows}
}

// hold keeps the memory, even after close, until release.
func (m *memory) hold() {
	m.mu.Lock()
	m.refs++
	m.mu.Unlock()
}

func (m *memory) release() {
	m.mu.Lock()
	m.refs--
	var free []*block
	if m.refs == 0 {
		m.closed = true
		for i := range m.free {
			free = append(free, m.free[i]...)
			m.free[i] = nil
		}
	}
	m.mu.Unlock()
	for _, b := range free {
		m.p.Free(b.b)
	}
}

// classOf is the power of two that a block of n bytes takes.
func classOf(n int) int { return max(bits.Len(uint(max(n, 1)-1)), minBlock) }

// get returns a block of at least n bytes.
func (m *memory) get(n int) (*block, error) {
	class := classOf(n)
	if class >= len(m.free) {
		return nil, errors.New("endpoint: a block of this size is not supported")
	}
	m.mu.Lock()
	if k := len(m.free[class]); k > 0 {
		b := m.free[class][k-1]
		m.free[class] = m.free[class][:k-1]
		m.kept -= len(b.b)
		m.mu.Unlock()
		return b, nil
	}
	m.mu.Unlock()
	mem, err := m.p.Alloc(1 << class)
	if err != nil {
		return nil, err
	}
	return &block{b: mem, class: class}, nil
}

// put returns a block that is not registered anywhere.
func (m *memory) put(b *block) {
	m.mu.Lock()
	if !m.closed && m.kept+len(b.b) <= maxKept {
		m.kept += len(b.b)
		m.free[b.class] = append(m.free[b.class], b)
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	m.p.Free(b.b)
}

func base(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// alloc returns memory for a caller.
func (m *memory) alloc(n int) ([]byte, error) {
	b, err := m.p.Alloc(n)
	if err != nil || !m.tracks || n == 0 {
		return b, err
	}
	lastAllocation.Lock()
	lastAllocation.id++
	a := &allocation{b: b, id: lastAllocation.id}
	lastAllocation.Unlock()
	m.userMu.Lock()
	defer m.userMu.Unlock()
	i, _ := slices.BinarySearchFunc(m.user, base(b), func(a *allocation, at uintptr) int {
		return int(base(a.b)>>1) - int(at>>1)
	})
	m.user = slices.Insert(m.user, i, a)
	return b, nil
}

// find returns the allocation that b lies in, or nil.
func (m *memory) find(b []byte) *allocation {
	if !m.tracks || len(b) == 0 {
		return nil
	}
	at := base(b)
	m.userMu.RLock()
	defer m.userMu.RUnlock()
	lo, hi := 0, len(m.user)
	for lo < hi {
		if mid := (lo + hi) / 2; base(m.user[mid].b) <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return nil
	}
	a := m.user[lo-1]
	if at+uintptr(len(b)) > base(a.b)+uintptr(len(a.b)) {
		return nil
	}
	return a
}

// usable reports whether work requests may name b.
func (m *memory) usable(b []byte) bool {
	return m.caps.AnyMemory || len(b) == 0 || m.find(b) != nil
}

// forget drops an allocation that is about to be freed.
func (m *memory) forget(b []byte) *allocation {
	if !m.tracks || len(b) == 0 {
		return nil
	}
	m.userMu.Lock()
	defer m.userMu.Unlock()
	for i, a := range m.user {
		if base(a.b) == base(b) {
			m.user = slices.Delete(m.user, i, i+1)
			return a
		}
	}
	return nil
}
