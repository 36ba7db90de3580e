package layers

import (
	"encoding/binary"
	"strconv"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Layer types. The numbers are fixed; 1970 to 1979 are kept for more.
const (
	LayerTypeERF gopacket.LayerType = 1950 + iota
	LayerTypeLRH
	LayerTypeGRH
	LayerTypeBTH
	LayerTypeRDETH
	LayerTypeDETH
	LayerTypeXRCETH
	LayerTypeFETH
	LayerTypeRETH
	LayerTypeAtomicETH
	LayerTypeAETH
	LayerTypeAtomicAckETH
	LayerTypeImmDt
	LayerTypeIETH
	LayerTypeCM
	LayerTypeMPA
	LayerTypeDDP
	LayerTypeRDMAP
	LayerTypeRPCoverRDMA
	LayerTypeRPC
)

// Where gopacket finds the first of these layers.
const (
	UDPPortRoCEv2      layers.UDPPort      = 4791
	TCPPortNFSRDMA     layers.TCPPort      = 20049
	EthernetTypeRoCEv1 layers.EthernetType = 0x8915
	LinkTypeERF        layers.LinkType     = 197
	LinkTypeInfiniBand layers.LinkType     = 247
)

// Types of endpoints: queue pairs and local identifiers.
var (
	EndpointQP = gopacket.RegisterEndpointType(1950, gopacket.EndpointTypeMetadata{Name: "QP", Formatter: func(b []byte) string {
		if len(b) != 3 {
			return ""
		}
		return strconv.Itoa(int(b[0])<<16 | int(b[1])<<8 | int(b[2]))
	}})
	EndpointLID = gopacket.RegisterEndpointType(1951, gopacket.EndpointTypeMetadata{Name: "LID", Formatter: func(b []byte) string {
		if len(b) != 2 {
			return ""
		}
		return strconv.Itoa(int(binary.BigEndian.Uint16(b)))
	}})
)

func init() {
	for _, t := range []struct {
		layer  gopacket.LayerType
		name   string
		decode gopacket.DecodeFunc
	}{
		{LayerTypeERF, "ERF", decodeOne[ERF]},
		{LayerTypeLRH, "LRH", decodeLRH},
		{LayerTypeGRH, "GRH", decodeGRH},
		{LayerTypeBTH, "BTH", decodeBTH},
		{LayerTypeRDETH, "RDETH", decodeOne[RDETH]},
		{LayerTypeDETH, "DETH", decodeOne[DETH]},
		{LayerTypeXRCETH, "XRCETH", decodeOne[XRCETH]},
		{LayerTypeFETH, "FETH", decodeOne[FETH]},
		{LayerTypeRETH, "RETH", decodeOne[RETH]},
		{LayerTypeAtomicETH, "AtomicETH", decodeOne[AtomicETH]},
		{LayerTypeAETH, "AETH", decodeOne[AETH]},
		{LayerTypeAtomicAckETH, "AtomicAckETH", decodeOne[AtomicAckETH]},
		{LayerTypeImmDt, "ImmDt", decodeOne[ImmDt]},
		{LayerTypeIETH, "IETH", decodeOne[IETH]},
		{LayerTypeCM, "InfiniBandCM", decodeOne[CM]},
		{LayerTypeMPA, "MPA", decodeMPA},
		{LayerTypeDDP, "DDP", decodeDDP},
		{LayerTypeRDMAP, "RDMAP", nil}, // only within DDP
		{LayerTypeRPCoverRDMA, "RPCoverRDMA", decodeOne[RPCoverRDMA]},
		{LayerTypeRPC, "RPC", decodeOne[RPC]},
	} {
		meta := gopacket.LayerTypeMetadata{Name: t.name}
		if t.decode != nil {
			meta.Decoder = t.decode
		}
		gopacket.RegisterLayerType(int(t.layer), meta)
	}
	layers.RegisterUDPPortLayerType(UDPPortRoCEv2, LayerTypeBTH)
	layers.RegisterTCPPortLayerType(TCPPortNFSRDMA, LayerTypeMPA)
	layers.EthernetTypeMetadata[EthernetTypeRoCEv1] = layers.EnumMetadata{DecodeWith: LayerTypeGRH, Name: "RoCEv1", LayerType: LayerTypeGRH}
	layers.LinkTypeMetadata[LinkTypeERF] = layers.EnumMetadata{DecodeWith: LayerTypeERF, Name: "ERF", LayerType: LayerTypeERF}
	layers.LinkTypeMetadata[LinkTypeInfiniBand] = layers.EnumMetadata{DecodeWith: LayerTypeLRH, Name: "InfiniBand", LayerType: LayerTypeLRH}
}

// layer is what all layers of this package are.
type layer interface {
	gopacket.SerializableLayer
	gopacket.DecodingLayer
	LayerContents() []byte
}

// decodeOne decodes a layer that stands for itself.
func decodeOne[T any, L interface {
	*T
	layer
}](data []byte, p gopacket.PacketBuilder) error {
	l := L(new(T))
	if err := decodeInto(l, data, p); err != nil {
		return err
	}
	return next(l, p)
}

// decodeInto decodes a layer and adds it to the packet. A layer that is broken
// is added as well if something of it could be decoded: its Contents tell.
func decodeInto(l layer, data []byte, p gopacket.PacketBuilder) error {
	err := l.DecodeFromBytes(data, p)
	if err == nil || len(l.LayerContents()) > 0 {
		p.AddLayer(l)
	}
	return err
}

// next continues with what follows l, the layer added last.
func next(l layer, p gopacket.PacketBuilder) error {
	if t := l.NextLayerType(); t != gopacket.LayerTypeZero && len(l.LayerPayload()) > 0 {
		return p.NextDecoder(t)
	}
	return nil
}

// set makes a BaseLayer of the first n bytes of data and the rest.
func set(l *layers.BaseLayer, data []byte, n int) {
	l.Contents, l.Payload = data[:n:n], data[n:len(data):len(data)]
}

// copyError copies an error that belongs to a header, which the next packet
// overwrites.
func copyError(err error) error {
	if e, ok := err.(*xdr.Error); ok {
		c := *e
		return &c
	}
	return err
}

// unknown is the length of a packet whose end was not captured.
const unknown = -1

// declared is the length that the packet data had on the wire, as far as that
// is known: unknown if it was longer, but not how much. A BTH and a ULPDU do
// not say how long they are, and gopacket does not hand it on.
func declared(data []byte, df gopacket.DecodeFeedback) int {
	switch df := df.(type) {
	case *gopacket.DecodingLayerParser:
		if df.Truncated {
			return unknown
		}
	case gopacket.Packet:
		// Layers that have been decoded are asked only, so that a lazy packet
		// does not start to decode here.
		if udp, ok := df.TransportLayer().(*layers.UDP); ok && same(udp.Payload, data) && udp.Length >= 8 {
			return int(udp.Length) - 8
		}
		if grh, ok := df.NetworkLayer().(*GRH); ok && same(grh.Payload, data) && grh.PayloadLength != 0 {
			return int(grh.PayloadLength)
		}
		if lrh, ok := df.LinkLayer().(*LRH); ok && same(lrh.Payload, data) {
			return 4*int(lrh.PacketLength) - roce.LRHSize
		}
		if df.Metadata().Truncated {
			return unknown
		}
	}
	return len(data)
}

func same(a, b []byte) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}
