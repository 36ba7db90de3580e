package tcprpc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"sync"

	"github.com/rpcrdma/toolkit/replay/transport/budget"
)

const (
	markSize     = 4
	lastFragment = 0x80000000
	minClass     = 9 // 512 bytes
	maxFragments = 4096
	// firstPiece is how much memory a record gets on the word of its record mark.
	// The rest is allocated as bytes arrive, unless memory is plentiful.
	firstPiece = 64 << 10
)

// record is a received message, in memory that is recycled.
type record struct {
	b     []byte
	class int
	acct  *budget.Account // which the memory is charged to
}

// pools holds free records, indexed by the power of two of their size.
var pools [32]sync.Pool

func newRecord(n int, acct *budget.Account) *record {
	class := max(bits.Len(uint(max(n, 1)-1)), minClass)
	var r *record
	if class < len(pools) {
		if r, _ = pools[class].Get().(*record); r != nil {
			r.b = r.b[:n]
		}
	}
	if r == nil {
		r = &record{b: make([]byte, n, 1<<class), class: class}
	}
	r.acct = acct
	acct.Add(int64(cap(r.b)))
	return r
}

func (r *record) free() {
	if r == nil {
		return
	}
	r.acct.Add(-int64(cap(r.b)))
	plenty := r.acct.Room()
	r.acct = nil
	if r.class < len(pools) && (plenty || cap(r.b) <= firstPiece) {
		pools[r.class].Put(r)
	}
}

// longer returns a record of n bytes that begins with the bytes of r, and frees r.
func (r *record) longer(n int) *record {
	l := newRecord(n, r.acct)
	copy(l.b, r.b)
	r.free()
	return l
}

// readRecord reads one record of at most limit bytes. The clock runs from its first
// byte to its last. wait is called before an incomplete record gets more memory.
func readRecord(br *bufio.Reader, limit int, acct *budget.Account, clock *budget.Clock, wait func(n int)) (*record, error) {
	if _, err := br.Peek(1); err != nil {
		return nil, err
	}
	clock.Start()
	defer clock.Stop()
	var rec *record
	for range maxFragments {
		mark, err := br.Peek(markSize)
		if err != nil {
			rec.free()
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		word := binary.BigEndian.Uint32(mark)
		_, _ = br.Discard(markSize)
		n, last := int(word&^lastFragment), word&lastFragment != 0
		at := 0
		if rec != nil {
			at = len(rec.b)
		}
		if n > limit-at {
			rec.free()
			return nil, fmt.Errorf("tcprpc: record exceeds %d bytes", limit)
		}
		for end := at + n; ; {
			next := end
			if end-at > firstPiece && !acct.Fits(end) {
				next = max(2*at, firstPiece)
				next = min(next, end)
				if rec != nil {
					wait(next)
				}
			}
			switch {
			case rec == nil:
				rec = newRecord(next, acct)
			case next <= cap(rec.b):
				rec.b = rec.b[:next]
			default:
				rec = rec.longer(next)
			}
			if _, err := io.ReadFull(br, rec.b[at:]); err != nil {
				rec.free()
				return nil, err
			}
			if at = next; at == end {
				break
			}
		}
		if last {
			return rec, nil
		}
	}
	rec.free()
	return nil, fmt.Errorf("tcprpc: record exceeds %d fragments", maxFragments)
}
