package state

import "sync"

// section is the lock of a Table. What must not happen under it is put off until it is free.
type section struct {
	sync.RWMutex
	later []func()
}

// after has f called, without the lock, when it is free. It is held for writing.
func (s *section) after(f func()) { s.later = append(s.later, f) }

// Unlock ends a change, and does what was put off.
func (s *section) Unlock() {
	later := s.later
	s.later = nil
	s.RWMutex.Unlock()
	for _, f := range later {
		f()
	}
}
