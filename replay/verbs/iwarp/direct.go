package iwarp

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// directly reports whether segments may be placed before they are complete.
func (x *receiver) directly() bool {
	c := x.c
	return c.s.raw != nil && !c.crc && !c.markers && c.s.flow == nil
}

// direct reads the rest of a large tagged segment, whose header has been read, directly
// into memory. It reports false if there is no such segment.
func (x *receiver) direct() (*failure, bool) {
	const start = iwarp.FPDUHeaderLen + iwarp.TaggedLen
	b := x.buf[x.r:x.w]
	if len(b) < start || !x.directly() {
		return nil, false
	}
	length := int(binary.BigEndian.Uint16(b))
	u := iwarp.ULPDU(b[iwarp.FPDUHeaderLen:])
	if length < iwarp.TaggedLen || !u.Control().Tagged() || iwarp.FPDULen(length)-len(b) < directMin {
		return nil, false
	}
	copy(x.head[:], u)
	if f := x.header(x.head[:], length); f != nil {
		return f, true
	}
	x.start()
	x.bulk = true
	h := iwarp.Tagged(x.head[:])
	x.size, x.off = length-iwarp.TaggedLen, 0
	if h.Control().Opcode() == iwarp.OpReadResponse {
		if f := x.response(h, x.size); f != nil {
			return f, true
		}
	}
	have := b[start:]
	if f := x.place(func(vecs [][]byte) { copyTo(vecs, have) }); f != nil {
		return f, true
	}
	x.off = len(have)
	x.r, x.w = 0, 0
	for x.off < x.size {
		err := x.read(x.readOnce)
		if x.failed != nil {
			return x.failed, true
		}
		if err != nil {
			return x.cut(err), true
		}
		n := min(x.n, x.size-x.off)
		x.off += n
		x.w += x.n - n
	}
	tail := -(iwarp.FPDUHeaderLen+length)&3 + iwarp.CRCLen
	for x.w < tail {
		if err := x.fill(); err != nil {
			return x.cut(err), true
		}
	}
	x.r += tail
	if h.Control().Opcode() == iwarp.OpReadResponse {
		return x.responded(h, x.size), true
	}
	return nil, true
}

// cut is the error for the end of the stream within a segment.
func (x *receiver) cut(err error) *failure {
	x.message = true
	return x.ended(err)
}

// place calls f with the memory for the rest of the segment, which stays open
// meanwhile.
func (x *receiver) place(f func([][]byte)) *failure {
	h := iwarp.Tagged(x.head[:])
	if h.Control().Opcode() == iwarp.OpReadResponse {
		f(x.sink(x.off, x.size))
		return nil
	}
	t := &x.c.regions
	t.mu.Lock()
	defer t.mu.Unlock()
	r, at, why := t.find(h.STag(), h.TO(), x.size, verbs.RemoteWrite)
	if why != allowed {
		return writeFailure(why, offenderOf(x.head[:]))
	}
	x.vecs = append(x.vecs[:0], r.mem[at+x.off:at+x.size])
	f(x.vecs)
	return nil
}

// tryDirect reads what is available. It reports false if there is nothing and it should wait.
func (x *receiver) tryDirect(fd uintptr) bool {
	done := true
	x.again, x.err, x.n = false, nil, 0
	x.failed = x.place(func(vecs [][]byte) {
		vecs = append(vecs, x.buf[x.w:x.w+spill])
		x.vecs = vecs
		done = x.took(x.c.s.raw.readv(fd, vecs))
	})
	return done
}
