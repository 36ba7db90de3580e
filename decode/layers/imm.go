package layers

import (
	"github.com/google/gopacket"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// ImmDt is immediate data: one word for the receiver's completion.
type ImmDt struct {
	extension
	Data uint32
}

// LayerType is LayerTypeImmDt.
func (l *ImmDt) LayerType() gopacket.LayerType { return LayerTypeImmDt }

// CanDecode is LayerTypeImmDt.
func (l *ImmDt) CanDecode() gopacket.LayerClass { return LayerTypeImmDt }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *ImmDt) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = ImmDt{}
	if err := l.take(LayerTypeImmDt, data, roce.ImmDtSize, df); err != nil {
		return err
	}
	l.Data = roce.ImmDt(l.Contents).Data()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *ImmDt) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.ImmDtSize)
	if err != nil {
		return err
	}
	roce.ImmDt(p).SetData(l.Data)
	return nil
}

// IETH is the header of a Send with Invalidate.
type IETH struct {
	extension
	RKey uint32 // the handle that the receiver shall invalidate
}

// LayerType is LayerTypeIETH.
func (l *IETH) LayerType() gopacket.LayerType { return LayerTypeIETH }

// CanDecode is LayerTypeIETH.
func (l *IETH) CanDecode() gopacket.LayerClass { return LayerTypeIETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *IETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = IETH{}
	if err := l.take(LayerTypeIETH, data, roce.IETHSize, df); err != nil {
		return err
	}
	l.RKey = roce.IETH(l.Contents).RKey()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *IETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.IETHSize)
	if err != nil {
		return err
	}
	roce.IETH(p).SetRKey(l.RKey)
	return nil
}
