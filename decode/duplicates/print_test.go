package duplicates

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// TestPrint: what a router or a switch changes does not count, and everything else does.
func TestPrint(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs41-ipv6.pcap.zst"} {
		var s printer
		seen := map[uint64]bool{}
		for _, p := range packets(t, name) {
			x, ok := s.of(&p)
			if !ok || s.frame.Proto != link.UDP && s.frame.Proto != link.TCP {
				continue
			}
			if seen[x.sum] {
				t.Errorf("%s: packet %d has the print of another", name, p.Number)
			}
			seen[x.sum] = true
			q := p
			q.Data = bytes.Clone(p.Data)
			routed(q.Data)
			q.Data = slices.Insert(q.Data, 12, 0x81, 0x00, 0x20, 0x05)
			if y, ok := s.of(&q); !ok || y != x {
				t.Errorf("%s: packet %d is another behind a router and with a tag", name, p.Number)
			}
			for i, at := range []int{14 + 2, len(p.Data) - 1} { // total length, or flow label; the end
				q.Data = bytes.Clone(p.Data)
				q.Data[at] ^= 1
				if y, ok := s.of(&q); ok && y.sum == x.sum && len(p.Data) > 60 { // shorter frames are padded
					t.Errorf("%s: packet %d: change %d makes no difference", name, p.Number, i)
				}
			}
		}
	}
}

// TestPrintOfLinks: the same packet behind different link headers.
func TestPrintOfLinks(t *testing.T) {
	p := packets(t, "rocev2-nfs41-recall.pcap")[10]
	var s printer
	want, ok := s.of(&p)
	if !ok {
		t.Fatal("no print")
	}
	ip := p.Data[14:]
	for link, header := range map[capture.LinkType][]byte{
		capture.LinkSLL: append(make([]byte, 14), 8, 0), capture.LinkSLL2: append([]byte{8, 0}, make([]byte, 18)...), capture.LinkRaw: nil, capture.LinkIPv4: nil,
	} {
		q := p
		q.Link, q.Data = link, append(slices.Clip(header), ip...)
		if x, ok := s.of(&q); !ok || x != want {
			t.Errorf("link type %d: another print", link)
		}
		for n := range q.Data {
			q.Data = q.Data[:n:n]
			s.of(&q) // must not panic
			q.Data = append(slices.Clip(header), ip...)
		}
	}
}

// TestPrintOfTunnels: a mirror's sequence numbers make no difference, but another mirror does, as does another overlay, and the packet without it.
func TestPrintOfTunnels(t *testing.T) {
	p := packets(t, "rocev2-nfs41-recall.pcap")[10]
	var s printer
	bare, _ := s.of(&p)
	for name, told := range map[string]bool{"erspan2": true, "erspan3": true, "gre-sequence": false, "vxlan": true, "mpls": false} {
		of := func(x *wrap.Wrapper) print {
			q := p
			data, n := x.Frame(p.Data, int(p.Length))
			q.Data, q.Length = data, uint32(n)
			y, ok := s.of(&q)
			if !ok || s.frame.Outermost() == nil {
				t.Fatalf("%s: %t %+v", name, ok, s.frame.Tunnels)
			}
			return y
		}
		one, other := wrapper(t, name, 1), wrapper(t, name, 2)
		first, second, third := of(one), of(one), of(other)
		if first != second {
			t.Errorf("%s: the second copy has another print", name)
		}
		if first == bare || first == third && told {
			t.Errorf("%s: the print of another capture point", name)
		}
	}
}

func wrapper(t *testing.T, name string, id uint32) *wrap.Wrapper {
	t.Helper()
	for _, k := range wrap.Kinds(id) {
		if k.Name == name {
			return wrap.New(k, id)
		}
	}
	t.Fatalf("no kind %q", name)
	return nil
}
