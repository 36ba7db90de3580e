package main

import (
	"net/netip"
	"testing"
)

// TestHosts shows addresses until names are known, asks once for each, and waits for tables.
func TestHosts(t *testing.T) {
	asked := make(chan netip.Addr)
	answer := make(chan string)
	h := &hosts{look: func(a netip.Addr) string {
		asked <- a
		return <-answer
	}}
	h.begin()
	for range 3 {
		if got := h.name("192.0.2.1"); got != "192.0.2.1" {
			t.Error(got)
		}
	}
	if a := <-asked; a.String() != "192.0.2.1" {
		t.Error(a)
	}
	if got := h.name("192.0.2.2") + h.name("port 7") + h.name(""); got != "192.0.2.2port 7" {
		t.Error(got)
	}
	answer <- "server.example"
	<-asked // the second, so that the first is known
	if got := h.name("192.0.2.1"); got != "server.example" {
		t.Error(got)
	}
	if got := h.both("192.0.2.1"); got != "server.example (192.0.2.1)" {
		t.Error(got)
	}
	answer <- ""
	for i := range 2 * maxQueue { // more than wait: none is lost for ever, and nothing blocks
		h.name(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String())
	}
	if len(h.queue) > maxQueue {
		t.Error(len(h.queue))
	}
	n := 0
	h = &hosts{wait: true, look: func(netip.Addr) string { n++; return "host" }}
	h.begin()
	if h.name("192.0.2.1")+h.name("192.0.2.1") != "hosthost" || n != 1 {
		t.Error(n)
	}
	if (*hosts)(nil).name("x") != "x" {
		t.Error("without names")
	}
}
