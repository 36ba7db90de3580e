package rpc

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestNames compares Names with two plain maps, and what it says it holds with what is there.
func TestNames(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	var handles []string
	for _, size := range []int{1, 9, 16, 28, 32, 40} { // two of each, which differ in a byte
		h := strings.Repeat("handle of", 5)[:size]
		at := random.IntN(size)
		handles = append(handles, h, h[:at]+"x"+h[at+1:])
	}
	n := &Names{}
	byHandle, byName := make(map[string]stored), make(map[stored]string)
	remove := func(e stored) {
		h, ok := byName[e]
		if !ok {
			return
		}
		delete(byName, e)
		if byHandle[h] == e {
			delete(byHandle, h)
		}
	}
	for step := range sampled.Rounds(6_000) {
		handle := func() string { return handles[random.IntN(len(handles))] }
		name := func() string {
			if random.IntN(50) == 0 {
				return strings.Repeat("long", 600) // two of them are longer than the path of a directory that is kept
			}
			return "name " + strconv.Itoa(random.IntN(4))
		}
		parent := []byte(handle())
		switch a := (stored{string(parent), name()}); random.IntN(4) {
		case 0:
			n.remove(parent, []byte(a.name))
			remove(a)
		case 1:
			to := stored{handle(), name()}
			n.rename(parent, []byte(a.name), []byte(to.parent), []byte(to.name))
			h, ok := byName[a]
			remove(to)
			if ok {
				remove(a)
				byHandle[h], byName[to] = to, h
			}
		default:
			child := handle()
			n.learn(parent, []byte(child), []byte(a.name))
			if byHandle[child] != a {
				byHandle[child], byName[a] = a, child
			}
		}
		for i := range parent {
			parent[i] = '!' // it belongs to a message
		}
		if !maps.Equal(n.byHandle(), byHandle) || !maps.Equal(n.byName(), byName) {
			t.Fatalf("step %d: %v, %v, want %v, %v", step, n.byHandle(), n.byName(), byHandle, byName)
		}
		for _, s := range append(handles, "another") {
			if step >= 2000 {
				break
			}
			h := []byte(s)
			if got, want := string(n.AppendPath(nil, h)), n.Path(h); got != want {
				t.Fatalf("step %d: path of %s is %q, want %q", step, h, got, want)
			}
		}
		bytes := 0
		for h, e := range n.byHandle() {
			bytes += len(h) + len(e.parent) + len(e.name) + entryBytes
		}
		for e, h := range n.byName() {
			bytes += len(h) + len(e.parent) + len(e.name) + entryBytes
		}
		if n.bytes != bytes {
			t.Fatalf("step %d: %d bytes, want %d", step, n.bytes, bytes)
		}
	}
}

// TestNamesAllocate: what is known already, and a name that goes, cost nothing.
func TestNamesAllocate(t *testing.T) {
	n := &Names{}
	dir, child, name := make([]byte, 40), []byte("a handle that is longer than thirty-two bytes"), []byte("name")
	other := []byte("eman")
	n.learn(dir, child, name)
	if a := testing.AllocsPerRun(100, func() { n.learn(dir, child, name) }); a != 0 {
		t.Errorf("%v allocations for a name that is known", a)
	}
	if a := testing.AllocsPerRun(100, func() {
		n.learn(dir, child, name)
		n.learn(child, child, []byte("."))
		n.remove(child, other)
		n.rename(child, other, child, name)
	}); a != 0 {
		t.Errorf("%v allocations for other directories", a)
	}
	// The room is used again, the directory is shared.
	if a := testing.AllocsPerRun(100, func() {
		n.remove(dir, name)
		n.learn(dir, child, name)
		n.rename(dir, name, dir, other)
		n.rename(dir, other, dir, name)
	}); a != 0 {
		t.Errorf("%v allocations for a name that goes and comes", a)
	}
}

