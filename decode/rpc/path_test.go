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
	n = Names{Limit: 1 << 20}
	for i := range 100_000 {
		n.learn([]byte("root"), fmt.Append(nil, i), fmt.Append(nil, "name", i))
		n.learn([]byte("root"), fmt.Append(nil, i), fmt.Append(nil, "other", i))
		n.rename([]byte("root"), fmt.Append(nil, "other", i), []byte("d"), []byte("one"))
		n.remove([]byte("root"), fmt.Append(nil, "name", i))
		n.remove([]byte("d"), []byte("one"))
	}
	if n.Forgotten != 0 || len(n.byHandle)+len(n.byName) != 0 || n.bytes != 0 {
		t.Errorf("%d times forgotten, %d and %d left of %d bytes", n.Forgotten, len(n.byHandle), len(n.byName), n.bytes)
	}
}
