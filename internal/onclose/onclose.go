// Package onclose keeps the functions that are to be called at the end of a
// connection: transport.Exchange.OnClose.
package onclose

import "sync"

// Hooks are the functions of one connection, one for each key. The zero value is
// ready for use, from any goroutine.
type Hooks struct {
	mu    sync.Mutex
	funcs map[any]func()
	ran   bool
}

// Set keeps f, in the place of what was set for the key before. If Run has been
// called, f is called at once: nobody else would.
func (h *Hooks) Set(key any, f func()) {
	h.mu.Lock()
	ran := h.ran
	if !ran {
		if h.funcs == nil {
			h.funcs = make(map[any]func())
		}
		h.funcs[key] = f
	}
	h.mu.Unlock()
	if ran {
		f()
	}
}

// Run calls the functions, in no particular order. It calls none twice.
func (h *Hooks) Run() {
	h.mu.Lock()
	funcs := h.funcs
	h.funcs, h.ran = nil, true
	h.mu.Unlock()
	for _, f := range funcs {
		f()
	}
}
