package rpc

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// book holds the names that Names knows. It is two tables in one, since nearly always a file has one name: the newest name of each
// handle, and of each name the handle that it was given last. What is in both is one leaf.
type book struct {
	leaves []leaf // the first is nobody's: 0 is none
	free   int32  // the first of a chain
	count  [2]int // of leaves in each table
	heads  [2][]int32
}

// leaf says that a file was found under a name. There is one at most for each handle, directory and name.
type leaf struct {
	parent       string // handle of the directory; "" if not known
	name, handle []byte // in room of the leaf's own, which is used again
	sums         [2]uint64
	next         [2]int32 // in the chains of the tables; if it is free, the first is the next free one
	in           [2]bool
}

// keepLeaf is how much room a free leaf keeps for a name, and for a handle.
const keepLeaf = 64

// The tables of a book.
const (
	byHandle = 0
	byName   = 1
)

const leastHeads = 64 // a power of two, as all lengths

func newBook() *book {
	b := &book{leaves: make([]leaf, 1, leastHeads)}
	b.heads = [2][]int32{make([]int32, leastHeads), make([]int32, leastHeads)}
	return b
}

// head is where the chain of a sum begins.
func (b *book) head(table int, sum uint64) *int32 {
	heads := b.heads[table]
	return &heads[sum&uint64(len(heads)-1)]
}

// ofHandle finds the leaf of a handle, which has its newest name; 0 if it has none.
func (b *book) ofHandle(sum uint64, handle []byte) int32 {
	i := *b.head(byHandle, sum)
	for i != 0 {
		x := &b.leaves[i]
		if x.sums[byHandle] == sum && string(x.handle) == string(handle) {
			break
		}
		i = x.next[byHandle]
	}
	return i
}

// ofName finds the leaf of a name, which has its newest handle; 0 if it has none.
func (b *book) ofName(sum uint64, parent, name []byte) int32 {
	i := *b.head(byName, sum)
	for i != 0 {
		x := &b.leaves[i]
		if x.sums[byName] == sum && x.is(parent, name) {
			break
		}
		i = x.next[byName]
	}
	return i
}

// add makes a leaf that is in no table.
func (b *book) add(handle []byte, parent string, name []byte, sums [2]uint64) int32 {
	i := b.free
	if i == 0 {
		i = int32(len(b.leaves))
		b.leaves = append(b.leaves, leaf{})
	} else {
		b.free = b.leaves[i].next[byHandle]
	}
	x := &b.leaves[i]
	x.handle, x.parent, x.sums = append(x.handle, handle...), parent, sums
	x.name = append(x.name, name...)
	return i
}

// put puts a leaf into a table that it is not in.
func (b *book) put(table int, i int32) {
	if b.count[table] >= len(b.heads[table]) {
		b.widen(table)
	}
	x := &b.leaves[i]
	h := b.head(table, x.sums[table])
	x.in[table], x.next[table] = true, *h
	*h = i
	b.count[table]++
}

// widen makes twice as many chains.
func (b *book) widen(table int) {
	b.heads[table] = make([]int32, 2*len(b.heads[table]))
	for i := range b.leaves {
		if x := &b.leaves[i]; x.in[table] {
			h := b.head(table, x.sums[table])
			x.next[table], *h = *h, int32(i)
		}
	}
}

// take takes a leaf out of a table that it is in. One that is in none is free.
func (b *book) take(table int, i int32) {
	x := &b.leaves[i]
	at := b.head(table, x.sums[table])
	for *at != i {
		at = &b.leaves[*at].next[table]
	}
	*at = x.next[table]
	x.in[table] = false
	b.count[table]--
	if !x.in[byHandle] && !x.in[byName] {
		x.parent, x.name, x.handle = "", kept(x.name), kept(x.handle)
		x.next[byHandle], b.free = b.free, i
	}
}

// kept is the room of b, if it is to be kept.
func kept(b []byte) []byte {
	if cap(b) > keepLeaf {
		return nil
	}
	return b[:0]
}

// is reports whether it is a name in a directory.
func (x *leaf) is(parent, name []byte) bool {
	return string(x.name) == string(name) && x.parent == string(parent)
}

// size is what the leaf takes in one of the tables, in bytes.
func (x *leaf) size() int { return len(x.handle) + len(x.parent) + len(x.name) + entryBytes }

// rehash puts all leaves where this process looks for them, whose sums are others: the book is as another process has saved it.
func (b *book) rehash() {
	old := b.leaves
	*b = *newBook()
	for i := range old {
		x := old[i]
		if !x.in[byHandle] && !x.in[byName] {
			continue
		}
		n := b.add(x.handle, x.parent, x.name, [2]uint64{byHandle: handleSum(x.handle), byName: nameSum([]byte(x.parent), x.name)})
		for table, in := range x.in {
			if in {
				b.put(table, n)
			}
		}
	}
}

// Each process has its own hash keys, so that nobody can make a capture whose handles or names all collide.
var (
	sumSeeds = [3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()}
	longSeed = maphash.MakeSeed()
)

func handleSum(handle []byte) uint64 { return keyedSum(sumSeeds[0], handle) }

func nameSum(parent, name []byte) uint64 { return keyedSum(handleSum(parent), name) }

// keyedSum is a checksum of some bytes, with a key that nobody can guess. Most handles have 16 to 32 bytes, and most names no more.
func keyedSum(key uint64, b []byte) uint64 {
	var x, y, z, w uint64
	n := len(b)
	switch {
	case n > 32:
		x = maphash.Bytes(longSeed, b)
	case n >= 16:
		last := b[n-16:]
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		z, w = binary.LittleEndian.Uint64(last), binary.LittleEndian.Uint64(last[8:])
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0])<<16 | uint64(b[n/2])<<8 | uint64(b[n-1])
	}
	hi, lo := bits.Mul64(x^sumSeeds[1], y^key)
	hi, lo = bits.Mul64(z^hi^lo^sumSeeds[2], w^uint64(n)*sumSeeds[1]^key)
	return hi ^ lo
}
