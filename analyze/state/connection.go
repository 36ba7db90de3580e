package state

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Seen is what a tap saw of a connection, as far as it takes to recognise the connection at another tap. Clocks of
// taps differ, a capture may begin in the middle, and packets may be missing. So times are used only to tell apart
// connections that have the same ends one after the other.
type Seen struct {
	Fabric rdma.Fabric
	Tenant uint64 // of the tunnel; 0 without one
	// Ends are in ascending order.
	Ends [2]rdma.End
	// First and Last are the times of its first and last packet in nanoseconds since 1970.
	First, Last int64
	// Start is a hash of the starting PSNs that both ends announced; 0 if they are not known.
	Start uint64
	Calls Calls
}

// NewSeen describes a connection; calls are those seen on it.
func NewSeen(c *rdma.Connection, calls Calls) Seen {
	s := Seen{Fabric: c.Fabric, Tenant: c.Tenant, Ends: c.Ends, First: c.First.Time, Last: c.Last.Time, Calls: calls}
	s.Last = max(s.Last, s.First) // the clock may have been set back in between
	for i := range s.Ends {
		if s.Ends[i].QPN != 0 {
			s.Ends[i].Port = 0 // known only to who saw the setup
		}
	}
	a, b := 0, 1
	if compareEnds(s.Ends[1], s.Ends[0]) < 0 {
		a, b = 1, 0
		s.Ends[0], s.Ends[1] = s.Ends[1], s.Ends[0]
	}
	if x, y := &c.Setup[a], &c.Setup[b]; c.Fabric != rdma.IWARP && x.Seen() && y.Seen() {
		s.Start = mix(uint64(x.StartPSN)<<32|uint64(y.StartPSN)) | 1
	}
	return s
}

func compareEnds(a, b rdma.End) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.QPN, b.QPN), cmp.Compare(a.Port, b.Port))
}

// Connection is the connection as far as its key goes: see rpc.AppendConnectionKey.
func (s *Seen) Connection() *rdma.Connection {
	return &rdma.Connection{Fabric: s.Fabric, Ends: s.Ends, First: rdma.Ref{Time: s.First}}
}

// Code codes s.
func (s *Seen) Code(c *Coder) {
	s.codeName(c)
	Signed(c, &s.First)
	Signed(c, &s.Last)
	Number(c, &s.Start)
	s.Calls.code(c)
	if c.Reading() && (compareEnds(s.Ends[0], s.Ends[1]) > 0 || s.Last < s.First) {
		c.Fail("a connection has its ends or its times in the wrong order")
	}
}

// codeName codes what must be equal at all taps.
func (s *Seen) codeName(c *Coder) {
	Enum(c, &s.Fabric, rdma.Fabrics)
	Number(c, &s.Tenant)
	for i := range s.Ends {
		c.Address(&s.Ends[i].Addr)
		Number(c, &s.Ends[i].Port)
		Number(c, &s.Ends[i].QPN)
	}
}

// Compare orders connections by start, then by ends and by everything else.
func (s *Seen) Compare(o *Seen) int {
	if d := cmp.Or(cmp.Compare(s.First, o.First), s.compareName(o), cmp.Compare(s.Last, o.Last), cmp.Compare(s.Start, o.Start)); d != 0 {
		return d
	}
	return slices.Compare(s.Calls.least, o.Calls.least)
}

func (s *Seen) compareName(o *Seen) int {
	return cmp.Or(cmp.Compare(s.Fabric, o.Fabric), cmp.Compare(s.Tenant, o.Tenant), compareEnds(s.Ends[0], o.Ends[0]), compareEnds(s.Ends[1], o.Ends[1]))
}

// tolerance is how far apart two taps may see the same connection, in nanoseconds: what clocks differ by where nobody
// has lost sight of them. Connections with the same ends whose times are further apart are two.
const tolerance = int64(10 * time.Minute)

// same reports whether two taps saw the same connection; the ends are known to be equal.
func (s *Seen) same(o *Seen) bool {
	if apart(s.Last, o.First) || apart(o.Last, s.First) {
		return false
	}
	switch {
	case len(s.Calls.least) > 0 && len(o.Calls.least) > 0:
		return s.Calls.share(&o.Calls)
	case s.Start != 0 && o.Start != 0:
		return s.Start == o.Start
	}
	// One of them carried no call, and nothing else tells: as long as their times overlap.
	return s.First <= o.Last && o.First <= s.Last
}

// apart reports whether a time is later than another by more than clocks differ.
func apart(before, after int64) bool {
	return after > before && uint64(after)-uint64(before) > uint64(tolerance)
}

