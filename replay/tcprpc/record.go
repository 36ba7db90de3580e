package tcprpc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"sync"
)

const (
	markSize     = 4
	lastFragment = 0x80000000
	minClass     = 9 // 512 bytes
	maxFragments = 4096
)

// record is a message that was received, in memory that is used again.
type record struct {
	b     []byte
	class int
}

// pools hold records by the power of two of their size.
var pools [32]sync.Pool

func newRecord(n int) *record {
	class := max(bits.Len(uint(max(n, 1)-1)), minClass)
	if class < len(pools) {
		if r, _ := pools[class].Get().(*record); r != nil {
			r.b = r.b[:n]
			return r
		}
	}
	return &record{b: make([]byte, n, 1<<class), class: class}
}

func (r *record) free() {
	if r != nil && r.class < len(pools) {
		pools[r.class].Put(r)
	}
}

// readRecord reads one record of at most limit bytes.
func readRecord(br *bufio.Reader, limit int) (*record, error) {
	var rec *record
	for range maxFragments {
		mark, err := br.Peek(markSize)
		if err != nil {
			rec.free()
			if rec != nil && err == io.EOF {
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
			return nil, fmt.Errorf("tcprpc: a record of more than %d bytes", limit)
		}
		if rec == nil {
			rec = newRecord(n)
		} else if at+n <= cap(rec.b) {
			rec.b = rec.b[:at+n]
		} else {
			longer := newRecord(at + n)
			copy(longer.b, rec.b)
			rec.free()
			rec = longer
		}
		if _, err := io.ReadFull(br, rec.b[at:]); err != nil {
			rec.free()
			return nil, err
		}
		if last {
			return rec, nil
		}
	}
	rec.free()
	return nil, fmt.Errorf("tcprpc: a record of more than %d fragments", maxFragments)
}
