package iwarp

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestMisplaced has Sends whose segments do not continue each other, in packets of their own from number 5 on. What they claim of the size of the
// Send is not believed, and they are counted, unless the capture may lack what is between.
func TestMisplaced(t *testing.T) {
	type part struct {
		msn, mo, size int
		last, lost    bool // lost: the capture lacks it
	}
	for _, c := range []struct {
		name  string
		parts []part
		count uint64
		bytes uint64
		first uint64
		sends [][2]int // captured bytes, and length
	}{
		{"in order", []part{{1, 0, 60, false, false}, {1, 60, 40, true, false}, {2, 0, 9, true, false}}, 0, 0, 0, [][2]int{{100, 100}, {9, 9}}},
		{"far beyond", []part{{1, 0, 60, false, false}, {1, 0x7fffff00, 40, true, false}, {2, 0, 9, true, false}}, 1, 40, 6, [][2]int{{60, 61}, {9, 9}}},
		{"one byte beyond", []part{{1, 0, 60, false, false}, {1, 61, 40, true, false}}, 1, 40, 6, [][2]int{{60, 61}}},
		{"overlap", []part{{1, 0, 60, false, false}, {1, 40, 60, true, false}}, 1, 60, 6, [][2]int{{60, 61}}},
		{"two of them", []part{{1, 0, 60, false, false}, {1, 40, 60, false, false}, {1, 20, 7, true, false}}, 2, 67, 6, [][2]int{{60, 61}}},
		{"on from there", []part{{1, 0, 60, false, false}, {1, 200, 60, false, false}, {1, 61, 7, true, false}}, 1, 60, 6, [][2]int{{60, 68}}},
		{"the end first", []part{{1, 60, 40, true, false}, {1, 0, 60, false, false}, {2, 0, 9, true, false}}, 2, 40, 5, [][2]int{{60, 61}, {9, 9}}},
		{"no end", []part{{1, 0, 60, false, false}, {2, 0, 9, true, false}}, 1, 0, 6, [][2]int{{60, 61}, {9, 9}}},
		{"the middle is lost", []part{{1, 0, 60, false, false}, {1, 60, 30, false, true}, {1, 90, 10, true, false}}, 0, 0, 0, [][2]int{{60, 100}}},
		{"more than was lost", []part{{1, 0, 60, false, false}, {1, 60, 30, false, true}, {1, 900, 10, true, false}}, 1, 10, 7, [][2]int{{60, 61}}},
		{"the beginning is lost", []part{{1, 0, 60, false, true}, {1, 60, 40, false, false}, {1, 100, 40, true, false}, {2, 0, 9, true, false}}, 0, 0, 0, [][2]int{{9, 9}}},
		{"the end is lost", []part{{1, 0, 60, false, false}, {1, 60, 40, true, true}, {2, 0, 9, true, false}}, 0, 0, 0, [][2]int{{60, 61}, {9, 9}}},
		{
			"the rest of another one", []part{{1, 0, 60, false, true}, {1, 60, 40, false, false}, {2, 100, 40, true, false}, {2, 100, 40, true, false}},
			2, 80, 7, nil,
		},
	} {
		p := plainPair()
		a := p.peers[0]
		for _, x := range c.parts {
			u := AppendUntagged(nil, NewControl(OpSend, x.last), 0, uint32(x.msn), uint32(x.mo))
			a.ulpdu(append(u, make([]byte, x.size)...))
			if x.lost {
				p.at[0] = len(a.stream)
				p.w.n++
				continue
			}
			p.flush(0)
		}
		p.w.acked[1] = uint32(len(a.stream))
		p.w.segment(1, 0, p.at[1], nil)
		p.c.Close("", rdma.Ref{})
		g := p.c.t.Misframed
		if g.Count != c.count || g.Bytes != c.bytes || g.First != c.first {
			t.Errorf("%s: %+v, want %d, %d bytes from packet %d", c.name, g, c.count, c.bytes, c.first)
		}
		var sends [][2]int
		for _, s := range p.sends {
			sends = append(sends, [2]int{len(s.data), s.length})
		}
		if !slices.Equal(sends, c.sends) {
			t.Errorf("%s: %v, want %v", c.name, sends, c.sends)
		}
	}
}
