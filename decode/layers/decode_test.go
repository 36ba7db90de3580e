package layers

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

var asDatagrams = gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true, SkipDecodeRecovery: true}

func packet(t testing.TB, frame []byte) gopacket.Packet {
	t.Helper()
	return gopacket.NewPacket(frame, layers.LayerTypeEthernet, asDatagrams)
}

// names is the names of the layers, from the transport on.
func names(ls []gopacket.Layer) string {
	var s []string
	for _, l := range ls {
		switch l.LayerType() {
		case layers.LayerTypeEthernet, layers.LayerTypeDot1Q, layers.LayerTypeIPv4, layers.LayerTypeIPv6:
		default:
			s = append(s, l.LayerType().String())
		}
	}
	return strings.Join(s, " ")
}

func TestSamples(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			frame := unhex(t, s.hex)
			p := packet(t, frame)
			if got := names(p.Layers()); got != s.layers {
				t.Fatalf("layers %s, want %s\n%v", got, s.layers, p)
			}
			if p.ErrorLayer() != nil || p.Metadata().Truncated {
				t.Fatal(p)
			}
			if bth := p.Layer(LayerTypeBTH); bth != nil {
				if v := VerifyICRC(p); v != roce.Good {
					t.Errorf("ICRC %s", v)
				}
				if bth.(*BTH).Cut {
					t.Error("taken for cut")
				}
			}
			lazy := asDatagrams
			lazy.Lazy, lazy.NoCopy = true, true
			if got := gopacket.NewPacket(frame, layers.LayerTypeEthernet, lazy).String(); got != p.String() {
				t.Errorf("lazily:\n%s\neagerly:\n%s", got, p)
			}
			for _, l := range p.Layers() {
				if gopacket.LayerDump(l) == "" || gopacket.LayerGoString(l) == "" {
					t.Errorf("%s cannot be printed", l.LayerType())
				}
			}
		})
	}
}

// Without DecodeStreamsAsDatagrams, gopacket does not look into TCP.
func TestStream(t *testing.T) {
	p := gopacket.NewPacket(unhex(t, sampleFPDUSend), layers.LayerTypeEthernet, gopacket.Default)
	if got := names(p.Layers()); got != "TCP Payload" {
		t.Error(got)
	}
}

