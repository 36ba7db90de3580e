package iwarp

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// places records where RDMA data was reported.
type places struct {
	rdma.Handler
	got  []hole
	data int
	last int
}

func (p *places) OpData(_ *rdma.Connection, _ *rdma.Op, f *rdma.Fragment) {
	p.got = append(p.got, hole{f.Offset, f.Offset + uint64(f.Length)})
	p.data += len(f.Data)
	if f.Last {
		p.last++
	}
}

// TestPayload: what is reported of a tagged FPDU is what lies outside its holes, whether there are markers or not.
func TestPayload(t *testing.T) {
	const head, start = FPDUHeaderLen + TaggedLen, 10_000
	for _, c := range []struct {
		name   string
		marked bool
		holes  []hole // in the stream, from the start of the FPDU
		want   []hole // in the payload
	}{
		{"none", false, nil, []hole{{0, 2000}}},
		{"in the middle", false, []hole{{head + 100, head + 300}}, []hole{{0, 100}, {300, 2000}}},
		{"two", false, []hole{{head + 100, head + 300}, {head + 400, head + 500}}, []hole{{0, 100}, {300, 400}, {500, 2000}}},
		{"from the header on", false, []hole{{head, head + 300}}, []hole{{300, 2000}}},
		{"up to the end", false, []hole{{head + 300, head + 2004}}, []hole{{0, 300}, {2000, 2000}}},
		{"all", false, []hole{{head, head + 2008}}, []hole{{2000, 2000}}},
		{"the CRC", false, []hole{{head + 2000, head + 2004}}, []hole{{0, 2000}}},
		{"with markers", true, []hole{{head + MarkerLen + 100, head + MarkerLen + 300}}, []hole{{0, 100}, {300, 2000}}},
		{"across a marker", true, []hole{{500, 600}}, []hole{{0, 500 - head - MarkerLen}, {600 - head - 2*MarkerLen, 2000}}},
	} {
		p := &places{}
		conn := &Conn{c: &rdma.Connection{}, t: &Tracker{handler: p}}
		h := &half{conn: conn, marked: c.marked, base: start}
		for _, x := range c.holes {
			h.lacks(start+x.from, start+x.to)
		}
		first := uint64(2000)
		if len(c.holes) > 0 {
			first = c.want[0].to
			if c.want[0].from > 0 {
				first = 0
			}
		}
		conn.t.fragment = rdma.Fragment{Length: 2000, Data: make([]byte, first), Last: true}
		lost := h.payload(&rdma.Op{}, start)
		left := uint64(0)
		for _, x := range c.want {
			left += x.to - x.from
		}
		if !slices.Equal(p.got, c.want) || lost != 2000-left || p.last != 1 || uint64(p.data) != first {
			t.Errorf("%s: %v, %d lost, %d last, data of %d bytes; want %v", c.name, p.got, lost, p.last, p.data, c.want)
		}
	}
	var h half
	for i := range uint64(100) {
		h.lacks(10*i, 10*i+1)
	}
	if n := len(h.holes); n != maxHoles || h.holes[n-1] != (hole{10 * (maxHoles - 1), 991}) {
		t.Errorf("%d holes, %v", n, h.holes)
	}
}
