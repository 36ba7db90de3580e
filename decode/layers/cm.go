package layers

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/ibcm"
)

// CM is a connection management message: a MAD sent to queue pair 1.
type CM struct {
	layers.BaseLayer
	Method        uint8 // ibcm.MethodSend
	Status        uint16
	ClassSpecific uint16
	Modifier      uint32

	// Message is what the message says. SerializeTo takes Attribute,
	// TransactionID and Data of it; the other fields are read from Data, and
	// are written with the types of package ibcm:
	//
	//	data := make([]byte, ibcm.DataSize)
	//	ibcm.RTU(data).SetIDs(local, remote)
	//	cm := layers.CM{Message: ibcm.Message{Attribute: ibcm.AttributeRTU, Data: data}}
	Message ibcm.Message
}

// Offsets in the header of a MAD that package ibcm has no use for.
const (
	madMethod        = 3
	madClassSpecific = 6
)

// LayerType is LayerTypeCM.
func (l *CM) LayerType() gopacket.LayerType { return LayerTypeCM }

// CanDecode is LayerTypeCM.
func (l *CM) CanDecode() gopacket.LayerClass { return LayerTypeCM }

// NextLayerType is none.
func (l *CM) NextLayerType() gopacket.LayerType { return gopacket.LayerTypeZero }

// DecodeFromBytes implements gopacket.DecodingLayer. A message that the capture
// cut is decoded as far as it goes: Message.Cut tells.
func (l *CM) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = CM{}
	full := len(data)
	if full < ibcm.MADSize {
		df.SetTruncated()
		full = ibcm.MADSize
	}
	ok := ibcm.Decode(data, full, &l.Message)
	if len(data) < ibcm.HeaderSize {
		return errors.New("CM: " + l.Message.Problem)
	}
	mad := ibcm.MAD(data)
	l.Method, l.Status, l.Modifier = mad.Method(), mad.Status(), mad.Modifier()
	l.ClassSpecific = binary.BigEndian.Uint16(data[madClassSpecific:])
	set(&l.BaseLayer, data, min(len(data), ibcm.MADSize))
	if !ok {
		return errors.New("CM: " + l.Message.Problem)
	}
	return nil
}

// GoString is the text of gopacket.LayerGoString, which cannot cope with
// netip.Addr.
func (l *CM) GoString() string {
	return fmt.Sprintf("&layers.CM{Method:%#x, Status:%#x, ClassSpecific:%#x, Modifier:%#x, Message:%#v}", l.Method, l.Status, l.ClassSpecific, l.Modifier, l.Message)
}

// SerializeTo implements gopacket.SerializableLayer. With FixLengths, a Method
// of 0 becomes ibcm.MethodSend, the only one there is.
func (l *CM) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if len(l.Message.Data) > ibcm.DataSize {
		return errors.New("CM: message is too long")
	}
	p, err := b.PrependBytes(ibcm.MADSize)
	if err != nil {
		return err
	}
	_, mad := ibcm.Append(p[:0:ibcm.MADSize], l.Message.Attribute, l.Message.TransactionID)
	if opts.FixLengths && l.Method == 0 {
		l.Method = ibcm.MethodSend
	}
	mad[madMethod] = l.Method
	mad.SetStatus(l.Status)
	mad.SetModifier(l.Modifier)
	binary.BigEndian.PutUint16(mad[madClassSpecific:], l.ClassSpecific)
	copy(mad.Data(), l.Message.Data)
	return nil
}