func TestFields(t *testing.T) {
	p := packet(t, unhex(t, sampleCall))
	bth := p.Layer(LayerTypeBTH).(*BTH)
	if bth.Opcode != roce.RCSendOnly || bth.DestQP != 17 || bth.PSN != 0x4303d7 || !bth.AckReq || bth.SE || bth.PKey != 0xffff || bth.ICRC != 0xfb8f5fd3 {
		t.Errorf("%+v", bth)
	}
	h := &p.Layer(LayerTypeRPCoverRDMA).(*RPCoverRDMA).Header
	if h.XID != 0xe2899383 || h.Credits != 128 || h.Type != rpcrdma.TypeMsg || h.Key() != "1 - PHLOO - 0; 0; 0" ||
		h.Reads[0] != (rpcrdma.ReadSegment{Position: 108, Segment: rpcrdma.Segment{Handle: 1714, Length: 65536, Offset: 0xe289938308d70000}}) {
		t.Errorf("%+v", h)
	}
	rpc := p.Layer(LayerTypeRPC).(*RPC)
	if rpc.XID() != h.XID || rpc.Type != oncrpc.TypeCall || rpc.Call.Program != 100003 || rpc.Call.Version != 3 || rpc.Call.Procedure != 7 || rpc.Call.Cred.Flavor != oncrpc.AuthSys || len(rpc.Payload) != 40 {
		t.Errorf("%+v", rpc)
	}
	if app := p.ApplicationLayer(); app == nil || len(app.Payload()) != 40 {
		t.Error("no application layer")
	}

	p = packet(t, unhex(t, sampleWriteReply))
	bth = p.Layer(LayerTypeBTH).(*BTH)
	h = &p.Layer(LayerTypeRPCoverRDMA).(*RPCoverRDMA).Header
	rpc = p.Layer(LayerTypeRPC).(*RPC)
	if bth.IETH == nil || bth.IETH != p.Layer(LayerTypeIETH) || bth.IETH.RKey != 6308 || bth.RETH != nil ||
		bth.IETH.NextLayerType() != LayerTypeRPCoverRDMA || bth.NextLayerType() != LayerTypeRPCoverRDMA {
		t.Errorf("%+v", bth)
	}
	if len(h.Writes) != 1 || h.Writes[0][0].Handle != 6308 || h.Writes[0].Length() != 1 || h.Credits != 64 {
		t.Errorf("%+v", h)
	}
	if rpc.XID() != h.XID || !rpc.Reply.Succeeded() {
		t.Errorf("%+v", rpc)
	}

	p = packet(t, unhex(t, sampleWriteOnly))
	bth = p.Layer(LayerTypeBTH).(*BTH)
	if r := bth.RETH; r == nil || r.VA != 0x8a938303c93000 || r.RKey != 4604 || r.DMALen != 1 || bth.PadCount != 3 || string(bth.Payload) != "r" {
		t.Errorf("%+v", bth)
	}

	p = packet(t, unhex(t, sampleAck))
	if a := p.Layer(LayerTypeAETH).(*AETH); a.Syndrome != roce.ACKUnlimited || a.MSN != 1 || a.NextLayerType() != gopacket.LayerTypeZero {
		t.Errorf("%+v", a)
	}

	p = packet(t, unhex(t, sampleREQ))
	cm := p.Layer(LayerTypeCM).(*CM)
	m := &cm.Message
	if d := p.Layer(LayerTypeDETH).(*DETH); d.QKey != roce.GSIQKey || d.SrcQP != 1 {
		t.Errorf("%+v", d)
	}
	if cm.Method != ibcm.MethodSend || m.Attribute != ibcm.AttributeREQ || m.QPN != 17 || m.StartPSN != 9411363 || m.PathMTU != 1024 ||
		!m.RDMA.Present || m.RDMA.SendSize != 4096 || m.Src.String() != "192.0.2.2" || m.Dst.String() != "192.0.2.1" {
		t.Errorf("%+v", cm)
	}

	p = packet(t, unhex(t, sampleMPARequest))
	mpa := p.Layer(LayerTypeMPA).(*MPA)
	if !mpa.Negotiation || mpa.Frame.Reply || mpa.Frame.Revision != 2 || mpa.Frame.IRD != 128 || mpa.RDMA().ReceiveSize != 4096 {
		t.Errorf("%+v", mpa)
	}

	p = packet(t, unhex(t, sampleFPDURead))
	ddp := p.Layer(LayerTypeDDP).(*DDP)
	r := ddp.RDMAP.ReadRequest()
	if p.Layer(LayerTypeRDMAP) != &ddp.RDMAP || ddp.Tagged || !ddp.Last || ddp.QN != 1 || ddp.MSN != 1 || ddp.MO != 0 || r == nil || r.Size() != 65536 || r.SourceSTag() != 0xb6e46001 {
		t.Errorf("%+v", ddp)
	}
	if ddp.RDMAP.Terminate() != nil || ddp.RDMAP.Immediate() != nil || ddp.RDMAP.AtomicRequest() != nil || ddp.RDMAP.AtomicResponse() != nil {
		t.Error("a Read Request is taken for something else")
	}

	p = packet(t, unhex(t, sampleFPDUReadResponse))
	ddp = p.Layer(LayerTypeDDP).(*DDP)
	if !ddp.Tagged || ddp.STag != 1352428034 || ddp.RDMAP.Opcode != iwarp.OpReadResponse || len(ddp.Payload) != 9 || len(p.Layer(LayerTypeMPA).(*MPA).Padding) != 3 {
		t.Errorf("%+v", ddp)
	}

	p = packet(t, unhex(t, sampleFPDUSendInvalidate))
	ddp = p.Layer(LayerTypeDDP).(*DDP)
	h = &p.Layer(LayerTypeRPCoverRDMA).(*RPCoverRDMA).Header
	if !ddp.RDMAP.Opcode.Invalidates() || ddp.RDMAP.InvalidateSTag != h.Reply[0].Handle {
		t.Errorf("%+v", ddp)
	}
}

func TestFlows(t *testing.T) {
	p := packet(t, unhex(t, sampleREQ))
	if got := p.Layer(LayerTypeBTH).(*BTH).TransportFlow().String(); got != "1->1" {
		t.Error(got)
	}
	if got := p.TransportLayer().LayerType(); got != layers.LayerTypeUDP {
		t.Error(got)
	}
	p = packet(t, unhex(t, sampleAck))
	if got := p.Layer(LayerTypeBTH).(*BTH).TransportFlow().Dst().String(); got != "17" {
		t.Error(got)
	}
}

