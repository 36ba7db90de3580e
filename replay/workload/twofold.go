package workload

import (
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// Twofold reports whether there may be two of an object on a server: one that was prepared under a made-up name, since its
// directory is made by an op, and one that a call has made again there. That is a call whose reply is missing, or of a file one that opens
// what exists, and creates what does not.
func (w *Workload) Twofold(id int) bool {
	if id <= 0 || id > len(w.Tables.Objects) {
		return false
	}
	o := &w.Tables.Objects[id-1]
	has := func(k plan.NoteKind) bool {
		return slices.ContainsFunc(o.Notes, func(n plan.Note) bool { return n.Kind == k })
	}
	return has(plan.NoteElsewhere) && (has(plan.NotePending) || o.Type == "file")
}
