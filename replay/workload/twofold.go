package workload

import (
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// Twofold reports whether there may be two of an object on a server: one that was prepared under a made-up name, since the
// reply of the call that made it is missing, and one that this call has made again.
func (w *Workload) Twofold(id int) bool {
	if id <= 0 || id > len(w.Tables.Objects) {
		return false
	}
	notes := w.Tables.Objects[id-1].Notes
	has := func(k plan.NoteKind) bool {
		return slices.ContainsFunc(notes, func(n plan.Note) bool { return n.Kind == k })
	}
	return has(plan.NotePending) && has(plan.NoteElsewhere)
}
