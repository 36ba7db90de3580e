package rpc

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// nameTable holds the names that Names knows. It is two tables in one, since nearly always a file has one name: the newest name of each
// handle, and of each name the handle that it was given last. What is in both is one entry. Sums are made with the key of the server, so that what is
// equal on two servers has two of them.
type nameTable struct {
	entries []entry // the first is nobody's: 0 is none
	free    int32   // the first of a chain
	count   [2]int  // of entries in each table
	heads   [2][]int32
}

// entry says that a file was found under a name. There is one at most for each handle, directory and name.
type entry struct {
	dir       *directory
	text      []byte // the handle, and the name behind it, in room of the entry's own, which is used again
	handleLen int32
	in        [2]bool
	sums      [2]uint64
	next      [2]int32 // in the chains of the tables; if it is free, the first is the next free one
}

func (x *entry) handle() []byte { return x.text[:x.handleLen] }
func (x *entry) name() []byte   { return x.text[x.handleLen:] }

// directory is what the names in a directory have in common. There may be several of one directory.
type directory struct {
	handle []byte // empty if not known
	sum    uint64 // of the handle, for the server
	server Server
}

// keepEntry is how much room a free entry keeps for a handle and a name.
const keepEntry = 128

// The tables of a nameTable.
const (
	byHandle = 0
	byName   = 1
)

const leastHeads = 64 // a power of two, as all lengths

func newNameTable() *nameTable {
	b := &nameTable{entries: make([]entry, 1, leastHeads)}
	b.heads = [2][]int32{make([]int32, leastHeads), make([]int32, leastHeads)}
	return b
}

// head is where the chain of a sum begins.
func (b *nameTable) head(table int, sum uint64) *int32 {
	heads := b.heads[table]
	return &heads[sum&uint64(len(heads)-1)]
}

// ofHandle finds the entry of a handle, which has its newest name; 0 if it has none. It returns the sum of the handle as well. The name table
// may be nil.
func (b *nameTable) ofHandle(key uint64, handle []byte) (i int32, sum uint64) {
	if n := len(handle); n >= 16 && n <= 32 {
		sum = wordsOf(handle).sum(key, n)
	} else {
		sum = keyedSum(key, handle)
	}
	return b.at(sum, handle), sum
}

// at is ofHandle for a handle whose sum is known.
func (b *nameTable) at(sum uint64, handle []byte) int32 {
	if b == nil {
		return 0
	}
	i := *b.head(byHandle, sum)
	for i != 0 {
		x := &b.entries[i]
		if x.sums[byHandle] == sum && same(x.handle(), handle) {
			break
		}
		i = x.next[byHandle]
	}
	return i
}

// ofName finds the entry of a name, which has its newest handle; 0 if it has none. It returns the sum of the name as well. The directory
// may be nil, or that of the parent.
func (b *nameTable) ofName(key uint64, dir *directory, parent, name []byte) (i int32, sum uint64) {
	if dir != nil {
		sum = keyedSum(dir.sum, name)
	} else {
		sum = keyedSum(keyedSum(key, parent), name)
	}
	i = *b.head(byName, sum)
	for i != 0 {
		x := &b.entries[i]
		if x.sums[byName] == sum && (x.dir == dir || same(x.dir.handle, parent)) && string(x.name()) == string(name) {
			break
		}
		i = x.next[byName]
	}
	return i, sum
}

// add makes an entry that is in no table.
func (b *nameTable) add(handle []byte, dir *directory, name []byte, sums [2]uint64) int32 {
	i := b.free
	if i == 0 {
		i = int32(len(b.entries))
		b.entries = append(b.entries, entry{})
	} else {
		b.free = b.entries[i].next[byHandle]
	}
	x := &b.entries[i]
	x.text, x.handleLen, x.dir, x.sums = append(append(x.text, handle...), name...), int32(len(handle)), dir, sums
	return i
}

// put puts entry i, which is x, into a table that it is not in.
func (b *nameTable) put(table int, x *entry, i int32) {
	if b.count[table] >= len(b.heads[table]) {
		b.widen(table)
	}
	b.link(table, x, i)
}

// link is put if there are enough chains.
func (b *nameTable) link(table int, x *entry, i int32) {
	h := b.head(table, x.sums[table])
	x.in[table], x.next[table] = true, *h
	*h = i
	b.count[table]++
}

