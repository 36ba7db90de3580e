package link

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// body is a payload with the size of a short RoCE packet, a multiple of 4.
var body = counting(32)

// linkCases are frames of all kinds that carry body.
var linkCases = []struct {
	name  string
	link  capture.LinkType
	data  []byte
	proto Proto
	net   int // length of Frame.Net
	head  int // bytes before Net
	src   string
	vlan  uint16
}{
	{"ethernet", capture.LinkEthernet, ether(0x0800, ip4(ipUDP, 0x4000, nil, udp(body))), UDP, 20, 14, "192.0.2.2", 0},
	{"padded", capture.LinkEthernet, join(ether(0x0800, ip4(ipUDP, 0, nil, udp(body))), make([]byte, 9)), UDP, 20, 14, "192.0.2.2", 0},
	{"vlan", capture.LinkEthernet, ether(0x8100, join(be16(0x602a), be16(0x0800), ip4(ipUDP, 0, nil, udp(body)))), UDP, 20, 18, "192.0.2.2", 42},
	{"qinq", capture.LinkEthernet, ether(0x88a8, join(be16(7), be16(0x8100), be16(0x2fff), be16(0x86dd), ip6(ipUDP, udp(body)))), UDP, 40, 22, "fd00::2", 0xfff},
	{"old qinq", capture.LinkEthernet, ether(0x9100, join(be16(7), be16(0x9100), be16(1), be16(0x0800), ip4(ipTCP, 0, nil, tcp(nil, body)))), TCP, 20, 22, "192.0.2.2", 1},
	{"roce v1", capture.LinkEthernet, ether(0x8915, grh(body)), RoCEv1, 40, 14, "fd00::2", 0},
	{"roce v1 padded", capture.LinkEthernet, join(ether(0x8915, grh(body)), make([]byte, 5)), RoCEv1, 40, 14, "fd00::2", 0},
	{"sll", capture.LinkSLL, join(make([]byte, 14), be16(0x0800), ip4(ipUDP, 0, nil, udp(body))), UDP, 20, 16, "192.0.2.2", 0},
	{"sll vlan", capture.LinkSLL, join(make([]byte, 14), be16(0x8100), be16(9), be16(0x86dd), ip6(ipTCP, tcp(nil, body))), TCP, 40, 20, "fd00::2", 9},
	{"sll2", capture.LinkSLL2, join(be16(0x0800), make([]byte, 18), ip4(ipUDP, 0, nil, udp(body))), UDP, 20, 20, "192.0.2.2", 0},
	{"raw 12", capture.LinkRawBSD, ip4(ipUDP, 0, nil, udp(body)), UDP, 20, 0, "192.0.2.2", 0},
	{"raw 14", capture.LinkRawOpenBSD, ip6(ipUDP, udp(body)), UDP, 40, 0, "fd00::2", 0},
	{"raw 101", capture.LinkRaw, ip6(ipUDP, udp(body)), UDP, 40, 0, "fd00::2", 0},
	{"ipv4", capture.LinkIPv4, ip4(ipTCP, 0, nil, tcp(make([]byte, 40), body)), TCP, 20, 0, "192.0.2.2", 0},
	{"ipv6", capture.LinkIPv6, ip6(ipTCP, tcp(make([]byte, 12), body)), TCP, 40, 0, "fd00::2", 0},
	{"null little", capture.LinkNull, join([]byte{2, 0, 0, 0}, ip4(ipUDP, 0, nil, udp(body))), UDP, 20, 4, "192.0.2.2", 0},
	{"null big", capture.LinkNull, join([]byte{0, 0, 0, 2}, ip4(ipUDP, 0, nil, udp(body))), UDP, 20, 4, "192.0.2.2", 0},
	{"null Linux", capture.LinkNull, join([]byte{10, 0, 0, 0}, ip6(ipUDP, udp(body))), UDP, 40, 4, "fd00::2", 0},
	{"null NetBSD", capture.LinkNull, join([]byte{24, 0, 0, 0}, ip6(ipUDP, udp(body))), UDP, 40, 4, "fd00::2", 0},
	{"null FreeBSD", capture.LinkNull, join([]byte{28, 0, 0, 0}, ip6(ipUDP, udp(body))), UDP, 40, 4, "fd00::2", 0},
	{"loop Darwin", capture.LinkLoop, join([]byte{0, 0, 0, 30}, ip6(ipUDP, udp(body))), UDP, 40, 4, "fd00::2", 0},
	{"infiniband local", capture.LinkInfiniBand, lrh(2, body), InfiniBand, 8, 0, "lid 3", 0},
	{"infiniband global", capture.LinkInfiniBand, lrh(3, grh(body)), InfiniBand, 48, 0, "fd00::2", 0},
	{"erf infiniband", capture.LinkERF, join(erf(21), lrh(2, body)), InfiniBand, 8, 16, "lid 3", 0},
	{"erf extended", capture.LinkERF, join(erf(21|0x80), []byte{0x85, 7: 1, 8: 5, 15: 0}, lrh(3, grh(body))), InfiniBand, 48, 32, "fd00::2", 0},
	{"erf ethernet", capture.LinkERF, join(erf(2), be16(0), ether(0x0800, ip4(ipUDP, 0, nil, udp(body))), make([]byte, 4)), UDP, 20, 32, "192.0.2.2", 0},
	{"erf ipv6", capture.LinkERF, join(erf(23), ip6(ipUDP, udp(body))), UDP, 40, 16, "fd00::2", 0},
	{"ipv4 options", capture.LinkRaw, ip4(ipUDP, 0, make([]byte, 40), udp(body)), UDP, 60, 0, "192.0.2.2", 0},
	{"extension headers", capture.LinkRaw, ip6(ipHopByHop, join(
		[]byte{ipRouting, 0, 7: 0}, []byte{ipDestination, 1, 15: 0}, []byte{ipAuth, 0, 7: 0}, []byte{ipFragment, 4, 23: 0},
		[]byte{ipUDP, 0, 7: 0}, udp(body))), UDP, 40 + 8 + 16 + 8 + 24 + 8, 0, "fd00::2", 0},
}

