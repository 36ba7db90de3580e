package layers

import (
	"github.com/google/gopacket"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// AETH acknowledges requests, in Acknowledge and RDMA Read Response packets.
type AETH struct {
	extension
	Syndrome roce.Syndrome
	MSN      uint32 // requests that the responder has completed, 24 bits
}

// LayerType is LayerTypeAETH.
func (l *AETH) LayerType() gopacket.LayerType { return LayerTypeAETH }

// CanDecode is LayerTypeAETH.
func (l *AETH) CanDecode() gopacket.LayerClass { return LayerTypeAETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *AETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = AETH{}
	if err := l.take(LayerTypeAETH, data, roce.AETHSize, df); err != nil {
		return err
	}
	h := roce.AETH(l.Contents)
	l.Syndrome, l.MSN = h.Syndrome(), h.MSN()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *AETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.AETHSize)
	if err != nil {
		return err
	}
	h := roce.AETH(p)
	h.SetSyndrome(l.Syndrome)
	h.SetMSN(l.MSN)
	return nil
}