// widen makes twice as many chains.
func (b *nameTable) widen(table int) {
	b.heads[table], b.count[table] = make([]int32, 2*len(b.heads[table])), 0
	for i := range b.entries {
		if x := &b.entries[i]; x.in[table] {
			b.link(table, x, int32(i))
		}
	}
}

// take takes entry i, which is x, out of a table that it is in.
func (b *nameTable) take(table int, x *entry, i int32) {
	at := b.head(table, x.sums[table])
	for *at != i {
		at = &b.entries[*at].next[table]
	}
	*at = x.next[table]
	x.in[table] = false
	b.count[table]--
}

// release frees entry i, which is x and is in no table any more.
func (b *nameTable) release(x *entry, i int32) {
	if x.dir, x.text = nil, x.text[:0]; cap(x.text) > keepEntry {
		x.text = nil
	}
	x.next[byHandle], b.free = b.free, i
}

// is reports whether it is a name in a directory.
func (x *entry) is(parent, name []byte) bool {
	return same(x.dir.handle, parent) && string(x.name()) == string(name)
}

// size is what the entry takes in one of the tables, in bytes.
func (x *entry) size() int { return len(x.text) + len(x.dir.handle) + entryBytes }

// rehash puts all entries where this process looks for them, whose sums are others: the name table is as another process has saved it.
func (b *nameTable) rehash() {
	old := b.entries
	*b = *newNameTable()
	for i := range old {
		x := old[i]
		if !x.in[byHandle] && !x.in[byName] || x.dir == nil {
			continue
		}
		key := x.dir.server.key()
		x.dir.sum = keyedSum(key, x.dir.handle)
		n := b.add(x.handle(), x.dir, x.name(), [2]uint64{byHandle: keyedSum(key, x.handle()), byName: keyedSum(x.dir.sum, x.name())})
		for table, in := range x.in {
			if in {
				b.put(table, &b.entries[n], n)
			}
		}
	}
}

// Each process has its own hash keys, so that nobody can make a capture whose handles or names all collide.
var (
	sumSeeds = [3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()}
	longSeed = maphash.MakeSeed()
)

// same reports whether two handles are the same. It compares those of 16 to 32 bytes, which most have, without a call.
func same(a, b []byte) bool {
	n := len(a)
	if n != len(b) {
		return false
	}
	if n < 16 || n > 32 {
		return string(a) == string(b)
	}
	return *(*[16]byte)(a) == *(*[16]byte)(b) && *(*[16]byte)(a[n-16:]) == *(*[16]byte)(b[len(b)-16:])
}

// keyedSum is a checksum of some bytes, with a key that nobody can guess. Most handles have 16 to 32 bytes, and most names no more.
func keyedSum(key uint64, b []byte) uint64 {
	var x, y uint64
	n := len(b)
	switch {
	case n > 32:
		x = maphash.Bytes(longSeed, b)
	case n >= 16:
		return wordsOf(b).sum(key, n)
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0])<<16 | uint64(b[n/2])<<8 | uint64(b[n-1])
	}
	return mixed(key, x, y, 0, 0, n)
}

// words are the first and the last 16 bytes of 16 to 32 bytes: all of them.
type words struct{ a, b, c, d uint64 }

func wordsOf(b []byte) words {
	first, last := (*[16]byte)(b), (*[16]byte)(b[len(b)-16:])
	return words{
		binary.LittleEndian.Uint64(first[:8]), binary.LittleEndian.Uint64(first[8:]),
		binary.LittleEndian.Uint64(last[:8]), binary.LittleEndian.Uint64(last[8:]),
	}
}

// are compares without asking of each word, whose answers nobody could foresee.
func (w *words) are(o words) bool { return (w.a^o.a)|(w.b^o.b)|(w.c^o.c)|(w.d^o.d) == 0 }

// sum is keyedSum of a text of the given length.
func (w words) sum(key uint64, n int) uint64 { return mixed(key, w.a, w.b, w.c, w.d, n) }

func mixed(key, x, y, z, w uint64, n int) uint64 {
	hi, lo := bits.Mul64(x^sumSeeds[1], y^key)
	hi, lo = bits.Mul64(z^hi^lo^sumSeeds[2], w^uint64(n)*sumSeeds[1]^key)
	return hi ^ lo
}
