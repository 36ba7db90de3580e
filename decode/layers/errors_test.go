package layers

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// The numbers and names are fixed: users keep them.
func TestNumbers(t *testing.T) {
	for i, name := range []string{
		"ERF", "LRH", "GRH", "BTH", "RDETH", "DETH", "XRCETH", "FETH", "RETH", "AtomicETH", "AETH", "AtomicAckETH", "ImmDt", "IETH",
		"InfiniBandCM", "MPA", "DDP", "RDMAP", "RPCoverRDMA", "RPC",
	} {
		if got := gopacket.LayerType(1950 + i).String(); got != name {
			t.Errorf("%d is %s, want %s", 1950+i, got, name)
		}
	}
	if LayerTypeERF != 1950 || LayerTypeBTH != 1953 || LayerTypeMPA != 1965 || LayerTypeRPC != 1969 {
		t.Error("the constants are others")
	}
	for _, l := range []layer{
		new(ERF), new(LRH), new(GRH), new(BTH), new(RDETH), new(DETH), new(XRCETH), new(FETH), new(RETH), new(AtomicETH), new(AETH), new(AtomicAckETH),
		new(ImmDt), new(IETH), new(CM), new(MPA), new(DDP), new(RPCoverRDMA), new(RPC),
	} {
		if l.LayerType() == gopacket.LayerTypeZero || !l.CanDecode().Contains(l.LayerType()) {
			t.Errorf("%T is %v and decodes %v", l, l.LayerType(), l.CanDecode())
		}
	}
	if layers.UDPPort(4791).LayerType() != LayerTypeBTH || layers.TCPPort(20049).LayerType() != LayerTypeMPA ||
		layers.EthernetType(0x8915).LayerType() != LayerTypeGRH || layers.LinkType(247).LayerType() != LayerTypeLRH || layers.LinkType(197).LayerType() != LayerTypeERF {
		t.Error("not registered")
	}
}

// An extension header that is decoded for itself has a payload.
func TestExtensionAlone(t *testing.T) {
	for _, x := range extensionOrder {
		p := gopacket.NewPacket(make([]byte, 32), x.layer, asDatagrams)
		if got := names(p.Layers()); got != x.layer.String()+" Payload" || p.ErrorLayer() != nil {
			t.Error(p)
		}
		p = gopacket.NewPacket([]byte{1, 2, 3}, x.layer, asDatagrams)
		if e := p.ErrorLayer(); e == nil || !p.Metadata().Truncated || !strings.HasPrefix(e.Error().Error(), x.layer.String()+": 3 bytes of ") {
			t.Error(p)
		}
	}
}

