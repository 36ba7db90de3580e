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

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.lag, b.lag), cmp.Compare(a.xid, b.xid))
}

// appendTable appends entries, which it sorts: for each lag the number of its XIDs and the differences between them.
func appendTable(b []byte, list []entry) []byte {
	slices.SortFunc(list, compareEntries)
	for len(list) > 0 {
		lag := list[0].lag
		n := 1
		for n < len(list) && list[n].lag == lag {
			n++
		}
		b = binary.AppendUvarint(b, uint64(lag))
		b = binary.AppendUvarint(b, uint64(n))
		last := uint32(0)
		for _, e := range list[:n] {
			b = binary.AppendUvarint(b, uint64(e.xid-last))
			last = e.xid
		}
		list = list[n:]
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
