package layers

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

var fix = gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}

// serialize serialises layers that are decoded already.
func serialize(t testing.TB, opts gopacket.SerializeOptions, ls ...gopacket.Layer) []byte {
	t.Helper()
	var out []gopacket.SerializableLayer
	for _, l := range ls {
		out = append(out, l.(gopacket.SerializableLayer))
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, opts, out...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What has been decoded is serialised to the very same bytes, whether lengths and checksums are kept or made
// again.
func TestSamplesSerialized(t *testing.T) {
	for _, s := range samples {
		if strings.HasPrefix(s.name, "fpdus") {
			continue // one FPDU at a time: see TestFPDUsSerialized
		}
		t.Run(s.name, func(t *testing.T) {
			frame := unhex(t, s.hex)
			p := packet(t, frame)
			if got := serialize(t, gopacket.SerializeOptions{}, p.Layers()...); !bytes.Equal(got, frame) {
				t.Errorf("as it is:\n%x, want\n%x", got, frame)
			}
			switch transport := p.TransportLayer().(type) {
			case *layers.UDP:
				transport.SetNetworkLayerForChecksum(p.NetworkLayer())
				// Linux leaves out the UDP checksum.
				binary.BigEndian.PutUint16(frame[40:], 0)
				bth := p.Layer(LayerTypeBTH).(*BTH)
				bth.ICRC, bth.PadCount = 0xbad, 1
				if err := bth.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
					t.Fatal(err)
				}
				if err := bth.SetTransportLayerForChecksum(transport); err != nil {
					t.Fatal(err)
				}
			case *layers.TCP:
				transport.SetNetworkLayerForChecksum(p.NetworkLayer())
				transport.Padding = nil
				l := p.Layer(LayerTypeMPA).(*MPA)
				l.ULPDULength = 0
				if !l.Negotiation {
					// This connection has no CRCs.
					frame = append(frame[:len(frame)-4], 0, 0, 0, 0)
				}
			}
			got := serialize(t, fix, p.Layers()...)
			if p.Layer(LayerTypeBTH) != nil {
				binary.BigEndian.PutUint16(got[40:], 0)
			} else {
				copy(got[50:52], frame[50:52]) // TCP checksum, left to the adapter
				l := p.Layer(LayerTypeMPA).(*MPA)
				if !l.Negotiation {
					again := packet(t, got).Layer(LayerTypeMPA).(*MPA)
					if right, ok := again.VerifyCRC(); !right || !ok {
						t.Error("CRC is wrong")
					}
					got = append(got[:len(got)-4], 0, 0, 0, 0)
				}
			}
			if !bytes.Equal(got, frame) {
				t.Errorf("made anew:\n%x, want\n%x", got, frame)
			}
		})
	}
}

func TestFPDUsSerialized(t *testing.T) {
	for _, s := range []string{sampleFPDUs, sampleFPDUs3} {
		p := packet(t, unhex(t, s))
		ls := p.Layers()[3:]
		var got []byte
		for len(ls) > 0 {
			n := 1
			for n < len(ls) && ls[n].LayerType() != LayerTypeMPA {
				n++
			}
			got = append(got, serialize(t, gopacket.SerializeOptions{}, ls[:n]...)...)
			ls = ls[n:]
		}
		if want := p.TransportLayer().LayerPayload(); !bytes.Equal(got, want) {
			t.Errorf("%x, want\n%x", got, want)
		}
	}
}

var (
	client = netip.MustParseAddr("192.0.2.2")
	server = netip.MustParseAddr("192.0.2.1")
)

func random(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func ethernet(t layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: t}
}

// randomBTH makes a header of an opcode with all that it demands.
func randomBTH(rnd *rand.Rand, op roce.Opcode) *BTH {
	l := &BTH{
		Opcode: op, SE: rnd.IntN(2) == 0, MigReq: rnd.IntN(2) == 0, PKey: uint16(rnd.Uint32()), FECN: rnd.IntN(2) == 0, BECN: rnd.IntN(2) == 0,
		DestQP: rnd.Uint32N(1 << 24), AckReq: rnd.IntN(2) == 0, PSN: rnd.Uint32N(1 << 24),
	}
	l.RDETH = &RDETH{EEContext: rnd.Uint32N(1 << 24)}
	l.DETH = &DETH{QKey: rnd.Uint32(), SrcQP: rnd.Uint32N(1 << 24)}
	l.XRCETH = &XRCETH{XRCSRQ: rnd.Uint32N(1 << 24)}
	l.FETH = &FETH{Placement: uint8(rnd.IntN(16)), Selectivity: uint8(rnd.IntN(4))}
	l.RETH = &RETH{VA: rnd.Uint64(), RKey: rnd.Uint32(), DMALen: rnd.Uint32()}
	l.AtomicETH = &AtomicETH{VA: rnd.Uint64(), RKey: rnd.Uint32(), SwapAdd: rnd.Uint64(), Compare: rnd.Uint64()}
	l.AETH = &AETH{Syndrome: roce.Syndrome(rnd.Uint32()), MSN: rnd.Uint32N(1 << 24)}
	l.AtomicAckETH = &AtomicAckETH{Original: rnd.Uint64()}
	l.ImmDt = &ImmDt{Data: rnd.Uint32()}
	l.IETH = &IETH{RKey: rnd.Uint32()}
	return l
}

// Every opcode, over every network, with the extension headers as fields of the
// BTH and as layers: the packet is what package roce takes it for, its ICRC is
// right, and gopacket decodes it again.
func TestEveryOpcode(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 256 {
		op := roce.Opcode(i)
		if !op.IsDefined() && !op.IsManufacturer() {
			continue
		}
		for network := range 5 {
			for _, own := range []bool{false, true} {
				payload := random(rnd, rnd.IntN(70))
				bth := randomBTH(rnd, op)
				var below []gopacket.SerializableLayer
				first := gopacket.Decoder(layers.LayerTypeEthernet)
				linkType := capture.LinkEthernet
				var netLayer gopacket.NetworkLayer
				udp := &layers.UDP{SrcPort: layers.UDPPort(rnd.Uint32() | 0x8000), DstPort: UDPPortRoCEv2}
				grh := &GRH{Version: 6, TrafficClass: uint8(rnd.Uint32()), FlowLabel: rnd.Uint32N(1 << 20), NextHeader: roce.GRHNextBTH, HopLimit: 1,
					SGID: netip.AddrFrom16(client.As16()), DGID: netip.AddrFrom16(server.As16())}
				lrh := &LRH{VL: 3, SL: 5, NextHeader: roce.LNHBTH, DLID: 7, SLID: 9, HasVCRC: true, VCRC: 0x1234}
				switch network {
				case 0:
					ip := &layers.IPv4{Version: 4, TOS: uint8(rnd.Uint32()), Id: uint16(rnd.Uint32()), TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: client.AsSlice(), DstIP: server.AsSlice()}
					for range rnd.IntN(3) * 4 {
						ip.Options = append(ip.Options, layers.IPv4Option{OptionType: 1, OptionLength: 1})
					}
					netLayer = ip
					below = []gopacket.SerializableLayer{ethernet(layers.EthernetTypeIPv4), ip, udp}
				case 1:
					ip := &layers.IPv6{Version: 6, TrafficClass: uint8(rnd.Uint32()), FlowLabel: rnd.Uint32N(1 << 20), HopLimit: 64, NextHeader: layers.IPProtocolUDP,
						SrcIP: net.ParseIP("fd00::2"), DstIP: net.ParseIP("fd00::1")}
					netLayer = ip
					below = []gopacket.SerializableLayer{ethernet(layers.EthernetTypeIPv6), ip, udp}
				case 2:
					below = []gopacket.SerializableLayer{ethernet(EthernetTypeRoCEv1), grh}
					netLayer = grh
				case 3:
					below = []gopacket.SerializableLayer{lrh}
					first, linkType = LinkTypeInfiniBand, capture.LinkInfiniBand
				case 4:
					lrh.NextHeader = roce.LNHGRH
					netLayer = grh
					below = []gopacket.SerializableLayer{&ERF{Timestamp: rnd.Uint64(), Type: ERFTypeInfiniBand, Extensions: []byte{0x80, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}}, lrh, grh}
					first, linkType = LinkTypeERF, capture.LinkERF
				}
				if netLayer != nil {
					if err := bth.SetNetworkLayerForChecksum(netLayer); err != nil {
						t.Fatal(err)
					}
				}
				if network < 2 {
					udp.SetNetworkLayerForChecksum(netLayer)
					if err := bth.SetTransportLayerForChecksum(udp); err != nil {
						t.Fatal(err)
					}
				}
				if network >= 3 {
					if err := bth.SetLinkLayerForChecksum(lrh); err != nil {
						t.Fatal(err)
					}
				}
				all := append(below, bth)
				for _, x := range extensionOrder {
					if own && op.Headers().Has(x.has) {
						all = append(all, bth.attached(x.has))
					}
				}
				all = append(all, gopacket.Payload(payload))
				b := gopacket.NewSerializeBuffer()
				if err := gopacket.SerializeLayers(b, fix, all...); err != nil {
					t.Fatalf("%s: %v", op, err)
				}

				// As package roce sees it.
				var f link.Frame
				var want roce.Packet
				var check roce.Checker
				link.Decode(linkType, b.Bytes(), uint32(len(b.Bytes())), &f)
				if !roce.Decode(f.Payload, f.PayloadLen, &want) || check.Check(&f) != roce.Good {
					t.Fatalf("%s: network %d: %q, %q, ICRC %s", op, network, f.Problem, want.Problem, check.Check(&f))
				}
				if want.Opcode != op || want.PSN != bth.PSN || want.DestQP != bth.DestQP || want.SE != bth.SE || want.MigReq != bth.MigReq || want.FECN != bth.FECN ||
					want.BECN != bth.BECN || want.AckReq != bth.AckReq || want.PKey != bth.PKey || want.Pad != uint8(-len(payload)&3) || !bytes.Equal(want.Payload, payload) {
					t.Fatalf("%s: network %d: %+v", op, network, want)
				}
				has := func(h roce.Headers, same bool) {
					if op.Headers().Has(h) && !same {
						t.Fatalf("%s: network %d: header %#x: %+v", op, network, h, want)
					}
				}
				has(roce.HasRDETH, want.EEContext == bth.RDETH.EEContext)
				has(roce.HasDETH, want.DETH == roce.DETHFields{QKey: bth.DETH.QKey, SrcQP: bth.DETH.SrcQP})
				has(roce.HasXRCETH, want.XRCSRQ == bth.XRCETH.XRCSRQ)
				has(roce.HasFETH, want.Flush == roce.FETHFields{Placement: bth.FETH.Placement, Selectivity: bth.FETH.Selectivity})
				has(roce.HasRETH, want.RETH == roce.RETHFields{VA: bth.RETH.VA, RKey: bth.RETH.RKey, DMALen: bth.RETH.DMALen})
				has(roce.HasAtomicETH, want.Atomic == roce.AtomicFields{VA: bth.AtomicETH.VA, RKey: bth.AtomicETH.RKey, SwapAdd: bth.AtomicETH.SwapAdd, Compare: bth.AtomicETH.Compare})
				has(roce.HasAETH, want.AETH == roce.AETHFields{Syndrome: bth.AETH.Syndrome, MSN: bth.AETH.MSN})
				has(roce.HasAtomicAckETH, want.AtomicAck == bth.AtomicAckETH.Original)
				has(roce.HasImmDt, want.Imm == bth.ImmDt.Data)
				has(roce.HasIETH, want.IETH == bth.IETH.RKey)

				// As gopacket sees it.
				p := gopacket.NewPacket(b.Bytes(), first, asDatagrams)
				if p.ErrorLayer() != nil || p.Metadata().Truncated || VerifyICRC(p) != roce.Good {
					t.Fatalf("%s: network %d: ICRC %s: %v", op, network, VerifyICRC(p), p)
				}
				got := p.Layer(LayerTypeBTH).(*BTH)
				if got.String() != bth.String() || !bytes.Equal(got.Payload, payload) || len(got.Padding) != int(bth.PadCount) {
					t.Fatalf("%s: network %d: %v, want %v", op, network, got, bth)
				}
				for _, x := range extensionOrder {
					e := p.Layer(x.layer)
					if (e != nil) != op.Headers().Has(x.has) {
						t.Fatalf("%s: network %d: header %s: %v", op, network, x.layer, p)
					}
				}
				ls, frame := p.Layers(), b.Bytes()
				if network <= 2 {
					// Without what pads the Ethernet frame up to 60 bytes.
					ls, frame = ls[1:], frame[14:]
				}
				again := serialize(t, gopacket.SerializeOptions{}, ls...)
				if network > 2 && len(again) != len(frame) || !bytes.HasPrefix(frame, again) {
					t.Fatalf("%s: network %d:\n%x, want\n%x", op, network, again, frame)
				}
			}
		}
	}
}

func TestGRHAndLRHFields(t *testing.T) {
	erf := &ERF{Timestamp: 1<<63 | 1<<31, Type: ERFTypeInfiniBand, Flags: 4}
	lrh := &LRH{VL: 1, SL: 2, NextHeader: roce.LNHGRH, DLID: 3, SLID: 4}
	grh := &GRH{Version: 6, NextHeader: roce.GRHNextBTH, HopLimit: 9, SGID: netip.MustParseAddr("fe80::1"), DGID: netip.MustParseAddr("fe80::2")}
	bth := &BTH{Opcode: roce.RCSendOnly, DestQP: 5, PSN: 6}
	bth.SetLinkLayerForChecksum(lrh)
	bth.SetNetworkLayerForChecksum(grh)
	p := gopacket.NewPacket(serialize(t, fix, erf, lrh, grh, bth, gopacket.Payload("hello")), LinkTypeERF, asDatagrams)
	if got := names(p.Layers()); got != "ERF LRH GRH BTH Payload" {
		t.Fatal(p)
	}
	if e := p.Layer(LayerTypeERF).(*ERF); e.WireLength != 72 || e.RecordLength != 88 || e.Time().Unix() != 1<<31 || e.Time().Nanosecond() != 5e8 {
		t.Error(e)
	}
	if l := p.LinkLayer(); l == nil || l.LinkFlow().String() != "4->3" {
		t.Error(l)
	}
	if n := p.NetworkLayer(); n == nil || n.NetworkFlow().String() != "fe80::1->fe80::2" {
		t.Error(n)
	}
	if b := p.TransportLayer(); b == nil || b.TransportFlow().String() != "->5" || b.(*BTH).PadCount != 3 {
		t.Error(b)
	}
	if l := p.Layer(LayerTypeLRH).(*LRH); l.PacketLength != 18 || l.HasVCRC {
		t.Error(l)
	}
}

// An Ethernet frame in ERF has two bytes before it.
func TestERFEthernet(t *testing.T) {
	frame := unhex(t, sampleAck)
	e := &ERF{Type: ERFTypeEthernet, EthernetPad: [2]byte{1, 2}}
	data := serialize(t, fix, e, func() gopacket.Layer { p := gopacket.Payload(frame); return &p }())
	p := gopacket.NewPacket(data, LinkTypeERF, asDatagrams)
	if got := names(p.Layers()); got != "ERF UDP BTH AETH" || p.Layer(LayerTypeERF).(*ERF).EthernetPad != e.EthernetPad || VerifyICRC(p) != roce.Good {
		t.Error(p)
	}
}

// A hop-by-hop header is part of what the ICRC covers.
func TestHopByHop(t *testing.T) {
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolIPv6HopByHop, SrcIP: net.ParseIP("fd00::2"), DstIP: net.ParseIP("fd00::1"),
		HopByHop: &layers.IPv6HopByHop{}}
	ip.HopByHop.NextHeader = layers.IPProtocolUDP
	ip.HopByHop.Options = []*layers.IPv6HopByHopOption{{OptionType: 5, OptionData: []byte{0, 0}, OptionAlignment: [2]uint8{2, 0}}, {OptionType: 1, OptionData: []byte{}}}
	udp := &layers.UDP{SrcPort: 50000, DstPort: UDPPortRoCEv2}
	udp.SetNetworkLayerForChecksum(ip)
	bth := &BTH{Opcode: roce.RCAcknowledge, AETH: &AETH{}}
	bth.SetNetworkLayerForChecksum(ip)
	bth.SetTransportLayerForChecksum(udp)
	p := packet(t, serialize(t, fix, ethernet(layers.EthernetTypeIPv6), ip, udp, bth))
	if got := names(p.Layers()); got != "IPv6HopByHop UDP BTH AETH" || VerifyICRC(p) != roce.Good {
		t.Errorf("ICRC %s: %v", VerifyICRC(p), p)
	}
}

