package link

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// Frames of a Linux NFS/RDMA client and server.
const (
	realRoCEv2 = `525400123402 525400123401 0800
		45000030892a400040112d8fc0000201c0000202 d0bd12b7001c0000
		1100ffff00000011004303c0 1f000001 979e1caa`
	realRoCEv2IPv6 = `525400123402 525400123401 86dd
		60000000001c1140fd000000000000000000000000000001fd000000000000000000000000000002 e1e512b7001c0000
		1100ffff000000110029f4fb 1f000001 7e789094`
	realRoCEv2VLAN = `525400123402 525400123401 8100602a 0800
		45000030027c40004011b43dc0000201c0000202 f1c012b7001c0000
		1100ffff000000110062ebf7 1f000001 644ae0d3`
	realIWARP = `525400123401 525400123402 0800
		45000054409840004006 7608c0000202c0000201 a1b24e5153eb9e85497e7a3c801801f616550000 0101080a7ef785e039477f1c
		4d504120494420526571204672616d65 1002000c 00800000 f6ab0e1801010303`
	realSYN = `525400123401 525400123402 86dd
		6006f02400280640fd000000000000000000000000000002fd000000000000000000000000000001
		b5ee4e51ba5c684e00000000a002fd2068660000 020405a00402080a83f33daa0000000001030307`
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// counting is n bytes that differ from their neighbours.
func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

var (
	mac      = []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}
	client4  = netip.MustParseAddr("192.0.2.2")
	server4  = netip.MustParseAddr("192.0.2.1")
	client6  = netip.MustParseAddr("fd00::2")
	server6  = netip.MustParseAddr("fd00::1")
	testECN  = uint8(3)
	testTTL  = uint8(61)
	testIPID = uint16(0x1234)
)

func be16(v int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }

func ether(etherType int, payload []byte) []byte { return join(mac, be16(etherType), payload) }

// ip4 is an IPv4 packet with the given options (a multiple of 4 bytes).
func ip4(proto uint8, frag uint16, options, payload []byte) []byte {
	h := make([]byte, 20, 20+len(options)+len(payload))
	h[0] = 0x40 | byte(5+len(options)/4)
	h[1] = 0x60 | testECN
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(options)+len(payload)))
	binary.BigEndian.PutUint16(h[4:], testIPID)
	binary.BigEndian.PutUint16(h[6:], frag)
	h[8], h[9] = testTTL, proto
	copy(h[12:], client4.AsSlice())
	copy(h[16:], server4.AsSlice())
	return join(h, options, payload)
}

// ip6 is an IPv6 packet whose payload starts with a header of the given kind.
func ip6(next uint8, payload []byte) []byte {
	h := make([]byte, 40, 40+len(payload))
	h[0], h[1] = 0x60, testECN<<4
	binary.BigEndian.PutUint16(h[4:], uint16(len(payload)))
	h[6], h[7] = next, testTTL
	copy(h[8:], client6.AsSlice())
	copy(h[24:], server6.AsSlice())
	return join(h, payload)
}

func udp(payload []byte) []byte {
	return join(be16(49152), be16(4791), be16(8+len(payload)), be16(0), payload)
}

// tcp is a segment with the given options (a multiple of 4 bytes).
func tcp(options, payload []byte) []byte {
	h := make([]byte, 20)
	binary.BigEndian.PutUint16(h, 49152)
	binary.BigEndian.PutUint16(h[2:], 20049)
	binary.BigEndian.PutUint32(h[4:], 0x01020304)
	binary.BigEndian.PutUint32(h[8:], 0x05060708)
	h[12], h[13] = byte(5+len(options)/4)<<4, 0x18
	return join(h, options, payload)
}

// grh is a global route header and what follows it.
func grh(payload []byte) []byte { return ip6(ipBTH, payload) }

// lrh is a local route header with its LNH, and a VCRC after the payload.
func lrh(lnh uint8, payload []byte) []byte {
	return join([]byte{0x70, 0x20 | lnh}, be16(5), be16((8+len(payload))/4), be16(3), payload, []byte{0xde, 0xad})
}

func decode(lt capture.LinkType, data []byte) Frame {
	var f Frame
	Decode(lt, data, uint32(len(data)), &f)
	return f
}
