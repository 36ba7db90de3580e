package layers

import (
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// extension is what the extension headers have in common.
type extension struct {
	layers.BaseLayer
	next gopacket.LayerType
}

// NextLayerType is what follows the header, if a BTH has decoded it; only the
// opcode tells. Else it is a payload.
func (e *extension) NextLayerType() gopacket.LayerType {
	switch {
	case len(e.Payload) == 0:
		return gopacket.LayerTypeZero
	case e.next == gopacket.LayerTypeZero:
		return gopacket.LayerTypePayload
	}
	return e.next
}

func (e *extension) setNext(t gopacket.LayerType) { e.next = t }

// take cuts the header off data.
func (e *extension) take(t gopacket.LayerType, data []byte, size int, df gopacket.DecodeFeedback) error {
	*e = extension{}
	if len(data) < size {
		df.SetTruncated()
		return fmt.Errorf("%s: %d bytes of %d", t, len(data), size)
	}
	set(&e.BaseLayer, data, size)
	return nil
}

// give makes room for the header.
func give(b gopacket.SerializeBuffer, size int) ([]byte, error) {
	p, err := b.PrependBytes(size)
	clear(p)
	return p, err
}

// extensionLayer is an extension header.
type extensionLayer interface {
	layer
	setNext(gopacket.LayerType)
}

// extensionOrder is the extension headers in the order in which they follow
// the BTH.
var extensionOrder = [...]struct {
	has   roce.Headers
	layer gopacket.LayerType
}{
	{roce.HasRDETH, LayerTypeRDETH},
	{roce.HasDETH, LayerTypeDETH},
	{roce.HasXRCETH, LayerTypeXRCETH},
	{roce.HasFETH, LayerTypeFETH},
	{roce.HasRETH, LayerTypeRETH},
	{roce.HasAtomicETH, LayerTypeAtomicETH},
	{roce.HasAETH, LayerTypeAETH},
	{roce.HasAtomicAckETH, LayerTypeAtomicAckETH},
	{roce.HasImmDt, LayerTypeImmDt},
	{roce.HasIETH, LayerTypeIETH},
}

func isExtension(t gopacket.LayerType) bool { return t >= LayerTypeRDETH && t <= LayerTypeIETH }
