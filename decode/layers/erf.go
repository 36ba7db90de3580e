package layers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// ERF sizes in bytes.
const (
	erfSize          = 16
	erfExtensionSize = 8
	erfMaxExtensions = 16 // followed; more is taken for damage
	erfEthernetPad   = 2  // offset and pad in front of an Ethernet frame
)

// Types of ERF records.
const (
	ERFTypeEthernet          uint8 = 2
	ERFTypeColorEthernet     uint8 = 11
	ERFTypeDSMEthernet       uint8 = 16
	ERFTypeColorHashEthernet uint8 = 20
	ERFTypeInfiniBand        uint8 = 21
	ERFTypeIPv4              uint8 = 22
	ERFTypeIPv6              uint8 = 23
)

// ERF is the header of Endace's extensible record format, in which tools dump
// InfiniBand:
//
//	| timestamp 8, little-endian | type 1 | flags 1 | record length 2 | loss counter 2 | wire length 2 |
type ERF struct {
	layers.BaseLayer
	Timestamp    uint64 // seconds since 1970 in the upper half, fraction in the lower
	Type         uint8  // 7 bits
	Flags        uint8
	RecordLength uint16 // bytes of the whole record
	LossCounter  uint16 // or color, as the type has it
	WireLength   uint16 // bytes of the packet on the wire
	// Extensions are the extension headers, a multiple of 8 bytes. The top bit
	// of each says that another follows.
	Extensions []byte
	// EthernetPad is the offset and the pad byte of Ethernet types.
	EthernetPad [2]byte
}

// LayerType is LayerTypeERF.
func (l *ERF) LayerType() gopacket.LayerType { return LayerTypeERF }

// CanDecode is LayerTypeERF.
func (l *ERF) CanDecode() gopacket.LayerClass { return LayerTypeERF }

// NextLayerType follows from Type.
func (l *ERF) NextLayerType() gopacket.LayerType {
	switch l.Type {
	case ERFTypeInfiniBand:
		return LayerTypeLRH
	case ERFTypeIPv4:
		return layers.LayerTypeIPv4
	case ERFTypeIPv6:
		return layers.LayerTypeIPv6
	}
	if l.ethernet() {
		return layers.LayerTypeEthernet
	}
	return gopacket.LayerTypePayload
}

func (l *ERF) ethernet() bool {
	switch l.Type {
	case ERFTypeEthernet, ERFTypeColorEthernet, ERFTypeDSMEthernet, ERFTypeColorHashEthernet:
		return true
	}
	return false
}

// Time is the timestamp.
func (l *ERF) Time() time.Time {
	return time.Unix(int64(l.Timestamp>>32), int64(l.Timestamp&0xffffffff*1e9>>32))
}

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *ERF) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = ERF{}
	if len(data) < erfSize {
		df.SetTruncated()
		return fmt.Errorf("ERF: %d bytes of %d", len(data), erfSize)
	}
	l.Timestamp = binary.LittleEndian.Uint64(data)
	l.Type, l.Flags = data[8]&0x7f, data[9]
	l.RecordLength = binary.BigEndian.Uint16(data[10:])
	l.LossCounter = binary.BigEndian.Uint16(data[12:])
	l.WireLength = binary.BigEndian.Uint16(data[14:])
	end := erfSize
	for more := data[8]&0x80 != 0; more; end += erfExtensionSize {
		if len(data)-end < erfExtensionSize {
			df.SetTruncated()
			return errors.New("ERF: cut in the extension headers")
		}
		if end == erfSize+erfMaxExtensions*erfExtensionSize {
			return fmt.Errorf("ERF: more than %d extension headers", erfMaxExtensions)
		}
		more = data[end]&0x80 != 0
	}
	l.Extensions = data[erfSize:end:end]
	if l.ethernet() {
		if len(data)-end < erfEthernetPad {
			df.SetTruncated()
			return errors.New("ERF: cut before the Ethernet frame")
		}
		l.EthernetPad = [2]byte(data[end:])
		end += erfEthernetPad
	}
	set(&l.BaseLayer, data, end)
	return nil
}

// SerializeTo implements gopacket.SerializableLayer. FixLengths sets
// RecordLength and WireLength.
func (l *ERF) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	size := erfSize + len(l.Extensions)
	if len(l.Extensions)%erfExtensionSize != 0 {
		return errors.New("ERF: Extensions are not a multiple of 8 bytes")
	}
	if l.ethernet() {
		size += erfEthernetPad
	}
	n := len(b.Bytes())
	if opts.FixLengths {
		if size+n > 0xffff {
			return errors.New("ERF: payload is too long")
		}
		l.WireLength, l.RecordLength = uint16(n), uint16(size+n)
	}
	p, err := b.PrependBytes(size)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(p, l.Timestamp)
	p[8], p[9] = l.Type&0x7f, l.Flags
	if len(l.Extensions) > 0 {
		p[8] |= 0x80
	}
	binary.BigEndian.PutUint16(p[10:], l.RecordLength)
	binary.BigEndian.PutUint16(p[12:], l.LossCounter)
	binary.BigEndian.PutUint16(p[14:], l.WireLength)
	copy(p[erfSize:], l.Extensions)
	if l.ethernet() {
		copy(p[size-erfEthernetPad:], l.EthernetPad[:])
	}
	return nil
}
