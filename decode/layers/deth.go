package layers

import (
	"github.com/google/gopacket"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// DETH is the datagram header of UD and RD packets.
type DETH struct {
	extension
	QKey  uint32
	SrcQP uint32 // 24 bits
}

// LayerType is LayerTypeDETH.
func (l *DETH) LayerType() gopacket.LayerType { return LayerTypeDETH }

// CanDecode is LayerTypeDETH.
func (l *DETH) CanDecode() gopacket.LayerClass { return LayerTypeDETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *DETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = DETH{}
	if err := l.take(LayerTypeDETH, data, roce.DETHSize, df); err != nil {
		return err
	}
	h := roce.DETH(l.Contents)
	l.QKey, l.SrcQP = h.QKey(), h.SrcQP()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *DETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.DETHSize)
	if err != nil {
		return err
	}
	h := roce.DETH(p)
	h.SetQKey(l.QKey)
	h.SetSrcQP(l.SrcQP)
	return nil
}

// RDETH names the end-to-end context of an RD packet.
type RDETH struct {
	extension
	EEContext uint32 // 24 bits
}

// LayerType is LayerTypeRDETH.
func (l *RDETH) LayerType() gopacket.LayerType { return LayerTypeRDETH }

// CanDecode is LayerTypeRDETH.
func (l *RDETH) CanDecode() gopacket.LayerClass { return LayerTypeRDETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *RDETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = RDETH{}
	if err := l.take(LayerTypeRDETH, data, roce.RDETHSize, df); err != nil {
		return err
	}
	l.EEContext = roce.RDETH(l.Contents).EEContext()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *RDETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.RDETHSize)
	if err != nil {
		return err
	}
	roce.RDETH(p).SetEEContext(l.EEContext)
	return nil
}

// XRCETH names the shared receive queue of an XRC request.
type XRCETH struct {
	extension
	XRCSRQ uint32 // 24 bits
}

// LayerType is LayerTypeXRCETH.
func (l *XRCETH) LayerType() gopacket.LayerType { return LayerTypeXRCETH }

// CanDecode is LayerTypeXRCETH.
func (l *XRCETH) CanDecode() gopacket.LayerClass { return LayerTypeXRCETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *XRCETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = XRCETH{}
	if err := l.take(LayerTypeXRCETH, data, roce.XRCETHSize, df); err != nil {
		return err
	}
	l.XRCSRQ = roce.XRCETH(l.Contents).XRCSRQ()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *XRCETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.XRCETHSize)
	if err != nil {
		return err
	}
	roce.XRCETH(p).SetXRCSRQ(l.XRCSRQ)
	return nil
}
