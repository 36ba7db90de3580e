package roce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
)

// foldWay is one of the ways to the ICRC for which the headers are masked in registers.
type foldWay struct {
	name string
	fold func(p *byte, n int, ones *onesTable) uint32
}

// foldWays returns the ways that this processor supports.
func foldWays(t testing.TB) (ways []foldWay) {
	if folds {
		ways = append(ways, foldWay{"fold128", fold128})
	}
	if foldsWide {
		ways = append(ways, foldWay{"fold512", fold512})
	}
	if len(ways) < 2 {
		t.Logf("this processor has %d of 2 ways", len(ways))
	}
	return ways
}

// foldPackets are the IP headers for which there are tables.
var foldPackets = []struct {
	name string
	net  int
	ones *onesTable
}{{"IPv4", ipv4Size, &ones4}, {"IPv6", ipv6Size, &ones6}}

// foldMessage has four random bytes, and n more that begin as an IP packet whose header has net bytes; and what the ICRC
// of that packet is.
func foldMessage(r *rand.Rand, net, n int) ([]byte, uint32) {
	b := make([]byte, icrcOnes+n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	p := b[icrcOnes:]
	p[0] = 0x45
	if net == ipv6Size {
		p[0] = 0x60 | p[1]&0xf
	}
	sum, ok := ICRC(link.UDP, p[:net], p[net:net+udpSize], p[net+udpSize:])
	if !ok {
		panic("no ICRC")
	}
	return b, sum
}

// TestFold compares all ways to the ICRC, for each length, wherever the packet is in memory.
func TestFold(t *testing.T) {
	ways := foldWays(t)
	r := rand.New(rand.NewPCG(16, 91))
	around := bytes.Repeat([]byte{0xa5}, 1<<16+256)
	same := func(net int, ones *onesTable, n, places int) {
		t.Helper()
		m, want := foldMessage(r, net, n)
		m = binary.LittleEndian.AppendUint32(m, want)
		for place := range places {
			at := around[64+place:][:len(m)]
			copy(at, m)
			for _, way := range ways {
				if got := ^way.fold(&at[0], icrcOnes+n, ones); got != want {
					t.Fatalf("%s, header of %d bytes, packet of %d at %d: ICRC %#x, want %#x", way.name, net, n, place, got, want)
				}
				if got := way.fold(&at[0], len(m), ones); got != foldResidue {
					t.Fatalf("%s, header of %d bytes, packet of %d at %d: residue %#x", way.name, net, n, place, got)
				}
			}
			if !bytes.Equal(at, m) {
				t.Fatal("the packet was changed")
			}
		}
	}
	for _, x := range foldPackets {
		least := x.net + udpSize + BTHSize
		for n := least; n <= 1100; n++ {
			same(x.net, x.ones, n, 64)
		}
		for n := 1101; n < 2300; n++ {
			same(x.net, x.ones, n, 1+n%3)
		}
		for range 100 {
			same(x.net, x.ones, least+r.IntN(1<<16-ICRCSize-least), 2)
		}
	}
}

// TestFoldIntact changes bits of packets.
func TestFoldIntact(t *testing.T) {
	ways := foldWays(t)
	r := rand.New(rand.NewPCG(16, 92))
	var d FastDecoder
	for _, x := range foldPackets {
		for _, n := range []int{60, 61, 100, 140, foldMost - 8, foldMost - 4, 1400, 4160, 9000} {
			m, sum := foldMessage(r, x.net, n)
			m = binary.LittleEndian.AppendUint32(m, sum)
			check := func(bit int, want, version bool) {
				t.Helper()
				for _, way := range ways {
					if got := way.fold(&m[0], len(m), x.ones) == foldResidue; got != want {
						t.Fatalf("%s, %s of %d bytes, bit %d changed: intact %v", way.name, x.name, n, bit, got)
					}
				}
				// The general way takes the version for granted.
				if a, b := d.Intact(m, x.net), d.intact(m[icrcOnes:], x.net); !version && (a != want || b != want) {
					t.Fatalf("%s of %d bytes, bit %d changed: intact %v and %v, want %v", x.name, n, bit, a, b, want)
				}
			}
			check(-1, true, false)
			for i := 0; i < len(m)*8; i += 1 + r.IntN(1+max(0, i-8*foldHead)/50) {
				m[i/8] ^= 1 << (i % 8)
				counts := i/8 >= foldHead || x.ones[foldHead+i/8]>>(i%8)&1 == 0
				check(i, !counts, i/8 == icrcOnes)
				m[i/8] ^= 1 << (i % 8)
			}
		}
	}
}

// TestFoldConstants computes the constants of the assembly anew.
func TestFoldConstants(t *testing.T) {
	// power is x^n modulo the polynomial, with the coefficient of x^32 in the lowest bit.
	power := func(n int) uint64 {
		v := uint32(1) << 31
		for range n {
			v = mul(v, 1<<30)
		}
		return uint64(v) << 1
	}
	by := func(bytes, at int) uint64 { return power(8*bytes + 32 - 8*(at&8)) }
	var last []uint64
	for bits := 480; bits >= 32; bits -= 64 {
		last = append(last, power(bits))
	}
	line := regexp.MustCompile(`(?m)^DATA (last|by\d+)<>\+(\d+)\(SB\)/8, \$(\w+)$`)
	text, err := os.ReadFile("fold_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	found := line.FindAllSubmatch(text, -1)
	if len(found) < 16 {
		t.Fatalf("%d constants", len(found))
	}
	for _, m := range found {
		name := string(m[1])
		at, _ := strconv.Atoi(string(m[2]))
		got, err := strconv.ParseUint(string(m[3]), 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		var want uint64
		if name == "last" {
			want = last[at/8]
		} else {
			distance, _ := strconv.Atoi(name[2:])
			want = by(distance, at)
		}
		if got != want {
			t.Errorf("%s+%d is %#x, want %#x", name, at, got, want)
		}
	}
}

func FuzzFold(f *testing.F) {
	r := rand.New(rand.NewPCG(16, 93))
	for _, n := range []int{40, 60, 61, 64, 124, 128, 1000} {
		for _, x := range foldPackets {
			m, _ := foldMessage(r, x.net, x.net+n)
			f.Add(m, uint8(n))
		}
	}
	f.Fuzz(func(t *testing.T, m []byte, at uint8) {
		m = append(make([]byte, at), m...)[at:]
		if len(m) <= icrcOnes {
			return
		}
		p, x := m[icrcOnes:], foldPackets[0]
		if p[0]>>4 == 6 {
			x = foldPackets[1]
		}
		if len(p) < x.net+udpSize+BTHSize {
			return
		}
		if x.net == ipv4Size {
			p[0] = 0x45
		}
		want, _ := ICRC(link.UDP, p[:x.net], p[x.net:x.net+udpSize], p[x.net+udpSize:])
		for _, way := range foldWays(t) {
			if got := ^way.fold(&m[0], len(m), x.ones); got != want {
				t.Fatalf("%s: %#x, want %#x", way.name, got, want)
			}
		}
	})
}

// BenchmarkFold compares all ways. Lengths are IPv4 packet sizes in bytes, including the ICRC.
func BenchmarkFold(b *testing.B) {
	r := rand.New(rand.NewPCG(16, 94))
	var d FastDecoder
	for _, n := range []int{46, 60, 100, 140, 200, 300, 600, 1000, 1400, 2000, 4152} {
		m, _ := foldMessage(r, ipv4Size, n)
		m = append(make([]byte, foldHead+etherSize-icrcOnes), m...)[foldHead+etherSize-icrcOnes:] // not at the start of a page
		for _, way := range foldWays(b) {
			b.Run(fmt.Sprintf("%s/%d", way.name, n), func(b *testing.B) {
				for b.Loop() {
					way.fold(&m[0], len(m), &ones4)
				}
			})
		}
		b.Run(fmt.Sprintf("general/%d", n), func(b *testing.B) {
			for b.Loop() {
				d.intact(m[icrcOnes:], ipv4Size)
			}
		})
	}
}