// TestRPC builds calls and replies of all three versions of RPC-over-RDMA, over
// RoCE and over iWARP.
func TestRPC(t *testing.T) {
	segment := rpcrdma.Segment{Handle: 1, Length: 4096, Offset: 1 << 40}
	reads := []rpcrdma.ReadSegment{{Position: 96, Segment: segment}}
	writes := []rpcrdma.WriteChunk{{segment, segment}, {segment}}
	call := &RPC{Call: oncrpc.Call{XID: 7, Program: 100003, Version: 4, Procedure: 1, Cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: make([]byte, 20)}}}
	reply := &RPC{Type: oncrpc.TypeReply, Reply: oncrpc.Reply{XID: 7}}
	args := gopacket.Payload("arguments...")
	for name, c := range map[string]struct {
		h      rpcrdma.Header
		inner  []gopacket.SerializableLayer
		layers string
	}{
		"1 call":          {rpcrdma.Header{Version: 1, XID: 7, Credits: 32, Reads: reads, Writes: writes, HasReply: true, Reply: writes[0]}, []gopacket.SerializableLayer{call, args}, "RPCoverRDMA RPC Payload"},
		"1 reply":         {rpcrdma.Header{Version: 1, XID: 7, Credits: 32, Writes: writes}, []gopacket.SerializableLayer{reply}, "RPCoverRDMA RPC"},
		"1 no message":    {rpcrdma.Header{Version: 1, XID: 7, Type: rpcrdma.TypeNoMsg, HasReply: true, Reply: writes[0]}, nil, "RPCoverRDMA"},
		"1 error":         {rpcrdma.Header{Version: 1, XID: 7, Type: rpcrdma.TypeError, Error: rpcrdma.ErrVers, Low: 1, High: 1}, nil, "RPCoverRDMA"},
		"0 call":          {rpcrdma.Header{XID: 7, Dialect: rpcrdma.DialectEither, Reads: reads}, []gopacket.SerializableLayer{call, args}, "RPCoverRDMA RPC Payload"},
		"0 done":          {rpcrdma.Header{XID: 7, Dialect: rpcrdma.DialectCallaghan, Type: rpcrdma.TypeDone}, nil, "RPCoverRDMA"},
		"2 call":          {rpcrdma.Header{Version: 2, XID: 7, Type: rpcrdma.TypeCallInline, InvalidateHandle: 1, Reads: reads, Writes: writes}, []gopacket.SerializableLayer{call, args}, "RPCoverRDMA RPC Payload"},
		"2 external call": {rpcrdma.Header{Version: 2, XID: 7, Type: rpcrdma.TypeCallExternal, Call: reads, Writes: writes}, nil, "RPCoverRDMA"},
		"2 reply":         {rpcrdma.Header{Version: 2, XID: 7, Type: rpcrdma.TypeReplyInline, Writes: writes}, []gopacket.SerializableLayer{reply, args}, "RPCoverRDMA RPC Payload"},
		"2 middle":        {rpcrdma.Header{Version: 2, XID: 7, Type: rpcrdma.TypeReplyMiddle, Remaining: 9}, []gopacket.SerializableLayer{args}, "RPCoverRDMA Payload"},
		"2 properties": {rpcrdma.Header{Version: 2, XID: 7, Type: rpcrdma.TypeConnPropFinal, Properties: []rpcrdma.Property{{ID: rpcrdma.PropertySendSize, Value: []byte{0, 0, 16, 0}}}},
			nil, "RPCoverRDMA"},
	} {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: client.AsSlice(), DstIP: server.AsSlice()}
		udp := &layers.UDP{SrcPort: 50000, DstPort: UDPPortRoCEv2}
		tcp := &layers.TCP{SrcPort: 50000, DstPort: TCPPortNFSRDMA}
		bth := &BTH{Opcode: roce.RCSendOnly}
		udp.SetNetworkLayerForChecksum(ip)
		tcp.SetNetworkLayerForChecksum(ip)
		bth.SetNetworkLayerForChecksum(ip)
		bth.SetTransportLayerForChecksum(udp)
		inner := append([]gopacket.SerializableLayer{&RPCoverRDMA{Header: c.h}}, c.inner...)
		roceLayers := append([]gopacket.SerializableLayer{ethernet(layers.EthernetTypeIPv4), ip, udp, bth}, inner...)
		iwarpLayers := append([]gopacket.SerializableLayer{ethernet(layers.EthernetTypeIPv4), ip, tcp, &MPA{}, &DDP{Last: true, MSN: 1, RDMAP: RDMAP{Opcode: iwarp.OpSend}}}, inner...)
		for before, ls := range map[string][]gopacket.SerializableLayer{"UDP BTH ": roceLayers, "TCP MPA DDP RDMAP ": iwarpLayers} {
			ip.Protocol = layers.IPProtocolUDP
			if before[0] == 'T' {
				ip.Protocol = layers.IPProtocolTCP
			}
			b := gopacket.NewSerializeBuffer()
			if err := gopacket.SerializeLayers(b, fix, ls...); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			p := packet(t, b.Bytes())
			if got := names(p.Layers()); got != before+c.layers {
				t.Fatalf("%s: %s: %v", name, got, p)
			}
			if got, want := p.Layer(LayerTypeRPCoverRDMA).(*RPCoverRDMA).String(), (&RPCoverRDMA{Header: c.h}).String(); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			if m, ok := p.Layer(LayerTypeMPA).(*MPA); ok {
				if right, ok := m.VerifyCRC(); !right || !ok {
					t.Errorf("%s: CRC", name)
				}
			} else if VerifyICRC(p) != roce.Good {
				t.Errorf("%s: ICRC", name)
			}
		}
	}
}

