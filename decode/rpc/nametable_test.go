package rpc

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestRehash loads a name table that another process has saved, with other hash keys: all names are found.
func TestRehash(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	n := &Names{}
	word := func(k int) []byte { return []byte("word " + strconv.Itoa(random.IntN(k))) }
	for range 2000 {
		n.learn(word(40), word(400), word(100))
		n.remove(word(40), word(100))
		n.rename(word(40), word(100), word(40), word(100))
	}
	handles, names := n.byHandle(), n.byName()
	for i := range n.known.entries {
		x := &n.known.entries[i]
		x.sums = [2]uint64{random.Uint64(), random.Uint64()}
		if x.dir != nil {
			x.dir.sum = random.Uint64()
		}
	}
	// A file may hold what no book has.
	n.known.entries = append(n.known.entries, entry{text: []byte("name"), in: [2]bool{true, true}})
	n.known.rehash()
	again := Names{known: n.known, bytes: n.bytes}
	if now := again.byHandle(); len(now) != len(handles) || len(now) < 100 {
		t.Errorf("%d handles, want %d", len(now), len(handles))
	} else {
		for h, e := range handles {
			if now[h] != e {
				t.Errorf("%q is %q, want %q", h, now[h], e)
			}
		}
	}
	if now := again.byName(); len(now) != len(names) {
		t.Errorf("%d names, want %d", len(now), len(names))
	}
	for i := range again.known.entries {
		if x := &again.known.entries[i]; x.in[byName] && x.dir.sum != keyedSum(x.dir.server.key(), x.dir.handle) {
			t.Fatalf("the sum of directory %q is that of another process", x.dir.handle)
		}
	}
}

// TestSameHandle changes each byte of handles of all lengths.
func TestSameHandle(t *testing.T) {
	for n := range 70 {
		a, b := make([]byte, n), make([]byte, n)
		if !same(a, b) || same(a, make([]byte, n+1)) || same(make([]byte, n+1), a) {
			t.Errorf("%d bytes: same fails", n)
		}
		for i := range a {
			a[i] = 1
			if same(a, b) || same(b, a) {
				t.Errorf("%d bytes: byte %d does not count", n, i)
			}
			a[i] = 0
		}
	}
}

// TestKeyedSum: all bytes count, whatever the length.
func TestKeyedSum(t *testing.T) {
	key, other := rand.Uint64(), rand.Uint64()
	for n := range 70 {
		b := make([]byte, n)
		seen := map[uint64]bool{keyedSum(key, b): true}
		for i := range b {
			b[i] = 1
			if sum := keyedSum(key, b); seen[sum] {
				t.Errorf("%d bytes: two have the same sum", n)
			} else {
				seen[sum] = true
			}
			b[i] = 0
		}
		if seen[keyedSum(other, b)] || seen[keyedSum(key, make([]byte, n+1))] {
			t.Errorf("%d bytes: key or length do not count", n)
		}
		if _, sum := (*nameTable)(nil).ofHandle(Server(7).key(), b); sum != keyedSum(Server(7).key(), b) {
			t.Errorf("%d bytes: a search has another sum", n)
		}
	}
}