// parser has all layers, and all of them as variables.
type parser struct {
	*gopacket.DecodingLayerParser
	eth     layers.Ethernet
	ip4     layers.IPv4
	ip6     layers.IPv6
	udp     layers.UDP
	tcp     layers.TCP
	erf     ERF
	lrh     LRH
	grh     GRH
	bth     BTH
	cm      CM
	mpa     MPA
	ddp     DDP
	rpcrdma RPCoverRDMA
	rpc     RPC
	payload gopacket.Payload
	decoded []gopacket.LayerType
}

func newParser(first gopacket.LayerType, container gopacket.DecodingLayerContainer) *parser {
	p := new(parser)
	for _, l := range []gopacket.DecodingLayer{&p.eth, &p.ip4, &p.ip6, &p.udp, &p.tcp, &p.erf, &p.lrh, &p.grh, &p.bth, &p.cm, &p.mpa, &p.ddp, &p.rpcrdma, &p.rpc, &p.payload} {
		container = container.Put(l)
	}
	p.DecodingLayerParser = gopacket.NewDecodingLayerParser(first)
	p.SetDecodingLayerContainer(container)
	p.IgnorePanic = true
	return p
}

// layer is the variable of a type.
func (p *parser) layer(t gopacket.LayerType) gopacket.Layer {
	switch t {
	case layers.LayerTypeEthernet:
		return &p.eth
	case layers.LayerTypeIPv4:
		return &p.ip4
	case layers.LayerTypeIPv6:
		return &p.ip6
	case layers.LayerTypeUDP:
		return &p.udp
	case layers.LayerTypeTCP:
		return &p.tcp
	case LayerTypeERF:
		return &p.erf
	case LayerTypeLRH:
		return &p.lrh
	case LayerTypeGRH:
		return &p.grh
	case LayerTypeBTH:
		return &p.bth
	case LayerTypeCM:
		return &p.cm
	case LayerTypeMPA:
		return &p.mpa
	case LayerTypeDDP:
		return &p.ddp
	case LayerTypeRPCoverRDMA:
		return &p.rpcrdma
	case LayerTypeRPC:
		return &p.rpc
	}
	return &p.payload
}

// all decodes data and returns the layers as text, those within others too, so
// that it can be compared with what a gopacket.Packet has.
func (p *parser) all(data []byte) (string, error) {
	var b strings.Builder
	err := p.DecodeLayers(data, &p.decoded)
	for _, t := range p.decoded {
		b.WriteString(gopacket.LayerString(p.layer(t)) + "\n")
		switch t {
		case LayerTypeBTH:
			for _, e := range p.bth.extensions {
				b.WriteString(gopacket.LayerString(e) + "\n")
			}
		case LayerTypeDDP:
			b.WriteString(gopacket.LayerString(&p.ddp.RDMAP) + "\n")
		}
	}
	if err != nil {
		return b.String(), err
	}
	last := p.decoded[len(p.decoded)-1]
	if data = p.mpa.Rest; len(data) == 0 || last == layers.LayerTypeTCP {
		return b.String(), nil
	}
	// The next FPDU of the segment.
	rest := newParser(LayerTypeMPA, gopacket.DecodingLayerMap{})
	s, err := rest.all(data)
	return b.String() + s, err
}

func packetText(p gopacket.Packet) string {
	var b strings.Builder
	for _, l := range p.Layers() {
		b.WriteString(gopacket.LayerString(l) + "\n")
	}
	return b.String()
}

// A parser that is used again and again finds what a packet of its own finds.
func TestParser(t *testing.T) {
	p := newParser(layers.LayerTypeEthernet, gopacket.DecodingLayerMap{})
	for range 2 {
		for _, s := range samples {
			frame := unhex(t, s.hex)
			p.mpa.Rest = nil
			got, err := p.all(frame)
			if err != nil || p.Truncated {
				t.Fatalf("%s: %v", s.name, err)
			}
			if want := packetText(packet(t, frame)); got != want {
				t.Errorf("%s: parser:\n%s\npacket:\n%s", s.name, got, want)
			}
		}
	}
	// What the last packet had is gone.
	if err := p.DecodeLayers(unhex(t, sampleSendLast), &p.decoded); err != nil || p.bth.RETH != nil || p.bth.AETH != nil || p.bth.IETH != nil || p.bth.DETH != nil {
		t.Error(err, &p.bth)
	}
}

