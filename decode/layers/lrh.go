package layers

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/roce"
)

const vcrcSize = 2

// LRH is the local route header of native InfiniBand.
type LRH struct {
	layers.BaseLayer
	VL           uint8 // virtual lane, 4 bits
	LinkVersion  uint8 // 0
	SL           uint8 // service level, 4 bits
	NextHeader   uint8 // what follows: roce.LNHBTH, roce.LNHGRH, …; 2 bits
	DLID, SLID   uint16
	PacketLength uint16 // in units of 4 bytes, from the LRH through the ICRC; 11 bits

	// VCRC is the CRC of the link, which only some captures have. It is read and written unchanged, never
	// computed.
	HasVCRC bool
	VCRC    uint16
}

// LayerType is LayerTypeLRH.
func (l *LRH) LayerType() gopacket.LayerType { return LayerTypeLRH }

// CanDecode is LayerTypeLRH.
func (l *LRH) CanDecode() gopacket.LayerClass { return LayerTypeLRH }

// NextLayerType follows from NextHeader.
func (l *LRH) NextLayerType() gopacket.LayerType {
	switch l.NextHeader {
	case roce.LNHBTH:
		return LayerTypeBTH
	case roce.LNHGRH:
		return LayerTypeGRH
	case roce.LNHIPNonIBA:
		return layers.LayerTypeIPv6
	}
	return gopacket.LayerTypePayload
}

// LinkFlow is the flow between the LIDs.
func (l *LRH) LinkFlow() gopacket.Flow {
	var src, dst [2]byte
	binary.BigEndian.PutUint16(src[:], l.SLID)
	binary.BigEndian.PutUint16(dst[:], l.DLID)
	return gopacket.NewFlow(EndpointLID, src[:], dst[:])
}

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *LRH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = LRH{}
	if len(data) < roce.LRHSize {
		df.SetTruncated()
		return fmt.Errorf("LRH: %d bytes of %d", len(data), roce.LRHSize)
	}
	h := roce.LRH(data)
	l.VL, l.LinkVersion, l.SL, l.NextHeader = h.VL(), h.LVer(), h.SL(), h.LNH()
	l.DLID, l.SLID, l.PacketLength = h.DLID(), h.SLID(), h.PktLen()
	set(&l.BaseLayer, data, roce.LRHSize)
	n := 4 * int(l.PacketLength)
	switch {
	case l.LinkVersion != 0:
		return fmt.Errorf("LRH: link version %d is not 0", l.LinkVersion)
	case n < roce.LRHSize:
		return fmt.Errorf("LRH: packet length %d is below that of an LRH", n)
	case n > len(data):
		df.SetTruncated()
		return nil
	}
	set(&l.BaseLayer, data[:n], roce.LRHSize)
	if len(data)-n >= vcrcSize {
		l.HasVCRC, l.VCRC = true, binary.BigEndian.Uint16(data[n:])
	}
	return nil
}

func decodeLRH(data []byte, p gopacket.PacketBuilder) error {
	l := new(LRH)
	if err := decodeInto(l, data, p); err != nil {
		return err
	}
	p.SetLinkLayer(l)
	return next(l, p)
}

// SerializeTo implements gopacket.SerializableLayer. FixLengths sets
// PacketLength.
func (l *LRH) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		n := roce.LRHSize + len(b.Bytes())
		if n&3 != 0 || n/4 > 0x7ff {
			return errors.New("LRH: payload is too long or not a multiple of 4 bytes")
		}
		l.PacketLength = uint16(n / 4)
	}
	p, err := b.PrependBytes(roce.LRHSize)
	if err != nil {
		return err
	}
	clear(p)
	h := roce.LRH(p)
	h.SetVL(l.VL)
	h.SetLVer(l.LinkVersion)
	h.SetSL(l.SL)
	h.SetLNH(l.NextHeader)
	h.SetDLID(l.DLID)
	h.SetSLID(l.SLID)
	h.SetPktLen(l.PacketLength)
	if l.HasVCRC {
		v, err := b.AppendBytes(vcrcSize)
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint16(v, l.VCRC)
	}
	return nil
}
