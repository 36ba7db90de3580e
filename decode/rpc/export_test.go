package rpc

import "maps"

// SameNames reports whether two Names know the same.
func SameNames(a, b *Names) bool {
	return a.bytes == b.bytes && maps.Equal(a.byHandle(), b.byHandle()) && maps.Equal(a.byName(), b.byName())
}

// stored is a name in a directory.
type stored struct{ parent, name string }

// byHandle is the newest name of each handle. Of each entry, it is looked up as well.
func (n *Names) byHandle() map[string]stored {
	m := make(map[string]stored)
	n.eachEntry(byHandle, func(i int32, x *entry) {
		m[string(x.handle())] = stored{string(x.dir.handle), string(x.name())}
		if at, _ := n.known.ofHandle(x.dir.server.key(), x.handle()); at != i {
			panic("a handle is not where it is looked for")
		}
	})
	return m
}

// byName is the newest handle of each name.
func (n *Names) byName() map[stored]string {
	m := make(map[stored]string)
	n.eachEntry(byName, func(i int32, x *entry) {
		m[stored{string(x.dir.handle), string(x.name())}] = string(x.handle())
		if at, _ := n.known.ofName(x.dir.server.key(), nil, x.dir.handle, x.name()); at != i {
			panic("a name is not where it is looked for")
		}
	})
	return m
}

// eachEntry calls f for the entries of a table, and checks the name table.
func (n *Names) eachEntry(table int, f func(i int32, x *entry)) {
	if n.known == nil {
		return
	}
	b, found := n.known, 0
	used, unused := 0, 0
	for i := range b.entries {
		x := &b.entries[i]
		if x.in[table] {
			found++
			f(int32(i), x)
		}
		if x.in[byHandle] || x.in[byName] {
			used++
		}
	}
	for i := b.free; i != 0; i = b.entries[i].next[byHandle] {
		unused++
	}
	if found != b.count[table] || used+unused+1 != len(b.entries) {
		panic("the name table miscounts")
	}
}
