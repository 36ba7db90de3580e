package scrub

import (
	"math/rand"
	"net/netip"
	"testing"
)

// published is the key that the authors of Crypto-PAn have published with the trace below.
var published = [addressKey]byte{
	21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16,
	216, 152, 143, 131, 121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
}

// TestAddresses has addresses of the sample trace that comes with Crypto-PAn.
func TestAddresses(t *testing.T) {
	a := newAddresses(&published)
	for from, want := range map[string]string{
		"128.11.68.132":   "135.242.180.132",
		"129.118.74.4":    "134.136.186.123",
		"130.132.252.244": "133.68.164.234",
		"141.223.7.43":    "141.167.8.160",
		"141.233.145.108": "141.129.237.235",
		"152.163.225.39":  "151.140.114.167",
		"156.29.3.236":    "147.225.12.42",
		"165.247.96.84":   "162.9.99.234",
		"166.107.77.190":  "160.132.178.185",
		"192.102.249.13":  "252.138.62.131",
	} {
		src := netip.MustParseAddr(from).As4()
		var dst [4]byte
		a.replace(placeIPv4, dst[:], src[:])
		if got := netip.AddrFrom4(dst).String(); got != want {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
}

// TestAddressesPrefix: two addresses share as many bits after as before.
func TestAddressesPrefix(t *testing.T) {
	a := newAddresses(&published)
	rnd := rand.New(rand.NewSource(1))
	for kind, size := range placeSizes {
		for range 200 {
			var x, y, p, q [16]byte
			rnd.Read(x[:size])
			rnd.Read(y[:size])
			copy(y[:], x[:rnd.Intn(size+1)])
			if kind == int(placeMAC) {
				y[0] = y[0]&^3 | x[0]&3
			}
			if size == 0 {
				continue
			}
			a.replace(placeKind(kind), p[:size], x[:size])
			a.replace(placeKind(kind), q[:size], y[:size])
			if common(x, y) != common(p, q) {
				t.Fatalf("%x and %x become %x and %x", x, y, p, q)
			}
		}
	}
	for _, same := range []string{"0.0.0.0", "255.255.255.255", "::"} {
		src := netip.MustParseAddr(same).AsSlice()
		dst := make([]byte, len(src))
		kind := placeIPv4
		if len(src) == 16 {
			kind = placeIPv6
		}
		a.replace(kind, dst, src)
		if got, _ := netip.AddrFromSlice(dst); got.String() != same {
			t.Errorf("%s becomes %s", same, got)
		}
	}
}

// common is how many bits two addresses share at their beginning.
func common(x, y [16]byte) int {
	for i := range 128 {
		if (x[i/8]^y[i/8])>>(7-i%8)&1 != 0 {
			return i
		}
	}
	return 128
}
