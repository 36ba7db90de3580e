package memory

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// BlockSize is how many bytes of a file a block holds: the largest read that
// needs no copy.
const BlockSize = 1 << blockShift

const (
	blockShift    = 20
	pageShift     = 12
	pageSize      = 1 << pageShift // holes are multiples of it
	pagesPerBlock = BlockSize / pageSize
	classes       = blockShift - pageShift + 1
)

// zeros is what holes read as.
var zeros [BlockSize]byte

// block is a part of a file, or memory that was read into. It may only be
// changed by the holder of the only reference.
type block struct {
	refs atomic.Int32 // files and readers
	// data has a length of a power of two from pageSize to BlockSize. The rest
	// of the block is a hole. What was never written is zero.
	data    []byte
	class   int
	scratch bool // not counted as used space
	// pages are those with data in them; the others are holes.
	pages [pagesPerBlock / 64]uint64
}

// extent is a block of a file and its place there, in blocks.
type extent struct {
	index uint64
	block *block
}

// blockPool keeps blocks by the size of their data.
type blockPool [classes]sync.Pool

// class is the class of blocks that hold n bytes, n in 1 to BlockSize.
func class(n int) int {
	return max(bits.Len(uint(n-1)), pageShift) - pageShift
}

func classSize(c int) int { return pageSize << c }

func (p *blockPool) get(c int) *block {
	b, _ := p[c].Get().(*block)
	if b == nil {
		b = &block{data: make([]byte, classSize(c)), class: c}
	}
	b.refs.Store(1)
	b.pages = [pagesPerBlock / 64]uint64{}
	return b
}

// mark notes that the pages of a range have data; from < to.
func (b *block) mark(from, to int) { b.eachPage(from>>pageShift, (to+pageSize-1)>>pageShift, true) }

// unmark notes that the pages that lie wholly within a range are holes.
func (b *block) unmark(from, to int) {
	first, last := (from+pageSize-1)>>pageShift, to>>pageShift
	if first < last {
		b.eachPage(first, last, false)
	}
}

func (b *block) eachPage(first, last int, data bool) {
	for w := range b.pages {
		low, high := max(first-w*64, 0), min(last-w*64, 64)
		if low >= high {
			continue
		}
		mask := ^uint64(0) >> (64 - (high - low)) << low
		if data {
			b.pages[w] |= mask
		} else {
			b.pages[w] &^= mask
		}
	}
}

// used is how many bytes of pages have data.
func (b *block) used() int {
	n := 0
	for _, w := range b.pages {
		n += bits.OnesCount64(w)
	}
	return n << pageShift
}

// next is the first page at or after page that has data, or has none;
// pagesPerBlock if there is no such page.
func (b *block) next(page int, data bool) int {
	for w := page / 64; w < len(b.pages); w++ {
		v := b.pages[w]
		if !data {
			v = ^v
		}
		if w == page/64 {
			v &= ^uint64(0) << (page % 64)
		}
		if v != 0 {
			return w*64 + bits.TrailingZeros64(v)
		}
	}
	return pagesPerBlock
}
