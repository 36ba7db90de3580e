package layers

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// MPA is the framing of iWARP in a TCP segment (RFC 5044): an FPDU without markers, or an MPA Request or
// Reply.
//
// A segment may hold several FPDUs. In a gopacket.Packet each has its layers, one after another. A
// gopacket.DecodingLayerParser decodes one at a time:
//
//	for data := tcp.Payload; len(data) > 0; data = mpa.Rest {
//		err := parser.DecodeLayers(data, &decoded)
//		…
//	}
type MPA struct {
	layers.BaseLayer
	// Negotiation says that this is an MPA Request or Reply: Frame. The fields
	// below it belong to FPDUs.
	Negotiation bool
	Frame       iwarp.MPAFrame

	ULPDULength uint16
	Padding     []byte // 0 to 3 bytes; zeros, usually
	// CRC is the CRC32C. The field is there even on connections without CRCs,
	// with any value.
	CRC uint32
	// Cut says that the end of the FPDU is not here: it was not captured, or
	// is in the next segment. There is no Padding and no CRC.
	Cut bool
	// Rest is what follows in the segment.
	Rest []byte

	raw []byte // all of the FPDU
}

// LayerType is LayerTypeMPA.
func (l *MPA) LayerType() gopacket.LayerType { return LayerTypeMPA }

// CanDecode is LayerTypeMPA.
func (l *MPA) CanDecode() gopacket.LayerClass { return LayerTypeMPA }

// NextLayerType is LayerTypeDDP in an FPDU.
func (l *MPA) NextLayerType() gopacket.LayerType {
	if l.Negotiation {
		return gopacket.LayerTypeZero
	}
	return LayerTypeDDP
}

var errNoFPDU = errors.New("MPA: no FPDU starts here: FPDUs are not aligned to segments or have markers, or this is not iWARP; follow the stream with package iwarp")

// DecodeFromBytes implements gopacket.DecodingLayer. Data that cannot be the
// start of an FPDU is an error.
func (l *MPA) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = MPA{}
	switch n, err := l.Frame.Decode(data); {
	case err == nil:
		l.Negotiation = true
		set(&l.BaseLayer, data, n)
		l.Rest, l.Payload = l.Payload, nil
		return nil
	case err == iwarp.ErrShort && len(data) >= iwarp.FPDUHeaderLen:
		df.SetTruncated()
		return errors.New("MPA: cut in an MPA Request or Reply")
	}
	l.Frame = iwarp.MPAFrame{}
	if len(data) < iwarp.FPDUHeaderLen+iwarp.ControlLen {
		df.SetTruncated()
		return fmt.Errorf("MPA: %d bytes are too few for an FPDU", len(data))
	}
	n := int(binary.BigEndian.Uint16(data))
	size := iwarp.FPDULen(n)
	l.Cut = size > len(data)
	l.raw = data[:min(size, len(data)):min(size, len(data))]
	ulpdu := l.raw[iwarp.FPDUHeaderLen:]
	ulpdu = ulpdu[:min(n, len(ulpdu)):min(n, len(ulpdu))]
	if !startsULPDU(ulpdu, n) {
		return errNoFPDU
	}
	l.ULPDULength = uint16(n)
	l.Contents, l.Payload = data[:iwarp.FPDUHeaderLen:iwarp.FPDUHeaderLen], ulpdu
	if l.Cut {
		df.SetTruncated()
		return nil
	}
	at := size - iwarp.CRCLen
	l.Padding = data[iwarp.FPDUHeaderLen+n : at : at]
	l.CRC = iwarp.FPDU(l.raw).CRC()
	if len(data) > size {
		l.Rest = data[size:len(data):len(data)]
	}
	return nil
}

// startsULPDU reports whether u is, or starts, a ULPDU of n bytes.
func startsULPDU(u iwarp.ULPDU, n int) bool {
	if len(u) < iwarp.ControlLen || len(u) < u.HeaderLen() && len(u) < n {
		return len(u) >= iwarp.ControlLen && u.Control().Valid() && n >= u.HeaderLen()
	}
	return u.Valid(n)
}