// erf is a record header of the given type.
func erf(typ byte) []byte { return []byte{8: typ, 15: 0} }

func TestDecode(t *testing.T) {
	for _, c := range linkCases {
		t.Run(c.name, func(t *testing.T) {
			f := decode(c.link, c.data)
			if f.Problem != NoProblem || f.Proto != c.proto {
				t.Fatalf("proto %d, problem %q", f.Proto, f.Problem)
			}
			if !bytes.Equal(f.Payload, body) || f.PayloadLen != len(body) {
				t.Errorf("payload %x, length %d", f.Payload, f.PayloadLen)
			}
			if !bytes.Equal(f.Net, c.data[c.head:c.head+c.net]) {
				t.Errorf("net %x", f.Net)
			}
			if got := AddrString(f.Src); got != c.src {
				t.Errorf("source %s, want %s", got, c.src)
			}
			if f.VLAN != c.vlan {
				t.Errorf("VLAN %d, want %d", f.VLAN, c.vlan)
			}
			if c.net != 8 && (f.ECN != testECN || f.TTL != testTTL) {
				t.Errorf("ECN %d, TTL %d", f.ECN, f.TTL)
			}
			switch c.proto {
			case UDP:
				if f.SrcPort != 49152 || f.DstPort != 4791 || len(f.Transport) != 8 {
					t.Errorf("ports %d %d, header %x", f.SrcPort, f.DstPort, f.Transport)
				}
			case TCP:
				if f.SrcPort != 49152 || f.DstPort != 20049 || f.TCPSeq != 0x01020304 || f.TCPAck != 0x05060708 || f.TCPFlags != 0x18 {
					t.Errorf("%+v", f)
				}
			}
			for _, s := range [][]byte{f.Net, f.Transport, f.Payload} {
				if len(s) != cap(s) {
					t.Errorf("slice of %d bytes can grow to %d", len(s), cap(s))
				}
			}
		})
	}
}

// A frame that the capture cut tells the same as the whole one, with less of
// its payload, or has a problem.
func TestDecodeCut(t *testing.T) {
	for _, c := range linkCases {
		whole := decode(c.link, c.data)
		for n := range c.data {
			var f Frame
			Decode(c.link, c.data[:n:n], uint32(len(c.data)), &f)
			if f.Problem != NoProblem {
				if f.Proto != None {
					t.Errorf("%s cut at %d: problem %q, proto %d", c.name, n, f.Problem, f.Proto)
				}
				continue
			}
			if f.Proto != whole.Proto || f.PayloadLen != whole.PayloadLen || f.Src != whole.Src || f.TCPSeq != whole.TCPSeq {
				t.Errorf("%s cut at %d: %+v", c.name, n, f)
			}
			if !bytes.HasPrefix(whole.Payload, f.Payload) || !bytes.HasPrefix(whole.Transport, f.Transport) || !bytes.Equal(f.Net, whole.Net) {
				t.Errorf("%s cut at %d: slices differ", c.name, n)
			}
			if n < c.head+c.net {
				t.Errorf("%s cut at %d: no problem with half a header", c.name, n)
			}
		}
	}
}