func TestErrors(t *testing.T) {
	bth := func(op roce.Opcode, rest ...byte) []byte {
		return append([]byte{byte(op), 0, 255, 255, 0, 0, 0, 1, 0, 0, 0, 0}, rest...)
	}
	with := func(b []byte, i int, v byte) []byte { b[i] = v; return b }
	mad := make([]byte, 256)
	fpdu := iwarp.AppendFPDU(nil, iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpSend, true), 0, 1, 0), true)
	untagged := func(op iwarp.Opcode) []byte { return iwarp.AppendUntagged(nil, iwarp.NewControl(op, true), 0, 1, 0) }
	for _, c := range []struct {
		name      string
		first     gopacket.LayerType
		data      []byte
		want      string
		truncated bool
		layers    string
	}{
		{"short BTH", LayerTypeBTH, make([]byte, 11), "BTH: 11 bytes of 12", true, ""},
		{"no ICRC", LayerTypeBTH, bth(roce.RCSendOnly, 1, 2, 3), "BTH: 15 bytes are too few for the headers of RC Send Only, 0 pad bytes and the ICRC", true, "BTH "},
		{"no RETH", LayerTypeBTH, bth(roce.RCWriteOnly, make([]byte, 19)...), "too few for the headers of RC RDMA Write Only", true, "BTH "},
		{"pad", LayerTypeBTH, with(bth(roce.RCSendOnly, 1, 2, 3, 4, 5), 1, 0x20), "2 pad bytes", true, "BTH "},
		{"version", LayerTypeBTH, with(bth(roce.RCSendOnly, 1, 2, 3, 4), 1, 3), "transport header version 3 is not 0", false, "BTH "},
		{"opcode", LayerTypeBTH, bth(0x1f, 1, 2, 3, 4), "opcode 0x1f is not defined", false, "BTH "},
		{"several packets", LayerTypeBTH, bth(roce.RCSendFirst, make([]byte, 4097+4)...), "payload of 4097 bytes exceeds", false, "BTH "},
		{"short LRH", LayerTypeLRH, make([]byte, 7), "LRH: 7 bytes of 8", true, ""},
		{"LRH version", LayerTypeLRH, []byte{1, 2, 0, 0, 0, 2, 0, 0}, "link version 1", false, "LRH "},
		{"LRH length", LayerTypeLRH, []byte{0, 2, 0, 0, 0, 1, 0, 0}, "packet length 4", false, "LRH "},
		{"short GRH", LayerTypeGRH, make([]byte, 39), "GRH: 39 bytes of 40", true, ""},
		{"GRH version", LayerTypeGRH, make([]byte, 40), "GRH: version 0 is not 6", false, "GRH "},
		{"short ERF", LayerTypeERF, make([]byte, 15), "ERF: 15 bytes of 16", true, ""},
		{"ERF extension", LayerTypeERF, with(make([]byte, 20), 8, 0x80|21), "cut in the extension headers", true, ""},
		{"ERF extensions", LayerTypeERF, bytes.Repeat([]byte{0x95}, 400), "more than 16 extension headers", false, ""},
		{"ERF Ethernet", LayerTypeERF, with(make([]byte, 17), 8, 2), "cut before the Ethernet frame", true, ""},
		{"short MAD", LayerTypeCM, mad[:20], "cut in the header of a management datagram", true, ""},
		{"other MAD", LayerTypeCM, mad, "CM: not of the communication management class", false, "InfiniBandCM "},
		{"short MPA", LayerTypeMPA, []byte{0}, "MPA: 1 bytes are too few for an FPDU", true, ""},
		{"MPA request", LayerTypeMPA, []byte("MPA ID Req Frame\x00\x02"), "MPA: cut in an MPA Request or Reply", true, ""},
		{"no FPDU", LayerTypeMPA, []byte("this is some text of another protocol"), "no FPDU starts here", false, ""},
		{"marker", LayerTypeMPA, append(make([]byte, 4), fpdu...), "no FPDU starts here", false, ""},
		{"FPDU header", LayerTypeMPA, fpdu[:10], "DDP: 8 bytes of a header of 18", true, "MPA "},
		{"short DDP", LayerTypeDDP, []byte{1}, "DDP: 1 bytes", true, ""},
		{"DDP control word", LayerTypeDDP, make([]byte, 18), "control word 0x0000", false, ""},
		{"DDP queue", LayerTypeDDP, with(untagged(iwarp.OpSend), 9, 1), "queue 1 is not that of a Send", false, "DDP "},
		{"short Read Request", LayerTypeDDP, append(untagged(iwarp.OpReadRequest), make([]byte, 27)...), "RDMAP: 27 bytes of a RDMA Read Request of 28", true, "DDP "},
		{"short Terminate", LayerTypeDDP, append(untagged(iwarp.OpTerminate), 1), "RDMAP: 1 bytes of a Terminate of 4", true, "DDP "},
		{"short RPC-over-RDMA", LayerTypeRPCoverRDMA, []byte{0, 0, 0, 1, 0, 0, 0, 1}, "RPC-over-RDMA: xdr: data ends early at offset 8 in rdma_credit", true, "RPCoverRDMA "},
		{"version of RPC-over-RDMA", LayerTypeRPCoverRDMA, with(make([]byte, 28), 7, 9), "undefined value at offset 4 in rdma_vers", false, "RPCoverRDMA "},
		{"lying count", LayerTypeRPCoverRDMA, []byte{0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 99, 1, 2}, "data ends early", true, "RPCoverRDMA "},
		{"impossible count", LayerTypeRPCoverRDMA, []byte{0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 99, 1, 2}, "length out of range", false, "RPCoverRDMA "},
		{"short RPC", LayerTypeRPC, make([]byte, 7), "RPC: 7 bytes are too few", true, ""},
		{"RPC type", LayerTypeRPC, with(make([]byte, 40), 7, 2), "message type 2 is neither call nor reply", false, ""},
		{"RPC version", LayerTypeRPC, make([]byte, 40), "undefined value at offset 8 in rpcvers", false, "RPC "},
		{"RPC credential", LayerTypeRPC, with(with(make([]byte, 40), 11, 2), 31, 200), "data ends early at offset 32 in cred", true, "RPC "},
		{"RPC reply", LayerTypeRPC, []byte{0, 0, 0, 1, 0, 0, 0, 1}, "data ends early", true, "RPC "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := gopacket.NewPacket(c.data, c.first, asDatagrams)
			e := p.ErrorLayer()
			if e == nil || !strings.Contains(e.Error().Error(), c.want) {
				t.Fatalf("want %q: %v", c.want, p)
			}
			if p.Metadata().Truncated != c.truncated {
				t.Errorf("truncated is %v: %v", p.Metadata().Truncated, p)
			}
			if got := names(p.Layers()); got != c.layers+"DecodeFailure" {
				t.Errorf("layers %s", got)
			}
			_ = p.Dump()
			ps := newParser(c.first, gopacket.DecodingLayerMap{})
			if err := ps.DecodeLayers(c.data, &ps.decoded); err == nil || !strings.Contains(err.Error(), c.want) || ps.Truncated != c.truncated {
				t.Errorf("parser: %v, truncated %v", err, ps.Truncated)
			}
		})
	}
}