// String is the text that gopacket prints for the layer.
func (l *MPA) String() string {
	switch {
	case l.Negotiation:
		return fmt.Sprintf("%+v", l.Frame)
	case l.Cut:
		return fmt.Sprintf("{ULPDULength=%d Cut}", l.ULPDULength)
	}
	return fmt.Sprintf("{ULPDULength=%d Padding=%d CRC=0x%08x}", l.ULPDULength, len(l.Padding), l.CRC)
}

// VerifyCRC reports whether the CRC is right. ok is false if the FPDU is not
// whole.
func (l *MPA) VerifyCRC() (right, ok bool) {
	if l.Cut || l.Negotiation || len(l.raw) < iwarp.FPDUHeaderLen+iwarp.CRCLen {
		return false, false
	}
	f := iwarp.FPDU(l.raw)
	return f.CRC() == f.Checksum(), true
}

// RDMA is the message of RFC 8797 in the private data of an MPA Request or
// Reply. Its field Present is false if there is none.
func (l *MPA) RDMA() (p rdma.PrivateData) {
	p.Decode(l.Frame.Private)
	return p
}

// decodeMPA decodes all FPDUs of a segment with their contents. gopacket goes from a layer into its payload
// only, not after it, so that all is done here.
func decodeMPA(data []byte, p gopacket.PacketBuilder) error {
	for len(data) > 0 {
		l := new(MPA)
		if err := decodeInto(l, data, p); err != nil {
			return err
		}
		if !l.Negotiation {
			if err := decodeULPDU(l.Payload, p); err != nil {
				return err
			}
		}
		data = l.Rest
	}
	return nil
}

// decodeULPDU decodes a ULPDU and what is in it.
func decodeULPDU(data []byte, p gopacket.PacketBuilder) error {
	ddp := new(DDP)
	if err := decodeInto(ddp, data, p); err != nil {
		return err
	}
	p.AddLayer(&ddp.RDMAP)
	data = ddp.Payload
	t := ddp.NextLayerType()
	if t == LayerTypeRPCoverRDMA {
		l := new(RPCoverRDMA)
		if err := decodeInto(l, data, p); err != nil {
			return err
		}
		data, t = l.Payload, l.NextLayerType()
	}
	if t == LayerTypeRPC {
		l := new(RPC)
		if err := decodeInto(l, data, p); err != nil {
			return err
		}
		data = l.Payload
	}
	if len(data) > 0 {
		payload := gopacket.Payload(data)
		p.AddLayer(&payload)
		p.SetApplicationLayer(&payload)
	}
	return nil
}

// SerializeTo implements gopacket.SerializableLayer. FixLengths sets
// ULPDULength and Padding, ComputeChecksums computes the CRC. For an MPA
// Request or Reply it writes Frame. All that is in the buffer becomes the
// ULPDU: serialise the FPDUs of a segment one by one.
func (l *MPA) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if l.Negotiation {
		if len(l.Frame.Private) > iwarp.MPAMaxPrivate {
			return errors.New("MPA: private data is too long")
		}
		p, err := b.PrependBytes(l.Frame.Size())
		if err != nil {
			return err
		}
		if n := len(l.Frame.Append(p[:0:len(p)])); n != len(p) {
			return errors.New("MPA: private data is too long")
		}
		return nil
	}
	n := len(b.Bytes())
	if opts.FixLengths {
		if n > iwarp.MaxULPDU {
			return errors.New("MPA: ULPDU is too long")
		}
		l.ULPDULength = uint16(n)
		l.Padding = zeros[:-(iwarp.FPDUHeaderLen+n)&3]
	}
	trailer, err := b.AppendBytes(len(l.Padding) + iwarp.CRCLen)
	if err != nil {
		return err
	}
	clear(trailer[copy(trailer, l.Padding):])
	p, err := b.PrependBytes(iwarp.FPDUHeaderLen)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint16(p, l.ULPDULength)
	fpdu := iwarp.FPDU(b.Bytes())
	if opts.ComputeChecksums {
		l.CRC = fpdu.Checksum()
	}
	binary.LittleEndian.PutUint32(fpdu[len(fpdu)-iwarp.CRCLen:], l.CRC)
	return nil
}
