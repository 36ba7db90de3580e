package transport

import (
	"net/netip"
	"testing"
)

func TestSource(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7":            "192.0.2.7",
		"::ffff:192.0.2.7":     "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::",
		"2001:db8:1:2:ffff::1": "2001:db8:1:2::",
		"fe80::1%eth0":         "fe80::",
		"2001:db8:1:3:3:4:5:6": "2001:db8:1:3::",
		"::1":                  "::",
	} {
		p := Peer{Remote: netip.AddrPortFrom(netip.MustParseAddr(addr), 7)}
		if got := p.Source(); got.String() != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if got := (Peer{}).Source(); got.IsValid() {
		t.Errorf("no address: %s", got)
	}
}
