package expected

import "sort"

// fill is what a range of a file must hold after the calls executed on this server.
type fill struct {
	kind fillKind
	// object and shift identify the pattern, if kind is written: the byte at x is the one at
	// x+shift in the pattern of object. They differ from those of the file where bytes were
	// copied. If kind is stored, it is the byte at x+shift in the side file.
	object int
	shift  uint64
	// read says that a READ has returned these bytes correctly.
	read bool
}

// mine reports whether the replay, or the preparation, wrote the bytes of a fill.
func (f *fill) mine() bool { return f.kind == written || f.kind == stored }

type fillKind uint8

const (
	// unknown was neither written nor emptied by this run: it may be a hole, or hold earlier
	// content.
	unknown fillKind = iota
	// written holds a pattern from a WRITE or the preparation.
	written
	// stored holds bytes of the plan's side file.
	stored
	// empty reads as zeros: a hole.
	empty
	// anything was changed in a way that is not followed.
	anything
)

// fills are the ranges of one file whose content is known, in order, without overlaps.
type fills []filled

type filled struct {
	from, to uint64
	fill
}

// maxFills bounds them. Further ranges are unknown.
const maxFills = 4096

// forever is the end of an unbounded range.
const forever = 1<<64 - 1

// set sets the content of a range.
func (f *fills) set(from, to uint64, with fill) {
	if from >= to {
		return
	}
	l := *f
	// Ranges that touch this one are inserted again, so that neighbours with the same content are
	// joined.
	i := sort.Search(len(l), func(i int) bool { return l[i].to >= from })
	var room [5]filled
	anew := room[:0]
	add := func(x filled) {
		switch last := len(anew) - 1; {
		case x.from >= x.to || x.kind == unknown:
		case last >= 0 && anew[last].to == x.from && anew[last].fill == x.fill:
			anew[last].to = x.to
		default:
			anew = append(anew, x)
		}
	}
	j := i
	for ; j < len(l) && l[j].from < from; j++ {
		add(filled{l[j].from, min(l[j].to, from), l[j].fill})
	}
	if j > i && l[j-1].to > from {
		j-- // it ends in the range, or behind it
	}
	add(filled{from, to, with})
	for ; j < len(l) && l[j].from <= to; j++ {
		add(filled{max(l[j].from, to), l[j].to, l[j].fill})
	}
	switch {
	case len(l)-(j-i)+len(anew) <= maxFills:
		*f = splice(l, i, j, anew)
	case with.kind != unknown:
		f.set(from, to, fill{}) // what was known of the range is no longer true
	default:
		*f = splice(l, i, j, nil) // less is known than could be
	}
}

func splice(l fills, i, j int, add []filled) fills {
	grow := len(add) - (j - i)
	n := len(l)
	for range grow {
		l = append(l, filled{})
	}
	copy(l[i+len(add):], l[j:n])
	copy(l[i:], add)
	return l[:n+grow]
}

// each calls f for the parts of [from, to), in order, those that are unknown included.
func (f fills) each(from, to uint64, call func(filled)) {
	for i := sort.Search(len(f), func(i int) bool { return f[i].to > from }); i < len(f) && f[i].from < to; i++ {
		if f[i].from > from {
			call(filled{from: from, to: f[i].from})
			from = f[i].from
		}
		end := min(to, f[i].to)
		call(filled{from, end, f[i].fill})
		from = end
	}
	if from < to {
		call(filled{from: from, to: to})
	}
}
