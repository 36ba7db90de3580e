package layers

import (
	"github.com/google/gopacket"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// AtomicETH is the operand of Compare Swap and Fetch Add.
type AtomicETH struct {
	extension
	VA      uint64
	RKey    uint32
	SwapAdd uint64
	Compare uint64
}

// LayerType is LayerTypeAtomicETH.
func (l *AtomicETH) LayerType() gopacket.LayerType { return LayerTypeAtomicETH }

// CanDecode is LayerTypeAtomicETH.
func (l *AtomicETH) CanDecode() gopacket.LayerClass { return LayerTypeAtomicETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *AtomicETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = AtomicETH{}
	if err := l.take(LayerTypeAtomicETH, data, roce.AtomicETHSize, df); err != nil {
		return err
	}
	h := roce.AtomicETH(l.Contents)
	l.VA, l.RKey, l.SwapAdd, l.Compare = h.VA(), h.RKey(), h.SwapAdd(), h.Compare()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *AtomicETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.AtomicETHSize)
	if err != nil {
		return err
	}
	h := roce.AtomicETH(p)
	h.SetVA(l.VA)
	h.SetRKey(l.RKey)
	h.SetSwapAdd(l.SwapAdd)
	h.SetCompare(l.Compare)
	return nil
}

// AtomicAckETH returns what the word held before an atomic operation.
type AtomicAckETH struct {
	extension
	Original uint64
}

// LayerType is LayerTypeAtomicAckETH.
func (l *AtomicAckETH) LayerType() gopacket.LayerType { return LayerTypeAtomicAckETH }

// CanDecode is LayerTypeAtomicAckETH.
func (l *AtomicAckETH) CanDecode() gopacket.LayerClass { return LayerTypeAtomicAckETH }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *AtomicAckETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = AtomicAckETH{}
	if err := l.take(LayerTypeAtomicAckETH, data, roce.AtomicAckETHSize, df); err != nil {
		return err
	}
	l.Original = roce.AtomicAckETH(l.Contents).Original()
	return nil
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *AtomicAckETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := give(b, roce.AtomicAckETHSize)
	if err != nil {
		return err
	}
	roce.AtomicAckETH(p).SetOriginal(l.Original)
	return nil
}
