package capture

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
)

const (
	// copiedBlocks is how many blocks are copied before they are needed, however many goroutines copy.
	copiedBlocks = 9
	// together is how many blocks a goroutine copies before the next one does, and passes on at once.
	together = 3
	// maxCopiers is how many goroutines can work on so many blocks.
	maxCopiers = copiedBlocks / together
)

// copiers copy a file from the page cache on goroutines of their own, each at places of its own. Whoever takes a block has another one copied,
// whose place and size are decided then.
type copiers struct {
	from    io.ReaderAt
	file    *counter // counts what is copied
	cap     int      // bytes of a block, without the headroom
	workers []copier
	given   int   // blocks that are to be copied, and those before
	taken   int   // of them
	at      int64 // where the next one that is given begins
	stop    atomic.Bool
	done    sync.WaitGroup
}

// copier is one of the goroutines. Its channels have room for all blocks.
type copier struct {
	todo chan piece
	full chan piece
}

// piece is a block of a file at its place.
type piece struct {
	block
	at   int64 // where it begins
	want int   // bytes that it is filled with
	last bool  // of several that are passed on at once
}

// copyAhead lets goroutines copy a file from the page cache in blocks of size bytes. It does nothing where
// that is not the same as reading on, or not worth it: for a file that others may move in, one that is compressed or special, and one
// of a few blocks; length is -1 if the file is not regular. r is not to be read any more.
func (s *source) copyAhead(copiers, size int, length int64) {
	f, ours := s.closer.(*os.File)
	if !ours || s.kind != "" || length/int64(size) < copiedBlocks {
		return
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil { // a file that can only be read on, as some file systems have
		return
	}
	s.ahead = startCopiers(f, s.raw, at, size, copiers)
}

// startCopiers starts goroutines that copy from a place on.
func startCopiers(from io.ReaderAt, file *counter, at int64, size, n int) *copiers {
	c := &copiers{from: from, file: file, at: at, cap: size}
	for range n {
		c.workers = append(c.workers, copier{make(chan piece, copiedBlocks+1), make(chan piece, copiedBlocks+1)})
	}
	c.give(nil, c.cap)
	for i := range c.workers {
		c.done.Go(func() { c.work(&c.workers[i]) })
	}
	return c
}

// turn is the goroutine that copies block n.
func (c *copiers) turn(n int) *copier { return &c.workers[n/together%len(c.workers)] }

// give has a block copied. The first one is passed on alone: it tells how long the others should be.
func (c *copiers) give(buf []byte, want int) {
	k := piece{block: block{buf: buf}, at: c.at, want: min(want, c.cap), last: c.given == 0 || c.given%together == together-1}
	c.turn(c.given).todo <- k
	c.given++
	c.at += int64(k.want)
}

// work copies blocks and passes on several at a time.
func (c *copiers) work(w *copier) {
	var ready [together]piece
	n := 0
	for k := range w.todo {
		if c.stop.Load() {
			return
		}
		if k.buf == nil {
			k.buf = make([]byte, headroom+c.cap)
		}
		got, err := c.from.ReadAt(k.buf[headroom:headroom+k.want], k.at)
		k.buf, k.start, k.err = k.buf[:headroom+got], headroom, err
		ready[n] = k
		n++
		if !k.last && err == nil {
			continue
		}
		for i := range ready[:n] {
			w.full <- ready[i]
			ready[i] = piece{}
		}
		n = 0
	}
}

// next implements blocks.
func (c *copiers) next(old []byte, want int) block {
	if n := headroom + c.cap; cap(old) < n || cap(old) > 2*n { // it is too short, or made for a giant record
		old = nil
	} else {
		old = old[:n]
	}
	if c.taken > 0 {
		c.give(old, want)
	}
	if c.taken == 1 {
		for c.given-c.taken <= copiedBlocks {
			c.give(nil, want)
		}
	}
	k := <-c.turn(c.taken).full
	c.taken++
	// If the file ended within the block, more may have been appended since: those before it may have been copied later.
	if k.err == io.EOF {
		n, err := c.from.ReadAt(k.buf[len(k.buf):headroom+k.want], k.at+int64(len(k.data())))
		k.buf, k.err = k.buf[:len(k.buf)+n], err
	}
	c.file.note(len(k.data()), k.err)
	return k.block
}

// close ends the goroutines.
func (c *copiers) close() {
	c.stop.Store(true)
	for i := range c.workers {
		close(c.workers[i].todo)
	}
	c.done.Wait()
}
