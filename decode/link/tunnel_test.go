package link_test

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// samples reads the first packets of captures of both fabrics and IP versions,
// with VLAN tags and ARP among them.
func samples(t testing.TB, most int) []capture.Packet {
	t.Helper()
	var list []capture.Packet
	for _, name := range []string{"rocev2-nfs3-meta", "rocev2-nfs41-ipv6", "iwarp-nfs3-offload", "rocev2-nfs3-snaplen256"} {
		r, err := capture.Open([]string{"../../samples/" + name + ".pcap.zst"}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b capture.Batch
		for n := 0; n < most && r.Read(&b) == nil; {
			for _, p := range b.Packets[:min(len(b.Packets), most-n)] {
				p.Data = bytes.Clone(p.Data)
				list = append(list, p)
				n++
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// bare is a frame without what a wrapping changes.
func bare(f link.Frame) link.Frame {
	f.Tunnels, f.VLAN = nil, 0
	return f
}

// A wrapped frame is the frame, and the wrapping is told.
func TestTunnels(t *testing.T) {
	packets := samples(t, 400)
	for _, k := range wrap.Kinds(0x123) {
		t.Run(k.Name, func(t *testing.T) {
			w := wrap.New(k, 0)
			var got, want link.Frame
			seen := 0
			sent := make(map[netip.Addr]uint32)
			for i := range packets {
				p := &packets[i]
				link.Decode(p.Link, p.Data, p.Length, &want)
				data, length := w.Frame(p.Data, int(p.Length))
				link.Decode(k.Link, data, uint32(length), &got)
				if want.Proto == link.None {
					if got.Proto != link.None || got.Problem != want.Problem {
						t.Fatalf("packet %d: %+v", p.Number, got)
					}
					continue
				}
				seen++
				if !reflect.DeepEqual(bare(got), bare(want)) {
					t.Fatalf("packet %d:\n%+v\nwant\n%+v", p.Number, got, want)
				}
				if k.Ethernet && got.VLAN != want.VLAN {
					t.Errorf("packet %d: VLAN %d, want %d", p.Number, got.VLAN, want.VLAN)
				}
				if k.Tunnel.Type == link.NoTunnel {
					if len(got.Tunnels) != 0 {
						t.Errorf("packet %d: tunnels %+v", p.Number, got.Tunnels)
					}
					continue
				}
				tunnel := got.Tunnels[0]
				ends := wrap.Ends
				if want.Dst.Less(want.Src) {
					ends[0], ends[1] = ends[1], ends[0]
				}
				if k.Outer != tunnel.Src.IsValid() || k.Outer && tunnel.Src.Is4() && ends != [2]netip.Addr{tunnel.Src, tunnel.Dst} {
					t.Errorf("packet %d: tunnel from %s to %s", p.Number, tunnel.Src, tunnel.Dst)
				}
				if tunnel.Sequenced {
					if tunnel.Sequence <= sent[tunnel.Src] || int(tunnel.Sequence) > i+1 {
						t.Errorf("packet %d: sequence number %d of %s after %d", p.Number, tunnel.Sequence, tunnel.Src, sent[tunnel.Src])
					}
					sent[tunnel.Src] = tunnel.Sequence
				}
				tunnel.Src, tunnel.Dst, tunnel.Clock, tunnel.Granularity, tunnel.Sequence = netip.Addr{}, netip.Addr{}, 0, 0, 0
				if tunnel != k.Tunnel {
					t.Errorf("packet %d: %+v, want %+v", p.Number, tunnel, k.Tunnel)
				}
			}
			if seen < 1500 {
				t.Errorf("%d frames with something of interest", seen)
			}
		})
	}
}

// Every wrapping, cut at every byte: no panic, a reason if nothing is left, and the same headers where the
// cut lies after them.
func TestTunnelsCut(t *testing.T) {
	p := samples(t, 40)[30]
	for _, k := range wrap.Kinds(0x123) {
		data, length := wrap.New(k, 0).Frame(p.Data, int(p.Length))
		var f, whole link.Frame
		link.Decode(k.Link, data, uint32(length), &whole)
		for n := range data {
			link.Decode(k.Link, data[:n:n], uint32(length), &f)
			if f.Proto == link.None && f.Problem == link.NoProblem {
				t.Errorf("%s cut at %d: nothing is said (%+v)", k.Name, n, f)
			}
			if f.Proto == whole.Proto && f.Src == whole.Src && f.PayloadLen != whole.PayloadLen {
				t.Errorf("%s cut at %d: declares %d bytes, want %d", k.Name, n, f.PayloadLen, whole.PayloadLen)
			}
		}
	}
}

// Wrappings in wrappings are taken off up to a depth, and no further.
func TestTunnelsNested(t *testing.T) {
	p := samples(t, 40)[30]
	for _, name := range []string{"vxlan", "gre-ip", "mpls-ethernet", "nsh", "macsec", "ip-in-ip", "geneve-options", "erspan3"} {
		var k wrap.Kind
		for _, k = range wrap.Kinds(9) {
			if k.Name == name {
				break
			}
		}
		w := wrap.New(k, 0)
		data, length := p.Data, int(p.Length)
		var f link.Frame
		for depth := 1; depth <= 12; depth++ {
			data, length = w.Frame(bytes.Clone(data), length)
			link.Decode(k.Link, data, uint32(length), &f)
			if depth <= 8 && (len(f.Tunnels) != depth || f.Proto != link.UDP || f.DstPort != 4791) {
				t.Errorf("%s, %d times: %+v", name, depth, f)
			}
			if depth > 8 && (f.Problem != link.ProblemManyTunnels || f.Proto != link.None) {
				t.Errorf("%s, %d times: proto %d, problem %q", name, depth, f.Proto, f.Problem)
			}
		}
	}
}

func TestTenant(t *testing.T) {
	p := samples(t, 40)[30]
	tenants := map[uint64]string{}
	for _, k := range append(wrap.Kinds(5), wrap.Kinds(6)...) {
		data, length := wrap.New(k, 0).Frame(p.Data, int(p.Length))
		var f link.Frame
		link.Decode(k.Link, data, uint32(length), &f)
		name := strings.Split(k.Name, "-")[0]
		separate := k.Tunnel.HasID
		switch k.Tunnel.Type {
		case link.ERSPAN, link.MPLS, link.NSH, link.CiscoMeta, link.GTP:
			separate = false
		}
		id := f.Tenant()
		if separate == (id == 0) {
			t.Errorf("%s: tenant %x", k.Name, id)
		}
		if was, ok := tenants[id]; ok && id != 0 && !strings.HasPrefix(was, name) {
			t.Errorf("%s and %s are one tenant", k.Name, was)
		}
		tenants[id] = name
		if mirror := f.Mirror() != nil; mirror != (k.Tunnel.Type == link.ERSPAN || k.Tunnel.Type == link.TZSP) {
			t.Errorf("%s: mirror %v", k.Name, mirror)
		}
	}
}

// What looks like a tunnel by its port alone is ordinary UDP.
func TestTunnelPorts(t *testing.T) {
	for port, payloads := range map[uint16][]string{
		4789:  {"", "\x00\x00\x00\x00\x00\x00\x00\x00abc", "\xff\xff\xff\xff\xff\xff\xff\xffabc", "\x08"},
		8472:  {"RPC call or so, no VXLAN"},
		4790:  {"\x40\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x01\x00\x00\x00\x00"},
		6081:  {"\x40\x00\x65\x58\x00\x00\x00\x00", "\x3f\x00\x65\x58\x00\x00\x01\x00short"},
		37008: {"\x01\x00\x00\x01no end here", "\x12\x34\x56\x78\x00\x00\x00\x01\x00\x00\x00\x00"},
		4754:  {"\x0f\x7f", "\x0f\x7f\x08\x00"},
	} {
		for _, payload := range payloads {
			b := make([]byte, 28+len(payload))
			b[0], b[3], b[9] = 0x45, byte(len(b)), 17
			b[22], b[23], b[25] = byte(port>>8), byte(port), byte(8+len(payload))
			copy(b[28:], payload)
			var f link.Frame
			link.Decode(capture.LinkRaw, b, uint32(len(b)), &f)
			if f.Proto != link.UDP || f.DstPort != port || len(f.Tunnels) != 0 || string(f.Payload) != payload || f.Problem != link.NoProblem {
				t.Errorf("port %d, %q: %+v", port, payload, f)
			}
		}
	}
}

func TestTunnelProblems(t *testing.T) {
	ip := func(proto byte, payload string) string {
		b := make([]byte, 20, 20+len(payload))
		b[0], b[3], b[9] = 0x45, byte(20+len(payload)), proto
		return string(b) + payload
	}
	for _, c := range []struct {
		name    string
		link    capture.LinkType
		data    string
		problem link.Problem
		unknown string
	}{
		{"GRE version", capture.LinkRaw, ip(47, "\x00\x02\x08\x00"), link.ProblemGREVersion, ""},
		{"GRE too short", capture.LinkRaw, ip(47, "\xb0\x00\x08\x00abcd"), link.ProblemShortGRE, ""},
		{"GRE routing", capture.LinkRaw, ip(47, "\x40\x00\x08\x00abcdefgh"), link.ProblemGRERouting, ""},
		{"GRE of something", capture.LinkRaw, ip(47, "\x00\x00\x12\x34abcdefgh"), link.NoProblem, "EtherType 0x1234"},
		{"ERSPAN version", capture.LinkRaw, ip(47, "\x10\x00\x88\xbe\x00\x00\x00\x01\x50\x00\x00\x00\x00\x00\x00\x00"), link.ProblemERSPANVersion, ""},
		{"ESP", capture.LinkRaw, ip(50, "abcdefgh"), link.NoProblem, "ESP"},
		{"NSH version", capture.LinkEthernet, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x89\x4f\x4f\xc2\x02\x03\x00\x00\x01\xff", link.ProblemNSHVersion, ""},
		{"MACsec encrypted", capture.LinkEthernet, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x88\xe5\x0c\x00\x00\x00\x00\x01" + strings.Repeat("x", 40), link.NoProblem, "encrypted MACsec"},
		{"MPLS without end", capture.LinkMPLS, strings.Repeat("\x00\x01\x00\xff", 40), link.ProblemManyMPLS, ""},
		{"link type", 105, "", link.NoProblem, "link type 105 (IEEE802_11)"},
		{"link type without a name", 9999, "", link.NoProblem, "link type 9999"},
		{"PPI in PPI", capture.LinkPPI, "\x00\x00\x08\x00\xc0\x00\x00\x00", link.NoProblem, "link type 192"},
		{"PPP LCP", capture.LinkPPP, "\xff\x03\xc0\x21\x01", link.NoProblem, "PPP LCP"},
		{"NFLOG without a packet", capture.LinkNFLOG, "\x02\x00\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00", link.ProblemNFLOGPacket, ""},
	} {
		var f link.Frame
		link.Decode(c.link, []byte(c.data), uint32(len(c.data)), &f)
		if f.Proto != link.None || f.Problem != c.problem || f.Unknown.String() != c.unknown {
			t.Errorf("%s: proto %d, problem %q, unknown %q", c.name, f.Proto, f.Problem, f.Unknown)
		}
	}
}

func TestTunnelClock(t *testing.T) {
	p := samples(t, 40)[30]
	var f link.Frame
	for _, k := range wrap.Kinds(1) {
		data, length := wrap.New(k, 0).Frame(p.Data, int(p.Length))
		link.Decode(k.Link, data, uint32(length), &f)
		switch k.Name {
		case "erspan3":
			if f.Tunnels[0].Clock != 10 || f.Tunnels[0].Granularity != link.Clock100ns {
				t.Errorf("%+v", f.Tunnels[0])
			}
		case "erspan3-platform":
			if f.Tunnels[0].Clock != 1000<<32|10 || f.Tunnels[0].Granularity != link.ClockPTP {
				t.Errorf("%+v", f.Tunnels[0])
			}
		}
	}
}

func TestTunnelAllocs(t *testing.T) {
	p := samples(t, 40)[30]
	var f link.Frame
	for _, k := range wrap.Kinds(1) {
		data, length := wrap.New(k, 0).Frame(p.Data, int(p.Length))
		data = bytes.Clone(data)
		if n := testing.AllocsPerRun(100, func() { link.Decode(k.Link, data, uint32(length), &f) }); n != 0 {
			t.Errorf("%s: %v allocations", k.Name, n)
		}
	}
}

func BenchmarkTunnels(b *testing.B) {
	p := samples(b, 40)[30]
	for _, k := range append([]wrap.Kind{{Name: "bare"}}, wrap.Kinds(1)...) {
		data, length, lt := p.Data, int(p.Length), p.Link
		if k.Name != "bare" {
			data, length = wrap.New(k, 0).Frame(p.Data, int(p.Length))
			data, lt = bytes.Clone(data), k.Link
		}
		b.Run(k.Name, func(b *testing.B) {
			var f link.Frame
			b.ReportAllocs()
			for b.Loop() {
				link.Decode(lt, data, uint32(length), &f)
			}
		})
	}
}

func FuzzTunnels(f *testing.F) {
	p := samples(f, 40)[30]
	for _, k := range wrap.Kinds(1) {
		data, length := wrap.New(k, 0).Frame(p.Data, int(p.Length))
		f.Add(uint16(k.Link), uint32(length), bytes.Clone(data))
	}
	f.Fuzz(func(t *testing.T, lt uint16, wire uint32, data []byte) {
		var fr link.Frame
		link.Decode(capture.LinkType(lt), data, wire, &fr)
		switch {
		case fr.PayloadLen < len(fr.Payload):
			t.Errorf("declared %d, captured %d", fr.PayloadLen, len(fr.Payload))
		case fr.Proto != link.None && (fr.Problem != link.NoProblem || fr.Unknown != link.Unknown{}):
			t.Errorf("problem %q, unknown %q with proto %d", fr.Problem, fr.Unknown, fr.Proto)
		case fr.Problem != link.NoProblem && fr.Unknown != link.Unknown{}:
			t.Errorf("problem %q and unknown %q", fr.Problem, fr.Unknown)
		case fr.Proto != link.None && (len(fr.Net) == 0 || !fr.Src.IsValid() || !fr.Dst.IsValid()):
			t.Errorf("%+v", fr)
		case len(fr.Tunnels) > 8:
			t.Errorf("%d tunnels", len(fr.Tunnels))
		}
		link.NewReassembler(link.ReassemblerOptions{}).Add(&fr, 0)
	})
}

// What carries whole frames gives their addresses; what lies between addresses and EtherType, those before it; what carries IP, none.
func TestMACs(t *testing.T) {
	packets, own := samples(t, 20), []byte{2, 0, 0, 0, 1}
	for _, k := range wrap.Kinds(0x123) {
		w := wrap.New(k, 0)
		for _, p := range packets {
			data, length := w.Frame(p.Data, int(p.Length))
			var f link.Frame
			if link.Decode(k.Link, data, uint32(length), &f); f.Proto == link.None {
				continue
			}
			to, from := link.MACs(k.Link, data, uint32(length), &f)
			switch {
			case k.Ethernet:
				if !bytes.Equal(to, p.Data[:6]) || !bytes.Equal(from, p.Data[6:12]) {
					t.Errorf("%s: packet %d: %x > %x of %x", k.Name, p.Number, from, to, p.Data[:12])
				}
			case to != nil && (!bytes.Equal(to[:5], own) || k.Outer):
				t.Errorf("%s: packet %d: %x > %x", k.Name, p.Number, from, to)
			}
		}
	}
}
