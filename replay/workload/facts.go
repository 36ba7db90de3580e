package workload

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// facts are what has to be known of the ops before the first of them is sent.
type facts struct {
	ops      int
	version  string           // the highest version of NFS
	v3       bool             // an op is of NFSv3
	root     bool             // an op goes to the root of the server
	above    map[int]int      // directories above the bases, and the bases, to their parents
	examples map[int]*plan.Op // by client; 0: any of NFSv4
	used     map[int]bool     // connections with calls
	works    bool             // some op is what the applications wanted, or mounts
	left     Reasons          // transactions that are not in the plan
}

// What the calls of NFSv4 have in common (RFC 8881, section 16).
const (
	nfsProgram = 100003
	compound   = 1
)

func newFacts() *facts {
	return &facts{version: "3", above: map[int]int{}, used: map[int]bool{}, examples: map[int]*plan.Op{}}
}

// facts returns what the ops in memory show, or what the plan says of its ops.
func (w *Workload) facts() *facts {
	if w.Streams() {
		return w.known
	}
	f := newFacts()
	for _, o := range w.Ops {
		f.add(w, o)
	}
	return f
}

// add takes in an op.
func (f *facts) add(w *Workload, o *plan.Op) {
	f.ops++
	f.used[o.Connection] = true
	f.works = f.works || o.Role == plan.Workload || o.Role == plan.Mounting
	if o.Compound == nil {
		f.v3 = f.v3 || o.Program == nfsProgram && o.Version == 3
		return
	}
	if v := versionOf(o); v > f.version {
		f.version = v
	}
	f.root = f.root || Has(o, nfs4.OP_PUTROOTFH)
	if f.examples[0] == nil {
		f.examples[0] = o
	}
	w.eachClient(o, func(client int) {
		if f.examples[client] == nil {
			f.examples[client] = o
		}
	})
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		if i == 0 || nfs4.NfsOpnum4(c.Op) != nfs4.OP_LOOKUP {
			continue
		}
		above, to := ObjectAt(o, i-1), ObjectAt(o, i)
		if to > 0 && above != to && w.Above(above) {
			f.above[to] = above
		}
	}
}

// versionOf is the version of NFS of an op.
func versionOf(o *plan.Op) string {
	if o.Compound == nil {
		return "3"
	}
	return fmt.Sprintf("4.%d", o.Compound.Minor)
}

// headed are the facts that a plan has in its header; nil if it has none.
func (w *Workload) headed() *facts {
	h := &w.Tables.Header
	if h.Facts == nil || h.Summary == nil {
		return nil
	}
	f := newFacts()
	f.ops = max(0, h.Summary.Ops.Exact) + max(0, h.Summary.Ops.Inferred) + max(0, h.Summary.Ops.Synthesised)
	for p := range h.Summary.Programs {
		if v, ok := strings.CutPrefix(p, "nfs"); ok && strings.HasPrefix(v, "4.") {
			f.version = max(f.version, v)
		} else if ok && v == "3" {
			f.v3 = true
		}
	}
	for i := range w.Tables.Connections {
		if w.Tables.Connections[i].Ops > 0 {
			f.used[i+1] = true
		}
	}
	f.root = h.Facts.Root
	for _, a := range h.Facts.Above {
		f.above[a.Object] = a.Parent
	}
	for _, e := range h.Facts.Examples {
		f.examples[e.Client] = &plan.Op{Connection: e.Connection, Credential: e.Credential,
			Program: nfsProgram, Version: 4, Procedure: compound, Compound: &plan.Compound{}}
	}
	f.works = h.Summary.Roles[plan.Workload]+h.Summary.Roles[plan.Mounting] > 0
	for _, r := range h.Summary.Reasons {
		if r.Class == plan.Impossible {
			f.left.add(r.Reason, r.Count)
		}
	}
	return f
}

// scan reads all ops of the plan to learn the facts.
func (w *Workload) scan() (*facts, error) {
	s, err := w.Read()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f := newFacts()
	for {
		o, skip, err := s.Next()
		switch {
		case err == io.EOF:
			return f, nil
		case err != nil:
			return nil, err
		case skip != nil:
			f.left.Skip(skip)
		default:
			f.add(w, o)
		}
	}
}

// foreseen is an error if an op is not as the facts say. The plan was changed then after it
// was made.
func (f *facts) foreseen(o *plan.Op) error {
	const all = "remove \"facts\" from the header, and all ops are read beforehand"
	switch {
	case !f.used[o.Connection]:
		return fmt.Errorf("op %d is of connection %d, which has no ops: %s", o.ID, o.Connection, all)
	case o.Compound == nil:
	case versionOf(o) > f.version:
		return fmt.Errorf("op %d is of NFSv%s, and the header says that %s is the highest version: %s", o.ID, versionOf(o), f.version, all)
	case !f.root && Has(o, nfs4.OP_PUTROOTFH):
		return fmt.Errorf("op %d goes to the root of the server, and the header says that none does: %s", o.ID, all)
	}
	return nil
}

// Parents maps each directory above the bases, and the bases, to its parent, as far as
// LOOKUPs of the plan show it.
func (w *Workload) Parents() map[int]int { return w.facts().above }

// Used are the connections that have calls, in a map of the caller's own.
func (w *Workload) Used() map[int]bool { return maps.Clone(w.facts().used) }

// Planned is how many ops there are, or, of a plan that is not read yet, how many its header says.
func (w *Workload) Planned() int {
	if w.Streams() {
		return w.known.ops
	}
	return len(w.Ops)
}

// Uses calls f for the states that operations of an op with a number use: those that OPEN_CONFIRM confirms, for instance.
func Uses(o *plan.Op, number nfs4.NfsOpnum4, f func(state int)) {
	if o.Compound == nil {
		return
	}
	for i := range o.Compound.Ops {
		if c := &o.Compound.Ops[i]; nfs4.NfsOpnum4(c.Op) == number {
			f(StateOf(c))
		}
	}
}

// Reasons count transactions that cannot be replayed, the first maxImpossible reasons
// one by one.
type Reasons struct {
	list []plan.Reason
	at   map[string]int
}

// Skip takes in a transaction that is not in the plan.
func (r *Reasons) Skip(s *plan.Skip) {
	if s.Class == plan.Impossible {
		r.add(s.Reason, 1)
	}
}

func (r *Reasons) add(why string, n int) {
	if r.at == nil {
		r.at = map[string]int{}
	}
	i, ok := r.at[why]
	if !ok && len(r.list) >= maxImpossible {
		why = "other reasons"
		i, ok = r.at[why]
	}
	if !ok {
		i, r.at[why] = len(r.list), len(r.list)
		r.list = append(r.list, plan.Reason{Class: plan.Impossible, Reason: why})
	}
	r.list[i].Count += n
}

// List is what was counted, the most frequent reason first.
func (r *Reasons) List() []plan.Reason {
	list := slices.Clone(r.list)
	slices.SortStableFunc(list, func(a, b plan.Reason) int { return b.Count - a.Count })
	return list
}