func TestCMSerialized(t *testing.T) {
	data := make([]byte, ibcm.DataSize)
	ibcm.RTU(data).SetIDs(3, 4)
	cm := &CM{Message: ibcm.Message{Attribute: ibcm.AttributeRTU, TransactionID: 5, Data: data}}
	b := serialize(t, fix, cm)
	p := gopacket.NewPacket(b, LayerTypeCM, gopacket.Default)
	got, ok := p.Layer(LayerTypeCM).(*CM)
	if !ok || got.Method != ibcm.MethodSend || got.Message.Attribute != ibcm.AttributeRTU || got.Message.TransactionID != 5 || got.Message.LocalID != 3 || got.Message.RemoteID != 4 {
		t.Error(p)
	}
}

// All bodies of RDMAP, and the RDMA Consortium's version.
func TestRDMAP(t *testing.T) {
	header := iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpReadRequest, true), 0, 1, 0)
	read := iwarp.AppendReadRequest(nil, 1, 2, 3, 4, 5)
	for _, r := range []RDMAP{
		{Opcode: iwarp.OpReadRequest, Body: read},
		{Opcode: iwarp.OpTerminate, Body: iwarp.AppendTerminate(nil, iwarp.LayerDDP, 1, 2, 46, header, read)},
		{Opcode: iwarp.OpTerminate, Body: []byte{0, 0, 0, 0}},
		{Opcode: iwarp.OpImmediate, Body: []byte("12345678")},
		{Opcode: iwarp.OpImmediateSolicited, Body: []byte("12345678")},
		{Opcode: iwarp.OpAtomicRequest, Body: make([]byte, iwarp.AtomicRequestLen)},
		{Opcode: iwarp.OpAtomicResponse, Body: make([]byte, iwarp.AtomicResponseLen)},
		{Opcode: iwarp.OpSend, RDMAC: true},
		{Opcode: iwarp.OpSendSolicitedInvalidate, InvalidateSTag: 77},
		{Opcode: iwarp.OpWrite},
		{Opcode: iwarp.OpReadResponse},
	} {
		ddp := &DDP{Last: true, RDMAP: r}
		if r.Opcode.Tagged() {
			ddp.STag, ddp.TO = 5, 6
		} else {
			ddp.MSN = 8
		}
		b := serialize(t, fix, &MPA{}, ddp)
		p := gopacket.NewPacket(b, LayerTypeMPA, asDatagrams)
		got, ok := p.Layer(LayerTypeRDMAP).(*RDMAP)
		if !ok || p.ErrorLayer() != nil || got.Opcode != r.Opcode || got.RDMAC != r.RDMAC || got.InvalidateSTag != r.InvalidateSTag || !bytes.Equal(got.Body, r.Body) {
			t.Fatalf("%s: %v", r.Opcode, p)
		}
		d := p.Layer(LayerTypeDDP).(*DDP)
		if d.STag != ddp.STag || d.TO != ddp.TO || d.MSN != ddp.MSN || d.Tagged != r.Opcode.Tagged() || d.QN != r.Opcode.Queue() && !d.Tagged {
			t.Errorf("%s: %+v", r.Opcode, d)
		}
		bodies := 0
		for _, ok := range []bool{got.ReadRequest() != nil, got.Terminate() != nil, got.Immediate() != nil, got.AtomicRequest() != nil, got.AtomicResponse() != nil} {
			if ok {
				bodies++
			}
		}
		if want := min(len(r.Body), 1); bodies != want {
			t.Errorf("%s: %d bodies", r.Opcode, bodies)
		}
		if again := serialize(t, gopacket.SerializeOptions{}, p.Layers()...); !bytes.Equal(again, b) {
			t.Errorf("%s: %x, want %x", r.Opcode, again, b)
		}
	}
}