func TestDecodeProblems(t *testing.T) {
	tags := func(n int) []byte {
		var b []byte
		for range n {
			b = join(b, be16(1), be16(0x8100))
		}
		return b
	}
	edit := func(b []byte, at int, v ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], v)
		return b
	}
	var chain []byte
	for range 20 {
		chain = append(chain, ipDestination, 0, 0, 0, 0, 0, 0, 0)
	}
	for _, c := range []struct {
		name    string
		link    capture.LinkType
		data    []byte
		problem Problem
	}{
		{"empty", capture.LinkEthernet, nil, ProblemCutEthernet},
		{"no IP", capture.LinkRaw, nil, ProblemCutIP},
		{"IP version", capture.LinkRaw, []byte{0x50}, ProblemNotIP},
		{"IPv4 version", capture.LinkEthernet, ether(0x0800, edit(ip4(ipUDP, 0, nil, udp(nil)), 0, 0x65)), ProblemNotIPv4},
		{"IPv6 version", capture.LinkEthernet, ether(0x86dd, edit(ip6(ipUDP, udp(nil)), 0, 0x45)), ProblemNotIPv6},
		{"tags", capture.LinkEthernet, ether(0x8100, tags(100)), ProblemManyVLAN},
		{"header length", capture.LinkRaw, edit(ip4(ipUDP, 0, nil, udp(nil)), 0, 0x44), ProblemIPv4HeaderLength},
		{"total length", capture.LinkRaw, edit(ip4(ipUDP, 0, nil, udp(nil)), 2, 0, 19), ProblemIPv4TotalLength},
		{"short UDP", capture.LinkRaw, ip4(ipUDP, 0, nil, make([]byte, 7)), ProblemShortUDP},
		{"short TCP", capture.LinkRaw, ip4(ipTCP, 0, nil, make([]byte, 19)), ProblemShortTCP},
		{"data offset", capture.LinkRaw, ip4(ipTCP, 0, nil, edit(tcp(nil, nil), 12, 0x40)), ProblemTCPOffset},
		{"data offset beyond", capture.LinkRaw, ip4(ipTCP, 0, nil, edit(tcp(nil, nil), 12, 0x60)), ProblemTCPOffset},
		{"extension chain", capture.LinkRaw, ip6(ipDestination, chain), ProblemManyIPv6Extensions},
		{"extension length", capture.LinkRaw, ip6(ipDestination, []byte{ipUDP, 255, 7: 0}), ProblemIPv6Extension},
		{"LRH length", capture.LinkInfiniBand, edit(lrh(2, nil), 4, 0, 1), ProblemLRHLength},
		{"GRH missing", capture.LinkInfiniBand, lrh(3, nil), ProblemShortGRH},
		{"GRH version", capture.LinkEthernet, ether(0x8915, edit(grh(body), 0, 0x50)), ProblemGRHVersion},
		{"GRH next header", capture.LinkEthernet, ether(0x8915, ip6(ipUDP, body)), ProblemGRHNext},
		{"ERF extensions", capture.LinkERF, join(erf(21|0x80), bytes.Repeat([]byte{0x80}, 800)), ProblemManyERFExtensions},
	} {
		f := decode(c.link, c.data)
		if f.Problem != c.problem || f.Proto != None {
			t.Errorf("%s: proto %d, problem %q, want %q", c.name, f.Proto, f.Problem, c.problem)
		}
	}
}

// What is no concern of ours is no problem.
func TestDecodeOther(t *testing.T) {
	for name, f := range map[string]Frame{
		"802.3 length":   decode(capture.LinkEthernet, ether(46, make([]byte, 46))),
		"ARP":            decode(capture.LinkEthernet, ether(0x0806, make([]byte, 46))),
		"ICMP":           decode(capture.LinkRaw, ip4(1, 0, nil, body)),
		"ICMPv6":         decode(capture.LinkRaw, ip6(58, body)),
		"no next header": decode(capture.LinkRaw, ip6(59, nil)),
		"AppleTalk":      decode(capture.LinkNull, make([]byte, 40)),
		"raw IB":         decode(capture.LinkInfiniBand, lrh(0, body)),
		"IB link packet": decode(capture.LinkERF, join(erf(25), make([]byte, 8))),
	} {
		if f.Proto != None || f.Problem != NoProblem {
			t.Errorf("%s: proto %d, problem %q", name, f.Proto, f.Problem)
		}
	}
}

