package run

import (
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
	for _, id := range m.objects(o) {
		for _, c := range m.changes[id] {
			switch {
			case c == o:
			case o.Latency < 0 || c.Latency < 0 || c.Time <= end && o.Time <= c.Time+c.Latency:
				return fmt.Sprintf("%s was under way together with op %d (XID %08x), which changes the same object", o.What, c.ID, c.XID)
			case again:
				return "at another moment than in the capture: the call had to be sent again"
			case m.relaxed:
				return "at another moment than in the capture: --relaxed lets what does not depend on each other go in any order"
			}
		}
	}
	return ""
}

// ofMoment are the fields that another call changes.
func ofMoment(name string) bool {
	switch name {
	case "size", "eof", "nlink", "numlinks", "mode", "uid", "gid", "owner", "owner_group":
		return true
	}
	return false
}
