package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// listing judges names that only one side has. A server may split and order a directory, or a
// list of extended attributes, in any way, so names missing in one reply may come in another: at
// the end of both listings none may be left.
func (j *Judge) listing(v *verdict.Judgement, r *Reply, want xdr.Message) {
	c := &j.cmp
	wantEnd, isList := listEnds(want)
	if !isList {
		j.names = append(append(j.names, c.missing...), c.extra...)
		for _, n := range c.missing {
			c.differs([]string{n}, "present", "absent", place{})
		}
		for _, n := range c.extra {
			c.differs([]string{n}, "absent", "present", place{})
		}
		return
	}
	haveEnd, _ := listEnds(r.Result)
	// The end of the list is judged here, not field by field.
	c.different = slices.DeleteFunc(c.different, func(d verdict.Reason) bool { return d.At.Field == "eof" || d.At.Field == "lxr_eof" })
	h := j.history(r.Clone)
	dir := objectOf(r.Op, readdir(r.Op))
	first := h.firstOf(r.Op)
	if first < 0 {
		// From where it begins again, the two servers list other parts of the directory.
		known := func(n string) bool { return h.expected.Presence(expected.Name{Dir: dir, Name: n}) == expected.Present }
		c.missing, c.extra = slices.DeleteFunc(c.missing, known), slices.DeleteFunc(c.extra, known)
	}
	open := h.listings[first]
	other := verdict.Reason{Code: verdict.Listing}
	if len(c.missing) == 0 && len(c.extra) == 0 && len(open) == 0 {
		if wantEnd != haveEnd || first < 0 {
			v.Worsen(verdict.Equivalent, other)
		}
		return
	}
	if unknown := j.unknown(r, dir, c.extra); len(unknown) > 0 {
		j.names = append(j.names, unknown...)
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.NamesAdded, N: uint64(len(unknown)), Detail: some(unknown)})
		delete(h.listings, first)
		return
	}
	if open == nil {
		open = map[string]int{}
		h.listings[first] = open
		forgetOld(h.listings, maxListings)
	}
	tally(open, c.missing, 1)
	tally(open, c.extra, -1)
	if !wantEnd {
		v.Worsen(verdict.Equivalent, other)
		return
	}
	delete(h.listings, first)
	missing, added := left(open)
	j.names = append(append(j.names, missing...), added...)
	switch {
	case len(missing) > 0 && !haveEnd:
		v.Worsen(verdict.Equivalent, verdict.Reason{Code: verdict.Listing, N: 1})
	case len(missing) > 0:
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.NamesMissing, N: uint64(len(missing)), Detail: some(missing)})
	case len(added) > 0:
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.NamesAdded, N: uint64(len(added)), Detail: some(added)})
	default:
		v.Worsen(verdict.Equivalent, other)
	}
}

// unknown are the names that this server lists in a directory which the replay has made, and where neither the capture nor the replay
// knows them: no other order of the directory explains them.
func (j *Judge) unknown(r *Reply, dir int, names []string) (list []string) {
	h := j.history(r.Clone)
	if lister(r.Op) != readdir(r.Op) || !h.expected.AllKnown(dir) {
		return nil
	}
	for _, n := range names {
		if !h.expected.Heard(expected.Name{Dir: dir, Name: n}) && h.lacking.name(expected.Name{Dir: dir, Name: n}) == nil {
			list = append(list, n)
		}
	}
	return list
}

// firstOf is the first op of a listing: op, unless it continues where another one ended. Two
// clients may list a directory at the same time, and one may give up halfway. It is negative for
// a listing that begins in the middle of a reply.
func (h *history) firstOf(o *plan.Op) int {
	args := o.Args
	if at := lister(o); at >= 0 {
		args = o.Compound.Ops[at].Args
	}
	first := o.ID
	for i := range args {
		if a := &args[i]; a.Kind == plan.FieldCookie && a.Op > 0 {
			if first = a.Op; !a.Zero {
				first = -o.ID
			} else if h.continues[a.Op] != 0 {
				first = h.continues[a.Op]
			}
			h.continues[o.ID] = first
			forgetOld(h.continues, maxContinued)
		}
	}
	return first
}

// Limits of listings. Clients may give up any number of them halfway.
const (
	maxContinued = 1 << 16
	maxListings  = 1 << 10
)

// forgetOld removes the older half of what is known by op, if that has become too much.
func forgetOld[T any](m map[int]T, most int) {
	if len(m) <= most {
		return
	}
	ids := slices.Sorted(maps.Keys(m))
	for _, id := range ids[:len(ids)/2] {
		delete(m, id)
	}
}

// listEnds tells whether a listing of names (of a directory, or of extended attributes)
// ends with a result; ok is false if it is not a listing.
func listEnds(m xdr.Message) (eof, ok bool) {
	switch m := m.(type) {
	case *nfs3.READDIR3res:
		return m.Resok.Reply.Eof, true
	case *nfs3.READDIRPLUS3res:
		return m.Resok.Reply.Eof, true
	case *nfs4.CompoundRes:
		for i := range m.Ops {
			switch r := m.Ops[i].Body.(type) {
			case *nfs4.READDIR4res:
				return r.Resok4.Reply.Eof, true
			case *nfs4.LISTXATTRS4res:
				return r.LxrValue.LxrEof, true
			}
		}
	}
	return false, false
}

// readdir is the READDIR of a COMPOUND.
func readdir(o *plan.Op) int {
	if o.Compound == nil {
		return -1
	}
	return slices.IndexFunc(o.Compound.Ops, func(c plan.CompoundOp) bool { return c.Op == uint32(nfs4.OP_READDIR) })
}

// lister is the operation of a COMPOUND that lists names; -1 if none does.
func lister(o *plan.Op) int {
	if o.Compound == nil {
		return -1
	}
	return slices.IndexFunc(o.Compound.Ops, func(c plan.CompoundOp) bool {
		return c.Op == uint32(nfs4.OP_READDIR) || c.Op == uint32(nfs4.OP_LISTXATTRS)
	})
}

// tally adds by to the count of each name, and forgets names whose count is 0.
func tally(open map[string]int, names []string, by int) {
	for _, n := range names {
		if open[n] += by; open[n] == 0 {
			delete(open, n)
		}
	}
}

// left are the names that only the captured listing has, and those that only the live
// one has.
func left(open map[string]int) (missing, added []string) {
	for n, by := range open {
		if by > 0 {
			missing = append(missing, n)
		} else {
			added = append(added, n)
		}
	}
	slices.Sort(missing)
	slices.Sort(added)
	return missing, added
}

func some(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:4], ", ") + " …"
	}
	return strings.Join(names, ", ")
}
