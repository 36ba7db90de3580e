package rpc

import (
	"bytes"
	"net/netip"
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
	known  *nameTable // nil: nothing
	bytes  int        // of both its tables; strings that they share count twice
	attrs  nfs4.Attrs // scratch
	dir    *directory // the directory named last: most names are told directory by directory
	recent recent

	server Server     // whose handles and names are asked for and told now
	addr   netip.Addr // of it, if it was the server of a transaction
	tenant uint64

	// Limit is how many bytes may be remembered (40 MiB).
	Limit int
	// Forgotten is how many times all was forgotten.
	Forgotten int
}

// maxDepth bounds a path: handles may be made to point in a circle.
const maxDepth = 64

// Path is the path of the file that the transaction is about, as far as
// earlier transactions told it; empty without Names.
func (v *View) Path() string {
	f := v.File()
	if f == nil || v.Names == nil || f.Unnamed {
		return ""
	}
	dir := v.Names.Of(v.Tx).Path(f.Handle)
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
	x := n.entryOf(handle)
	if x == nil {
		return ""
	}
	path := string(x.name())
	for range maxDepth {
		if x = n.entryOf(x.dir.handle); x == nil {
			return path
		}
		path = string(x.name()) + "/" + path
	}
	return path
}

// Learn remembers the file handles of the transaction's results.
func (v *View) Learn() {
	// Most clean calls have nothing to tell, or failed. To find that out here is to do so without a call.
	if m := v.clean; m == nil || m.compound || m.teaches && !v.projection.Failed {
		v.learn()
	}
}

// learn is Learn for what may have something to tell.
func (v *View) learn() {
	n, m := v.Names.Of(v.Tx), v.clean
	switch {
	case n == nil:
	case v.fileDone && m != nil && m.gives && !m.compound: // somebody has asked already what it tells
		if f := &v.file; f.Result != nil {
			n.learn(f.Handle, f.Result, f.Name)
		}
	case m == nil || !v.projection.learn(v.Tx, n):
		v.learnAll(n)
	}
}

