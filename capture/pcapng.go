package capture

import (
	"encoding/binary"
	"math/bits"
)

// Block types (draft-ietf-opsawg-pcapng section 11.1).
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockPacket     = 2 // obsolete
	blockSimple     = 3
	blockNames      = 4
	blockStatistics = 5
	blockEnhanced   = 6
	blockJournal    = 9
	blockSecrets    = 10
	blockCustom     = 0x00000bad
	blockCustomKeep = 0x40000bad
)

const (
	byteOrderMagic = 0x1a2b3c4d

	blockOverhead  = 12 // type, length, and length again
	sectionMinimum = 28
	ifaceMinimum   = 20
	packetMinimum  = 32 // enhanced and obsolete packet blocks
	simpleMinimum  = 16

	maxInterfaces = 1 << 16 // of a section: what Packet.Tap can distinguish
	maxName       = 256     // bytes kept of an interface name
)

// ngDecoder reads pcapng.
type ngDecoder struct {
	max       uint32
	inSection bool
	big       bool // byte order of the section
	list      []iface
	known     []Tap
	top       int

	hunt hunt
}

// iface is an interface of the current section.
type iface struct {
	clock clock
	snap  uint32
	link  LinkType
	fcs   uint8
	bad   bool // its block is too short: keeps the numbering, nothing else
}

// newNgDecoder returns nil unless head starts with a section header.
func newNgDecoder(head []byte, lim limits) *ngDecoder {
	if len(head) < 4 || binary.LittleEndian.Uint32(head) != blockSection {
		return nil
	}
	return &ngDecoder{max: uint32(lim.maxRecord)}
}

func (d *ngDecoder) ifaces() []Tap { return d.known }
func (d *ngDecoder) highest() int  { return d.top }

