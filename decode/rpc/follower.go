package rpc

import (
	"sync"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// follower puts a File together: what arguments and results of a procedure, or of the operations of a COMPOUND, say of files.
type follower struct {
	file    *File
	walk    ops.FileWalk // where the COMPOUND stands
	act     ops.Act
	outcome ops.Outcome
}

// take adds what a procedure or operation is about, and what its results say about it,
// nil if there are none. The walk is where the COMPOUND stands before it.
func (x *follower) take(e *ops.Entry, args, results xdr.Message) {
	f, a, o := x.file, &x.act, &x.outcome
	*o = ops.Outcome{}
	if args == nil || !e.HasPlaces() {
		return
	}
	e.Act(args, a)
	p := a.Subject()
	if p == nil {
		return
	}
	if p.File == ops.Given {
		f.Handle, f.Name, f.Result = p.Handle, p.Name, nil
		f.Unnamed = p.Named && p.Name == nil
	} else {
		x.takeCurrent(p)
	}
	if l := a.Places(); len(l) > 1 && l[1].Named {
		f.To = l[1].Name
	} else if a.Text != nil {
		f.To = a.Text
	}
	if a.Ranged {
		f.span(a.Offset, a.Count)
	}
	if a.Stable != "" {
		f.Stable = a.Stable
	}
	if results == nil {
		return
	}
	if e.Outcome(results, o); o.HasMoved {
		f.HasMoved, f.Moved, f.EOF = true, o.Moved, o.EOF
	}
}

// takeCurrent takes a file that a COMPOUND has come to.
func (x *follower) takeCurrent(p *ops.Place) {
	f := x.file
	switch r := x.walk.At(p); {
	case p.Named:
		f.Handle, f.Name, f.Result, f.Unnamed = r.Handle, p.Name, nil, p.Name == nil
	case r.Name != nil && r.Is(f.Handle, f.Name): // it has its name already
	case r.Name != nil:
		f.Handle, f.Name, f.Result, f.Unnamed = r.Dir, r.Name, r.Handle, false
	default:
		f.Handle, f.Name, f.Result, f.Unnamed = r.Handle, nil, nil, false
	}
}

// takeCut is take for an operation whose arguments were cut off. An OPEN counts as one of a name then, as most are.
func (x *follower) takeCut(number uint32) {
	if list := subjects(); uint64(number) < uint64(len(list)) && list[number] != nil {
		x.takeCurrent(list[number])
	}
}

// subjects are the places that operations are about if nothing else is known of them, by number.
var subjects = sync.OnceValue(func() []*ops.Place {
	list := make([]*ops.Place, nfs4.OP_REMOVEXATTR+1)
	for n := range list {
		args, e := nfs4.NewArgs(uint32(n)), ops.Operation(uint32(n))
		if args == nil || e == nil {
			continue
		}
		var a ops.Act
		e.Act(args, &a)
		if p := a.Subject(); p != nil {
			list[n] = &ops.Place{File: p.File, Named: p.Named}
		}
	}
	return list
})

// came notes where the COMPOUND stands after an operation. found says that its results gave the handle of the current file.
func (x *follower) came(found bool) {
	f := x.file
	switch now := &x.walk.Current; {
	case now.Handle == nil:
	case f.Handle == nil && f.Name == nil && !f.Unnamed:
		f.Handle = now.Handle
	case found && now.Is(f.Handle, f.Name):
		f.Result = now.Handle
	}
}

// args decodes the arguments of an operation, results its results, which have to be there.
func (b *projection) args(tx *transaction.Transaction, i int) xdr.Message {
	r := &b.body.reader
	r.Reset(tx.Call.Payload, len(tx.Call.Payload))
	if mayReduce(&tx.Call) {
		b.body.reduceCall(&tx.Call.Header)
	}
	return b.messages.outline.args.Decode(r, i)
}

func (b *projection) results(tx *transaction.Transaction, i int) xdr.Message {
	r := &b.body.reader
	r.Reset(tx.Reply.Payload, len(tx.Reply.Payload))
	if mayReduce(&tx.Reply) {
		b.body.reduceReply(&tx.Reply.Header)
	}
	return b.messages.outline.results.Decode(r, i)
}

// fileOf puts together the File of a COMPOUND that Set has accepted, as View.fileOfCompound and View.fileOfCallback do.
func (b *projection) fileOf(tx *transaction.Transaction, f *File) {
	x, o, callback := &b.walk, b.messages.outline, b.messages.outline.args.Callback
	x.file = f
	x.walk.Reset()
	for i := range b.kind.targets {
		a := &b.kind.targets[i]
		var args xdr.Message
		done := a.index < len(o.results.Numbers) && word3(tx.Reply.Payload, o.results.At(a.index)) == 0
		if a.does&takes != 0 && !b.take4(tx, a, done) {
			args = b.args(tx, a.index)
			x.take(a.entry, args, nil)
		}
		if callback {
			continue
		}
		b.follow(tx, a, args, done)
		x.came(done && a.does&gives != 0)
	}
}

// follow applies an operation to the walk, as ops.FileWalk.Step does. done says that its results are there and report success; args may be nil
// if they were not asked for yet.
func (b *projection) follow(tx *transaction.Transaction, a *target, args xdr.Message, done bool) {
	t, o := &b.walk.walk, b.messages.outline
	switch a.entry.Effect {
	case ops.Keeps:
	case ops.Puts: // PUTFH
		h, _ := opaque3(tx.Call.Payload, o.args.At(a.index))
		t.Current = ops.Ref{Handle: h}
	case ops.Descends:
		if p, ok := b.place(tx.Call.Payload, a); ok {
			if p.Named {
				t.Current = ops.Ref{Dir: t.Current.Handle, Name: p.Name}
			}
			break
		}
		if args == nil {
			args = b.args(tx, a.index)
		}
		t.Walk.Step(uint32(a.number), args)
	default:
		t.Go(a.entry.Effect, ops.Ref{})
	}
	if done && a.does&gives != 0 { // GETFH
		t.Current.Handle, _ = opaque3(tx.Reply.Payload, o.results.At(a.index)+4)
	}
}

// learnCompound learns from a COMPOUND that Set has accepted, as View.learn4 does.
func (b *projection) learnCompound(tx *transaction.Transaction, n *Names) {
	t, done := &b.walk.walk, b.good
	t.Reset()
	for i := range b.kind.targets {
		a := &b.kind.targets[i]
		if a.index >= done {
			return
		}
		var args xdr.Message
		if a.does&tells != 0 {
			args = b.args(tx, a.index)
			var results xdr.Message
			if a.number == nfs4.OP_READDIR {
				results = b.results(tx, a.index)
			}
			n.tells4(t, args, results)
		}
		had := t.Current.Handle != nil
		b.follow(tx, a, args, true)
		n.found4(t, had)
	}
}

// tells4 learns from the arguments of an operation that succeeded, or from its results. The walk is where the COMPOUND stands before it.
func (n *Names) tells4(t *ops.FileWalk, args, results xdr.Message) {
	switch a := args.(type) {
	case *nfs4.REMOVE4args:
		n.remove(t.Current.Handle, a.Target)
	case *nfs4.RENAME4args:
		n.rename(t.Saved.Handle, a.Oldname, t.Current.Handle, a.Newname)
	}
	r, ok := results.(*nfs4.READDIR4res)
	if !ok {
		return
	}
	for k := range r.Resok4.Reply.Entries {
		e := &r.Resok4.Reply.Entries[k]
		if h := n.filehandle(&e.Attrs); h != nil {
			n.learn(t.Current.Handle, h, e.Name)
		}
	}
}

// found4 learns the handle of a file that a COMPOUND has come to by a name; had says that it was known before.
func (n *Names) found4(t *ops.FileWalk, had bool) {
	if f := &t.Current; !had && f.Handle != nil && f.Name != nil && f.Dir != nil {
		n.learn(f.Dir, f.Handle, f.Name)
	}
}