// Decode forgets what the frame held before.
func TestDecodeRefills(t *testing.T) {
	f := decode(capture.LinkEthernet, unhex(t, realIWARP))
	Decode(capture.LinkEthernet, nil, 0, &f)
	f.Problem = NoProblem
	if f.Proto != None || f.Src.IsValid() || f.Net != nil || f.Payload != nil || f.TCPSeq != 0 || f.TCPFlags != 0 || f.PayloadLen != 0 {
		t.Errorf("%+v", f)
	}
}

func TestDecodeReal(t *testing.T) {
	f := decode(capture.LinkEthernet, unhex(t, realRoCEv2VLAN))
	if f.Proto != UDP || f.VLAN != 42 || f.Src != netip.MustParseAddr("192.0.2.1") || f.DstPort != 4791 || f.PayloadLen != 20 || f.IPID != 0x027c {
		t.Errorf("VLAN: %+v", f)
	}
	f = decode(capture.LinkEthernet, unhex(t, realIWARP))
	if f.Proto != TCP || f.SrcPort != 41394 || f.DstPort != 20049 || f.TCPSeq != 0x53eb9e85 || f.TCPAck != 0x497e7a3c ||
		f.TCPFlags != 0x18 || !bytes.HasPrefix(f.Payload, []byte("MPA ID Req Frame")) || f.PayloadLen != 32 || len(f.Transport) != 32 {
		t.Errorf("iWARP: %+v", f)
	}
	f = decode(capture.LinkEthernet, unhex(t, realSYN))
	if f.Proto != TCP || f.TCPFlags != 2 || f.PayloadLen != 0 || f.TTL != 64 || f.Dst != server6 {
		t.Errorf("SYN: %+v", f)
	}
}

func TestDecodeAllocs(t *testing.T) {
	var f Frame
	for _, c := range linkCases {
		if n := testing.AllocsPerRun(100, func() { Decode(c.link, c.data, uint32(len(c.data)), &f) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range linkCases {
		f.Add(uint16(c.link), uint32(len(c.data)), c.data)
	}
	for _, s := range []string{realRoCEv2, realRoCEv2IPv6, realRoCEv2VLAN, realIWARP, realSYN} {
		f.Add(uint16(capture.LinkEthernet), uint32(200), unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, lt uint16, wire uint32, data []byte) {
		var fr Frame
		Decode(capture.LinkType(lt), data, wire, &fr)
		if fr.PayloadLen < len(fr.Payload) {
			t.Errorf("declared %d, captured %d", fr.PayloadLen, len(fr.Payload))
		}
		if fr.PayloadLen > max(maxUndeclared, len(data)) {
			t.Errorf("declared %d", fr.PayloadLen)
		}
		if fr.Problem != NoProblem && fr.Proto != None {
			t.Errorf("problem %q with proto %d", fr.Problem, fr.Proto)
		}
		if fr.Proto != None && (len(fr.Net) == 0 || !fr.Src.IsValid() || !fr.Dst.IsValid()) {
			t.Errorf("%+v", fr)
		}
		for _, s := range [][]byte{fr.Net, fr.Transport, fr.Payload} {
			if len(s) != cap(s) {
				t.Errorf("slice of %d bytes can grow to %d", len(s), cap(s))
			}
		}
		r := NewReassembler(ReassemblerOptions{})
		r.Add(&fr, 0)
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		name string
		link capture.LinkType
		data []byte
	}{
		{"EthernetIPv4UDP", capture.LinkEthernet, unhex(b, realRoCEv2)},
		{"EthernetIPv6UDP", capture.LinkEthernet, unhex(b, realRoCEv2IPv6)},
		{"VLAN", capture.LinkEthernet, unhex(b, realRoCEv2VLAN)},
		{"EthernetIPv4TCP", capture.LinkEthernet, unhex(b, realIWARP)},
		{"RoCEv1", capture.LinkEthernet, ether(0x8915, grh(body))},
		{"InfiniBand", capture.LinkInfiniBand, lrh(2, body)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var f Frame
			b.ReportAllocs()
			for b.Loop() {
				Decode(c.link, c.data, uint32(len(c.data)), &f)
			}
		})
	}
}
