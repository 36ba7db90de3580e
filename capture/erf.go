package capture

import (
	"encoding/binary"
	"io"
	"math/bits"
)

// erfDecoder reads native ERF files: records of Endace's extensible record format, one behind the other, without a file header. A
// packet is a whole record, as in a pcap file of link type ERF.
//
//	timestamp 64, little-endian: seconds in its upper half, a fraction of 2^32 in its lower | type 8: its top bit announces
//	extensions | flags 8 | record length 16 | loss counter 16 | wire length 16 | extension headers, 8 bytes each | the frame
type erfDecoder struct {
	tap     [1]Tap
	damaged bool  // a record is searched
	damage  int64 // where the damage begins
}

const (
	erfHeader      = 16
	erfExtension   = 8
	erfExtensions  = 16 // headers followed at most
	erfAlignment   = 8  // of records; the frame is padded to it
	erfMore        = 0x80
	erfLastType    = 27
	erfReserved    = 0xc0      // flags
	erfFirstSecond = 631152000 // 1990: the format is younger
)

// Types whose frame has two bytes of padding before it.
const (
	erfEthernet          = 2
	erfColorEthernet     = 11
	erfDSMEthernet       = 16
	erfColorHashEthernet = 20
)

// newErfDecoder returns nil unless head is the header of a record. There is no magic number: every field must be as it can be.
func newErfDecoder(head []byte) *erfDecoder {
	if len(head) < erfHeader || !erfPlausible(head) {
		return nil
	}
	return &erfDecoder{tap: [1]Tap{{Link: LinkERF}}}
}

func erfPlausible(h []byte) bool {
	typ, size, wire, least := h[8]&^erfMore, int(binary.BigEndian.Uint16(h[10:])), int(binary.BigEndian.Uint16(h[14:])), erfHeader
	if h[8]&erfMore != 0 {
		least += erfExtension
	}
	return binary.LittleEndian.Uint32(h[4:]) >= erfFirstSecond && typ > 0 && typ <= erfLastType && h[9]&erfReserved == 0 &&
		size > least && size%erfAlignment == 0 && wire > 0 && size <= wire+erfHeader+erfExtensions*erfExtension+2+erfAlignment
}

// erfFront is how many bytes of a record precede its frame.
func erfFront(record []byte) int {
	n := erfHeader
	for i := 0; i < erfExtensions && len(record) > n && (i == 0 && record[8]&erfMore != 0 || i > 0 && record[n-erfExtension]&erfMore != 0); i++ {
		n += erfExtension
	}
	switch record[8] &^ erfMore {
	case erfEthernet, erfColorEthernet, erfDSMEthernet, erfColorHashEthernet:
		n += 2
	}
	return min(n, len(record))
}

func (d *erfDecoder) ifaces() []Tap { return d.tap[:] }
func (d *erfDecoder) highest() int  { return 0 }

func (d *erfDecoder) decode(f *file, b *Batch, data []byte, pos int, eof bool) int {
	for len(data)-pos >= erfHeader {
		h := data[pos:]
		if !erfPlausible(h) {
			if !d.damaged {
				d.damaged, d.damage = true, f.base+int64(pos)
			}
			pos++
			continue
		}
		size := int(binary.BigEndian.Uint16(h[10:]))
		if whole := size + erfHeader; len(h) < whole && !eof {
			return pos
		} else if d.damaged && (size > len(h) || len(h) >= whole && !erfPlausible(h[size:])) { // not followed by another
			pos++
			continue
		}
		if size > len(h) {
			f.problem(f.count+1, f.base+int64(pos), f.cause(), "the record runs beyond the end of the file; %s", lostEnd(int64(len(h))))
			return len(data)
		}
		if d.damaged {
			f.problem(f.count+1, d.damage, nil, "no ERF record begins here; skipped %d bytes", f.base+int64(pos)-d.damage)
			d.damaged = false
		}
		f.count++
		fraction, _ := bits.Mul64(uint64(binary.LittleEndian.Uint32(h))<<32, 1e9)
		f.last = int64(binary.LittleEndian.Uint32(h[4:]))*1e9 + int64(fraction)
		wire := erfFront(h[:size]) + int(binary.BigEndian.Uint16(h[14:]))
		end := min(size, wire) // records are padded
		b.Packets = append(b.Packets, Packet{
			Time: f.last, Number: f.count, Offset: f.base + int64(pos), Length: uint32(wire), Link: LinkERF, Data: h[:end:end],
		})
		pos += size
	}
	if eof && (pos < len(data) || d.damaged) {
		if !d.damaged {
			d.damage = f.base + int64(pos)
		}
		f.problem(f.count+1, d.damage, f.cause(), "no ERF record begins here; %s", lostEnd(f.base+int64(len(data))-d.damage))
		return len(data)
	}
	return pos
}

func (d *erfDecoder) place(*Place) bool { return !d.damaged }

func (d *erfDecoder) goOn(*file, io.ReaderAt, *Place) error { return nil }
