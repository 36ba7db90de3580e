package layers

import (
	"github.com/google/gopacket"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// RETH names remote memory: in RDMA Write and RDMA Read Request packets.
type RETH struct {
	extension
	VA     uint64
	RKey   uint32
	DMALen uint32 // bytes of the whole operation
}

// LayerType is LayerTypeRETH.
func (l *RETH) LayerType() gopacket.LayerType { return LayerTypeRETH }

// CanDecode is LayerTypeRETH.
func (l *RETH) CanDecode() gopacket.LayerClass { return LayerTypeRETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *RETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = RETH{}
	if err := l.take(LayerTypeRETH, data, roce.RETHSize, df); err != nil {
		return err
	}
	h := roce.RETH(l.Contents)
	l.VA, l.RKey, l.DMALen = h.VA(), h.RKey(), h.DMALen()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *RETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.RETHSize)
	if err != nil {
		return err
	}
	h := roce.RETH(p)
	h.SetVA(l.VA)
	h.SetRKey(l.RKey)
	h.SetDMALen(l.DMALen)
	return nil
}
