package link

import (
	"net/netip"
	"testing"
)

func TestLID(t *testing.T) {
	for lid := range 1 << 16 {
		a := LID(uint16(lid))
		if got, ok := IsLID(a); !ok || int(got) != lid {
			t.Fatalf("LID %d came back as %d, %v", lid, got, ok)
		}
		if a != LID(uint16(lid)) || a == LID(uint16(lid+1)) {
			t.Fatalf("LID %d does not compare", lid)
		}
	}
	if _, ok := IsLID(netip.MustParseAddr("::5")); ok {
		t.Error("::5 taken for a LID")
	}
}

func TestAddrString(t *testing.T) {
	for want, a := range map[string]netip.Addr{
		"lid 0":     LID(0),
		"lid 5":     LID(5),
		"lid 65535": LID(0xffff),
		"192.0.2.1": netip.MustParseAddr("192.0.2.1"),
		"fe80::1":   netip.MustParseAddr("fe80::1"),
	} {
		if got := AddrString(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLIDAllocs(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { LID(7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