func (d *ngDecoder) u32(p []byte) uint32 {
	v := binary.LittleEndian.Uint32(p)
	if d.big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func (d *ngDecoder) u16(p []byte) uint16 {
	v := binary.LittleEndian.Uint16(p)
	if d.big {
		v = bits.ReverseBytes16(v)
	}
	return v
}

// u64 reads the two halves of a timestamp, the upper one first.
func (d *ngDecoder) u64(p []byte) uint64 {
	return uint64(d.u32(p))<<32 | uint64(d.u32(p[4:]))
}

func (d *ngDecoder) decode(f *file, b *Batch, data []byte, pos int, eof bool) int {
	for {
		if d.hunt.on {
			pos = d.search(f, data, pos, eof)
			if d.hunt.on {
				return pos
			}
		}
		pos = d.plain(f, b, data, pos)
		left := len(data) - pos
		if left < blockOverhead {
			if !eof || left == 0 {
				return pos
			}
			d.lose(f, pos, true, "the last block is cut short in its header")
			continue
		}
		typ := d.u32(data[pos:])
		if typ == blockSection { // reads the same in both byte orders
			switch d.section(f, data, pos, eof) {
			case verdictWait:
				return pos
			case verdictBad:
				d.lose(f, pos, false, "the section header has no known byte order")
				continue
			}
		}
		length := d.u32(data[pos+4:])
		if length < blockOverhead || length > d.max {
			d.lose(f, pos, false, "the block length is out of range")
			continue
		}
		size := int(length)
		if size > left {
			if !eof {
				return pos
			}
			d.lose(f, pos, true, "the block runs beyond the end of the file")
			continue
		}
		if size&3 != 0 || d.u32(data[pos+size-4:]) != length {
			var v verdict
			var text string
			switch size, v, text = d.measure(data, pos, eof); v {
			case verdictWait:
				return pos
			case verdictBad:
				d.lose(f, pos, false, text)
				continue
			}
			f.problem(f.count+1, f.base+int64(pos), nil, "%s; used the first length", text)
		}
		d.block(f, b, data, pos, size, typ)
		pos += size
	}
}

// plain adds the enhanced packet blocks from pos on, as long as there is
// nothing unusual about them: the same as block does, only faster. It returns
// where it stopped.
func (d *ngDecoder) plain(f *file, b *Batch, data []byte, pos int) int {
	last := f.last
	for len(data)-pos >= packetMinimum {
		p := data[pos:]
		head := p[:28]
		size, id := d.u32(head[4:]), d.u32(head[8:])
		caplen, length := d.u32(head[20:]), d.u32(head[24:])
		if d.u32(head) != blockEnhanced || id >= uint32(len(d.list)) || caplen > d.max ||
			size != packetMinimum+(caplen+3)&^3 || size > d.max || int(size) > len(p) || d.u32(p[size-4:]) != size ||
			length < caplen || length > maxWireLength {
			break
		}
		i := &d.list[id]
		time, ok := i.clock.time(d.u64(head[12:]))
		if !ok || i.fcs != 0 || i.bad {
			break
		}
		end := 28 + int(caplen)
		f.count++
		last = time
		d.top = max(d.top, int(id))
		b.Packets = append(b.Packets, Packet{
			Time:   time,
			Number: f.count,
			Offset: f.base + int64(pos),
			Length: length,
			Tap:    uint16(id),
			Link:   i.link,
			Data:   p[28:end:end],
		})
		pos += int(size)
	}
	f.last = last
	return pos
}

// section learns the byte order of the section that begins at pos, and starts
// it.
func (d *ngDecoder) section(f *file, data []byte, pos int, eof bool) verdict {
	switch binary.LittleEndian.Uint32(data[pos+8:]) {
	case byteOrderMagic:
		d.big = false
	case bits.ReverseBytes32(byteOrderMagic):
		d.big = true
	default:
		// Damaged: the byte order in which the two lengths agree will do.
		le := binary.LittleEndian.Uint32(data[pos+4:])
		for _, n := range [2]uint32{le, bits.ReverseBytes32(le)} {
			if n < sectionMinimum || n > d.max || n&3 != 0 {
				continue
			}
			if int(n) > len(data)-pos {
				if eof {
					continue
				}
				return verdictWait
			}
			if binary.LittleEndian.Uint32(data[pos+int(n)-4:]) == le {
				d.big = n != le
				f.problem(f.at(), f.base+int64(pos), nil, "the byte-order magic is damaged; guessed from the block length")
				d.begin()
				return verdictGood
			}
		}
		return verdictBad
	}
	d.begin()
	return verdictGood
}

func (d *ngDecoder) begin() {
	d.inSection = true
	d.list = d.list[:0]
}

// measure finds the size of a block whose first length is odd or differs from
// its last one.
func (d *ngDecoder) measure(data []byte, pos int, eof bool) (int, verdict, string) {
	length := d.u32(data[pos+4:])
	size := int(length)
	text := "the two lengths of the block differ"
	if size&3 != 0 {
		text = "the block length is not a multiple of four"
		if d.u32(data[pos+size-4:]) == length { // written without padding
			return size, verdictGood, text
		}
		size = (size + 3) &^ 3
		if size > len(data)-pos {
			if !eof {
				return 0, verdictWait, ""
			}
			return 0, verdictBad, text
		}
		if d.u32(data[pos+size-4:]) == length { // padded, but the padding not counted
			return size, verdictGood, text
		}
	}
	next := pos + size
	if len(data)-next < blockOverhead {
		switch {
		case !eof:
			return 0, verdictWait, ""
		case next == len(data):
			return size, verdictGood, text
		}
		return 0, verdictBad, text
	}
	if !d.header(data[next:]) || d.swallows(data[pos:next]) {
		return 0, verdictBad, text
	}
	return size, verdictGood, text
}

// swallows reports whether a block, whose last length does not confirm the first, has another whole block in
// it: then the first length is wrong, though it happens to lead to the start of a block.
func (d *ngDecoder) swallows(p []byte) bool {
	switch d.u32(p) {
	case blockEnhanced, blockPacket:
		if len(p) >= packetMinimum && uint64(d.u32(p[20:]))+3 >= uint64(len(p)-packetMinimum) {
			return false // the captured length confirms it
		}
	}
	for i := blockOverhead; len(p)-i >= blockOverhead; i++ {
		if d.candidate(p, i, true) == verdictGood {
			return true
		}
	}
	return false
}

// header reports whether p, of at least blockOverhead bytes, starts like a block of a known type.
func (d *ngDecoder) header(p []byte) bool {
	typ, length := d.u32(p), d.u32(p[4:])
	var least uint32
	switch typ {
	case blockSection:
		switch binary.LittleEndian.Uint32(p[8:]) {
		case byteOrderMagic:
			length = binary.LittleEndian.Uint32(p[4:])
		case bits.ReverseBytes32(byteOrderMagic):
			length = binary.BigEndian.Uint32(p[4:])
		default:
			return false
		}
		least = sectionMinimum
	case blockInterface:
		least = ifaceMinimum
	case blockPacket, blockEnhanced:
		least = packetMinimum
	case blockSimple, blockNames:
		least = simpleMinimum
	case blockStatistics:
		least = 24
	case blockSecrets:
		least = 20
	case blockCustom, blockCustomKeep:
		least = 16
	case blockJournal:
		least = blockOverhead
	default:
		return false
	}
	return (d.inSection || typ == blockSection) && length >= least && length <= d.max && length&3 == 0
}

// block uses a block of size bytes at pos.
func (d *ngDecoder) block(f *file, b *Batch, data []byte, pos, size int, typ uint32) {
	body := data[pos+8 : pos+size-4]
	switch typ {
	case blockEnhanced:
		if len(body) < 20 {
			break
		}
		d.packet(f, b, body, pos, d.u32(body), d.u64(body[4:]), d.u32(body[12:]), d.u32(body[16:]))
		return
	case blockPacket:
		if len(body) < 20 {
			break
		}
		d.packet(f, b, body, pos, uint32(d.u16(body)), d.u64(body[4:]), d.u32(body[12:]), d.u32(body[16:]))
		return
	case blockSimple:
		if len(body) < 4 {
			break
		}
		d.simple(f, b, body, pos)
		return
	case blockInterface:
		d.iface(f, body, pos)
		return
	case blockCustom, blockCustomKeep, blockJournal:
		f.count++ // Wireshark numbers them, too
		return
	case blockSection:
		if len(body) < 16 {
			break
		}
		// The section length (body[8:16]) is useless: it is -1 in streams and the blocks tell the end as
		// well.
		if major := d.u16(body[4:]); major != 1 {
			f.problem(f.at(), f.base+int64(pos), nil, "pcapng version %d.%d is not known; reading it as 1.0", major, d.u16(body[6:]))
		}
		return
	default:
		return // not about packets
	}
	f.problem(f.at(), f.base+int64(pos), nil, "block of type %d is too short; skipped", typ)
}

// at returns the number to give for damage that is not in a packet: 0 before
// the first packet.
func (f *file) at() uint64 {
	if f.count == 0 {
		return 0
	}
	return f.count + 1
}

// packet adds the packet of an enhanced or obsolete packet block. Data starts
// at body[20:].
func (d *ngDecoder) packet(f *file, b *Batch, body []byte, pos int, id uint32, ticks uint64, caplen, length uint32) {
	if id >= uint32(len(d.list)) || d.list[id].bad {
		f.problem(f.count+1, f.base+int64(pos), nil, "the packet is of interface %d, which is not described; skipped", id)
		return
	}
	if uint64(caplen) > uint64(len(body)-20) {
		f.problem(f.count+1, f.base+int64(pos), nil, "captured length %d exceeds the block; skipped", caplen)
		return
	}
	i := &d.list[id]
	time, ok := i.clock.time(ticks)
	if !ok {
		f.problem(f.count+1, f.base+int64(pos), nil, "time %d is out of range", ticks)
	}
	fcs := uint32(i.fcs)
	if options := (int(caplen) + 3) &^ 3; options+20+4 <= len(body) {
		fcs = d.packetOptions(f, body[20+options:], pos, fcs)
	}
	d.add(f, b, body[20:20+caplen:20+caplen], pos, id, time, length, fcs)
}

// simple adds the packet of a simple packet block: the first interface, no
// time, and cut to the interface's snapshot length.
func (d *ngDecoder) simple(f *file, b *Batch, body []byte, pos int) {
	if len(d.list) == 0 || d.list[0].bad {
		f.problem(f.count+1, f.base+int64(pos), nil, "the packet is of interface 0, which is not described; skipped")
		return
	}
	i := &d.list[0]
	length := d.u32(body)
	caplen := length
	if i.snap != 0 {
		caplen = min(caplen, i.snap)
	}
	if room := uint32(len(body) - 4); caplen > room {
		f.problem(f.count+1, f.base+int64(pos), nil, "packet length %d exceeds the block; cut to %d", length, room)
		caplen = room
	}
	d.add(f, b, body[4:4+caplen:4+caplen], pos, 0, f.last, length, uint32(i.fcs))
}

func (d *ngDecoder) add(f *file, b *Batch, p []byte, pos int, id uint32, time int64, length, fcs uint32) {
	if n := uint32(len(p)); length < n || length > maxWireLength {
		f.problem(f.count+1, f.base+int64(pos), nil, "length on the wire %d does not fit the captured length %d; read as it is", length, n)
		length = n
	}
	if fcs != 0 {
		length -= min(fcs, length)
		if n := min(len(p), int(length)); n < len(p) {
			p = p[:n:n]
		}
	}
	f.count++
	f.last = time
	d.top = max(d.top, int(id))
	b.Packets = append(b.Packets, Packet{
		Time:   time,
		Number: f.count,
		Offset: f.base + int64(pos),
		Length: length,
		Tap:    uint16(id),
		Link:   d.list[id].link,
		Data:   p,
	})
}

// lose starts a hunt for the next block.
func (d *ngDecoder) lose(f *file, pos int, truncated bool, text string) {
	d.hunt = hunt{on: true, start: f.base + int64(pos), truncated: truncated, text: text}
}

// search continues with the hunt at pos. It returns where it stopped; the hunt is off if a block begins
// there.
func (d *ngDecoder) search(f *file, data []byte, pos int, eof bool) int {
	if f.base+int64(pos) == d.hunt.start { // known to be bad
		pos++
	}
	for ; len(data)-pos >= blockOverhead; pos++ {
		if n := d.u32(data[pos:]); n > blockSecrets && n&0xffff != 0x0d0a && n&0xffff != 0x0bad && d.inSection {
			continue // most of all bytes, quickly
		}
		v := d.candidate(data, pos, eof)
		if !d.inSection && v == verdictBad && (f.base+int64(pos))&3 == 0 {
			v = d.adopt(data, pos, eof)
		}
		switch v {
		case verdictGood:
			d.hunt.on = false
			f.problem(f.at(), d.hunt.start, nil, "%s; skipped %d bytes", d.hunt.text, f.base+int64(pos)-d.hunt.start)
			return pos
		case verdictWait:
			return pos
		}
	}
	if !eof {
		return pos
	}
	d.hunt.on = false
	var err error
	if d.hunt.truncated {
		err = f.cause()
	}
	f.problem(f.at(), d.hunt.start, err, "%s; %s", d.hunt.text, lostEnd(f.base+int64(len(data))-d.hunt.start))
	return len(data)
}

// adopt reports whether an interface description begins at pos, in either byte order. It stands in for a
// section header that is lost. It must be aligned: three bytes further, a small little-endian number reads as
// a big-endian one.
func (d *ngDecoder) adopt(data []byte, pos int, eof bool) verdict {
	for _, d.big = range [2]bool{false, true} {
		if d.u32(data[pos:]) != blockInterface {
			continue
		}
		d.inSection = true
		v := d.candidate(data, pos, eof)
		if v == verdictGood {
			return v
		}
		d.inSection = false
		if v == verdictWait {
			return v
		}
	}
	return verdictBad
}

// candidate reports whether a block that makes sense begins at pos: its type is known, its two lengths agree,
// and its fields fit.
func (d *ngDecoder) candidate(data []byte, pos int, eof bool) verdict {
	p := data[pos:]
	if !d.header(p) {
		return verdictBad
	}
	length := d.u32(p[4:])
	last := length
	switch typ := d.u32(p); typ {
	case blockSection: // may have another byte order
		length = binary.LittleEndian.Uint32(p[4:])
		last = length
		if binary.LittleEndian.Uint32(p[8:]) != byteOrderMagic {
			length = bits.ReverseBytes32(length)
		}
		if d.big {
			last = bits.ReverseBytes32(last)
		}
	case blockEnhanced, blockPacket:
		if len(p) < 28 {
			if eof {
				return verdictBad
			}
			return verdictWait
		}
		id := d.u32(p[8:])
		if typ == blockPacket {
			id = uint32(d.u16(p[8:]))
		}
		if id >= uint32(len(d.list)) || d.u32(p[20:]) > length-packetMinimum {
			return verdictBad
		}
	}
	if uint64(length) > uint64(len(p)) {
		if eof {
			return verdictBad
		}
		return verdictWait
	}
	if d.u32(p[length-4:]) != last {
		return verdictBad
	}
	return verdictGood
}
