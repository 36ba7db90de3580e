package layers

import (
	"github.com/google/gopacket"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// FETH says what a FLUSH shall make visible or persistent.
type FETH struct {
	extension
	Placement   uint8 // 1 global visibility, 2 persistence, 3 both
	Selectivity uint8 // 0 the memory that the RETH names, 1 all of the region
}

// LayerType is LayerTypeFETH.
func (l *FETH) LayerType() gopacket.LayerType { return LayerTypeFETH }

// CanDecode is LayerTypeFETH.
func (l *FETH) CanDecode() gopacket.LayerClass { return LayerTypeFETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *FETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = FETH{}
	if err := l.take(LayerTypeFETH, data, roce.FETHSize, df); err != nil {
		return err
	}
	h := roce.FETH(l.Contents)
	l.Placement, l.Selectivity = h.Placement(), h.Selectivity()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *FETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.FETHSize)
	if err != nil {
		return err
	}
	h := roce.FETH(p)
	h.SetPlacement(l.Placement)
	h.SetSelectivity(l.Selectivity)
	return nil
}
