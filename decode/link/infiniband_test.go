package link

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// The VCRC is optional: the packet length of the LRH tells it from the payload.
func TestVCRC(t *testing.T) {
	for _, data := range [][]byte{lrh(2, body), lrh(3, grh(body))} {
		for cut := range 3 {
			f := decode(capture.LinkInfiniBand, data[:len(data)-cut])
			if f.Proto != InfiniBand || !bytes.Equal(f.Payload, body) || f.PayloadLen != len(body) {
				t.Errorf("VCRC without %d bytes: %+v", cut, f)
			}
		}
	}
}

func TestLIDs(t *testing.T) {
	f := decode(capture.LinkInfiniBand, lrh(2, body))
	if f.Src != LID(3) || f.Dst != LID(5) {
		t.Errorf("%s to %s", AddrString(f.Src), AddrString(f.Dst))
	}
}

// A GID that stands for an IPv4 address compares with that of IP packets.
func TestMappedGID(t *testing.T) {
	packet := grh(body)
	mapped := netip.MustParseAddr("::ffff:192.0.2.9").As16()
	copy(packet[8:], mapped[:])
	if f := decode(capture.LinkEthernet, ether(0x8915, packet)); f.Src != netip.MustParseAddr("192.0.2.9") {
		t.Errorf("source %s", f.Src)
	}
}

// Two headers that disagree about the length: the shorter is believed.
func TestGRHLength(t *testing.T) {
	for declared, want := range map[uint16]int{0: 32, 20: 20, 32: 32, 4000: 32} {
		packet := grh(body)
		binary.BigEndian.PutUint16(packet[4:], declared)
		f := decode(capture.LinkInfiniBand, lrh(3, packet))
		if f.PayloadLen != want || len(f.Payload) != want {
			t.Errorf("length %d: %d bytes, %d captured", declared, f.PayloadLen, len(f.Payload))
		}
	}
}
