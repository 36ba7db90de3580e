// Package storetest checks implementations of store.Store: against a model, by
// random operations, and with many goroutines at a time.
package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Options of the tests.
type Options struct {
	// Cred is the user of all operations.
	Cred store.Cred
	// Steps is how many operations to do, Seed which.
	Steps int
	Seed  uint64
	// Check, if set, is called from time to time, and in the end when everything was
	// removed.
	Check func(t testing.TB, empty bool)
}

// node is an object of the model.
type node struct {
	handle store.Handle
	kind   store.Type
	links  int
	data   []byte // of files and links
	names  map[string]*node
	parent *node
	xattrs map[string]string
	change uint64
}

type model struct {
	testing.TB
	store store.Store
	info  *store.Info
	opt   Options
	rand  *rand.Rand
	root  *node
	nodes []*node // all there ever were
	log   []string
}

// Model executes random operations on an empty store and on a model of it, and compares the
// results.
func Model(t testing.TB, st store.Store, opt Options) {
	t.Helper()
	m := &model{TB: t, store: st, info: st.Info(), opt: opt, rand: rand.New(rand.NewPCG(opt.Seed, 1))}
	m.root = &node{handle: st.Root(), kind: store.Directory, links: 1, names: map[string]*node{}}
	m.root.parent = m.root
	m.nodes = []*node{m.root}
	ops := []func(){
		m.create, m.create, m.mkdir, m.mkdir, m.symlink, m.link, m.remove, m.rmdir, m.rename, m.rename,
		m.write, m.write, m.write, m.write, m.read, m.read, m.truncate, m.lookup, m.readdir, m.getattr, m.parentOf, m.readlink,
	}
	if m.info.Seek {
		ops = append(ops, m.seek, m.seek)
	}
	if m.info.Allocate {
		ops = append(ops, m.allocate)
	}
	if m.info.Deallocate {
		ops = append(ops, m.deallocate, m.deallocate)
	}
	if m.info.Copy {
		ops = append(ops, m.copy, m.copy)
	}
	if m.info.Clone {
		ops = append(ops, m.clone, m.clone)
	}
	if m.info.Xattrs {
		ops = append(ops, m.xattr)
	}
	for step := range opt.Steps {
		ops[m.rand.IntN(len(ops))]()
		if t.Failed() {
			for _, l := range m.log[max(0, len(m.log)-25):] {
				t.Log(l)
			}
			t.Fatalf("seed %d, step %d", opt.Seed, step)
		}
		if step%500 == 499 {
			m.compare(m.root)
			if opt.Check != nil {
				opt.Check(t, false)
			}
		}
	}
	m.compare(m.root)
	m.clear(m.root)
	if opt.Check != nil {
		opt.Check(t, true)
	}
}

func (m *model) logf(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
	if len(m.log) > 1000 {
		m.log = slices.Delete(m.log, 0, 900)
	}
}

// want compares an error with the one expected; true if both are nil.
func (m *model) want(got error, want store.Error) bool {
	m.Helper()
	if store.Of(got) != want {
		m.Errorf("%s: got %v, want %v", m.log[len(m.log)-1], got, want)
		return false
	}
	return got == nil
}

func (m *model) cred() *store.Cred { c := m.opt.Cred; return &c }

// any is some object; most often one that exists.
func (m *model) any(kinds ...store.Type) *node {
	for range 30 {
		n := m.nodes[m.rand.IntN(len(m.nodes))]
		if n.links > 0 && slices.Contains(kinds, n.kind) || m.rand.IntN(40) == 0 {
			return n
		}
	}
	return m.root
}

func (m *model) dir() *node  { return m.any(store.Directory) }
func (m *model) file() *node { return m.any(store.Regular) }

func (m *model) name(d *node) string {
	if len(d.names) > 0 && m.rand.IntN(3) > 0 {
		all := slices.Sorted(maps.Keys(d.names))
		return all[m.rand.IntN(len(all))]
	}
	return [...]string{"a", "b", "c", "d\xff", "e e", "\n", "long" + fmt.Sprintf("%0200d", 1)}[m.rand.IntN(7)]
}

// in is the error of an operation on a name in d, before it looks at the name.
func (m *model) in(d *node) store.Error {
	switch {
	case d.links == 0:
		return store.ErrStale
	case d.kind != store.Directory:
		return store.ErrNotDir
	}
	return 0
}

