//go:build unix

// Package arena allocates memory outside of the Go heap: it never moves, so foreign
// libraries may keep its address. It consists of blocks, which an RDMA device
// registers as a whole: few registrations serve many buffers.
package arena

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const (
	minClass = 64        // bytes of the smallest buffer
	minBlock = 256 << 10 // bytes of the smallest block
	maxBlock = 2 << 20   // blocks are larger only for one large buffer
)

// Block is one mapping, cut into buffers of one size.
type Block struct {
	mem   []byte
	class int
	used  []bool
	free  []uint32 // buffers that were used before and are free now
	next  uint32   // buffers from here on were never used
	live  int      // buffers in use
}

// Mem returns the whole block, for a provider that registers it (the build tag verbs).
func (b *Block) Mem() []byte { return b.mem }

func (b *Block) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b.mem))) }

// Pool is a set of blocks. Its zero value is ready; all methods may be called
// from any goroutine.
type Pool struct {
	// Release, if set, is called before a block is returned to the system, without
	// any lock that Find or Alloc need.
	Release func(*Block)

	mu      sync.Mutex
	blocks  atomic.Pointer[[]*Block] // by address
	partial map[int][]*Block         // blocks with room, by class
	closed  bool
}

// class returns the size of the buffer for n bytes: a power of two, so that large
// buffers begin at a page.
func class(n int) int {
	if n <= minClass {
		return minClass
	}
	return 1 << bits.Len(uint(n-1))
}

// Alloc returns n zeroed bytes.
func (p *Pool) Alloc(n int) ([]byte, error) {
	if n < 0 || uint64(n) > 1<<40 {
		return nil, fmt.Errorf("arena: %d bytes", n)
	}
	size := class(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("arena: closed")
	}
	list := p.partial[size]
	if len(list) == 0 {
		b, err := p.grow(size)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	b := list[len(list)-1]
	var i uint32
	dirty := len(b.free) > 0
	if dirty {
		i = b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
	} else {
		i = b.next
		b.next++
	}
	b.used[i] = true
	b.live++
	if len(b.free) == 0 && int(b.next) == len(b.used) {
		list = list[:len(list)-1] // full
	}
	if p.partial == nil {
		p.partial = make(map[int][]*Block)
	}
	p.partial[size] = list
	// A slice without capacity does not keep its address.
	buf := b.mem[int(i)*size : int(i)*size+n : int(i)*size+max(n, 1)]
	if dirty {
		clear(buf)
	}
	return buf, nil
}

func (p *Pool) grow(size int) (*Block, error) {
	n := max(size, min(maxBlock, max(minBlock, 64*size)))
	mem, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("arena: mapping %d bytes: %w", n, err)
	}
	b := &Block{mem: mem, class: size, used: make([]bool, n/size)}
	list := slices.Clone(p.list())
	at := sort.Search(len(list), func(i int) bool { return list[i].base() > b.base() })
	list = slices.Insert(list, at, b)
	p.blocks.Store(&list)
	return b, nil
}

func (p *Pool) list() []*Block {
	if l := p.blocks.Load(); l != nil {
		return *l
	}
	return nil
}

// Find returns the block that holds all of buf, or nil.
func (p *Pool) Find(buf []byte) *Block {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	list := p.list()
	lo, hi := 0, len(list)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); list[m].base() <= at {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == 0 {
		return nil
	}
	b := list[lo-1]
	if off := at - b.base(); off > uintptr(len(b.mem)) || uintptr(len(buf)) > uintptr(len(b.mem))-off {
		return nil
	}
	return b
}

// Free releases memory from Alloc. Other memory is ignored.
func (p *Pool) Free(buf []byte) {
	p.mu.Lock()
	b := p.Find(buf)
	if b == nil {
		p.mu.Unlock()
		return
	}
	off := int(uintptr(unsafe.Pointer(unsafe.SliceData(buf))) - b.base())
	i := off / b.class
	if off%b.class != 0 || i >= len(b.used) || !b.used[i] {
		p.mu.Unlock()
		return
	}
	full := len(b.free) == 0 && int(b.next) == len(b.used)
	b.used[i] = false
	b.free = append(b.free, uint32(i))
	b.live--
	if full {
		p.partial[b.class] = append(p.partial[b.class], b)
	}
	// Large blocks are returned to the system as soon as they are empty: they hold
	// one buffer, and few of that size may be needed again.
	gone := b.live == 0 && (p.closed || b.class > maxBlock)
	if gone {
		p.drop(b)
	}
	p.mu.Unlock()
	if gone {
		p.release(b)
	}
}

// drop takes an empty block out of the pool.
func (p *Pool) drop(b *Block) {
	p.partial[b.class] = slices.DeleteFunc(p.partial[b.class], func(x *Block) bool { return x == b })
	list := slices.DeleteFunc(slices.Clone(p.list()), func(x *Block) bool { return x == b })
	p.blocks.Store(&list)
}

func (p *Pool) release(b *Block) {
	if p.Release != nil {
		p.Release(b)
	}
	syscall.Munmap(b.mem) //nolint:errcheck // it is a mapping of ours
}

// Close releases the blocks without buffers in use, and the others when their last
// buffer is freed: memory stays valid as long as it is used.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var gone []*Block
	for _, b := range p.list() {
		if b.live == 0 {
			gone = append(gone, b)
		}
	}
	for _, b := range gone {
		p.drop(b)
	}
	p.mu.Unlock()
	for _, b := range gone {
		p.release(b)
	}
}
