package iwarp

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// sends plays a connection that was set up, with a Send in each segment. The lengths of those in wrong are
// changed. It returns what was reported of Sends, and the tracker.
func sends(t *testing.T, crc, markers bool, n, size int, wrong map[int]uint16) (*sendCounter, *Tracker) {
	t.Helper()
	rec := &sendCounter{recorder: *newRecorder()}
	rec.quiet = true
	tr := NewTracker(rec, Options{})
	w := &wire{c: tr.New(connection()), isn: [2]uint32{100, 200}}
	w.segment(0, tcp.SYN, 0, nil)
	w.segment(1, tcp.SYN, 0, nil)
	a, b := newPeer(crc, markers, 1442), newPeer(crc, false, 1442)
	a.mpa(&MPAFrame{Revision: 1, CRC: crc})
	b.mpa(&MPAFrame{Reply: true, Revision: 1, CRC: crc, Markers: markers})
	w.segment(0, 0, 0, a.stream)
	w.acked[1] = uint32(len(a.stream))
	w.segment(1, 0, 0, b.stream)
	for i := range n {
		from := len(a.stream)
		a.untagged(OpSend, 0, make([]byte, size))
		p := append([]byte(nil), a.stream[from:]...)
		if l, ok := wrong[i]; ok {
			at := 0
			if markers && (from-a.base)%MarkerInterval == 0 {
				at = MarkerLen
			}
			binary.BigEndian.PutUint16(p[at:], l)
		}
		w.segment(0, 0, from, p)
	}
	w.c.Close("", rdma.Ref{Number: w.n + 1})
	return rec, tr
}

type sendCounter struct {
	recorder
	whole, cut int
}

func (c *sendCounter) Send(_ *rdma.Connection, s *rdma.Send) rdma.Tag {
	if len(s.Data) == s.Length {
		c.whole++
	} else {
		c.cut++
	}
	return rdma.Tag{}
}

// TestWrongLengthMarked: with markers, a length that is too large costs the FPDUs that the first two markers after it
// stand in at most, and all is counted. The small ones are noticed at their end.
func TestWrongLengthMarked(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, length := range []uint16{60, 400, 1000, 8000, 0xf000, 0xffff} {
			for at := range 8 {
				rec, tr := sends(t, crc, true, 40, 200, map[int]uint16{at: length})
				g := tr.Misframed
				if lost := 40 - rec.whole; lost > 9 || rec.cut != 0 || g.Count != 1 || g.First < uint64(at+5) || g.First > uint64(at+9) || g.Bytes == 0 || g.Bytes > 9*232 {
					t.Errorf("crc %v, length %d at %d: %d Sends, %d cut, %+v", crc, length, at, rec.whole, rec.cut, g)
				}
			}
		}
		if rec, tr := sends(t, crc, true, 40, 200, nil); rec.whole != 40 || tr.Misframed.Count != 0 {
			t.Errorf("crc %v, nothing wrong: %d Sends, %+v", crc, rec.whole, tr.Misframed)
		}
	}
}

// TestWrongLength: one wrong length costs one FPDU, which is counted.
func TestWrongLength(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, length := range []uint16{60, 400, 1000, 8000, 0xf000, 0xffff} {
			for _, at := range []int{1, 5, 18} {
				rec, tr := sends(t, crc, false, 20, 200, map[int]uint16{at: length})
				g := tr.Misframed
				if length == 60 && !crc { // it is followed by no FPDU, but which of the two is wrong cannot be told
					if rec.whole != 20 || g.Count != 1 {
						t.Errorf("length %d at %d: %d Sends, %+v", length, at, rec.whole, g)
					}
					continue
				}
				if rec.whole != 19 || rec.cut != 0 || g.Count != 1 || g.Bytes != 224 || g.First != uint64(at+5) {
					t.Errorf("crc %v, length %d at %d: %d Sends, %d cut, %+v", crc, length, at, rec.whole, rec.cut, g)
				}
			}
		}
		if rec, tr := sends(t, crc, false, 20, 200, nil); rec.whole != 20 || tr.Misframed.Count != 0 {
			t.Errorf("crc %v, nothing wrong: %d Sends, %+v", crc, rec.whole, tr.Misframed)
		}
	}
}
