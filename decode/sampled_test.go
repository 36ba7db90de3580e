package decode

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// sampledHeader is an Ethernet frame of RoCEv2, cut behind the AETH.
func sampledHeader(op roce.Opcode, ecn, syndrome byte) []byte {
	b := make([]byte, 14+20+8+12+4)
	b[12], b[13] = 8, 0
	ip := b[14:]
	ip[0], ip[1], ip[8], ip[9] = 0x45, ecn, 64, 17
	binary.BigEndian.PutUint16(ip[2:], 20+8+1024+16)
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(ip[20:], 50000)
	binary.BigEndian.PutUint16(ip[22:], RoCEPort)
	binary.BigEndian.PutUint16(ip[24:], 8+1024+16)
	ip[28], ip[40] = byte(op), syndrome
	return b
}

// sampleOf is an sFlow datagram of version 5 with one flow sample for each header.
func sampleOf(expanded bool, headers ...[]byte) []byte {
	put := func(b []byte, words ...uint32) []byte {
		for _, w := range words {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	part := func(b []byte, kind uint32, p []byte) []byte { return append(put(b, kind, uint32(len(p))), p...) }
	out := put(nil, 5, 1, 0x0a0000fe, 0, 1, 1000, uint32(len(headers)))
	for _, h := range headers {
		raw := append(put(nil, 1, 1082, 4, uint32(len(h))), h...)
		raw = append(raw, make([]byte, -len(h)&3)...)
		s, kind := put(nil, 1, 2, 512, 9, 0, 1, 2, 1), uint32(sflowFlowSample)
		if expanded {
			s, kind = put(nil, 1, 0, 2, 512, 9, 0, 0, 1, 0, 2, 1), sflowExpandedSample
		}
		out = part(out, kind, part(s, sflowRawHeader, raw))
	}
	return out
}

// TestSampled counts the packets of sFlow datagrams, whole and cut at each byte.
func TestSampled(t *testing.T) {
	for _, expanded := range []bool{false, true} {
		b := sampleOf(expanded, sampledHeader(roce.RCSendOnly, 3, 0), sampledHeader(roce.CNP, 2, 0),
			sampledHeader(roce.RCAcknowledge, 2, byte(roce.NAKPSNSequence)), []byte{1, 2, 3})
		var f link.Frame
		var got Sampled
		got.datagram(b, &f)
		want := Sampled{Headers: 4, Rate: 512, RoCE: 3, Marked: 1, CNPs: 1, NAKs: 1}
		want.Peers[0] = SampledPeers{netip.AddrFrom4([4]byte{10, 0, 0, 1}), netip.AddrFrom4([4]byte{10, 0, 0, 2}), 3}
		if got != want {
			t.Errorf("expanded %v: %+v, want %+v", expanded, got, want)
		}
		for n := range b {
			var cut Sampled
			cut.datagram(b[:n:n], &f)
			if cut.Headers > want.Headers || cut.RoCE > want.RoCE {
				t.Errorf("cut at %d: %+v", n, cut)
			}
		}
		sum := got
		sum.Add(&got)
		if since := sum.Since(&got); since != got {
			t.Errorf("%+v, want %+v", since, got)
		}
	}
}
