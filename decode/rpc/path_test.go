package rpc

import (
	"fmt"
	"testing"
)

func TestAppendPath(t *testing.T) {
	var n Names
	n.learn([]byte("root"), []byte("h1"), []byte("d1"))
	n.learn([]byte("h1"), []byte("h2"), []byte("small"))
	n.learn([]byte("y"), []byte("x"), []byte("a"))
	n.learn([]byte("x"), []byte("y"), []byte("b")) // a circle
	for _, h := range []string{"root", "h1", "h2", "x", "y", ""} {
		if got, want := string(n.AppendPath(nil, []byte(h))), n.Path([]byte(h)); got != want {
			t.Errorf("%s: %q, want %q", h, got, want)
		}
	}
	buf := make([]byte, 0, 256)
	handle := []byte("h2")
	if a := testing.AllocsPerRun(100, func() { buf = n.AppendPath(buf[:0], handle) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

// TestNamesLimit bounds what names take, however long they are, and gives back
// what was removed.
func TestNamesLimit(t *testing.T) {
	n := Names{Limit: 1 << 20}
	name := make([]byte, 10_000)
	for i := range 2000 {
		n.learn([]byte("root"), fmt.Append(nil, i), fmt.Append(name, i))
		if n.bytes > n.Limit {
			t.Fatalf("%d bytes", n.bytes)
		}
	}
	if n.Forgotten == 0 {
		t.Error("nothing forgotten")
	}
	// What was known of the handle is forgotten with the rest.
	n = Names{Limit: 2 * (entryBytes + 20)}
	n.learn([]byte("root"), []byte("handle"), []byte("a"))
	n.learn([]byte("root"), []byte("handle"), name[:30])
	if got := n.Path([]byte("handle")); n.Forgotten != 1 || got != string(name[:30]) || len(n.byName()) != 1 {
		t.Errorf("%d times forgotten, then %q", n.Forgotten, got)
	}
	n = Names{Limit: 1 << 20}
	for i := range 100_000 {
		n.learn([]byte("root"), fmt.Append(nil, i), fmt.Append(nil, "name", i))
		n.learn([]byte("root"), fmt.Append(nil, i), fmt.Append(nil, "other", i))
		n.rename([]byte("root"), fmt.Append(nil, "other", i), []byte("d"), []byte("one"))
		n.remove([]byte("root"), fmt.Append(nil, "name", i))
		n.remove([]byte("d"), []byte("one"))
	}
	if n.Forgotten != 0 || len(n.byHandle())+len(n.byName()) != 0 || n.bytes != 0 {
		t.Errorf("%d times forgotten, %d and %d left of %d bytes", n.Forgotten, len(n.byHandle()), len(n.byName()), n.bytes)
	}
}

// TestSame changes each byte of handles of all lengths: they, their checksums and their places differ.
func TestSame(t *testing.T) {
	var names Names
	same := func(a, b []byte) bool {
		first := names.Place(a).Stamp
		return first != 0 && names.Place(b).Stamp == first
	}
	for n := range 65 {
		a := make([]byte, n)
		for i := range a {
			a[i] = byte(7 * i)
		}
		b := append([]byte{}, a...)
		if !same(a, b) || keyedSum(sumSeeds[0], a) != keyedSum(sumSeeds[0], b) {
			t.Fatalf("%d bytes differ", n)
		}
		for i := range b {
			b[i] ^= 0x40
			if same(a, b) || keyedSum(sumSeeds[0], a) == keyedSum(sumSeeds[0], b) {
				t.Fatalf("byte %d of %d does not matter", i, n)
			}
			b[i] ^= 0x40
		}
		if same(a, append(b, 0)) || keyedSum(sumSeeds[0], a) == keyedSum(sumSeeds[0], append(b, 0)) {
			t.Fatalf("%d and %d bytes are the same", n, n+1)
		}
	}
}

// TestAlikeSums has two handles with the same checksum and the same slot, which differ in one byte: each keeps its own place.
func TestAlikeSums(t *testing.T) {
	for _, size := range []int{5, 16, 20, 32, 40} {
		for i := range size {
			var n Names
			a, b := make([]byte, size), make([]byte, size)
			b[i] = 1
			n.learn([]byte("root"), a, []byte("a"))
			n.learn([]byte("root"), b, []byte("b"))
			n.Place(a)
			f, g := &n.recent.files[slotOf(0, a)], &n.recent.files[slotOf(0, b)]
			*g = *f
			g.sum = keyedSum(sumSeeds[0], b)
			if got := string(n.Place(b).Path); got != "b" {
				t.Errorf("byte %d of %d: %s", i, size, got)
			}
		}
	}
}

// TestStamp has a stamp for each handle and path: two Names have none in common.
func TestStamp(t *testing.T) {
	type key struct{ handle, path string }
	seen := make(map[uint64]key)
	for which := range 3 {
		n := &Names{}
		for i := range 4000 {
			h := fmt.Append(nil, "handle ", i*i%300)
			switch i % 7 {
			case 0, 1:
				n.learn(fmt.Append(nil, "handle ", i%5), h, fmt.Append(nil, i%50))
			case 2:
				n.remove(fmt.Append(nil, "handle ", i%5), fmt.Append(nil, i%50))
			}
			p := n.Place(h)
			if p == nil { // a circle
				continue
			}
			k := key{fmt.Sprint(which, " ", string(h)), string(p.Path)}
			if k.path != n.Path(h) || p.Slot < 0 || p.Slot >= Places {
				t.Fatalf("%q at %d, want %q", k.path, p.Slot, n.Path(h))
			}
			if had, ok := seen[p.Stamp]; ok && had != k || p.Stamp == 0 {
				t.Fatalf("stamp %d of %q is that of %q", p.Stamp, k, had)
			}
			seen[p.Stamp] = k
		}
	}
}
