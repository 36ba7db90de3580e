package capture

import (
	"io"
	"sync"
	"sync/atomic"
)

const (
	// aheadBlocks is how many blocks there are: some are filled, some wait, and one becomes the memory of a batch.
	aheadBlocks = 6
	// headroom is the part of a block before its data, for what the batch before has left of a record. A longer
	// rest is copied together with the data.
	headroom = 64 << 10
)

// ahead reads and decompresses on a goroutine of its own. A block becomes the memory of the batch that takes it, whose old
// memory becomes a block: nothing is copied between the decompressor and the packets. How long a block is depends on when
// another one was taken, and not on when it is filled.
type ahead struct {
	r    io.Reader
	cap  int // bytes of a block, without the headroom
	free chan block
	full chan block // there is room for all blocks
	stop atomic.Bool
	done sync.WaitGroup
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
	a := &ahead{r: r, cap: size, free: make(chan block, aheadBlocks), full: make(chan block, aheadBlocks)}
	for range aheadBlocks { // they are small until it is known what packets are like
		a.give(nil, max(size/4, 1))
	}
	return a
}

// give has a block of want bytes filled. Small records leave little to go before them. Old is memory that is not used any more.
func (a *ahead) give(old []byte, want int) {
	room := headroom
	if want = min(want, a.cap); want < a.cap {
		room = min(headroom, want/4)
	}
	// What a block should hold varies a little with the mean size of packets. Other memory is made for a giant record.
	if size := room + want; cap(old) >= size-size/8 && cap(old) <= 2*size {
		old = old[:min(size, cap(old))]
	} else {
		old = make([]byte, size)
	}
	a.free <- block{buf: old, start: room}
}

// run fills blocks.
func (a *ahead) run() {
	for b := range a.free {
		if a.stop.Load() {
			return
		}
		a.fill(&b)
		a.full <- b
		if b.err != nil {
			return
		}
	}
}

// fill fills a block.
func (a *ahead) fill(b *block) {
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

// next returns the next block, and has another one of want bytes filled. It must not be called after a block with an error.
func (a *ahead) next(old []byte, want int) block {
	b := <-a.full
	a.give(old, want)
	return b
}

// close ends the goroutine.
func (a *ahead) close() {
	a.stop.Store(true)
	close(a.free)
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
