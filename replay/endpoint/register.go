package endpoint

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// opening records which memory a message has opened to the peer, so that it can be
// closed again. It is reused.
type opening struct {
	segments []rpcrdma.Segment
	handles  []handle
	bounces  []bounce
	binds    []verbs.WorkRequest // bind windows; to be posted before the Send
	sgl      [][]byte            // memory that binds and other requests name
	cursor   uint64              // lower half of the next address
	pinned   bool                // the memory stays open after the call
	bound    bool                // binds were posted
}

// handle is a handle that has to be closed.
type handle struct {
	h      uint32
	window bool
	closed bool // by the peer
}

// bounce is a block used in the place of memory that cannot be opened itself.
type bounce struct {
	b   *block
	dst []byte // receives a copy of what the peer writes into Write chunk number chunk
	// chunk is set by writeChunk.
	chunk int
	// pooled: the block returns to the pool of the connection and stays
	// registered.
	pooled bool
}

const maxKeptBlocks = 64 << 20 // bytes of registered blocks that a connection keeps

// block returns memory that stays registered until the connection ends.
func (l *link) block(n int) (*block, error) {
	if class := classOf(n); class < len(l.blocks) {
		l.regMu.Lock()
		if k := len(l.blocks[class]); k > 0 {
			b := l.blocks[class][k-1]
			l.blocks[class] = l.blocks[class][:k-1]
			l.kept -= len(b.b)
			l.regMu.Unlock()
			return b, nil
		}
		l.regMu.Unlock()
	}
	b, err := l.mem.get(n)
	if err != nil {
		return nil, err
	}
	if b.region, err = l.register(b.b, l.standing(), verbs.OffsetAny); err != nil {
		l.mem.put(b)
		return nil, err
	}
	return b, nil
}

// standing is the access right of memory that stays registered until the connection
// ends.
func (l *link) standing() verbs.Access {
	if l.o.Registration == Windows {
		// A window may not allow more than its region does. The peer is not
		// told the region's handle.
		return verbs.WindowBind | verbs.RemoteRead | verbs.RemoteWrite
	}
	return verbs.RemoteRead | verbs.RemoteWrite
}

// giveBack returns a block to the pool of the connection.
func (l *link) giveBack(b *block) {
	if !l.isDead() {
		l.regMu.Lock()
		if l.kept+len(b.b) <= maxKeptBlocks {
			l.kept += len(b.b)
			l.blocks[b.class] = append(l.blocks[b.class], b)
			l.regMu.Unlock()
			return
		}
		l.regMu.Unlock()
		_ = l.vc.Deregister(b.region.Handle)
	}
	l.mem.put(b)
}

func (l *link) register(b []byte, access verbs.Access, offset uint64) (verbs.Region, error) {
	if offset != verbs.OffsetAny {
		r, err := l.vc.Register(b, access, offset)
		if err == nil {
			l.ctr.regs.Add(1)
			return r, nil
		}
		if l.vc.Err() != nil {
			return r, err
		}
		l.noAddr.Store(true)
	}
	r, err := l.vc.Register(b, access, verbs.OffsetAny)
	if err == nil {
		l.ctr.regs.Add(1)
	}
	return r, err
}

// forever returns the region of the allocation that b lies in.
func (l *link) forever(a *allocation) (verbs.Region, error) {
	l.regMu.Lock()
	defer l.regMu.Unlock()
	if r, ok := l.regions[a.id]; ok {
		return r, nil
	}
	r, err := l.register(a.b, l.standing(), verbs.OffsetAny)
	if err == nil {
		l.regions[a.id] = r
	}
	return r, err
}

// forget closes the region of an allocation that is about to be freed.
func (l *link) forget(a *allocation) {
	l.regMu.Lock()
	r, ok := l.regions[a.id]
	delete(l.regions, a.id)
	l.regMu.Unlock()
	if ok {
		_ = l.vc.Deregister(r.Handle)
	}
}

// reset empties the record. Everything in it has to be closed already.
func (op *opening) reset() {
	op.segments, op.handles, op.binds, op.sgl = op.segments[:0], op.handles[:0], op.binds[:0], op.sgl[:0]
	clear(op.bounces)
	op.bounces, op.cursor, op.pinned = op.bounces[:0], 0, false
	op.bound = false
}

