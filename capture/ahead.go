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

// ahead reads and decompresses on a goroutine of its own. A block becomes the memory of the batch that takes it, whose old
// memory becomes a block: nothing is copied between the decompressor and the packets.
type ahead struct {
	r    io.Reader
	cap  int          // bytes of a block, without the headroom
	want atomic.Int64 // bytes that blocks are filled with, at most cap
	free chan []byte  // memory for blocks; nil is to be allocated
	full chan block
	stop chan struct{}
	done sync.WaitGroup

	spare []byte // of the caller of next: memory of a block that was copied
}

// block is a part of the file, behind headroom.
type block struct {
	buf []byte
	err error // what comes after it, nil if another block does
}

// data is the part of the file.
func (b *block) data() []byte { return b.buf[headroom:] }

// readAhead starts to read r.
func readAhead(r io.Reader, size int) *ahead {
	a := &ahead{
		r: r, cap: size,
		free: make(chan []byte, aheadBlocks+1), full: make(chan block, aheadBlocks), stop: make(chan struct{}),
	}
	a.want.Store(int64(size))
	for range aheadBlocks {
		a.free <- nil
	}
	a.done.Go(a.run)
	return a
}

// run fills blocks and passes on several at a time. The reader is faster than the decompressor and sleeps between blocks; waking it
// costs more than passing on a block.
func (a *ahead) run() {
	var ready [together]block
	for over := false; !over; {
		n := 0
		for n < len(ready) && !over {
			var buf []byte
			select {
			case <-a.stop:
				return
			case buf = <-a.free:
			}
			if buf == nil {
				buf = make([]byte, headroom+a.cap)
			}
			ready[n] = a.fill(buf)
			over = ready[n].err != nil
			n++
		}
		for i := range ready[:n] {
			select {
			case <-a.stop:
				return
			case a.full <- ready[i]:
			}
			ready[i] = block{}
		}
	}
}

// fill makes a block in buf.
func (a *ahead) fill(buf []byte) block {
	end := headroom + min(int(a.want.Load()), a.cap)
	at, idle := headroom, 0
	for at < end {
		n, err := a.r.Read(buf[at:end])
		at += n
		if err != nil {
			return block{buf[:at], err}
		}
		if n > 0 {
			idle = 0
		} else if idle++; idle == 100 {
			return block{buf[:at], io.ErrNoProgress}
		}
	}
	return block{buf[:at], nil}
}

// next returns the next block; old is memory that the caller does not use any more. It must not be called after a
// block with an error.
func (a *ahead) next(old []byte, want int) block {
	a.want.Store(int64(want))
	if !a.fits(old) { // too short, or made for a giant record
		old, a.spare = a.spare, nil
	}
	if old != nil {
		old = old[:headroom+a.cap]
	}
	a.free <- old // there is room: for each that is taken, one is given
	return <-a.full
}

// fits reports whether memory can be that of a block.
func (a *ahead) fits(p []byte) bool { return cap(p) >= headroom+a.cap && cap(p) <= 2*(headroom+a.cap) }

// close ends the goroutine.
func (a *ahead) close() {
	close(a.stop)
	a.done.Wait()
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