func TestParserVerifies(t *testing.T) {
	p := newParser(layers.LayerTypeEthernet, gopacket.DecodingLayerMap{})
	if err := p.DecodeLayers(unhex(t, sampleCall), &p.decoded); err != nil {
		t.Fatal(err)
	}
	if v := p.bth.VerifyICRC(&p.ip4, &p.udp); v != roce.Good {
		t.Error(v)
	}
	p.udp.Contents[0] ^= 1
	if v := p.bth.VerifyICRC(&p.ip4, &p.udp); v != roce.Bad {
		t.Error(v)
	}
	if v := p.bth.VerifyICRC(); v != roce.NotCheckedUnknown {
		t.Error(v)
	}
	p.udp.Contents[0] ^= 1
	below := []gopacket.Layer{&p.ip4, &p.udp}
	if n := testing.AllocsPerRun(100, func() { p.bth.VerifyICRC(below...) }); n != 0 {
		t.Errorf("VerifyICRC allocates %v times", n)
	}
}

// minAllocs is the least number of allocations of several runs: what others do
// meanwhile can only add.
func minAllocs(f func()) float64 {
	best := testing.AllocsPerRun(100, f)
	for range 4 {
		best = min(best, testing.AllocsPerRun(100, f))
	}
	return best
}

func TestParserAllocations(t *testing.T) {
	for name, container := range map[string]gopacket.DecodingLayerContainer{
		"map": gopacket.DecodingLayerMap{}, "sparse": gopacket.DecodingLayerSparse(nil), "array": gopacket.DecodingLayerArray(nil),
	} {
		p := newParser(layers.LayerTypeEthernet, container)
		for _, s := range samples {
			frame := unhex(t, s.hex)
			if n := minAllocs(func() {
				if err := p.DecodeLayers(frame, &p.decoded); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s: %s: %v allocations", name, s.name, n)
			}
		}
	}
}

func BenchmarkParser(b *testing.B) {
	p := newParser(layers.LayerTypeEthernet, gopacket.DecodingLayerSparse(nil))
	for _, s := range samples {
		b.Run(strings.ReplaceAll(s.name, " ", "-"), func(b *testing.B) {
			frame := unhex(b, s.hex)
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if err := p.DecodeLayers(frame, &p.decoded); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNewPacket(b *testing.B) {
	frame := unhex(b, sampleCall)
	b.ReportAllocs()
	for b.Loop() {
		gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.NoCopy)
	}
}

// Wherever the capture cuts a frame, what is decoded is a part of the whole,
// and the packet says that it is truncated.
func TestCut(t *testing.T) {
	for _, s := range samples {
		frame := unhex(t, s.hex)
		whole := packet(t, frame)
		all := whole.Layers()
		ps := newParser(layers.LayerTypeEthernet, gopacket.DecodingLayerMap{})
		for n := 34; n < len(frame); n++ {
			p := packet(t, frame[:n])
			if !p.Metadata().Truncated {
				t.Fatalf("%s cut to %d: not truncated: %v", s.name, n, p)
			}
			for i, l := range p.Layers() {
				if l.LayerType() == gopacket.LayerTypeDecodeFailure {
					if text := l.(gopacket.ErrorLayer).Error().Error(); strings.Contains(text, "exceeds") {
						t.Fatalf("%s cut to %d: %s", s.name, n, text)
					}
					break
				}
				if i >= len(all) {
					t.Fatalf("%s cut to %d: more layers than in the whole: %v", s.name, n, p)
				}
				if l.LayerType() != all[i].LayerType() {
					// Too little is left to tell what it is.
					if l.LayerType() != gopacket.LayerTypePayload {
						t.Fatalf("%s cut to %d: %s in place of %s", s.name, n, l.LayerType(), all[i].LayerType())
					}
					break
				}
				if !bytes.HasPrefix(all[i].LayerContents(), l.LayerContents()) || l.LayerType() == LayerTypeBTH && p.ErrorLayer() == nil && !bytes.HasPrefix(all[i].LayerPayload(), l.LayerPayload()) {
					t.Fatalf("%s cut to %d: layer %s is not a part of the whole", s.name, n, l.LayerType())
				}
			}
			if bth, ok := p.Layer(LayerTypeBTH).(*BTH); ok {
				if !bth.Cut || bth.Padding != nil || bth.ICRC != 0 {
					t.Fatalf("%s cut to %d: %+v", s.name, n, bth)
				}
				if v := VerifyICRC(p); v != roce.NotCheckedCut {
					t.Fatalf("%s cut to %d: ICRC %s", s.name, n, v)
				}
			}
			if ps.DecodeLayers(frame[:n], &ps.decoded); !ps.Truncated {
				t.Fatalf("%s cut to %d: the parser does not say so", s.name, n)
			}
		}
	}
}