// An error stays as it was when the layer decodes the next packet.
func TestErrorKept(t *testing.T) {
	var l RPCoverRDMA
	err := l.DecodeFromBytes(make([]byte, 4), gopacket.NilDecodeFeedback)
	text := err.Error()
	if l.DecodeFromBytes(make([]byte, 14), gopacket.NilDecodeFeedback); err.Error() != text {
		t.Error(err)
	}
}

// A Send can carry anything.
func TestOtherSends(t *testing.T) {
	for _, payload := range [][]byte{nil, make([]byte, 64), []byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), bytes.Repeat([]byte{0, 0, 0, 1}, 16)} {
		b := serialize(t, gopacket.SerializeOptions{FixLengths: true}, &BTH{Opcode: roce.RCSendOnly}, gopacket.Payload(payload))
		want := "BTH Payload"
		if len(payload) == 0 {
			want = "BTH"
		}
		if p := gopacket.NewPacket(b, LayerTypeBTH, asDatagrams); names(p.Layers()) != want {
			t.Error(p)
		}
	}
	// Other management datagrams than those of CM, and UD to other queue pairs.
	mad := make([]byte, 256)
	mad[0], mad[1] = 1, 3
	for _, qp := range []uint32{1, 2} {
		b := serialize(t, gopacket.SerializeOptions{FixLengths: true}, &BTH{Opcode: roce.UDSendOnly, DestQP: qp, DETH: &DETH{}}, gopacket.Payload(mad))
		if p := gopacket.NewPacket(b, LayerTypeBTH, asDatagrams); names(p.Layers()) != "BTH DETH Payload" {
			t.Error(p)
		}
		mad[1] = 7
	}
}

// An FPDU that goes on in the next segment is decoded as far as it is there;
// the next segment is not.
func TestPartialFPDU(t *testing.T) {
	p := packet(t, unhex(t, sampleFPDUs))
	payload := p.TransportLayer().LayerPayload()
	first := iwarp.FPDULen(int(binary.BigEndian.Uint16(payload)))
	for n := first + 4; n < len(payload); n++ {
		p := gopacket.NewPacket(payload[:n], LayerTypeMPA, asDatagrams)
		ls := p.Layers()
		if !p.Metadata().Truncated || len(ls) < 5 || ls[4].LayerType() != LayerTypeMPA || !ls[4].(*MPA).Cut || ls[4].(*MPA).Padding != nil {
			t.Fatalf("%d of %d: %v", n, len(payload), p)
		}
		if _, ok := ls[4].(*MPA).VerifyCRC(); ok {
			t.Fatalf("%d of %d: CRC verified", n, len(payload))
		}
	}
	// The segment that starts within an FPDU.
	for n := first + 1; n < len(payload)-4; n++ {
		if p := gopacket.NewPacket(payload[n:], LayerTypeMPA, asDatagrams); p.ErrorLayer() == nil {
			t.Fatalf("from %d: %v", n, p)
		}
	}
}

// In a captured segment, the CRC of a connection that uses CRCs is right.
func TestCRC(t *testing.T) {
	ulpdu := iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpSend, true), 0, 1, 0)
	var l MPA
	for _, crc := range []bool{true, false} {
		if err := l.DecodeFromBytes(iwarp.AppendFPDU(nil, ulpdu, crc), gopacket.NilDecodeFeedback); err != nil {
			t.Fatal(err)
		}
		if right, ok := l.VerifyCRC(); right != crc || !ok {
			t.Error(right, ok)
		}
	}
	l.DecodeFromBytes(unhex(t, sampleMPARequest)[66:], gopacket.NilDecodeFeedback)
	if _, ok := l.VerifyCRC(); ok || !l.Negotiation {
		t.Error("a Request has no CRC")
	}
}

func TestVerifyICRCOfOthers(t *testing.T) {
	if v := VerifyICRC(packet(t, unhex(t, sampleFPDUSend))); v != roce.Unchecked {
		t.Error(v)
	}
	frame := unhex(t, sampleAck)
	frame[len(frame)-1] ^= 1
	if v := VerifyICRC(packet(t, frame)); v != roce.Bad {
		t.Error(v)
	}
	copy(frame[len(frame)-4:], make([]byte, 4))
	if v := VerifyICRC(packet(t, frame)); v != roce.NotCheckedZeroed {
		t.Error(v)
	}
	if v := VerifyICRC(gopacket.NewPacket(frame[42:], LayerTypeBTH, asDatagrams)); v != roce.NotCheckedUnknown {
		t.Error(v)
	}
}
