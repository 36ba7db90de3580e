package rpc

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// TestNames compares Names with two plain maps, and what it says it holds with what is there.
func TestNames(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	n := &Names{}
	byHandle, byName := make(map[string]entry), make(map[entry]string)
	remove := func(e entry) {
		h, ok := byName[e]
		if !ok {
			return
		}
		delete(byName, e)
		if byHandle[h] == e {
			delete(byHandle, h)
		}
	}
	for step := range 20_000 {
		handle := func() string { return "handle " + strconv.Itoa(random.IntN(12)) }
		name := func() string {
			if random.IntN(50) == 0 {
				return strings.Repeat("long", 600) // two of them are longer than the path of a directory that is kept
			}
			return "name " + strconv.Itoa(random.IntN(4))
		}
		parent := []byte(handle())
		switch a := (entry{string(parent), name()}); random.IntN(4) {
		case 0:
			n.remove(parent, []byte(a.name))
			remove(a)
		case 1:
			to := entry{handle(), name()}
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
		if !maps.Equal(n.byHandle, byHandle) || !maps.Equal(n.byName, byName) {
			t.Fatalf("step %d: %v, %v, want %v, %v", step, n.byHandle, n.byName, byHandle, byName)
		}
		for i := range 13 {
			if step >= 2000 {
				break
			}
			h := []byte("handle " + strconv.Itoa(i))
			if got, want := string(n.AppendPath(nil, h)), n.Path(h); got != want {
				t.Fatalf("step %d: path of %s is %q, want %q", step, h, got, want)
			}
		}
		bytes := 0
		for h, e := range n.byHandle {
			bytes += e.size(h)
		}
		for e, h := range n.byName {
			bytes += e.size(h)
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
	n.learn(dir, child, name)
	if a := testing.AllocsPerRun(100, func() { n.learn(dir, child, name) }); a != 0 {
		t.Errorf("%v allocations for a name that is known", a)
	}
	// The handle and the name are kept, the directory is shared.
	if a := testing.AllocsPerRun(100, func() { n.remove(dir, name); n.learn(dir, child, name) }); a > 2 {
		t.Errorf("%v allocations for a name that goes and comes", a)
	}
}
