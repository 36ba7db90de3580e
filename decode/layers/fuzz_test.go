package layers

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// firsts are the layers that a fuzzed packet may start with.
var firsts = []gopacket.LayerType{
	LayerTypeERF, LayerTypeLRH, LayerTypeGRH, LayerTypeBTH, LayerTypeCM, LayerTypeMPA, LayerTypeDDP, LayerTypeRPCoverRDMA, LayerTypeRPC,
}

// FuzzLayers decodes anything as a packet and with a parser, which must agree,
// and serialises it again: what comes out decodes to the same, and serialises
// to the same bytes.
func FuzzLayers(f *testing.F) {
	for _, s := range samples {
		frame := unhex(f, s.hex)
		p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, asDatagrams)
		for _, l := range p.Layers() {
			for i, t := range firsts {
				if l.LayerType() == t {
					f.Add(uint8(i), append(bytes.Clone(l.LayerContents()), l.LayerPayload()...))
				}
			}
		}
	}
	grh := append([]byte{0x60, 0, 0, 0, 0, 28, 0x1b, 1}, make([]byte, 32)...)
	grh = append(grh, unhex(f, sampleAck)[42:]...)
	f.Add(uint8(2), grh)
	lrh := append([]byte{0, 3, 0, 1, 0, 19, 0, 2}, grh...)
	f.Add(uint8(1), lrh)
	f.Add(uint8(0), append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 92, 0, 0, 0, 76}, lrh...))
	ps := map[gopacket.LayerType]*parser{}
	for _, t := range firsts {
		ps[t] = newParser(t, gopacket.DecodingLayerMap{})
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		first := firsts[int(which)%len(firsts)]
		if leads(first, data) {
			return
		}
		p := gopacket.NewPacket(data, first, asDatagrams)
		_ = p.String()
		VerifyICRC(p)
		for _, l := range p.Layers() {
			_ = gopacket.LayerDump(l)
			_ = gopacket.LayerGoString(l)
		}
		if p.ErrorLayer() != nil || len(data) == 0 {
			if err := ps[first].DecodeLayers(data, &ps[first].decoded); err == nil && first != LayerTypeMPA && len(data) > 0 && !p.Metadata().Truncated {
				t.Fatalf("the parser finds no error: %v", p)
			}
			return
		}
		ps[first].mpa.Rest = nil
		// Of a packet that was cut, a parser cannot know how long it was, so
		// that pad and ICRC count as payload as far as they are there.
		if got, err := ps[first].all(data); err != nil || got != packetText(p) && !p.Metadata().Truncated {
			t.Fatalf("parser: %v\n%s\npacket:\n%s", err, got, packetText(p))
		}
		n := 0
		for _, l := range p.Layers() {
			if l.LayerType() == LayerTypeMPA {
				n++
			}
			if cm, ok := l.(*CM); ok && (cm.Message.Cut || len(cm.LayerPayload()) > 0) {
				return // comes out whole
			}
		}
		if n > 1 || p.Metadata().Truncated || contradictory(p) {
			return
		}
		once := serialized(t, p)
		q := gopacket.NewPacket(once, first, asDatagrams)
		if q.ErrorLayer() != nil || names(q.Layers()) != names(p.Layers()) {
			t.Fatalf("%x\ncomes out as\n%x\n%v\nnot\n%v", data, once, q, p)
		}
		if twice := serialized(t, q); !bytes.Equal(once, twice) {
			t.Fatalf("%x\nserialises to\n%x\nand then to\n%x", data, once, twice)
		}
	})
}

// contradictory reports whether LRH and GRH disagree about the length of the
// packet: what lies between their ends is not kept.
func contradictory(p gopacket.Packet) bool {
	l, ok := p.Layer(LayerTypeLRH).(*LRH)
	g, has := p.Layer(LayerTypeGRH).(*GRH)
	return ok && has && int(g.PayloadLength) != 4*int(l.PacketLength)-roce.LRHSize-roce.GRHSize
}

// leads reports whether gopacket's own decoders would come to see data. They
// panic on some input.
func leads(first gopacket.LayerType, data []byte) bool {
	if first == LayerTypeERF {
		var l ERF
		if l.DecodeFromBytes(data, gopacket.NilDecodeFeedback) != nil {
			return false
		}
		if first, data = l.NextLayerType(), l.Payload; first < LayerTypeERF && first != gopacket.LayerTypePayload {
			return true
		}
	}
	if first == LayerTypeLRH {
		var l LRH
		return l.DecodeFromBytes(data, gopacket.NilDecodeFeedback) == nil && l.NextLayerType() == layers.LayerTypeIPv6
	}
	return false
}

func serialized(t *testing.T, p gopacket.Packet) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializePacket(b, gopacket.SerializeOptions{}, p); err != nil {
		t.Fatalf("%v: %v", err, p)
	}
	return bytes.Clone(b.Bytes())
}
