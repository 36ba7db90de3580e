package rpc

import "testing"

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
