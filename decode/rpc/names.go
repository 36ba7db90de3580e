package rpc

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// maxNames is how many file handles a Names remembers, and nameBytes how much
// memory they may take. When it is full, all are forgotten and learned again:
// simple, and rare.
const (
	maxNames  = 1 << 16
	nameBytes = 40 << 20
	// entryBytes is what an entry of either table takes beside the bytes of
	// its strings.
	entryBytes = 16 + 32 + 24
)

// Names remembers which name each file handle was found under, from the
// replies of LOOKUP, CREATE, OPEN, READDIRPLUS and so on. A capture that began
// in the middle does not show all of them.
type Names struct {
	byHandle map[string]entry
	byName   map[entry]string // handle
	bytes    int              // of both; strings that they share count twice
	attrs    nfs4.Attrs       // scratch
	dir      string           // the directory named last: most names are told directory by directory
	recent   recent

	// Limit is how many bytes may be remembered (40 MiB).
	Limit int
	// Forgotten is how many times all was forgotten.
	Forgotten int
}

type entry struct {
	parent string // handle of the directory; "" if not known
	name   string
}

// maxDepth bounds a path: handles may be made to point in a circle.
const maxDepth = 64

// Path is the path of the file that the transaction is about, as far as
// earlier transactions told it; empty without Names.
func (v *View) Path() string {
	f := v.File()
	if f == nil || v.Names == nil {
		return ""
	}
	dir := v.Names.Path(f.Handle)
	switch {
	case f.Name == nil:
		return dir
	case dir == "":
		return string(f.Name)
	}
	return dir + "/" + string(f.Name)
}

// Path is the known part of the path of a file handle: "d1/small", or "…/small" if the name of a directory on
// the way is not known. It is empty if nothing is known.
func (n *Names) Path(handle []byte) string {
	e, ok := n.byHandle[string(handle)]
	if !ok {
		return ""
	}
	path := e.name
	for range maxDepth {
		e, ok = n.byHandle[e.parent]
		if !ok {
			return path
		}
		path = e.name + "/" + path
	}
	return path
}

// Learn remembers the file handles of the transaction's results.
func (v *View) Learn() {
	n := v.Names
	if n == nil {
		return
	}
	if m := v.usual; m != nil {
		switch {
		case m.compound:
			if !m.outline.tells() {
				return
			}
		case m.gives:
			if !v.brief.Failed { // else there is no handle
				v.learnUsual(n)
			}
			return
		case m.teaches:
			if v.learn3(n) {
				return
			}
		default:
			return
		}
	}
	if v.Result() == nil {
		return
	}
	switch r := v.Result().(type) {
	case *nfs3.READDIRPLUS3res:
		a, ok := v.Args().(*nfs3.READDIRPLUS3args)
		if !ok || r.Status != nfs3.NFS3_OK {
			return
		}
		for i := range r.Resok.Reply.Entries {
			e := &r.Resok.Reply.Entries[i]
			if e.NameHandle.HandleFollows {
				n.learn(a.Dir.Data, e.NameHandle.Handle.Data, e.Name)
			}
		}
	case *nfs3.RENAME3res:
		if a, ok := v.Args().(*nfs3.RENAME3args); ok && r.Status == nfs3.NFS3_OK {
			n.rename(a.From.Dir.Data, a.From.Name, a.To.Dir.Data, a.To.Name)
		}
	case *nfs3.REMOVE3res:
		if a, ok := v.Args().(*nfs3.REMOVE3args); ok && r.Status == nfs3.NFS3_OK {
			n.remove(a.Object.Dir.Data, a.Object.Name)
		}
	case *nfs3.RMDIR3res:
		if a, ok := v.Args().(*nfs3.RMDIR3args); ok && r.Status == nfs3.NFS3_OK {
			n.remove(a.Object.Dir.Data, a.Object.Name)
		}
	case *nfs4.CompoundRes:
		v.learn4(n)
	default:
		if v.gives {
			v.learnGiven(n)
		}
	}
}

// learnGiven remembers the one handle that the results give.
func (v *View) learnGiven(n *Names) {
	if f := v.File(); f != nil && f.Result != nil {
		n.learn(f.Handle, f.Result, f.Name)
	}
}

// teaches reports whether Learn may have use for the results of a procedure: they give handles, or names are changed. It
// is told by arguments that are empty.
func teaches(e *ops.Entry, args xdr.Message) bool {
	if _, compound := args.(*nfs4.CompoundArgs); compound || e == nil {
		return compound
	}
	if e.Gives.Has(ops.Handle | ops.Handles) {
		return true
	}
	var a ops.Act
	e.Act(args, &a)
	return a.Class == ops.Changes && slices.ContainsFunc(a.Places(), func(p ops.Place) bool { return p.Named })
}

// tells reports whether a COMPOUND has an operation that tells learn4 something.
func (o *outline) tells() bool {
	for _, n := range o.results.Numbers {
		switch nfs4.NfsOpnum4(n) {
		case nfs4.OP_REMOVE, nfs4.OP_RENAME, nfs4.OP_READDIR:
			return true
		}
		if e := ops.Operation(n); e != nil && e.Gives.Has(ops.Handle) {
			return true
		}
	}
	return false
}