func (m *model) add(d *node, name string, n *node) {
	if n.links++; n.names != nil {
		n.parent = d
	}
	d.names[name] = n
}

// new notes an object that was made.
func (m *model) new(d *node, name string, kind store.Type, a *store.Attr, w *store.Wcc, data []byte) {
	n := &node{handle: a.Handle, kind: kind, data: data, xattrs: map[string]string{}}
	if kind == store.Directory {
		n.names = map[string]*node{}
	}
	m.add(d, name, n)
	m.nodes = append(m.nodes, n)
	m.checkAttr(n, a)
	m.wcc(d, w)
}

// checkAttr compares attributes with the model.
func (m *model) checkAttr(n *node, a *store.Attr) {
	m.Helper()
	if a.Handle != n.handle || a.Type != n.kind {
		m.Errorf("%v, type %d; want %v, type %d", a.Handle, a.Type, n.handle, n.kind)
	}
	if n.kind != store.Directory {
		if a.Size != uint64(len(n.data)) {
			m.Errorf("size %d, want %d", a.Size, len(n.data))
		}
		if int(a.Nlink) != n.links {
			m.Errorf("%d links, want %d", a.Nlink, n.links)
		}
	}
	if a.Change < n.change {
		m.Errorf("change went back from %d to %d", n.change, a.Change)
	}
	n.change = a.Change
}

// wcc checks what is told about a change of n.
func (m *model) wcc(n *node, w *store.Wcc) {
	m.Helper()
	if w.Before.Change >= w.After.Change || w.After.Handle != n.handle || w.Before.Change < n.change {
		m.Errorf("change before %d, after %d, known %d; %v of %v", w.Before.Change, w.After.Change, n.change, w.After.Handle, n.handle)
	}
	n.change = w.After.Change
}

func (m *model) create() {
	d := m.dir()
	name := m.name(d)
	how := store.Create{Mode: store.CreateMode(m.rand.IntN(2))}
	m.logf("create %v %q %d", d.handle, name, how.Mode)
	var a store.Attr
	var w store.Wcc
	created, err := m.store.Create(m.cred(), d.handle, []byte(name), &how, &a, &w)
	want := m.in(d)
	old := d.names[name]
	if want == 0 && old != nil && how.Mode == store.Guarded {
		want = store.ErrExist
	}
	if !m.want(err, want) {
		return
	}
	if created != (old == nil) {
		m.Errorf("created: %v", created)
	}
	if old != nil {
		m.checkAttr(old, &a)
		return
	}
	m.new(d, name, store.Regular, &a, &w, nil)
}

func (m *model) mkdir() {
	d := m.dir()
	name := m.name(d)
	m.logf("mkdir %v %q", d.handle, name)
	var a store.Attr
	var w store.Wcc
	set := store.SetAttr{Mask: store.SetMode, Mode: 0o755}
	err := m.store.Mkdir(m.cred(), d.handle, []byte(name), &set, &a, &w)
	if m.want(err, m.absent(d, name)) {
		m.new(d, name, store.Directory, &a, &w, nil)
	}
}

func (m *model) absent(d *node, name string) store.Error {
	if e := m.in(d); e != 0 {
		return e
	}
	if d.names[name] != nil {
		return store.ErrExist
	}
	return 0
}

func (m *model) symlink() {
	d := m.dir()
	name := m.name(d)
	text := fmt.Sprintf("../%s/target-%d", name, m.rand.IntN(1000))
	m.logf("symlink %v %q", d.handle, name)
	var a store.Attr
	var w store.Wcc
	if m.want(m.store.Symlink(m.cred(), d.handle, []byte(name), []byte(text), nil, &a, &w), m.absent(d, name)) {
		m.new(d, name, store.Symlink, &a, &w, []byte(text))
	}
}

func (m *model) readlink() {
	n := m.any(store.Symlink)
	m.logf("readlink %v", n.handle)
	text, err := m.store.Readlink(m.cred(), n.handle, []byte("x"))
	want := store.Error(0)
	if n.links == 0 {
		want = store.ErrStale
	} else if n.kind != store.Symlink {
		want = store.ErrInval
	}
	if m.want(err, want) && string(text) != "x"+string(n.data) {
		m.Errorf("%q, want %q", text, n.data)
	}
}

