// Package window holds packets back, in their order and within a bound of
// memory, until it is known what they belong to.
package window

import "github.com/rpcrdma/toolkit/capture"

// DefaultBytes is how much memory a Window takes unless it is told otherwise.
const DefaultBytes = 32 << 20

// overhead is what a packet counts for beside its bytes, unless the owner of the window keeps more of it.
const overhead = 256

// slabSize is how much memory is made at once for the bytes of packets.
const slabSize = 256 << 10

// Window holds the newest packets of a capture, each with a T of its owner.
// What leaves goes to the function that New was given, in the order of the
// packets. Packets are named by their numbers, which have to follow each other.
type Window[T any] struct {
	limit   int
	release func(*capture.Packet, *T)

	ring  []entry[T]
	first uint64 // number of the oldest packet held
	next  uint64 // number of the packet that comes next
	bytes int

	slabs    []slab
	spare    [][]byte
	overhead int
	copies   bool // see Copies
}

type entry[T any] struct {
	packet capture.Packet
	value  T
}

// slab holds the bytes of packets up to number last.
type slab struct {
	buf  []byte
	last uint64
}

// New makes a window of that many bytes; 0 means DefaultBytes. The function is
// given each packet that leaves; neither may be kept. It has to reset the
// value, whose memory another packet takes over.
func New[T any](limit int, release func(*capture.Packet, *T)) *Window[T] {
	if limit <= 0 {
		limit = DefaultBytes
	}
	return &Window[T]{limit: limit, release: release, overhead: overhead, ring: make([]entry[T], 64), first: 1, next: 1}
}

// Keeps says how many bytes the owner of the window keeps of a packet, beside its place and its own bytes.
func (w *Window[T]) Keeps(bytes int) { w.overhead = overhead + bytes }

// Copies says that the owner copies packets: each is held with as many zeros behind its bytes.
func (w *Window[T]) Copies() { w.copies = true }

// Add takes the next packet and lets the oldest ones go for it, if need be. The
// value that it returns is valid until the next call of Add, or of At for the packet that comes next.
func (w *Window[T]) Add(p *capture.Packet) *T {
	if p.Number != w.next {
		w.fill(p.Number)
	}
	if p.Number != w.next {
		w.Flush()
		w.first, w.next = p.Number, p.Number
	}
	size := w.size(p.Data) + w.overhead
	for w.first < w.next && w.bytes+size > w.limit {
		w.pop()
	}
	w.next++
	e := w.slot(p.Number)
	e.packet = *p
	e.packet.Data = w.copy(p.Data, p.Number)
	w.bytes += size
	return &e.value
}

// At returns the value of a packet, including the next one; nil if the packet is not held. It is valid until
// the next call of Add or At.
func (w *Window[T]) At(number uint64) *T {
	if w.fill(number); number < w.first || number > w.next {
		return nil
	}
	return &w.slot(number).value
}

// Packet returns a packet that is held, with its bytes; nil if it is not. It is valid until the next call of Add or At.
func (w *Window[T]) Packet(number uint64) *capture.Packet {
	if number < w.first || number >= w.next {
		return nil
	}
	if p := &w.slot(number).packet; p.Number != 0 {
		return p
	}
	return nil
}

// maxHole is the most consecutive numbers that no packet may have.
const maxHole = 1 << 10

// fill makes number the next one if it is slightly higher: other blocks of a capture than packets have numbers, too.
func (w *Window[T]) fill(number uint64) {
	switch {
	case number <= w.next || number-w.next > maxHole:
		return
	case w.first == w.next:
		w.first, w.next = number, number
	}
	for w.next < number {
		w.slot(w.next).packet = capture.Packet{}
		w.bytes += w.overhead
		w.next++
	}
}

// Each visits the packets that are held, in their order. Neither the packet nor its bytes may be kept.
func (w *Window[T]) Each(visit func(*capture.Packet, *T)) {
	for n := w.first; n < w.next; n++ {
		if e := w.slot(n); e.packet.Number != 0 {
			visit(&e.packet, &e.value)
		}
	}
}

// Bytes is how much of the limit is used.
func (w *Window[T]) Bytes() int { return w.bytes }

// Flush lets all packets go.
func (w *Window[T]) Flush() { w.Before(w.next) }

// Next is the number that the next packet is expected to have.
func (w *Window[T]) Next() uint64 { return w.next }

// Before lets the packets with smaller numbers go.
func (w *Window[T]) Before(number uint64) {
	for w.first < min(number, w.next) {
		w.pop()
	}
}

// slot is the place of a packet, the next one included.
func (w *Window[T]) slot(number uint64) *entry[T] {
	n := uint64(len(w.ring))
	if w.next-w.first+1 >= n {
		ring := make([]entry[T], 2*n)
		for i := w.first; i <= w.next; i++ {
			ring[i&(2*n-1)] = w.ring[i&(n-1)]
		}
		w.ring, n = ring, 2*n
	}
	return &w.ring[number&(n-1)]
}

func (w *Window[T]) pop() {
	e := w.slot(w.first)
	if e.packet.Number != 0 {
		w.release(&e.packet, &e.value)
	}
	w.bytes -= len(e.packet.Data) + w.overhead
	e.packet.Data = nil
	for len(w.slabs) > 1 && w.slabs[0].last <= w.first {
		w.recycle(w.slabs[0].buf)
		w.slabs = w.slabs[:copy(w.slabs, w.slabs[1:])]
	}
	w.first++
}

func (w *Window[T]) recycle(b []byte) {
	if cap(b) == slabSize && len(w.spare) < 16 {
		w.spare = append(w.spare, b[:0])
	}
}

// size is how many bytes are held of a packet.
func (w *Window[T]) size(p []byte) int {
	if w.copies {
		return 2 * len(p)
	}
	return len(p)
}

// copy keeps the bytes of a packet.
func (w *Window[T]) copy(p []byte, number uint64) []byte {
	i, size := len(w.slabs)-1, w.size(p)
	if i < 0 || cap(w.slabs[i].buf)-len(w.slabs[i].buf) < size {
		var b []byte
		switch n := len(w.spare); {
		case size > slabSize:
			b = make([]byte, 0, size)
		case n > 0:
			b, w.spare = w.spare[n-1], w.spare[:n-1]
		default:
			b = make([]byte, 0, slabSize)
		}
		w.slabs = append(w.slabs, slab{buf: b})
		i++
	}
	s := &w.slabs[i]
	at := len(s.buf)
	s.buf = append(s.buf, p...)
	if w.copies {
		s.buf = append(s.buf, make([]byte, len(p))...)
	}
	s.last = number
	return s.buf[at:len(s.buf):len(s.buf)]
}