func (v *View) learn4(n *Names) {
	t := &v.trail
	t.Reset()
	list := v.Operations()
	for i := range list {
		o := &list[i]
		if o.Result == nil || o.Code != uint32(nfs4.NFS4_OK) {
			return
		}
		switch a := o.Args.(type) {
		case *nfs4.REMOVE4args:
			n.remove(t.Current.Handle, a.Target)
		case *nfs4.RENAME4args:
			n.rename(t.Saved.Handle, a.Oldname, t.Current.Handle, a.Newname)
		}
		if r, ok := o.Result.(*nfs4.READDIR4res); ok {
			for k := range r.Resok4.Reply.Entries {
				e := &r.Resok4.Reply.Entries[k]
				if h := n.filehandle(&e.Attrs); h != nil {
					n.learn(t.Current.Handle, h, e.Name)
				}
			}
		}
		had := t.Current.Handle != nil
		t.Step(o.Number, o.Args, o.Result)
		if f := &t.Current; !had && f.Handle != nil && f.Name != nil && f.Dir != nil {
			n.learn(f.Dir, f.Handle, f.Name)
		}
	}
}

// filehandle returns the file handle among attributes, nil if it is not there.
func (n *Names) filehandle(f *nfs4.Fattr4) []byte {
	if !f.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) || n.attrs.Decode(f) != nil {
		return nil
	}
	return n.attrs.Filehandle
}

// rename moves a name.
func (n *Names) rename(fromDir, from, toDir, to []byte) {
	h, ok := n.byName[entry{string(fromDir), string(from)}]
	n.remove(toDir, to)
	if ok && n.move(h, fromDir, from, toDir, to) {
		return
	}
	if ok {
		n.remove(fromDir, from)
		n.set(h, n.entry(toDir, to))
	}
}

// move is the usual rename: the handle has the old name only, and the names fit. It does not look for what it knows: that the
// handle is there, and that the new name is not.
func (n *Names) move(handle string, fromDir, from, toDir, to []byte) bool {
	old, known := n.byHandle[handle]
	if !known || !old.is(fromDir, from) || string(fromDir) == string(toDir) && string(from) == string(to) {
		return false
	}
	e := n.entry(toDir, to)
	bytes := n.bytes - 2*old.size(handle) + 2*e.size(handle)
	if bytes > n.limit() {
		return false
	}
	n.bytes = bytes
	delete(n.byName, old)
	n.byName[e], n.byHandle[handle] = handle, e
	n.recent.renamed(handle)
	return true
}

// remove forgets a name that has been removed from its directory.
func (n *Names) remove(parent, name []byte) {
	h, ok := n.byName[entry{string(parent), string(name)}]
	if !ok {
		return
	}
	e, ok := n.byHandle[h]
	if ok && e.is(parent, name) { // its strings do as keys
		delete(n.byHandle, h)
		n.recent.renamed(h)
		n.bytes -= e.size(h)
	} else {
		e = entry{string(parent), string(name)}
	}
	delete(n.byName, e)
	n.bytes -= e.size(h)
}

// is reports whether it is a name in a directory.
func (e *entry) is(parent, name []byte) bool {
	return e.name == string(name) && e.parent == string(parent)
}

// entry makes one. Directories share a string as long as they stay the same.
func (n *Names) entry(parent, name []byte) entry {
	if n.dir != string(parent) {
		n.dir = string(parent)
	}
	return entry{n.dir, string(name)}
}

func (n *Names) learn(parent, child, name []byte) {
	if len(child) == 0 || len(name) == 0 || string(name) == "." || string(name) == ".." {
		return
	}
	if f := n.place(child, false); f != nil && f.known && f.is(parent, name) {
		return
	}
	old, known := n.byHandle[string(child)]
	if known && old.is(parent, name) {
		return
	}
	n.put(string(child), n.entry(parent, name), old, known)
}

// set gives a handle a name.
func (n *Names) set(child string, e entry) {
	old, known := n.byHandle[child]
	n.put(child, e, old, known)
}

// put is set for whoever knows the name that the handle has, if any is known.
func (n *Names) put(child string, e, old entry, known bool) {
	if n.byHandle == nil || len(n.byHandle) >= maxNames || len(n.byName) >= maxNames || n.bytes+2*e.size(child) > n.limit() {
		if n.byHandle != nil {
			n.Forgotten++
		}
		n.byHandle, n.byName, n.bytes = make(map[string]entry), make(map[entry]string), 0
		n.recent.forget()
		known = false
	}
	if known {
		n.bytes -= old.size(child)
	}
	if old, ok := n.byName[e]; ok {
		n.bytes -= e.size(old)
	}
	n.bytes += 2 * e.size(child)
	n.byHandle[child] = e
	n.recent.renamed(child)
	n.byName[e] = child
}

// limit is how many bytes may be remembered.
func (n *Names) limit() int {
	if n.Limit <= 0 {
		return nameBytes
	}
	return n.Limit
}

// size is what the name of a handle takes in one of the tables, in bytes.
func (e *entry) size(handle string) int {
	return len(handle) + len(e.parent) + len(e.name) + entryBytes
}