// sketch is how many calls are remembered of a connection.
const sketch = 64

// Calls remembers calls of a connection: of all that were added, the 64 whose hashes are least. Two taps that saw
// the same calls remember the same, whatever the order and whatever else they saw; of two that share a part of the
// calls, the memories share about that part. (This is a bottom-k sketch: Broder, On the resemblance and containment
// of documents, 1997.) The zero value is empty.
type Calls struct{ least []uint64 }

// Add adds a call. It does not allocate once 64 calls were added.
func (c *Calls) Add(backward bool, xid uint32) {
	v := uint64(xid)
	if backward {
		v |= 1 << 32
	}
	v = mix(v)
	n := len(c.least)
	if n == sketch && v >= c.least[n-1] {
		return
	}
	i, found := slices.BinarySearch(c.least, v)
	switch {
	case found:
		return
	case n == sketch:
		copy(c.least[i+1:], c.least[i:n-1])
		c.least[i] = v
	default:
		if c.least == nil {
			c.least = make([]uint64, 0, sketch)
		}
		c.least = slices.Insert(c.least, i, v)
	}
}

// Any reports whether a call was added.
func (c *Calls) Any() bool { return len(c.least) > 0 }

// Merge adds the calls that o remembers.
func (c *Calls) Merge(o *Calls) {
	all := slices.Concat(c.least, o.least)
	slices.Sort(all)
	all = slices.Compact(all)
	c.least = all[:min(len(all), sketch):min(len(all), sketch)]
}

// share reports whether there is a call that both remember.
func (c *Calls) share(o *Calls) bool {
	for i, j := 0, 0; i < len(c.least) && j < len(o.least); {
		switch d := cmp.Compare(c.least[i], o.least[j]); {
		case d == 0:
			return true
		case d < 0:
			i++
		default:
			j++
		}
	}
	return false
}

func (c *Calls) code(k *Coder) {
	n := len(c.least)
	k.Count(&n, 8, sketch)
	if !k.reading {
		for _, v := range c.least {
			k.b = binary.LittleEndian.AppendUint64(k.b, v)
		}
		return
	}
	c.least = nil
	for i := range n {
		v := binary.LittleEndian.Uint64(k.b)
		k.b = k.b[8:]
		if i > 0 && c.least[i-1] >= v {
			k.Fail("calls are not in order")
			c.least = nil
			return
		}
		c.least = append(c.least, v)
	}
}

// mix is a permutation of 64-bit numbers that spreads them (the finaliser of SplitMix64).
func mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// Groups finds out which of the list are the same connection. The result has the places in the list of each
// connection, in ascending order of Compare; connections are in the order of their first places. It does not depend
// on the order of the list, except for places that are equal by Compare.
func Groups(list []*Seen) [][]int {
	parent := make([]int, len(list))
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	equal(list, func(order []int) {
		join(list, order, func(a, b int) { parent[find(b)] = find(a) })
	})
	groups := make(map[int][]int)
	for i := range list {
		groups[find(i)] = append(groups[find(i)], i)
	}
	out := make([][]int, 0, len(groups))
	for _, g := range groups {
		sort.SliceStable(g, func(a, b int) bool { return list[g[a]].Compare(list[g[b]]) < 0 })
		out = append(out, g)
	}
	sort.Slice(out, func(a, b int) bool {
		return cmp.Or(list[out[a][0]].Compare(list[out[b][0]]), cmp.Compare(out[a][0], out[b][0])) < 0
	})
	return out
}

// equal calls f with the places of those that have the same ends, ordered by start.
func equal(list []*Seen, f func(order []int)) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		x, y := list[order[a]], list[order[b]]
		return cmp.Or(x.compareName(y), x.Compare(y)) < 0
	})
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && list[order[from]].compareName(list[order[to]]) == 0 {
			to++
		}
		f(order[from:to])
		from = to
	}
}

// nearby is how many of the following ones a connection is compared with, among those with the same ends. It bounds
// the time that a list takes whose author chose all times and ends.
const nearby = 256

// join joins those that are the same connection; all have the same ends, and are ordered by start.
func join(list []*Seen, order []int, same func(a, b int)) {
	for i := range order {
		x := list[order[i]]
		for j := i + 1; j < min(len(order), i+1+nearby); j++ {
			y := list[order[j]]
			if apart(x.Last, y.First) {
				break // so are all that follow
			}
			if x.same(y) {
				same(order[i], order[j])
			}
		}
	}
}
