package monitor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/heap"
)

// Usage is what one file or one client did.
type Usage struct {
	Name string
	// Tunnel of a client is the outermost wrapping of its packets, if it tells equal addresses apart: the Tenant of its connections
	// is not 0. Each of these clients has a Usage of its own.
	Tunnel *rdma.Tunnel
	Shared bool  // another client in the list has the same address, in another network
	Tally        // of all its transactions
	Now    Tally // of the latest complete interval
	Last   int64 // time of the latest transaction, ns since 1970
}

// usages are the files or clients seen. If there are too many, those idle longest are dropped and counted
// together.
type usages struct {
	by   map[string]*use
	all  []*use // the same: a map has another order each time
	gone use
	lost uint64 // dropped
	time int64  // of all, dropped ones included
}

type use struct {
	Usage
	key string // the name, and what tells equal names apart
	cur Tally  // of the current interval, which is not in the total yet
}

// add counts a transaction. key begins with the name, which has the given length.
func (u *usages) add(key []byte, name int, tunnel *rdma.Tunnel, failed bool, bytes, data uint64, ns, now int64) {
	x := u.by[string(key)]
	if x == nil {
		if u.by == nil {
			u.by = make(map[string]*use)
		}
		if len(u.by) >= maxUsage {
			u.forget()
		}
		x = &use{key: string(key)}
		x.Name, x.Tunnel = x.key[:name], tunnel
		u.by[x.key] = x
		u.all = append(u.all, x)
	}
	x.cur.one(failed, bytes, data, ns)
	x.Last = now
	u.time += max(ns, 0)
}

// roll ends an interval.
func (u *usages) roll() {
	for _, x := range u.all {
		x.Tally.merge(&x.cur)
		x.Now, x.cur = x.cur, Tally{}
	}
}

// forget drops a quarter of the entries.
func (u *usages) forget() {
	slices.SortFunc(u.all, func(a, b *use) int {
		if a.Last != b.Last {
			return int(max(min(a.Last-b.Last, 1), -1))
		}
		return strings.Compare(a.key, b.key)
	})
	drop := len(u.all) / 4
	for _, x := range u.all[:drop] {
		u.gone.Tally.merge(&x.Tally)
		u.gone.Tally.merge(&x.cur)
		u.lost++
		delete(u.by, x.key)
	}
	u.all = slices.Delete(u.all, 0, drop)
}

// measures are the values that a table of files or clients may be sorted by.
var measures = [...]func(*use) int64{
	func(x *use) int64 { return int64(x.Count + x.cur.Count) },
	func(x *use) int64 { return int64(x.Bytes + x.cur.Bytes) },
	func(x *use) int64 { return x.Time + x.cur.Time },
	func(x *use) int64 { return int64(x.Now.Count) },
	func(x *use) int64 { return int64(x.Now.Bytes) },
	func(x *use) int64 { return x.Now.Time },
}

// list returns the entries with the largest values by any of the measures, at most n, and how many others
// there are.
func (u *usages) list(n int) (out []Usage, rest int) {
	if len(u.all) <= n {
		return listed(slices.Clone(u.all)), 0
	}
	keep := make(map[*use]bool)
	for _, m := range measures {
		for _, x := range u.most(n/len(measures), m) {
			keep[x.use] = true
		}
	}
	list := make([]*use, 0, len(keep))
	for _, x := range u.all {
		if keep[x] {
			list = append(list, x)
		}
	}
	return listed(list), len(u.all) - len(list)
}

// active is how many entries the latest interval has transactions of.
func (u *usages) active() (n int) {
	for _, x := range u.all {
		if x.Now.Count > 0 {
			n++
		}
	}
	return n
}

// listed are the totals of entries, the longest time first.
func listed(list []*use) (out []Usage) {
	slices.SortFunc(list, func(a, b *use) int {
		return cmp.Or(cmp.Compare(b.Time+b.cur.Time, a.Time+a.cur.Time), strings.Compare(a.key, b.key))
	})
	same := make(map[string]int)
	for _, x := range list {
		same[x.Name]++
	}
	for _, x := range list {
		y := x.total()
		y.Shared = same[x.Name] > 1
		out = append(out, y)
	}
	return out
}

func (x *use) total() Usage {
	y := x.Usage
	y.Tally.merge(&x.cur)
	return y
}

// measured is an entry with its value.
type measured struct {
	*use
	value int64
}

// less orders by value; with equal values, the later name comes first.
func (a measured) less(b measured) bool {
	return a.value < b.value || a.value == b.value && a.key > b.key
}

// most finds the n largest values: a heap with the smallest of them on top.
func (u *usages) most(n int, measure func(*use) int64) []measured {
	h := make([]measured, 0, n)
	for _, x := range u.all {
		e := measured{x, measure(x)}
		if len(h) < n {
			h = heap.Push(h, e, measured.less)
			continue
		}
		if h[0].less(e) {
			h[0] = e
			heap.Fix(h, measured.less)
		}
	}
	return h
}