func TestSerializeErrors(t *testing.T) {
	opts := gopacket.SerializeOptions{FixLengths: true}
	payload := func(n int) gopacket.SerializableLayer { return gopacket.Payload(make([]byte, n)) }
	for want, ls := range map[string][]gopacket.SerializableLayer{
		"RC RDMA Write Only needs a RETH":               {&BTH{Opcode: roce.RCWriteOnly}},
		"needs a RETH at this place":                    {&BTH{Opcode: roce.RCWriteOnly}, &AETH{}},
		"needs a ImmDt at this place":                   {&BTH{Opcode: roce.RCWriteOnlyImmediate}, &RETH{}},
		"RC Send Only has no AETH":                      {&BTH{Opcode: roce.RCSendOnly}, &AETH{}},
		"RC RDMA Write Only has no AETH":                {&BTH{Opcode: roce.RCWriteOnly}, &RETH{}, &AETH{}},
		"LRH: payload is too long or not":               {&LRH{}, payload(3)},
		"GRH: payload is too long":                      {&GRH{}, payload(1 << 16)},
		"GRH: SGID and DGID":                            {&GRH{}},
		"ERF: payload is too long":                      {&ERF{}, payload(1 << 16)},
		"ERF: Extensions are not a multiple":            {&ERF{Extensions: []byte{1}}},
		"MPA: ULPDU is too long":                        {&MPA{}, payload(1 << 16)},
		"MPA: private data is too long":                 {&MPA{Negotiation: true, Frame: iwarp.MPAFrame{Enhanced: true, Private: make([]byte, 512)}}},
		"RDMAP: opcode 12 is not defined":               {&DDP{RDMAP: RDMAP{Opcode: 12}}},
		"Body does not have the length of a RDMA Read":  {&DDP{RDMAP: RDMAP{Opcode: iwarp.OpReadRequest}}},
		"RPC: message type 2 is neither call nor reply": {&RPC{Type: 2}},
		"CM: message is too long":                       {&CM{Message: ibcm.Message{Data: make([]byte, 233)}}},
	} {
		err := gopacket.SerializeLayers(gopacket.NewSerializeBuffer(), opts, ls...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	b := gopacket.NewSerializeBuffer()
	if err := (&BTH{Opcode: roce.RCSendOnly, PadCount: 4}).SerializeTo(b, gopacket.SerializeOptions{}); err == nil {
		t.Error("4 pad bytes")
	}
	bth := &BTH{Opcode: roce.RCSendOnly}
	if err := bth.SerializeTo(b, fix); err != errNoHeaders {
		t.Error(err)
	}
	bth.SetNetworkLayerForChecksum(&layers.IPv4{Version: 4, SrcIP: client.AsSlice(), DstIP: server.AsSlice()})
	if err := bth.SerializeTo(b, fix); err != errNoHeaders {
		t.Error(err)
	}
	if bth.SetNetworkLayerForChecksum(badNetwork{}) == nil || bth.SetTransportLayerForChecksum(&layers.TCP{}) == nil || bth.SetLinkLayerForChecksum(&layers.Ethernet{}) == nil {
		t.Error("an unsuitable layer is taken")
	}
}

type badNetwork struct{ gopacket.NetworkLayer }

func (badNetwork) LayerType() gopacket.LayerType { return gopacket.LayerTypePayload }
