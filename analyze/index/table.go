package index

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// entry is a transaction that was emitted in a segment.
type entry struct {
	xid uint32
	lag uint32 // segments between the one with its first packet and this one
}

// entries are what was emitted in a segment. Nearly all has begun there, too, and is kept by itself.
type entries struct {
	here []uint32 // XIDs with lag 0
	old  []entry
}

func (l *entries) add(e entry) {
	if e.lag == 0 {
		l.here = append(l.here, e.xid)
	} else {
		l.old = append(l.old, e)
	}
}

func (l *entries) reset() { l.here, l.old = l.here[:0], l.old[:0] }

// append appends a table, and sorts the entries: for each lag the number of its XIDs and the differences between them.
func (l *entries) append(b []byte) []byte {
	slices.Sort(l.here)
	if len(l.here) > 0 {
		b = appendXIDs(b, 0, l.here)
	}
	slices.SortFunc(l.old, func(a, b entry) int { return cmp.Or(cmp.Compare(a.lag, b.lag), cmp.Compare(a.xid, b.xid)) })
	for old := l.old; len(old) > 0; {
		lag := old[0].lag
		l.here = l.here[:0]
		for len(old) > 0 && old[0].lag == lag {
			l.here = append(l.here, old[0].xid)
			old = old[1:]
		}
		b = appendXIDs(b, lag, l.here)
	}
	return b
}

func appendXIDs(b []byte, lag uint32, xids []uint32) []byte {
	b = binary.AppendUvarint(b, uint64(lag))
	b = binary.AppendUvarint(b, uint64(len(xids)))
	last := uint32(0)
	for _, x := range xids {
		b = binary.AppendUvarint(b, uint64(x-last))
		last = x
	}
	return b
}

var errTable = errors.New("its list of XIDs is damaged")

// find calls found for each entry with one of the XIDs, which are sorted.
func find(table []byte, xids []uint32, found func(entry)) error {
	number := func() (uint64, bool) {
		if len(table) > 0 && table[0] < 0x80 { // nearly all of them
			v := uint64(table[0])
			table = table[1:]
			return v, true
		}
		v, n := binary.Uvarint(table)
		if n <= 0 {
			return 0, false
		}
		table = table[n:]
		return v, true
	}
	for len(table) > 0 {
		lag, ok1 := number()
		n, ok2 := number()
		if !ok1 || !ok2 || lag > 1<<31 || n > uint64(len(table)) {
			return errTable
		}
		want := xids
		at := uint64(0)
		for range n {
			d, ok := number()
			if at += d; !ok || d > 1<<32-1 || at > 1<<32-1 {
				return errTable
			}
			for len(want) > 0 && uint64(want[0]) < at {
				want = want[1:]
			}
			if len(want) > 0 && uint64(want[0]) == at {
				found(entry{uint32(at), uint32(lag)})
			}
		}
	}
	return nil
}