// open opens mem to the peer in segments of the given sizes, which add up to the
// size of mem. Without sizes, segments have Options.SegmentSize bytes. The result
// is valid until the next reset.
func (l *link) open(op *opening, xid uint32, mem []byte, access verbs.Access, sizes []uint32) ([]rpcrdma.Segment, error) {
	total := len(mem)
	for _, n := range sizes {
		total -= int(n)
	}
	if len(sizes) > 0 && total != 0 {
		// The segments are longer than the memory: the chunk includes padding, or
		// offers more room than there is memory. A block has room for both.
		want := len(mem) - total
		if want < 0 || want-len(mem) > maxExcess || want < len(mem) {
			return nil, transport.ErrLayout
		}
		return l.openCopy(op, xid, mem, want, access, sizes)
	}
	switch l.o.Registration {
	case PerCall:
		if l.mem.usable(mem) {
			l.mark(mem, access)
			return l.openEach(op, xid, mem, access, sizes)
		}
	case Persistent, Windows:
		if a := l.mem.find(mem); a != nil {
			r, err := l.forever(a)
			if err != nil {
				return nil, err
			}
			l.mark(mem, access)
			if l.o.Registration == Windows {
				return l.openWindows(op, xid, mem, access, sizes)
			}
			op.pinned = true
			return op.slice(r, uint64(base(mem)-base(a.b)), len(mem), l.sizes(sizes)), nil
		}
	case Inline:
		return nil, transport.ErrTooLong
	}
	return l.openCopy(op, xid, mem, len(mem), access, sizes)
}

// maxExcess is how many bytes the segments of a layout may exceed the memory that
// they name. A larger excess cannot be padding.
const maxExcess = 64 << 10

// openCopy opens a block of size bytes in the place of mem.
func (l *link) openCopy(op *opening, xid uint32, mem []byte, size int, access verbs.Access, sizes []uint32) ([]rpcrdma.Segment, error) {
	b, err := l.newBounce(op, size)
	if err != nil {
		return nil, err
	}
	to := &op.bounces[len(op.bounces)-1]
	if access&verbs.RemoteWrite != 0 {
		to.dst = mem
	} else {
		clear(b.b[copy(b.b[:size], mem):size])
	}
	return l.openBlock(op, xid, b, size, access, sizes)
}

// newBounce takes a block for the duration of the opening.
func (l *link) newBounce(op *opening, size int) (*block, error) {
	pooled := l.o.Registration != PerCall
	if l.o.Registration == Inline {
		return nil, transport.ErrTooLong
	}
	var b *block
	var err error
	if pooled {
		b, err = l.block(size)
	} else {
		b, err = l.mem.get(size)
	}
	if err != nil {
		return nil, err
	}
	op.bounces = append(op.bounces, bounce{b: b, pooled: pooled})
	return b, nil
}

// unwritten is what stands in memory that the peer has not written. Nobody else knows it.
var unwritten = binary.NativeEndian.AppendUint64(nil, rand.Uint64())

// mark fills memory that the peer may write.
func (l *link) mark(b []byte, access verbs.Access) {
	if access&verbs.RemoteWrite == 0 || l.o.Unmarked {
		return
	}
	for n := copy(b, unwritten); n < len(b); {
		n += copy(b[n:], b[:n])
	}
}

// openBlock opens the first size bytes of a block that newBounce returned.
func (l *link) openBlock(op *opening, xid uint32, b *block, size int, access verbs.Access, sizes []uint32) ([]rpcrdma.Segment, error) {
	l.mark(b.b[:size], access)
	switch l.o.Registration {
	case Windows:
		return l.openWindows(op, xid, b.b[:size], access, sizes)
	case PerCall:
		return l.openEach(op, xid, b.b[:size], access, sizes)
	}
	return op.slice(b.region, 0, size, l.sizes(sizes)), nil
}

// segmentSizes yields the sizes of segments one after the other.
type segmentSizes struct {
	given []uint32
	each  int
}

func (l *link) sizes(given []uint32) segmentSizes { return segmentSizes{given, l.o.SegmentSize} }

// next returns the size of the next segment when left bytes remain; ok is false
// after the last one.
func (s *segmentSizes) next(left int) (n int, ok bool) {
	if s.each == 0 { // all of the given were used
		return 0, false
	}
	if len(s.given) > 0 {
		n = min(int(s.given[0]), left)
		if s.given = s.given[1:]; len(s.given) == 0 {
			s.each = 0
		}
		return n, true
	}
	return min(left, s.each), left > 0
}

// slice divides a region that is open already into segments.
func (op *opening) slice(r verbs.Region, at uint64, n int, sizes segmentSizes) []rpcrdma.Segment {
	start := len(op.segments)
	for {
		size, ok := sizes.next(n)
		if !ok {
			break
		}
		op.segments = append(op.segments, rpcrdma.Segment{Handle: r.Handle, Length: uint32(size), Offset: r.Offset + at})
		at += uint64(size)
		n -= size
	}
	return op.segments[start:len(op.segments):len(op.segments)]
}

// address returns the address under which the peer shall name the next segment of n
// bytes.
func (l *link) address(op *opening, xid uint32, n int) uint64 {
	if l.o.AnyOffset || l.noAddr.Load() || l.o.Registration == Windows && l.mem.caps.WindowsAtAddress {
		return verbs.OffsetAny
	}
	at := uint64(xid)<<32 | op.cursor
	op.cursor += uint64(n+pageSize-1) &^ (pageSize - 1)
	if op.cursor+uint64(n) >= 1<<32 {
		op.cursor = 0
	}
	return at
}

