package link

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// Net and Transport are what the ICRC of RoCEv2 covers before the BTH, with
// the fields that routers change set to ones.
func TestNetIsWhatICRCCovers(t *testing.T) {
	for name, s := range map[string]string{"IPv4": realRoCEv2, "IPv6": realRoCEv2IPv6, "VLAN": realRoCEv2VLAN} {
		f := decode(capture.LinkEthernet, unhex(t, s))
		net, transport, payload := bytes.Clone(f.Net), bytes.Clone(f.Transport), bytes.Clone(f.Payload)
		if net[0]>>4 == 4 {
			net[1], net[8], net[10], net[11] = 0xff, 0xff, 0xff, 0xff
		} else {
			net[0], net[1], net[2], net[3], net[7] = 0x6f, 0xff, 0xff, 0xff, 0xff
		}
		transport[6], transport[7] = 0xff, 0xff
		payload[4] = 0xff
		end := len(payload) - 4
		sum := crc32.ChecksumIEEE(join(bytes.Repeat([]byte{0xff}, 8), net, transport, payload[:end]))
		if want := binary.LittleEndian.Uint32(payload[end:]); sum != want {
			t.Errorf("%s: %08x, the packet has %08x", name, sum, want)
		}
	}
}

// Merged frames above 64 KiB have no length in their IP header.
func TestUndeclaredLength(t *testing.T) {
	big := counting(100_000)
	v4 := ip4(ipTCP, 0, nil, tcp(nil, big))
	v4[2], v4[3] = 0, 0
	v6 := ip6(ipTCP, tcp(nil, big))
	v6[4], v6[5] = 0, 0
	jumbo := ip6(ipHopByHop, join([]byte{ipTCP, 0, 0xc2, 4, 0, 1, 0x86, 0xbc}, tcp(nil, big)))
	jumbo[4], jumbo[5] = 0, 0
	for name, packet := range map[string][]byte{"IPv4": v4, "IPv6": v6, "jumbogram": jumbo} {
		data := ether(0x0800, packet)
		if name != "IPv4" {
			data = ether(0x86dd, packet)
		}
		f := decode(capture.LinkEthernet, data)
		if f.Proto != TCP || f.PayloadLen != len(big) || !bytes.Equal(f.Payload, big) {
			t.Errorf("%s: proto %d, problem %q, length %d", name, f.Proto, f.Problem, f.PayloadLen)
		}
		Decode(capture.LinkEthernet, data[:200], uint32(len(data)), &f)
		if f.Proto != TCP || f.PayloadLen != len(big) || len(f.Payload) >= 200 {
			t.Errorf("%s cut: proto %d, problem %q, length %d", name, f.Proto, f.Problem, f.PayloadLen)
		}
		Decode(capture.LinkEthernet, data[:200], 1<<32-1, &f)
		if f.PayloadLen > maxUndeclared {
			t.Errorf("%s: a lie of the capture gave length %d", name, f.PayloadLen)
		}
	}
}

func TestUDPLength(t *testing.T) {
	for _, c := range []struct{ declared, want int }{
		{8 + 32, 32}, // as it should be
		{8 + 20, 20}, // a trailer after the datagram
		{8, 0},
		{0, 32},      // jumbogram, or segmentation offload
		{7, 32},      // cannot be
		{8 + 33, 32}, // more than IP has
		{65535, 32},
	} {
		d := udp(body)
		binary.BigEndian.PutUint16(d[4:], uint16(c.declared))
		for _, f := range []Frame{decode(capture.LinkRaw, ip4(ipUDP, 0, nil, d)), decode(capture.LinkRaw, ip6(ipUDP, d))} {
			if f.Proto != UDP || f.PayloadLen != c.want || !bytes.Equal(f.Payload, body[:c.want]) {
				t.Errorf("length %d: got %d, %x", c.declared, f.PayloadLen, f.Payload)
			}
		}
	}
}

func TestFragmentFields(t *testing.T) {
	part := counting(64)
	ext := func(offset, flags uint16) []byte {
		return join([]byte{ipUDP, 0}, be16(int(offset|flags)), []byte{1, 2, 3, 4}, part)
	}
	for _, c := range []struct {
		name   string
		data   []byte
		offset uint32
		more   bool
		id     uint32
		net    int
	}{
		{"first of IPv4", ip4(ipUDP, 0x2000, nil, part), 0, true, 0x1234, 20},
		{"last of IPv4", ip4(ipUDP, 185, make([]byte, 8), part), 1480, false, 0x1234, 28},
		{"first of IPv6", ip6(ipFragment, ext(0, 1)), 0, true, 0x01020304, 48},
		{"middle of IPv6", ip6(ipFragment, ext(1448, 1)), 1448, true, 0x01020304, 48},
		{"after hop-by-hop", ip6(ipHopByHop, join([]byte{ipFragment, 0, 7: 0}, ext(65528, 0))), 65528, false, 0x01020304, 56},
	} {
		f := decode(capture.LinkRaw, c.data)
		if f.Proto != Fragment || f.Problem != NoProblem || f.FragmentOffset != c.offset || f.MoreFragments != c.more || f.FragmentID != c.id ||
			f.FragmentProto != ipUDP || len(f.Net) != c.net || !bytes.Equal(f.Payload, part) || f.PayloadLen != len(part) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TCP options may be cut: what the header says is known nevertheless.
func TestTCPOptionsCut(t *testing.T) {
	data := ip4(ipTCP, 0, nil, tcp(make([]byte, 12), body))
	var f Frame
	Decode(capture.LinkRaw, data[:45], uint32(len(data)), &f)
	if f.Proto != TCP || f.Problem != NoProblem || f.TCPSeq != 0x01020304 || len(f.Transport) != 25 || len(f.Payload) != 0 || f.PayloadLen != len(body) {
		t.Errorf("%+v", f)
	}
}