// learnAll is learn for what has to be decoded.
func (v *View) learnAll(n *Names) {
	gives := v.gives
	if m := v.clean; m != nil {
		gives = m.gives
	}
	if v.Result() == nil || v.ResultErr != nil && !v.statusRead() {
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
			if v.ArgsErr != nil { // where it went is not known
				n.remove(a.From.Dir.Data, a.From.Name)
				return
			}
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
		if f := v.File(); gives && f != nil && f.Result != nil {
			n.learn(f.Handle, f.Result, f.Name)
		}
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

func (v *View) learn4(n *Names) {
	t := &v.projection.walk.walk
	t.Reset()
	list := v.Operations()
	for i := range list {
		o := &list[i]
		if o.Result == nil || o.Code != uint32(nfs4.NFS4_OK) {
			return
		}
		n.tells4(t, o.Args, o.Result)
		had := t.Current.Handle != nil
		t.Step(o.Number, o.Args, o.Result)
		n.found4(t, had)
	}
}

// filehandle returns the file handle among attributes, nil if it is not there. Those behind it, which are most, are not looked at.
func (n *Names) filehandle(f *nfs4.Fattr4) []byte {
	if !f.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) || n.attrs.DecodeUntil(f, nfs4.FATTR4_FILEHANDLE+1) != nil {
		return nil
	}
	return n.attrs.Filehandle
}

// entryOf has the newest name of a handle; nil if none is known. It is valid until Names learns more.
func (n *Names) entryOf(handle []byte) *entry {
	if i, _ := n.known.ofHandle(n.server.key(), handle); i != 0 {
		return &n.known.entries[i]
	}
	return nil
}

// rename moves a name.
func (n *Names) rename(fromDir, from, toDir, to []byte) {
	b := n.known
	if b == nil {
		return
	}
	i, _ := b.ofName(n.server.key(), n.near(fromDir), fromDir, from)
	if i == 0 {
		n.remove(toDir, to)
		return
	}
	h, dir := b.entries[i].handle(), n.near(toDir)
	sum := n.removeOf(dir, toDir, to)
	if n.move(i, sum, dir, toDir, to) {
		return
	}
	child := bytes.Clone(h)
	n.remove(fromDir, from)
	i, sum = b.ofHandle(n.server.key(), child)
	n.set(i, sum, child, toDir, to)
}

// move is the usual rename: a handle has the old name only, that of entry i, and the names fit. It does not look for what it knows: that
// the new name, whose sum it gets, is not there. If both names are the same, the entry has just been removed, and is in no table.
func (n *Names) move(i int32, sum uint64, dir *directory, toDir, to []byte) bool {
	b := n.known
	x := &b.entries[i]
	if !x.in[byHandle] {
		return false
	}
	held := n.bytes + 2*(len(toDir)+len(to)-len(x.dir.handle)-len(x.name()))
	if held > n.limit() {
		return false
	}
	if dir == nil {
		dir = n.directory(toDir)
	}
	n.bytes = held
	b.take(byName, x, i)
	x.dir, x.text, x.sums[byName] = dir, append(x.handle(), to...), sum
	b.link(byName, x, i)
	n.recent.renamed(n.server, x.handle(), x.sums[byHandle])
	return true
}

// remove forgets a name that has been removed from its directory.
func (n *Names) remove(parent, name []byte) {
	if n.known != nil {
		n.removeOf(n.near(parent), parent, name)
	}
}

// removeOf is remove for a name in a directory that is nil, or that of the parent. It returns the sum of the name.
func (n *Names) removeOf(dir *directory, parent, name []byte) uint64 {
	b := n.known
	i, sum := b.ofName(n.server.key(), dir, parent, name)
	if i == 0 {
		return sum
	}
	x := &b.entries[i]
	size := x.size()
	if x.in[byHandle] {
		n.recent.renamed(n.server, x.handle(), x.sums[byHandle])
		n.bytes -= size
		b.take(byHandle, x, i)
	}
	n.bytes -= size
	b.take(byName, x, i)
	b.release(x, i)
	return sum
}

// near returns the directory named last if its handle is parent, which is so for nearly all names, and nil otherwise.
func (n *Names) near(parent []byte) *directory {
	if d := n.dir; d != nil && same(d.handle, parent) {
		return d
	}
	return nil
}

// directory makes a directory that names are kept in. They share it as long as the next one is of the same.
func (n *Names) directory(parent []byte) *directory {
	n.dir = &directory{bytes.Clone(parent), keyedSum(n.server.key(), parent), n.server}
	return n.dir
}

// learn gives a handle a name. Most names are known.
func (n *Names) learn(parent, child, name []byte) {
	i, sum := n.known.ofHandle(n.server.key(), child)
	if i == 0 || !n.known.entries[i].is(parent, name) {
		n.setUnknown(i, sum, child, parent, name)
	}
}

// setUnknown gives a handle a name that is not known, unless no file can have such a handle. It gets what ofHandle returns.
func (n *Names) setUnknown(old int32, sum uint64, child, parent, name []byte) {
	if len(child) == 0 || len(name) == 0 || string(name) == "." || string(name) == ".." {
		return
	}
	n.set(old, sum, child, parent, name)
}

// set gives a handle a name. It gets the entry of the handle, 0 if there is none, and its sum.
func (n *Names) set(old int32, sum uint64, child, parent, name []byte) {
	b, size := n.known, len(child)+len(parent)+len(name)+entryBytes
	if b == nil || b.count[byHandle] >= maxNames || b.count[byName] >= maxNames || n.bytes+2*size > n.limit() {
		if b != nil {
			n.Forgotten++
		}
		b, old = newNameTable(), 0
		n.known, n.bytes = b, 0
		n.recent.forget()
	}
	dir, sums := n.near(parent), [2]uint64{byHandle: sum}
	was, sum := b.ofName(n.server.key(), dir, parent, name)
	sums[byName] = sum
	at := was // the entry that says the same, if there is one
	switch {
	case old != 0 && b.entries[old].is(parent, name):
		at = old
	case was == 0 || string(b.entries[was].handle()) != string(child):
		if dir == nil {
			dir = n.directory(parent)
		}
		at = b.add(child, dir, name, sums)
	}
	n.bytes += 2 * size
	n.replace(byHandle, old, at)
	n.replace(byName, was, at)
	n.recent.renamed(n.server, child, sums[byHandle])
}

// replace puts an entry into a table, in the place of another if there is one. The bytes of the new one have been counted.
func (n *Names) replace(table int, old, at int32) {
	b := n.known
	x := &b.entries[at]
	if old == 0 {
		b.put(table, x, at)
		return
	}
	o := &b.entries[old]
	n.bytes -= o.size()
	if old == at {
		return
	}
	b.put(table, x, at)
	b.take(table, o, old)
	if !o.in[byHandle] && !o.in[byName] {
		b.release(o, old)
	}
}

// limit is how many bytes may be remembered.
func (n *Names) limit() int {
	if n.Limit <= 0 {
		return nameBytes
	}
	return n.Limit
}
