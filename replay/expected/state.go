package expected

import (
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// State follows one copy of a plan on one server. It belongs to one goroutine.
type State struct {
	load   *workload.Workload
	args   workload.Arguments
	files  map[int]*file      // by object
	names  map[int]*directory // by object
	named  int                // names in all of them
	more   bool               // names than are followed
	links  map[int]int        // how many names an object is known to have
	whole  map[int]bool       // directories of which all names are known
	xattrs int                // that were followed
	acls   bool               // access control lists were set: they change the modes of new objects

	account account
	buffers [2][]byte
}

// New returns a State that knows nothing.
func New(load *workload.Workload) *State {
	acls := slices.ContainsFunc(load.Tables.Objects, func(o plan.Object) bool { return len(o.ACL) > 0 })
	return &State{acls: acls, load: load, files: map[int]*file{}, names: map[int]*directory{}, links: map[int]int{}, whole: map[int]bool{}}
}

// Call is a finished call.
type Call struct {
	Op *plan.Op
	// Result is what the server returned; nil if there was no readable reply, so that the call
	// may or may not have been executed.
	Result xdr.Message
	// Sent and Replied are when it was sent, at the earliest, and when the reply came.
	// Calls whose times overlap may have been executed in either order.
	Sent, Replied time.Time
}

// Done applies the effects of a call. Calls have to come in the order of their replies.
func (l *State) Done(c *Call) {
	if !c.Op.Modifies {
		if c.Result != nil {
			l.readTimes(c)
		}
		return
	}
	args := l.args.Of(c.Op)
	if args == nil {
		// Everything that it names may have changed.
		for _, id := range l.load.Objects(c.Op) {
			l.set(c, &effect{object: id, to: forever, fill: fill{kind: anything}})
			l.file(id).forget()
		}
		l.doubt(c)
		return
	}
	eachStep(c.Op, args, func(s *step) {
		s.done, s.count = executed(c.Result, s.at)
		s.lost = c.Result == nil
		if s.done == skipped {
			return
		}
		l.unbound(s)
		s.fresh = l.fresh(c, s)
		l.bytes(c, s)
		l.naming(c, s)
		l.attributes(c, s)
	})
}

// unbound finds the object of a CREATE or OPEN that the plan does not give one, since the capture lacks its reply: the one that has the
// name here.
func (l *State) unbound(s *step) {
	switch a := s.args.(type) {
	case *nfs3.CREATE3args:
		// Other modes make a file, or find one that they have made.
		if id := l.Named(Name{s.before, string(a.Where.Name)}); id != 0 && s.object == s.before && a.How.Mode == nfs3.UNCHECKED {
			s.object = id
		}
	case *nfs4.OPEN4args:
		if s.object == 0 && a.Claim.Claim == nfs4.CLAIM_NULL && a.Openhow.Opentype == nfs4.OPEN4_CREATE && a.Openhow.How.Mode == nfs4.UNCHECKED4 {
			s.object = l.Named(Name{s.before, string(a.Claim.File)})
		}
	}
}

// step is one procedure, or one operation of a COMPOUND.
type step struct {
	op   *plan.Op
	at   int // operation of the COMPOUND; -1 outside
	args xdr.Message
	// object is the object that it works on, or creates. before is the current object before it,
	// and saved the saved one; of NFSv3, before is the object of the first handle, and saved the one of
	// the second. 0 is unknown.
	object, before, saved int
	fields                []plan.Field

	done  done
	lost  bool
	fresh bool  // it has created a new file, although it would also have accepted an existing one
	count int64 // bytes that it reports as written; -1 if it reports none
}

// eachStep calls f for the steps of an op, whose arguments are args.
func eachStep(o *plan.Op, args xdr.Message, f func(*step)) {
	c, ok := args.(*nfs4.CompoundArgs)
	if !ok {
		s := step{op: o, at: -1, args: args, fields: o.Args}
		n := 0
		for i := range o.Args {
			if a := &o.Args[i]; a.Kind == plan.FieldHandle {
				if n++; n == 1 {
					s.before = a.Ref
				} else if n == 2 {
					s.saved = a.Ref
				}
			}
		}
		s.object = s.before
		for i := range o.Binds {
			if b := &o.Binds[i]; b.Kind == plan.FieldHandle && b.Name == "" && b.NameBytes == nil {
				s.object = b.Ref
			}
		}
		f(&s)
		return
	}
	if o.Compound == nil || len(c.Ops) != len(o.Compound.Ops) {
		return
	}
	saved, before := 0, 0
	for i := range c.Ops {
		object := workload.ObjectAt(o, i)
		if e := ops.Operation(o.Compound.Ops[i].Op); e != nil && e.Effect == ops.Saves {
			saved = object
		}
		f(&step{op: o, at: i, args: c.Ops[i].Body, object: object, before: before, saved: saved, fields: o.Compound.Ops[i].Args})
		before = object
	}
}

// target is the object that the name of a step leads to; 0 if it is not known.
func (s *step) target() int {
	for i := range s.fields {
		if s.fields[i].Kind == plan.FieldName {
			return s.fields[i].Ref
		}
	}
	return 0
}

// file is the state of an object as far as it is known.
type file struct {
	fills   fills
	recent  recent
	checked attributes
	asked   Asked
	latest  time.Time // when the reply to the latest call that changed it came
}

func (l *State) file(id int) *file {
	f := l.files[id]
	if f == nil {
		f = &file{}
		l.files[id] = f
	}
	return f
}

// together reports whether a call was in flight together with an earlier one that changed the
// object, and notes that this one has changed it.
func (f *file) together(c *Call) bool {
	is := f.latest.After(c.Sent)
	if c.Replied.After(f.latest) {
		f.latest = c.Replied
	}
	return is
}

// forget gives up what is known of attributes.
func (f *file) forget() { f.checked = attributes{gone: f.checked.gone} }

// recent are the latest changes of the bytes of a file.
type recent struct {
	list []change // at most maxRecent
	next int
	old  time.Time // latest reply of those that are no longer in list
}

type change struct {
	from, to uint64
	fill
	replied time.Time
}

// add notes a change, and calls f for the changes of concurrent calls, whose order is unknown.
func (r *recent) add(x change, sent time.Time, f func(from, to uint64)) {
	for i := range r.list {
		o := &r.list[i]
		if o.replied.After(sent) && o.from < x.to && x.from < o.to && o.fill != x.fill {
			f(max(o.from, x.from), min(o.to, x.to))
		}
	}
	if r.old.After(sent) {
		f(x.from, x.to)
	}
	if len(r.list) < maxRecent {
		r.list = append(r.list, x)
		return
	}
	if o := &r.list[r.next]; o.replied.After(r.old) {
		r.old = o.replied
	}
	r.list[r.next] = x
	r.next = (r.next + 1) % len(r.list)
}

// maxRecent bounds the changes that are kept of one file.
const maxRecent = 32
