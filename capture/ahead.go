package capture

import (
	"io"
	"sync"
	"sync/atomic"
)

const (
	// aheadBlocks is how many blocks are read and decompressed before they are needed: enough to bridge the batches that
	// take longer, and little beside the batches under way.
	aheadBlocks = 6
	// together is how many of them are passed on at once. There are as many more, so that neither side waits for the other.
	together = aheadBlocks / 2
	// headroom is the part of a block before its data, for what the batch before has left of a record. A longer
	// rest is copied together with the data.
	headroom = 64 << 10
)

// ahead reads on goroutines of its own: a single one that also decompresses, or several that copy a file from the page cache. A block
// becomes the memory of the batch that takes it, whose old memory becomes a block: nothing is copied between the
// decompressor and the packets. Which blocks there are does not depend on when they are filled: whoever takes one has another filled, whose place and size
// are decided then.
type ahead struct {
	from    io.ReaderAt
	file    *counter // counts what is copied from a file at places; nil: from is read in order
	cap     int      // bytes of a block, without the headroom
	blocks  int      // as many are filled before they are needed
	workers []worker
	given   int   // blocks that are to be filled, and those before
	taken   int   // of them
	at      int64 // where the next one that is given begins
	stop    atomic.Bool
	done    sync.WaitGroup

	spare []byte // memory of a block that was copied
}

// worker is one of the goroutines. Its channels have room for all blocks.
type worker struct {
	todo chan block
	full chan block
}

// block is a part of the file, behind headroom.
type block struct {
	buf  []byte // before it is filled: memory, or nil, to be allocated
	at   int64  // where it begins
	want int    // bytes that it is filled with
	last bool   // of several that are passed on at once
	err  error  // what comes after it, nil if another block does
}

// data is the part of the file.
func (b *block) data() []byte { return b.buf[headroom:] }

// readAhead starts to read r on one goroutine.
func readAhead(r io.Reader, size int) *ahead {
	return (&ahead{from: inOrder{r}, cap: size, blocks: aheadBlocks}).start(1)
}

// start starts goroutines.
func (a *ahead) start(workers int) *ahead {
	for range workers {
		a.workers = append(a.workers, worker{make(chan block, a.blocks+1), make(chan block, a.blocks+1)})
	}
	a.give(nil, a.cap)
	for i := range a.workers {
		a.done.Go(func() { a.work(&a.workers[i]) })
	}
	return a
}

// turn is the goroutine that fills block n: one after the other fills as many as are passed on at once.
func (a *ahead) turn(n int) *worker { return &a.workers[n/together%len(a.workers)] }

// give has a block filled. The first one is passed on alone: it tells how long the others should be.
func (a *ahead) give(buf []byte, want int) {
	k := block{buf: buf, at: a.at, want: min(want, a.cap), last: a.given == 0 || a.given%together == together-1}
	a.turn(a.given).todo <- k
	a.given++
	a.at += int64(k.want)
}

// work fills blocks and passes on several at a time. The reader is faster than a decompressor and sleeps between blocks; waking it
// costs more than passing on a block.
func (a *ahead) work(w *worker) {
	var ready [together]block
	n := 0
	for k := range w.todo {
		if a.stop.Load() {
			return
		}
		if k.buf == nil {
			k.buf = make([]byte, headroom+a.cap)
		}
		got, err := a.from.ReadAt(k.buf[headroom:headroom+k.want], k.at)
		k.buf, k.err = k.buf[:headroom+got], err
		ready[n] = k
		n++
		if !k.last && err == nil {
			continue
		}
		for i := range ready[:n] {
			w.full <- ready[i]
			ready[i] = block{}
		}
		n = 0
		if err != nil && a.file == nil {
			return
		}
	}
}

// next returns the next block; old is memory that the caller does not use any more. It must not be called after a
// block with an error.
func (a *ahead) next(old []byte, want int) block {
	if !a.fits(old) { // too short, or made for a giant record
		old, a.spare = a.spare, nil
	}
	if old != nil {
		old = old[:headroom+a.cap]
	}
	if a.taken > 0 {
		a.give(old, want)
	}
	if a.taken == 1 {
		for a.given-a.taken <= a.blocks {
			a.give(nil, want)
		}
	}
	k := <-a.turn(a.taken).full
	a.taken++
	if a.file != nil {
		a.copied(&k)
	}
	return k
}

// fits reports whether memory can be that of a block.
func (a *ahead) fits(p []byte) bool { return cap(p) >= headroom+a.cap && cap(p) <= 2*(headroom+a.cap) }

// close ends the goroutines.
func (a *ahead) close() {
	a.stop.Store(true)
	for i := range a.workers {
		close(a.workers[i].todo)
	}
	a.done.Wait()
}

// inOrder reads on where it is, whatever the offset.
type inOrder struct{ io.Reader }

// ReadAt fills p or returns an error.
func (r inOrder) ReadAt(p []byte, _ int64) (n int, err error) {
	for idle := 0; n < len(p); {
		m, err := r.Read(p[n:])
		n += m
		switch {
		case err != nil:
			return n, err
		case m > 0:
			idle = 0
		default:
			if idle++; idle == 100 {
				return n, io.ErrNoProgress
			}
		}
	}
	return n, nil
}

// takeOver makes a block the memory of b. What was carried goes to its headroom.
func (f *file) takeOver(b *Batch) (n, pos int, eof bool) {
	carried := len(f.carry)
	old := b.buf
	if carried > headroom {
		old = nil // is used again below
	}
	k := f.block(old)
	if carried > headroom {
		data := k.data()
		if c, n := cap(b.buf), carried+len(data); c < n || c > 8*max(n, f.lim.batch) {
			b.buf = make([]byte, 0, n+carried)
		}
		b.buf = append(append(b.buf[:0], f.carry...), data...)
		f.src.ahead.spare = k.buf
		return len(b.buf), 0, k.err != nil
	}
	pos = headroom - carried
	copy(k.buf[pos:], f.carry)
	b.buf = k.buf
	f.base -= int64(pos)
	return len(b.buf), pos, k.err != nil
}

// block takes the next block, and remembers why there is none after it.
func (f *file) block(old []byte) block {
	k := f.src.ahead.next(old, f.want())
	if k.err != nil {
		f.over(k.err)
	}
	return k
}

// join adds another block to b.buf[pos:n]. Memory doubles, so that the work is linear in the length of a record.
func (f *file) join(b *Batch, n, pos int) (int, int, bool) {
	k := f.block(nil)
	data := k.data()
	if cap(b.buf)-n < len(data) { // packets that were found keep the old memory
		rest := b.buf[pos:n]
		b.buf = append(make([]byte, 0, 2*len(rest)+len(data)), rest...)
		f.base += int64(pos)
		n, pos = len(rest), 0
	}
	b.buf = append(b.buf[:n], data...)
	f.src.ahead.spare = k.buf
	return len(b.buf), pos, k.err != nil
}
