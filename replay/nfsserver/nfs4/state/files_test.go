package state

import (
	"slices"
	"testing"
	"time"
)

// What is put off happens when the lock is free, in order, once.
func TestSection(t *testing.T) {
	s := &section{}
	var done []int
	for round := range 2 {
		s.Lock()
		for n := range 3 {
			s.after(func() {
				if !s.TryLock() {
					t.Error("locked")
				} else {
					s.Unlock()
				}
				done = append(done, 3*round+n)
			})
		}
		s.Unlock()
	}
	if !slices.Equal(done, []int{0, 1, 2, 3, 4, 5}) {
		t.Error(done)
	}
}

func TestWaiters(t *testing.T) {
	s := &section{}
	var told []Key
	w := &waiters{section: s}
	change := func(f func()) { s.Lock(); f(); s.Unlock() }
	a, b := Key{ID: 1}, Key{ID: 2}
	change(func() { w.add(a, 1); w.freed(a) }) // nobody to tell
	w.tell = func(k Key) { told = append(told, k) }
	change(func() { w.add(a, 1); w.freed(a); w.freed(b) })
	change(func() { w.add(a, -2); w.freed(a) })
	if !slices.Equal(told, []Key{a}) || len(w.of) != 0 {
		t.Errorf("told %v, left %v", told, w.of)
	}
}

// A file is kept while anything holds it, and is given up after the lock.
func TestFiles(t *testing.T) {
	s := &section{}
	var gone []Key
	fs := &files{section: s, by: map[Key]*file{}, unhold: func(k Key) { gone = append(gone, k) }}
	key := Key{ID: 1}
	for name, hold := range map[string]func(f *file, n int){
		"delegation": func(f *file, n int) {
			if f.delegations = map[*delegation]struct{}{}; n > 0 {
				f.delegations[&delegation{}] = struct{}{}
			}
		},
		"open": func(f *file, n int) {
			if clear(f.opens); n > 0 {
				f.opens[&open{}] = struct{}{}
			}
		},
		"outside": func(f *file, n int) { f.outside = n },
	} {
		gone = nil
		s.Lock()
		f := fs.get(key)
		hold(f, 1)
		fs.forget(f)
		if fs.get(key) != f {
			t.Errorf("%s: forgotten", name)
		}
		hold(f, 0)
		fs.release(f)
		if len(fs.by) != 0 || gone != nil {
			t.Errorf("%s: kept", name)
		}
		s.Unlock()
		if !slices.Equal(gone, []Key{key}) {
			t.Errorf("%s: %v", name, gone)
		}
	}
}

// A recall is remembered for at least half a minute, and for less than a whole one.
func TestContention(t *testing.T) {
	start := time.Unix(1e9, 0)
	for offset := time.Duration(0); offset < 2*contentionTime; offset += time.Second {
		c := &contention{seed: 3}
		c.turn(start)
		key := Key{ID: 5, Generation: 2}
		at := start.Add(offset)
		c.add(key, at)
		if c.has(Key{ID: 6}, at) {
			t.Error("another file")
		}
		if !c.has(key, at.Add(contentionTime-1)) {
			t.Errorf("forgotten too early, added after %v", offset)
		}
		if c.has(key, at.Add(2*contentionTime)) {
			t.Errorf("remembered too long, added after %v", offset)
		}
	}
}
