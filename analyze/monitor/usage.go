package monitor

import (
	"slices"
	"strings"
)

// Usage is what one file or one client did.
type Usage struct {
	Name   string
	Count  uint64 // transactions
	Errors uint64
	Bytes  uint64 // of RPC messages
	Time   int64  // sum of latencies in ns
	// The same in the latest interval that is complete.
	NowCount, NowErrors, NowBytes uint64
	NowTime                       int64
	Last                          int64 // time of the latest transaction, ns since 1970
}

// usages are the files or clients seen. When there are too many, those that
// were idle longest are forgotten and counted together.
type usages struct {
	by   map[string]*use
	gone use
	lost uint64 // forgotten
}

type use struct {
	Usage
	count, errors, bytes uint64 // of the interval under way
	time                 int64
}

func (u *usages) add(name []byte, failed bool, bytes uint64, ns, now int64) {
	x := u.by[string(name)]
	if x == nil {
		if u.by == nil {
			u.by = make(map[string]*use)
		}
		if len(u.by) >= maxUsage {
			u.forget()
		}
		x = &use{}
		x.Name = string(name)
		u.by[x.Name] = x
	}
	x.count++
	if failed {
		x.errors++
	}
	x.bytes += bytes
	x.time += max(ns, 0)
	x.Last = now
}

// roll ends an interval.
func (u *usages) roll() {
	for _, x := range u.by {
		x.roll()
	}
}

func (x *use) roll() {
	x.NowCount, x.NowErrors, x.NowBytes, x.NowTime = x.count, x.errors, x.bytes, x.time
	x.settle()
}

// settle moves what the interval under way has counted to the totals.
func (x *use) settle() {
	x.Count += x.count
	x.Errors += x.errors
	x.Bytes += x.bytes
	x.Time += x.time
	x.count, x.errors, x.bytes, x.time = 0, 0, 0, 0
}

// forget drops a quarter of the entries.
func (u *usages) forget() {
	all := make([]*use, 0, len(u.by))
	for _, x := range u.by {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *use) int {
		if a.Last != b.Last {
			return int(max(min(a.Last-b.Last, 1), -1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, x := range all[:len(all)/4] {
		x.settle()
		u.gone.Count += x.Count
		u.gone.Errors += x.Errors
		u.gone.Bytes += x.Bytes
		u.gone.Time += x.Time
		u.lost++
		delete(u.by, x.Name)
	}
}

// list returns the n that did most, in totals, by any of the three measures,
// and how many there are besides.
func (u *usages) list(n int) (out []Usage, rest int) {
	all := make([]Usage, 0, len(u.by))
	for _, x := range u.by {
		y := x.Usage
		y.Count += x.count
		y.Errors += x.errors
		y.Bytes += x.bytes
		y.Time += x.time
		all = append(all, y)
	}
	if len(all) <= n {
		sortUsage(all)
		return all, 0
	}
	keep := make(map[string]bool)
	for _, by := range []func(a *Usage) int64{
		func(a *Usage) int64 { return int64(a.Count) },
		func(a *Usage) int64 { return int64(a.Bytes) },
		func(a *Usage) int64 { return a.Time },
		func(a *Usage) int64 { return int64(a.NowCount) },
		func(a *Usage) int64 { return int64(a.NowBytes) },
		func(a *Usage) int64 { return a.NowTime },
	} {
		slices.SortFunc(all, func(a, b Usage) int {
			if x, y := by(&a), by(&b); x != y {
				return int(max(min(y-x, 1), -1))
			}
			return strings.Compare(a.Name, b.Name)
		})
		for i := range all[:n/6] {
			keep[all[i].Name] = true
		}
	}
	for i := range all {
		if keep[all[i].Name] {
			out = append(out, all[i])
		}
	}
	sortUsage(out)
	return out, len(all) - len(out)
}

func sortUsage(list []Usage) {
	slices.SortFunc(list, func(a, b Usage) int {
		if a.Time != b.Time {
			return int(max(min(b.Time-a.Time, 1), -1))
		}
		return strings.Compare(a.Name, b.Name)
	})
}