// TestSameSums gives an entry the sums of another handle or name, as somebody may find two that have the same: neither is taken for the other.
func TestSameSums(t *testing.T) {
	for _, size := range []int{3, 16, 20, 32, 40} {
		for i := range size {
			a, b := make([]byte, size), make([]byte, size)
			b[i] = 1
			for what, other := range map[string][3][]byte{ // directory, handle, name
				"handle":    {a, b, a},
				"directory": {b, a, a},
				"name":      {a, a, b},
			} {
				var n Names
				n.learn(a, a, a)
				x := &n.known.entries[1]
				n.known.take(byHandle, x, 1)
				n.known.take(byName, x, 1)
				_, x.sums[byHandle] = n.known.ofHandle(n.server.key(), other[1])
				_, x.sums[byName] = n.known.ofName(n.server.key(), nil, other[0], other[2])
				n.known.put(byHandle, x, 1)
				n.known.put(byName, x, 1)
				if at, _ := n.known.ofHandle(n.server.key(), other[1]); (at != 0) != (what != "handle") {
					t.Errorf("%d bytes, byte %d: another %s gets entry %d by its handle", size, i, what, at)
				}
				for _, dir := range []*directory{nil, {other[0], keyedSum(n.server.key(), other[0]), 0}} {
					if at, _ := n.known.ofName(n.server.key(), dir, other[0], other[2]); (at != 0) != (what == "handle") {
						t.Errorf("%d bytes, byte %d: another %s gets entry %d by its name", size, i, what, at)
					}
				}
				if x.is(other[0], other[2]) != (what == "handle") {
					t.Errorf("%d bytes, byte %d: is does not see another %s", size, i, what)
				}
			}
		}
	}
}

// TestNoNames: what no file can be called is not learned, and neither is what has no handle.
func TestNoNames(t *testing.T) {
	for _, e := range [][2]string{{"handle", ""}, {"handle", "."}, {"handle", ".."}, {"", "name"}} {
		var n Names
		if n.learn([]byte("directory"), []byte(e[0]), []byte(e[1])); n.known != nil {
			t.Errorf("%q is learned for %q", e[1], e[0])
		}
	}
}

// TestNamesShareDirectories: names that are told one after the other have their directory in common, and a search or a removal elsewhere
// does not change that.
func TestNamesShareDirectories(t *testing.T) {
	n := &Names{}
	d1, d2 := []byte("directory 1"), []byte("directory 2")
	n.learn(d1, []byte("h1"), []byte("a"))
	n.remove(d2, []byte("b"))
	n.learn(d2, []byte("h1"), []byte("."))
	n.rename(d2, []byte("b"), d2, []byte("c"))
	n.learn(d1, []byte("h2"), []byte("b"))
	n.rename(d1, []byte("b"), d1, []byte("c"))
	if a, b := n.known.entries[1].dir, n.known.entries[2].dir; a != b || string(a.handle) != string(d1) {
		t.Errorf("%q and %q are kept apart", a.handle, b.handle)
	}
	n.rename(d1, []byte("a"), d2, []byte("a"))
	if a, b := n.known.entries[1].dir, n.known.entries[2].dir; string(a.handle) != string(d2) || string(b.handle) != string(d1) {
		t.Errorf("directories are %q and %q", a.handle, b.handle)
	}
}

// FuzzRename compares a usual rename with the removal of both names and the addition of one.
func FuzzRename(f *testing.F) {
	f.Add([]byte("\x00abc\x01abde\x00abe\x01abcd\x02cd\x01abab"))
	f.Add([]byte("\x00aba\x01abcc\x00aca\x02ab\x02cc\x01ccab"))
	f.Fuzz(func(t *testing.T, program []byte) {
		words := [...]string{"", "a", "bb", "of 40 bytes, which no word of a sum holds", "of 40 bytes. which no word of a sum holds", "root", "a directory of a longer name", "x", "handle of 20 bytes..", "handle of 20 bytes.,"}
		short, full := Names{Limit: 1200}, Names{Limit: 1200}
		next := func() []byte {
			if len(program) == 0 {
				return nil
			}
			w := words[program[0]%byte(len(words))]
			program = program[1:]
			return []byte(w)
		}
		for len(program) > 0 {
			what := program[0] % 4
			program = program[1:]
			a, b, c, d := next(), next(), next(), next()
			switch what {
			case 0:
				short.learn(a, b, c)
				full.learn(a, b, c)
			case 1:
				short.remove(a, b)
				full.remove(a, b)
			default:
				short.rename(a, b, c, d)
				h, ok := full.byName()[stored{string(a), string(b)}]
				full.remove(c, d)
				if ok {
					full.remove(a, b)
					i, sum := full.known.ofHandle(full.server.key(), []byte(h))
					full.set(i, sum, []byte(h), c, d)
				}
			}
			if !maps.Equal(short.byHandle(), full.byHandle()) || !maps.Equal(short.byName(), full.byName()) || short.bytes != full.bytes || short.Forgotten != full.Forgotten {
				t.Fatalf("%v, %d bytes; want %v, %d", short.byHandle(), short.bytes, full.byHandle(), full.bytes)
			}
			for _, w := range words {
				if got, want := string(short.AppendPath(nil, []byte(w))), short.Path([]byte(w)); got != want {
					t.Fatalf("path of %q is %q, want %q", w, got, want)
				}
			}
		}
	})
}