// openEach registers each segment on its own.
func (l *link) openEach(op *opening, xid uint32, mem []byte, access verbs.Access, sizes []uint32) ([]rpcrdma.Segment, error) {
	start := len(op.segments)
	s := l.sizes(sizes)
	for {
		n, ok := s.next(len(mem))
		if !ok {
			break
		}
		if n == 0 {
			if err := l.openNothing(op, xid, access); err != nil {
				return nil, err
			}
			continue
		}
		r, err := l.register(mem[:n:n], access, l.address(op, xid, n))
		if err != nil {
			return nil, err
		}
		op.handles = append(op.handles, handle{h: r.Handle})
		op.segments = append(op.segments, rpcrdma.Segment{Handle: r.Handle, Length: uint32(n), Offset: r.Offset})
		mem = mem[n:]
	}
	return op.segments[start:len(op.segments):len(op.segments)], nil
}

// openNothing opens a segment of length zero, which a layout may ask for.
func (l *link) openNothing(op *opening, xid uint32, access verbs.Access) error {
	b, err := l.newBounce(op, 1)
	if err != nil {
		return err
	}
	r, err := l.register(b.b[:1], access, l.address(op, xid, 1))
	if err != nil {
		return err
	}
	op.handles = append(op.handles, handle{h: r.Handle})
	op.segments = append(op.segments, rpcrdma.Segment{Handle: r.Handle, Offset: r.Offset})
	return nil
}

// openWindows prepares the binding of a window for each segment. The caller posts
// the requests.
func (l *link) openWindows(op *opening, xid uint32, mem []byte, access verbs.Access, sizes []uint32) ([]rpcrdma.Segment, error) {
	start := len(op.segments)
	s := l.sizes(sizes)
	for {
		n, ok := s.next(len(mem))
		if !ok {
			break
		}
		if n == 0 {
			op.segments = append(op.segments, rpcrdma.Segment{})
			continue
		}
		h, err := l.window()
		if err != nil {
			return nil, err
		}
		at := l.address(op, xid, n)
		if at == verbs.OffsetAny {
			at = uint64(base(mem))
		}
		op.handles = append(op.handles, handle{h: h, window: true})
		op.segments = append(op.segments, rpcrdma.Segment{Handle: h, Length: uint32(n), Offset: at})
		op.sgl = append(op.sgl, mem[:n:n])
		op.binds = append(op.binds, verbs.WorkRequest{
			Op: verbs.OpBind, Access: access, Handle: h, Offset: at, Local: op.sgl[len(op.sgl)-1 : len(op.sgl) : len(op.sgl)],
		})
		mem = mem[n:]
	}
	return op.segments[start:len(op.segments):len(op.segments)], nil
}

// window returns the next handle of a free window.
func (l *link) window() (uint32, error) {
	l.regMu.Lock()
	if n := len(l.windows); n > 0 {
		h := l.windows[n-1]
		l.windows = l.windows[:n-1]
		l.regMu.Unlock()
		return verbs.NextHandle(h), nil
	}
	l.regMu.Unlock()
	h, err := l.vc.AllocWindow()
	if err != nil {
		return 0, err
	}
	return verbs.NextHandle(h), nil
}

// invalidated records that the peer has closed a handle.
func (op *opening) invalidated(h uint32) bool {
	for i := range op.handles {
		if op.handles[i].h == h {
			op.handles[i].closed = true
			return true
		}
	}
	return false
}

// closeRegions closes regions at once. It returns the requests that close windows;
// the caller posts them and waits for their completion.
func (l *link) closeRegions(op *opening) []verbs.WorkRequest {
	op.binds = op.binds[:0]
	for i := range op.handles {
		h := &op.handles[i]
		switch {
		case h.window && (h.closed || !op.bound):
			h.closed = true
			l.windowFree(h.h)
		case h.window:
			op.binds = append(op.binds, verbs.WorkRequest{Op: verbs.OpLocalInvalidate, Handle: h.h})
		case !h.closed:
			_ = l.vc.Deregister(h.h)
		}
	}
	return op.binds
}

func (l *link) windowFree(h uint32) {
	l.regMu.Lock()
	l.windows = append(l.windows, h)
	l.regMu.Unlock()
}

// windowsClosed recycles windows when the requests of closeRegions are complete.
func (l *link) windowsClosed(op *opening) {
	for i := range op.handles {
		if h := &op.handles[i]; h.window && !h.closed {
			l.windowFree(h.h)
		}
	}
}

// giveBounces returns the blocks.
func (l *link) giveBounces(op *opening) {
	for i := range op.bounces {
		x := &op.bounces[i]
		switch {
		case x.b == nil:
		case x.pooled:
			l.giveBack(x.b)
		default:
			l.mem.put(x.b)
		}
		*x = bounce{}
	}
	op.bounces = op.bounces[:0]
}
