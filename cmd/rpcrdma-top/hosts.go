package main

import (
	"net/netip"
	"sync"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// hosts are the names of hosts. Screens do not wait for them: an address is shown until its name is known.
type hosts struct {
	wait  bool // tables are printed once
	look  func(netip.Addr) string
	mu    sync.Mutex
	names map[string]string // empty: none, or not known yet
	queue chan netip.Addr
}

// maxQueue is how many addresses wait to be looked up, maxHosts how many names are remembered.
const (
	maxQueue = 256
	maxHosts = 1 << 14
)

// newHosts looks names up until the program ends; cli.NewResolver explains confined.
func newHosts(confined, wait bool) *hosts {
	h := &hosts{wait: wait, look: cli.NewResolver(confined).Name}
	h.begin()
	return h
}

func (h *hosts) begin() {
	h.names = make(map[string]string)
	if h.wait {
		return
	}
	h.queue = make(chan netip.Addr, maxQueue)
	go func() {
		for a := range h.queue {
			h.set(a.String(), h.look(a))
		}
	}()
}

func (h *hosts) set(addr, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.names) >= maxHosts {
		clear(h.names)
	}
	h.names[addr] = name
}

// name is the name of an address, or the address.
func (h *hosts) name(addr string) string {
	if h == nil {
		return addr
	}
	h.mu.Lock()
	name, asked := h.names[addr]
	h.mu.Unlock()
	if !asked {
		if a, err := netip.ParseAddr(addr); err == nil {
			name = h.ask(a)
		}
	}
	if name == "" {
		return addr
	}
	return name
}

// ask looks an address up, or has it looked up.
func (h *hosts) ask(a netip.Addr) (name string) {
	if h.wait {
		name = h.look(a)
		h.set(a.String(), name)
		return name
	}
	h.set(a.String(), "") // once is enough
	select {
	case h.queue <- a:
	default: // later
		h.mu.Lock()
		delete(h.names, a.String())
		h.mu.Unlock()
	}
	return ""
}

// both are the name and the address.
func (h *hosts) both(addr string) string {
	if name := h.name(addr); name != addr {
		return name + " (" + addr + ")"
	}
	return addr
}