func (m *model) link() {
	n, d := m.any(store.Regular, store.Symlink), m.dir()
	name := m.name(d)
	m.logf("link %v %v %q", n.handle, d.handle, name)
	want := m.absent(d, name)
	switch {
	case n.links == 0:
		want = store.ErrStale
	case n.kind == store.Directory:
		want = store.ErrIsDir
	}
	var a store.Attr
	var w store.Wcc
	if m.want(m.store.Link(m.cred(), n.handle, d.handle, []byte(name), &a, &w), want) {
		m.add(d, name, n)
		m.checkAttr(n, &a)
		m.wcc(d, &w)
	}
}

func (m *model) remove() {
	d := m.dir()
	name := m.name(d)
	m.logf("remove %v %q", d.handle, name)
	want := m.in(d)
	n := d.names[name]
	switch {
	case want != 0:
	case n == nil:
		want = store.ErrNoEnt
	case n.kind == store.Directory:
		want = store.ErrIsDir
	}
	var w store.Wcc
	if m.want(m.store.Remove(m.cred(), d.handle, []byte(name), &w), want) {
		delete(d.names, name)
		n.links--
		m.wcc(d, &w)
	}
}

func (m *model) rmdir() {
	d := m.dir()
	name := m.name(d)
	m.logf("rmdir %v %q", d.handle, name)
	want := m.in(d)
	n := d.names[name]
	switch {
	case want != 0:
	case n == nil:
		want = store.ErrNoEnt
	case n.kind != store.Directory:
		want = store.ErrNotDir
	case len(n.names) > 0:
		want = store.ErrNotEmpty
	}
	var w store.Wcc
	if m.want(m.store.Rmdir(m.cred(), d.handle, []byte(name), &w), want) {
		delete(d.names, name)
		n.links = 0
		m.wcc(d, &w)
	}
}

func (m *model) rename() {
	from, to := m.dir(), m.dir()
	name := m.name(from)
	newName := m.name(to)
	m.logf("rename %v %q %v %q", from.handle, name, to.handle, newName)
	want := m.in(from)
	if want == 0 {
		want = m.in(to)
	}
	n, old := from.names[name], to.names[newName]
	switch {
	case want != 0:
	case n == nil:
		want = store.ErrNoEnt
	case m.below(to, n):
		want = store.ErrInval
	case old == nil, old == n:
	case (old.kind == store.Directory) != (n.kind == store.Directory):
		want = store.ErrExist
	case len(old.names) > 0:
		want = store.ErrNotEmpty
	}
	var wFrom, wTo store.Wcc
	if !m.want(m.store.Rename(m.cred(), from.handle, []byte(name), to.handle, []byte(newName), &wFrom, &wTo), want) || n == old {
		return
	}
	m.wcc(from, &wFrom)
	if from != to {
		m.wcc(to, &wTo)
	}
	if old != nil {
		old.links--
	}
	delete(from.names, name)
	n.links--
	m.add(to, newName, n)
}

// below reports whether d is n or in it.
func (m *model) below(d, n *node) bool {
	for ; d != m.root; d = d.parent {
		if d == n {
			return true
		}
	}
	return n == m.root
}

func (m *model) lookup() {
	d := m.dir()
	name := m.name(d)
	m.logf("lookup %v %q", d.handle, name)
	want := m.in(d)
	n := d.names[name]
	if want == 0 && n == nil {
		want = store.ErrNoEnt
	}
	var a store.Attr
	if m.want(m.store.Lookup(m.cred(), d.handle, []byte(name), &a), want) {
		m.checkAttr(n, &a)
	}
}

func (m *model) parentOf() {
	d := m.dir()
	m.logf("parent %v", d.handle)
	if h, err := m.store.Parent(m.cred(), d.handle); m.want(err, m.in(d)) && h != d.parent.handle {
		m.Errorf("%v, want %v", h, d.parent.handle)
	}
}

func (m *model) getattr() {
	n := m.nodes[m.rand.IntN(len(m.nodes))]
	m.logf("getattr %v", n.handle)
	want := store.Error(0)
	if n.links == 0 {
		want = store.ErrStale
	}
	var a store.Attr
	if m.want(m.store.GetAttr(n.handle, &a), want) {
		m.checkAttr(n, &a)
	}
}

