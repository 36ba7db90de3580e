package onclose

import "testing"

func TestHooks(t *testing.T) {
	var h Hooks
	calls := map[string]int{}
	set := func(key, name string) { h.Set(key, func() { calls[name]++ }) }
	set("a", "replaced")
	set("a", "a")
	set("b", "b")
	h.Run()
	h.Run()
	set("late", "late")
	for name, want := range map[string]int{"replaced": 0, "a": 1, "b": 1, "late": 1} {
		if calls[name] != want {
			t.Errorf("%s: called %d times, want %d", name, calls[name], want)
		}
	}
}

// A function may set another one: Run holds no lock while it calls.
func TestReenter(t *testing.T) {
	var h Hooks
	inner := false
	h.Set(1, func() { h.Set(2, func() { inner = true }) })
	h.Run()
	if !inner {
		t.Error("a function set during Run was not called")
	}
}
