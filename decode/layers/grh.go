package layers

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// GRH is the global route header of RoCEv1 and of routed InfiniBand packets.
// It is laid out as an IPv6 header.
type GRH struct {
	layers.BaseLayer
	Version       uint8 // 6
	TrafficClass  uint8
	FlowLabel     uint32 // 20 bits
	PayloadLength uint16 // bytes after the GRH, through the ICRC
	NextHeader    uint8  // roce.GRHNextBTH
	HopLimit      uint8
	// SGID and DGID are source and destination. RoCE makes GIDs of IPv4
	// addresses as ::ffff:a.b.c.d.
	SGID, DGID netip.Addr
}

// LayerType is LayerTypeGRH.
func (l *GRH) LayerType() gopacket.LayerType { return LayerTypeGRH }

// CanDecode is LayerTypeGRH.
func (l *GRH) CanDecode() gopacket.LayerClass { return LayerTypeGRH }

// NextLayerType is LayerTypeBTH, usually.
func (l *GRH) NextLayerType() gopacket.LayerType {
	if l.NextHeader == roce.GRHNextBTH {
		return LayerTypeBTH
	}
	return gopacket.LayerTypePayload
}

// NetworkFlow is the flow between the GIDs, which are endpoints of the type
// layers.EndpointIPv6.
func (l *GRH) NetworkFlow() gopacket.Flow {
	var src, dst [16]byte
	if l.SGID.IsValid() {
		src = l.SGID.As16()
	}
	if l.DGID.IsValid() {
		dst = l.DGID.As16()
	}
	return gopacket.NewFlow(layers.EndpointIPv6, src[:], dst[:])
}

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *GRH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = GRH{}
	if len(data) < roce.GRHSize {
		df.SetTruncated()
		return fmt.Errorf("GRH: %d bytes of %d", len(data), roce.GRHSize)
	}
	h := roce.GRH(data)
	l.Version, l.TrafficClass, l.FlowLabel = h.Version(), h.TrafficClass(), h.FlowLabel()
	l.PayloadLength, l.NextHeader, l.HopLimit = h.PayloadLen(), h.NextHeader(), h.HopLimit()
	l.SGID, l.DGID = h.SGID(), h.DGID()
	set(&l.BaseLayer, data, roce.GRHSize)
	if l.Version != 6 {
		return fmt.Errorf("GRH: version %d is not 6", l.Version)
	}
	// What follows is padding of the Ethernet frame.
	if n := roce.GRHSize + int(l.PayloadLength); n > len(data) {
		df.SetTruncated()
	} else if n > roce.GRHSize {
		set(&l.BaseLayer, data[:n], roce.GRHSize)
	}
	return nil
}

// GoString is the text of gopacket.LayerGoString, which cannot cope with
// netip.Addr.
func (l *GRH) GoString() string {
	return fmt.Sprintf("&layers.GRH{Version:%d, TrafficClass:%#x, FlowLabel:%#x, PayloadLength:%d, NextHeader:%#x, HopLimit:%d, SGID:%#v, DGID:%#v}",
		l.Version, l.TrafficClass, l.FlowLabel, l.PayloadLength, l.NextHeader, l.HopLimit, l.SGID, l.DGID)
}

func decodeGRH(data []byte, p gopacket.PacketBuilder) error {
	l := new(GRH)
	if err := decodeInto(l, data, p); err != nil {
		return err
	}
	p.SetNetworkLayer(l)
	return next(l, p)
}

// SerializeTo implements gopacket.SerializableLayer. FixLengths sets
// PayloadLength.
func (l *GRH) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		n := len(b.Bytes())
		if n > 0xffff {
			return errors.New("GRH: payload is too long")
		}
		l.PayloadLength = uint16(n)
	}
	if !l.SGID.IsValid() || !l.DGID.IsValid() {
		return errors.New("GRH: SGID and DGID have to be set")
	}
	p, err := b.PrependBytes(roce.GRHSize)
	if err != nil {
		return err
	}
	clear(p)
	h := roce.GRH(p)
	h.SetVersion(l.Version)
	h.SetTrafficClass(l.TrafficClass)
	h.SetFlowLabel(l.FlowLabel)
	h.SetPayloadLen(l.PayloadLength)
	h.SetNextHeader(l.NextHeader)
	h.SetHopLimit(l.HopLimit)
	h.SetSGID(l.SGID)
	h.SetDGID(l.DGID)
	return nil
}
