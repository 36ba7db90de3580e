//go:build verbs && cgo && linux

package rdma

import (
	"net/netip"
	"testing"
)

// TestProbe holds on any machine: either there are devices, or there are words
// for why not, which New gives as well.
func TestProbe(t *testing.T) {
	r := Probe()
	if !r.Built || (r.Missing == "") != (len(r.Devices) > 0) {
		t.Errorf("%+v", r)
	}
	p, err := New(Options{})
	if r.Missing != "" {
		if err == nil || err.Error() != r.Missing {
			t.Errorf("New: %v, Probe: %s", err, r.Missing)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != "rdma" || p.Caps().MaxSGE < 1 || p.Caps().AnyMemory {
		t.Errorf("%s: %+v", p.Name(), p.Caps())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestSockaddr(t *testing.T) {
	for _, want := range []string{"192.0.2.1:20049", "[2001:db8::1]:20049", "[::]:0", "0.0.0.0:1"} {
		a := netip.MustParseAddrPort(want)
		s := toSockaddr(a)
		if got := fromSockaddr(&s); got != a {
			t.Errorf("%v became %v", a, got)
		}
	}
	var none sockaddr
	if a := fromSockaddr(&none); a.IsValid() {
		t.Errorf("no address became %v", a)
	}
}

func TestRing(t *testing.T) {
	r := newRing[int](5)
	start := ^uint32(0) - 2 // numbers count on over the end
	r.head.Store(start)
	r.tail.Store(start)
	for i := range 5 {
		if r.room() != 5-i {
			t.Errorf("room %d with %d entries", r.room(), i)
		}
		*r.at(r.tail.Load()) = i
		r.tail.Add(1)
	}
	for i := range 5 {
		if got := *r.at(r.head.Load()); got != i {
			t.Errorf("entry %d is %d", i, got)
		}
		r.head.Add(1)
	}
	if !r.empty() {
		t.Error("not empty")
	}
}