func (m *model) readdir() {
	d := m.dir()
	m.logf("readdir %v", d.handle)
	list := store.DirList{Max: 1 + m.rand.IntN(4), Attrs: m.rand.IntN(2) == 0}
	seen := map[string]bool{}
	var cookie, verifier uint64
	for {
		if !m.want(m.store.ReadDir(m.cred(), d.handle, cookie, verifier, &list), m.in(d)) {
			return
		}
		verifier = list.Verifier
		for i := range list.Entries {
			e := &list.Entries[i]
			n := d.names[string(e.Name)]
			if n == nil || seen[string(e.Name)] || n.handle != e.Handle || n.kind != e.Type || e.Cookie < store.FirstCookie || e.HasAttr != list.Attrs {
				m.Errorf("entry %q %+v of %+v", e.Name, e, n)
				return
			}
			if list.Attrs {
				m.checkAttr(n, &e.Attr)
			}
			seen[string(e.Name)], cookie = true, e.Cookie
		}
		if list.EOF {
			break
		}
		if len(list.Entries) == 0 {
			m.Errorf("no entries, and not the end")
			return
		}
	}
	if len(seen) != len(d.names) {
		m.Errorf("%d entries, want %d", len(seen), len(d.names))
	}
}

// compare reads the whole tree.
func (m *model) compare(d *node) {
	m.Helper()
	for name, n := range d.names {
		var a store.Attr
		m.logf("compare %v %q", d.handle, name)
		if !m.want(m.store.Lookup(m.cred(), d.handle, []byte(name), &a), 0) {
			return
		}
		m.checkAttr(n, &a)
		switch n.kind {
		case store.Directory:
			m.compare(n)
		case store.Regular:
			m.readAll(n, 0, uint32(len(n.data)+1))
		}
	}
}

// clear removes all.
func (m *model) clear(d *node) {
	for name, n := range d.names {
		var w store.Wcc
		m.logf("clear %v %q", d.handle, name)
		if n.kind == store.Directory {
			m.clear(n)
			m.want(m.store.Rmdir(m.cred(), d.handle, []byte(name), &w), 0)
		} else {
			m.want(m.store.Remove(m.cred(), d.handle, []byte(name), &w), 0)
		}
	}
	d.names = map[string]*node{}
}

func (m *model) xattr() {
	n := m.any(store.Regular, store.Directory)
	name, value := string(rune('a'+m.rand.IntN(3))), fmt.Sprint(m.rand.IntN(100))
	how := store.XattrMode(m.rand.IntN(3))
	m.logf("xattr %v %q %d", n.handle, name, how)
	if n.links == 0 || n.kind == store.Symlink || n == m.root {
		return
	}
	old, exists := n.xattrs[name]
	var w store.Wcc
	switch m.rand.IntN(4) {
	case 0:
		want := store.Error(0)
		if !exists {
			want = store.ErrNoXattr
		}
		if got, err := m.store.GetXattr(m.cred(), n.handle, []byte(name), []byte("=")); m.want(err, want) && string(got) != "="+old {
			m.Errorf("%q, want %q", got, old)
		}
	case 1:
		want := store.Error(0)
		if !exists {
			want = store.ErrNoXattr
		}
		if m.want(m.store.RemoveXattr(m.cred(), n.handle, []byte(name), &w), want) {
			delete(n.xattrs, name)
		}
	case 2:
		want := store.Error(0)
		switch {
		case exists && how == store.XattrCreate:
			want = store.ErrExist
		case !exists && how == store.XattrReplace:
			want = store.ErrNoXattr
		}
		if m.want(m.store.SetXattr(m.cred(), n.handle, []byte(name), []byte(value), how, &w), want) {
			n.xattrs[name] = value
			m.wcc(n, &w)
		}
	default:
		names := map[string]bool{}
		err := m.store.ListXattrs(m.cred(), n.handle, func(name []byte) bool { names[string(name)] = true; return true })
		if m.want(err, 0) && !slices.Equal(slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(n.xattrs))) {
			m.Errorf("%v, want %v", names, n.xattrs)
		}
	}
}

// Zero reports whether all of b is zero.
func Zero(b []byte) bool { return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1]) }
