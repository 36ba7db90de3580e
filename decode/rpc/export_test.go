package rpc

import "maps"

// SameNames reports whether two Names know the same.
func SameNames(a, b *Names) bool {
	return a.bytes == b.bytes && maps.Equal(a.byHandle(), b.byHandle()) && maps.Equal(a.byName(), b.byName())
}

// entry is a name in a directory.
type entry struct{ parent, name string }

// byHandle is the newest name of each handle. Of each leaf, it is looked up as well.
func (n *Names) byHandle() map[string]entry {
	m := make(map[string]entry)
	n.eachLeaf(byHandle, func(i int32, x *leaf) {
		m[string(x.handle())] = entry{string(x.dir.handle), string(x.name())}
		if at, _ := n.book.ofHandle(x.dir.server.key(), x.handle()); at != i {
			panic("a handle is not where it is looked for")
		}
	})
	return m
}

// byName is the newest handle of each name.
func (n *Names) byName() map[entry]string {
	m := make(map[entry]string)
	n.eachLeaf(byName, func(i int32, x *leaf) {
		m[entry{string(x.dir.handle), string(x.name())}] = string(x.handle())
		if at, _ := n.book.ofName(x.dir.server.key(), nil, x.dir.handle, x.name()); at != i {
			panic("a name is not where it is looked for")
		}
	})
	return m
}

// eachLeaf calls f for the leaves of a table, and checks the book.
func (n *Names) eachLeaf(table int, f func(i int32, x *leaf)) {
	if n.book == nil {
		return
	}
	b, found := n.book, 0
	used, unused := 0, 0
	for i := range b.leaves {
		x := &b.leaves[i]
		if x.in[table] {
			found++
			f(int32(i), x)
		}
		if x.in[byHandle] || x.in[byName] {
			used++
		}
	}
	for i := b.free; i != 0; i = b.leaves[i].next[byHandle] {
		unused++
	}
	if found != b.count[table] || used+unused+1 != len(b.leaves) {
		panic("the book miscounts")
	}
}
