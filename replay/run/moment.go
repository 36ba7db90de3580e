package run

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// moments tells which replies depend on the order in which a server executed
// calls that were under way together: the size of a file beside a WRITE that
// makes it longer. Such a difference has nothing to do with the server.
type moments struct {
	load    *Workload
	relaxed bool
	changes map[int][]*plan.Op // by object
}

func newMoments(w *Workload, relaxed bool) *moments {
	m := &moments{load: w, relaxed: relaxed, changes: map[int][]*plan.Op{}}
	for _, o := range w.Ops {
		if !o.Modifies {
			continue
		}
		for _, id := range m.objects(o) {
			m.changes[id] = append(m.changes[id], o)
		}
	}
	for _, list := range m.changes {
		slices.SortStableFunc(list, func(a, b *plan.Op) int { return cmp.Compare(a.Time, b.Time) })
	}
	return m
}

// objects are those that an op names or gives a handle to.
func (m *moments) objects(o *plan.Op) (ids []int) {
	add := func(id int) {
		if id > 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	fields := func(list []plan.Field) {
		for i := range list {
			switch a := &list[i]; {
			case a.Ref <= 0:
			case a.Kind == plan.FieldHandle || a.Kind == plan.FieldName:
				add(a.Ref)
			case a.Kind == plan.FieldState:
				add(m.load.Tables.States[a.Ref-1].Object)
			}
		}
	}
	fields(o.Args)
	if o.Compound != nil {
		for i := range o.Compound.Ops {
			fields(o.Compound.Ops[i].Args)
		}
	}
	for i := range o.Binds {
		if o.Binds[i].Kind == plan.FieldHandle {
			add(o.Binds[i].Ref)
		}
	}
	return ids
}

// reason says why what a reply tells of an object depends on the moment; empty
// if it does not. again is for a call that went out once more, and so later.
func (m *moments) reason(o *plan.Op, again bool) string {
	end := o.Time + max(o.Latency, 0)
	why := ""
	for _, id := range m.objects(o) {
		list := m.changes[id]
		if len(list) == 0 || len(list) == 1 && list[0] == o {
			continue
		}
		switch {
		case again:
			why = "at another moment than in the capture: the call had to be sent again"
		case m.relaxed:
			why = "at another moment than in the capture: --relaxed lets what does not depend on each other go in any order"
		}
		// Those that began before its end, the latest first: what is under way
		// together is close together.
		n := len(list)
		if o.Latency >= 0 {
			n, _ = slices.BinarySearchFunc(list, end+1, func(c *plan.Op, t int64) int { return cmp.Compare(c.Time, t) })
		}
		for _, c := range slices.Backward(list[max(0, n-maxTogether):n]) {
			if c != o && (o.Latency < 0 || c.Latency < 0 || o.Time <= c.Time+c.Latency) {
				return fmt.Sprintf("%s was under way together with op %d (XID %08x), which changes the same object", o.What, c.ID, c.XID)
			}
		}
	}
	return why
}

// maxTogether is how many calls before another one are looked at, so that a
// file with very many changes does not take time that grows with their square.
const maxTogether = 1024

// ofMoment are the fields that another call changes.
func ofMoment(name string) bool {
	switch name {
	case "size", "eof", "nlink", "numlinks", "mode", "uid", "gid", "owner", "owner_group":
		return true
	}
	return false
}
