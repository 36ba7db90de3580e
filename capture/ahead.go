package capture

import (
	"io"
	"sync"
)

const (
	// aheadLoads is how many loads there are: one is filled, one waits, and from one the reader takes.
	aheadLoads = 3
	// loadBlocks is how many blocks of full size are passed on at once; of smaller ones, as many as have the same number of bytes.
	// The reader is faster than the decompressor and sleeps in between: waking it costs more than passing on a block.
	loadBlocks = 2
	// headroom is the part of a block before its data, for what the batch before has left of a record. A longer
	// rest is copied together with the data.
	headroom = 64 << 10
)

// blocks are the parts of a file, which others read before they are needed. Which blocks there are does not depend on when they are read: whoever
// takes one decides how long later ones are.
type blocks interface {
	// next returns the next block. It must not be called after a block with an error. Old is memory that the caller does not use any more;
	// blocks that nobody has begun with yet are to have want bytes.
	next(old []byte, want int) block
	close()
}

// ahead reads and decompresses on a goroutine of its own. A block becomes the memory of the batch that takes it, whose old
// memory becomes a block: nothing is copied between the decompressor and the packets.
type ahead struct {
	r    io.Reader
	cap  int // bytes of a block, without the headroom
	free chan *load
	full chan *load
	stop chan struct{}
	done sync.WaitGroup

	// Of the caller of next:
	load  *load // what blocks are taken from; nil: the next one
	taken int   // of its blocks
}

// load is what is passed on at once. A block that was taken leaves its place to other memory, or to none.
type load struct {
	blocks [4 * loadBlocks]block // file.want is at least a quarter of what a full block holds
	n      int                   // blocks that are filled
	want   int                   // bytes that blocks are filled with
}

// block is a part of the file.
type block struct {
	buf   []byte
	start int   // where its data begins, behind the headroom
	err   error // what comes after it, nil if another block does
}

// data is the part of the file.
func (b *block) data() []byte { return b.buf[b.start:] }

// readAhead starts to read r.
func readAhead(r io.Reader, size int) *ahead {
	a := newAhead(r, size)
	a.done.Go(a.run)
	return a
}

func newAhead(r io.Reader, size int) *ahead {
	a := &ahead{
		r: r, cap: size,
		free: make(chan *load, aheadLoads), full: make(chan *load, aheadLoads), stop: make(chan struct{}),
	}
	for range aheadLoads { // blocks are small until it is known what packets are like
		a.free <- &load{want: max(size/4, 1)}
	}
	return a
}

// run fills loads and passes them on.
func (a *ahead) run() {
	for {
		var l *load
		select {
		case <-a.stop:
			return
		case l = <-a.free:
		}
		over := a.fillLoad(l)
		a.full <- l // there is room for all loads
		if over {
			return
		}
	}
}

// fillLoad reports whether the file is over, or nobody wants to know.
func (a *ahead) fillLoad(l *load) (over bool) {
	l.n = 0
	for size := 0; size < loadBlocks*a.cap && l.n < len(l.blocks) && !over; l.n++ {
		select {
		case <-a.stop:
			return true
		default:
		}
		b := &l.blocks[l.n]
		a.fill(b, l.want)
		size += len(b.data())
		over = b.err != nil
	}
	for i := l.n; i < len(l.blocks); i++ { // memory of smaller blocks, which are not needed now
		l.blocks[i] = block{}
	}
	return over
}

// fill fills a block with want bytes.
func (a *ahead) fill(b *block, want int) {
	room, size := a.shape(want)
	if !fits(b.buf, size) {
		b.buf = make([]byte, size)
	}
	b.start, b.err = room, nil
	b.buf = b.buf[:min(size, cap(b.buf))]
	at, idle := b.start, 0
	for at < len(b.buf) && b.err == nil {
		var n int
		n, b.err = a.r.Read(b.buf[at:])
		at += n
		if n > 0 {
			idle = 0
		} else if idle++; idle == 100 && b.err == nil {
			b.err = io.ErrNoProgress
		}
	}
	b.buf = b.buf[:at]
}

// shape is how long the memory of a block should be, and how much of it comes before the data: small records leave little.
func (a *ahead) shape(want int) (room, size int) {
	room = headroom
	if want < a.cap {
		room = min(headroom, want/4)
	}
	return room, room + want
}

// fits reports whether memory can be that of a block. What a block should hold varies a little with the mean size of packets.
func fits(p []byte, size int) bool { return cap(p) >= size-size/8 && cap(p) <= 2*size }

// next implements blocks.
func (a *ahead) next(old []byte, want int) block {
	if a.load == nil {
		a.load, a.taken = <-a.full, 0
	}
	place := &a.load.blocks[a.taken]
	k := *place
	place.buf = nil
	want = min(want, a.cap)
	if _, size := a.shape(want); fits(old, size) { // it is too short, or made for a giant record, otherwise
		place.buf = old
	}
	if a.taken++; a.taken == a.load.n {
		a.load.want = want
		a.free <- a.load // there is room for all loads
		a.load = nil
	}
	return k
}

// close ends the goroutine.
func (a *ahead) close() {
	close(a.stop)
	a.done.Wait()
}

// takeOver makes a block the memory of b. What was carried goes to its headroom.
func (f *file) takeOver(b *Batch) (n, pos int, eof bool) {
	carried := len(f.carry)
	k := f.block()
	if carried > k.start {
		data := k.data()
		if c, n := cap(b.buf), carried+len(data); c < n || c > 8*max(n, f.lim.batch) {
			b.buf = make([]byte, 0, n+carried)
		}
		b.buf = append(append(b.buf[:0], f.carry...), data...)
		f.src.spare = k.buf
		return len(b.buf), 0, k.err != nil
	}
	pos = k.start - carried
	copy(k.buf[pos:], f.carry)
	f.src.spare, b.buf = b.buf, k.buf
	f.base -= int64(pos)
	return len(b.buf), pos, k.err != nil
}

// block takes the next block, and remembers why there is none after it.
func (f *file) block() block {
	k := f.src.ahead.next(f.src.spare, f.want())
	f.src.spare = nil
	if k.err != nil {
		f.over(k.err)
	}
	return k
}

// join adds another block to b.buf[pos:n]. Memory doubles, so that the work is linear in the length of a record.
func (f *file) join(b *Batch, n, pos int) (int, int, bool) {
	k := f.block()
	data := k.data()
	if cap(b.buf)-n < len(data) { // packets that were found keep the old memory
		rest := b.buf[pos:n]
		b.buf = append(make([]byte, 0, 2*len(rest)+len(data)), rest...)
		f.base += int64(pos)
		n, pos = len(rest), 0
	}
	b.buf = append(b.buf[:n], data...)
	f.src.spare = k.buf
	return len(b.buf), pos, k.err != nil
}
