package state

// waiters are told when byte ranges or delegations of a file that they wait for are given up.
type waiters struct {
	section *section
	of      map[Key]int
	tell    func(Key) // nil: nobody waits
}

// add says that n more are waiting for a file.
func (w *waiters) add(key Key, n int) {
	if w.of == nil {
		w.of = map[Key]int{}
	}
	if w.of[key] += n; w.of[key] <= 0 {
		delete(w.of, key)
	}
}

// freed notes that a byte range or a delegation of a file was given up.
func (w *waiters) freed(key Key) {
	if w.tell != nil && w.of[key] > 0 {
		w.section.after(func() { w.tell(key) })
	}
}
