package capture

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
)

// Magic numbers of the classic format, as read in the writer's byte order.
const (
	magicMicro     = 0xa1b2c3d4 // microseconds
	magicNano      = 0xa1b23c4d // nanoseconds
	magicKuznetzov = 0xa1b2cd34 // Linux libpcap patched by Alexey Kuznetzov: longer record headers
	magicIxiaHW    = 0x1c0001ac // Ixia lcap, nanoseconds: longer file header
	magicIxiaSW    = 0x1c0001ab // Ixia lcap, microseconds
)

const (
	pcapFileHeader      = 24
	ixiaFileHeader      = pcapFileHeader + 4 // a count of all bytes that follow
	pcapRecordHeader    = 16
	kuznetzovHeader     = 24        // adds interface index, protocol, packet type, padding
	unlimitedSnapLen    = 256 << 10 // what libpcap takes for "no limit"
	maxWireLength       = 64 << 20  // no link has longer packets, offloads included
	secondsApart        = 7 * 86400 // records further apart are not believed to follow each other
	chainLength         = 3         // record headers that must follow each other to believe in the first
	linkFCSPresent      = 0x04000000
	linkFCSLengthShift  = 28
	linkFCSLengthInByte = 2 // the length is in units of 16 bits
)

// pcapDecoder reads the classic format (draft-ietf-opsawg-pcap).
type pcapDecoder struct {
	swap   bool // not little-endian
	header int  // size of the file header
	record int  // size of a record header
	scale  int64
	ticks  uint32 // fractions in a second

	started  bool
	order    lengthOrder
	fcs      uint32
	sane     uint32 // records above this length need a second look
	max      uint32
	lastSec  uint32
	haveLast bool
	tap      [1]Tap

	hunt hunt
}

// lengthOrder says in which order the two lengths of a record are.
type lengthOrder uint8

const (
	capturedFirst lengthOrder = iota
	capturedLast              // versions before 2.3
	smallerFirst              // version 2.3, of which both exist
)

// hunt is a search for the next good record after damage.
type hunt struct {
	on        bool
	start     int64  // offset of the damage
	truncated bool   // it is where the file ends, so it may be no damage
	text      string // what is wrong there
}

// pcapRecord is a record header in host order.
type pcapRecord struct {
	sec, frac      uint32
	caplen, length uint32
}

// newPcapDecoder returns nil unless head starts with a magic number.
func newPcapDecoder(head []byte, lim limits) *pcapDecoder {
	if len(head) < 4 {
		return nil
	}
	d := &pcapDecoder{header: pcapFileHeader, record: pcapRecordHeader, scale: 1000, ticks: 1e6, max: uint32(lim.maxRecord)}
	magic := binary.LittleEndian.Uint32(head)
	switch magic {
	case magicMicro, magicNano, magicKuznetzov, magicIxiaHW, magicIxiaSW:
	default:
		magic = bits.ReverseBytes32(magic)
		d.swap = true
	}
	switch magic {
	case magicMicro:
	case magicNano:
		d.scale, d.ticks = 1, 1e9
	case magicKuznetzov:
		d.record = kuznetzovHeader
	case magicIxiaHW:
		d.scale, d.ticks, d.header = 1, 1e9, ixiaFileHeader
	case magicIxiaSW:
		d.header = ixiaFileHeader
	default:
		return nil
	}
	return d
}

func (d *pcapDecoder) ifaces() []Tap { return d.tap[:] }
func (d *pcapDecoder) highest() int  { return 0 }

func (d *pcapDecoder) u32(p []byte) uint32 {
	v := binary.LittleEndian.Uint32(p)
	if d.swap {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func (d *pcapDecoder) u16(p []byte) uint16 {
	v := binary.LittleEndian.Uint16(p)
	if d.swap {
		v = bits.ReverseBytes16(v)
	}
	return v
}

// start reads the file header.
func (d *pcapDecoder) start(f *file, h []byte) {
	d.started = true
	major, minor := d.u16(h[4:]), d.u16(h[6:])
	if major != 2 {
		f.problem(0, f.base, nil, "pcap version %d.%d is not known; reading it as 2.4", major, minor)
	} else if minor < 3 {
		d.order = capturedLast
	} else if minor == 3 {
		d.order = smallerFirst
	}
	snap, link := d.u32(h[16:]), d.u32(h[20:])
	d.sane = unlimitedSnapLen
	if snap > d.sane && snap <= d.max { // 0 and huge values mean "no limit"
		d.sane = snap
	}
	d.sane = min(d.sane, d.max)
	if link&linkFCSPresent != 0 {
		d.fcs = link >> linkFCSLengthShift * linkFCSLengthInByte
	}
	d.tap[0] = Tap{Link: LinkType(link), SnapLen: snap}
}

// recordAt reads a record header.
func (d *pcapDecoder) recordAt(p []byte) pcapRecord {
	p = p[:16]
	r := pcapRecord{
		sec:    binary.LittleEndian.Uint32(p[0:]),
		frac:   binary.LittleEndian.Uint32(p[4:]),
		caplen: binary.LittleEndian.Uint32(p[8:]),
		length: binary.LittleEndian.Uint32(p[12:]),
	}
	if d.swap {
		r.sec = bits.ReverseBytes32(r.sec)
		r.frac = bits.ReverseBytes32(r.frac)
		r.caplen = bits.ReverseBytes32(r.caplen)
		r.length = bits.ReverseBytes32(r.length)
	}
	if d.order != capturedFirst && (d.order == capturedLast || r.caplen > r.length) {
		r.caplen, r.length = r.length, r.caplen
	}
	return r
}

// strict reports whether nothing about a header is odd.
func (d *pcapDecoder) strict(r *pcapRecord) bool {
	return r.caplen <= d.sane && r.caplen <= r.length && r.frac < d.ticks && r.length-1 < maxWireLength
}

// blank reports whether r is of a packet without any length, but not a row of zeros.
func (d *pcapDecoder) blank(r *pcapRecord) bool {
	return r.caplen == 0 && r.length == 0 && r.frac < d.ticks && r.sec != 0
}

func (d *pcapDecoder) decode(f *file, b *Batch, data []byte, pos int, eof bool) int {
	if !d.started {
		if len(data)-pos < d.header {
			if eof {
				f.problem(0, f.base+int64(len(data)), f.cause(), "the file header is cut short")
				return len(data)
			}
			return pos
		}
		d.start(f, data[pos:])
		pos += d.header
	}
	link := d.tap[0].Link
	for {
		pos = d.plain(f, b, data, pos)
		if d.hunt.on {
			pos = d.search(f, data, pos, eof)
			if d.hunt.on {
				return pos
			}
		}
		left := len(data) - pos
		if left < d.record {
			if !eof || left == 0 {
				return pos
			}
			d.lose(f, pos, true, "the last record is cut short in its header")
			continue
		}
		r := d.recordAt(data[pos:])
		outlier := false
		if !d.strict(&r) || d.haveLast && !near(r.sec, d.lastSec) {
			v, text := d.judge(data, pos, eof, &r)
			switch v {
			case verdictWait:
				return pos
			case verdictBad:
				d.lose(f, pos, false, text)
				continue
			case verdictOutlier:
				outlier = true
			}
			if text != "" {
				f.problem(f.count+1, f.base+int64(pos), nil, "%s (captured %d, on the wire %d, fraction %d); read as it is", text, r.caplen, r.length, r.frac)
			}
			if r.length < r.caplen || r.length > maxWireLength {
				r.length = r.caplen
			}
		}
		from := pos + d.record
		end := from + int(r.caplen)
		if end > len(data) {
			if !eof {
				return pos
			}
			d.lose(f, pos, true, "the record runs beyond the end of the file")
			continue
		}
		if d.fcs != 0 {
			r.length -= min(d.fcs, r.length)
			r.caplen = min(r.caplen, r.length)
		}
		f.count++
		f.last = int64(r.sec)*1e9 + int64(r.frac)*d.scale
		if !outlier {
			d.lastSec, d.haveLast = r.sec, true
		}
		cut := from + int(r.caplen)
		// In place: a Packet made elsewhere is copied in other pieces than it was written in, for which the processor waits.
		b.Packets = append(b.Packets, Packet{})
		p := &b.Packets[len(b.Packets)-1]
		p.Time, p.Number, p.Offset = f.last, f.count, f.base+int64(pos)
		p.Length, p.Link, p.Data = r.length, link, data[from:cut:cut]
		pos = end
	}
}

// plain reads the records from pos on that are as nearly all are, and returns where it stopped: where a record is
// unusual or damaged, or not there as a whole. It does what decode would do.
func (d *pcapDecoder) plain(f *file, b *Batch, data []byte, pos int) int {
	if d.swap || d.order != capturedFirst || d.record != pcapRecordHeader || d.fcs != 0 || d.hunt.on || !d.haveLast {
		return pos
	}
	for {
		b.Packets = slices.Grow(b.Packets, 1)
		had := len(b.Packets)
		room := b.Packets[had:cap(b.Packets)]
		n, size := d.run(room, data[pos:], f.count, f.base+int64(pos))
		b.Packets = b.Packets[:had+n]
		pos += size
		f.count += uint64(n)
		if n > 0 {
			f.last = room[n-1].Time
		}
		if n < len(room) {
			return pos
		}
	}
}

// run decodes the usual records at the start of data into room, and returns how many there are and how many bytes they take. Data is at
// offset in the file, and number records precede it. Room holds old packets, so run sets every field.
func (d *pcapDecoder) run(room []Packet, data []byte, number uint64, offset int64) (n, size int) {
	last, link, all := d.lastSec, d.tap[0].Link, len(data)
	for n < len(room) && len(data) >= pcapRecordHeader {
		h := data[:pcapRecordHeader]
		sec, frac := binary.LittleEndian.Uint32(h[0:]), binary.LittleEndian.Uint32(h[4:])
		caplen, length := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
		if caplen > d.sane || caplen > length || frac >= d.ticks || length-1 >= maxWireLength || !near(sec, last) { // see strict
			break
		}
		end := pcapRecordHeader + int(caplen)
		if end > len(data) {
			break
		}
		last = sec
		p := &room[n]
		n++
		p.Time, p.Number, p.Offset = int64(sec)*1e9+int64(frac)*d.scale, number+uint64(n), offset+int64(all-len(data))
		p.Length, p.Tap, p.Link, p.Segment = length, 0, link, 0
		p.Data = data[pcapRecordHeader:end:end]
		data = data[end:]
	}
	d.lastSec = last
	return n, all - len(data)
}

type verdict uint8

const (
	verdictGood    verdict = iota
	verdictOutlier         // good, but its time is far from those of its neighbours
	verdictBad             // not a record
	verdictWait            // more bytes are needed to tell
)

// judge decides about a suspicious record: it is accepted if another record begins where it ends. The text
// describes the anomaly if it is worth reporting; only then must the times agree as well, since the lengths
// may be wrong.
func (d *pcapDecoder) judge(data []byte, pos int, eof bool, r *pcapRecord) (verdict, string) {
	if r.caplen > d.max {
		return verdictBad, "the record is longer than the limit"
	}
	text := d.oddity(r)
	known := d.follows(r.sec, true)
	switch {
	case !known && *r == (pcapRecord{}):
		return verdictBad, "there are zeros instead of a record"
	case text != "" && (!known || r.frac >= nsPerSecond):
		return verdictBad, text
	}
	ok, outlier := false, !known
	next := pos + d.record + int(r.caplen)
	switch left := len(data) - next; {
	case left >= d.record:
		n := d.recordAt(data[next:])
		outlier = outlier && !near(n.sec, r.sec)
		ok = text == "" && (d.strict(&n) || d.blank(&n)) || known && d.tolerable(&n, r.sec)
	case !eof:
		return verdictWait, ""
	case left < 0:
		return verdictGood, "" // told by the caller
	default:
		ok = left == 0 || text == ""
	}
	switch {
	case ok && outlier:
		return verdictOutlier, text
	case ok:
		return verdictGood, text
	case text == "":
		return verdictBad, "the record does not end where another begins"
	}
	return verdictBad, text
}

// oddity describes an anomaly of a header that is worth reporting.
func (d *pcapDecoder) oddity(r *pcapRecord) string {
	switch {
	case r.caplen > r.length:
		return "the captured length exceeds the length on the wire"
	case r.frac >= d.ticks:
		return "the fraction of the time is a second or more"
	case r.length > maxWireLength:
		return "the length on the wire is absurd"
	}
	return ""
}

// tolerable reports whether n may be the record after one of time sec that is odd itself.
func (d *pcapDecoder) tolerable(n *pcapRecord, sec uint32) bool {
	return near(n.sec, sec) && n.caplen <= d.max && n.length <= maxWireLength && n.frac < nsPerSecond && *n != pcapRecord{}
}

// near reports whether two times are close enough for neighbouring records.
func near(a, b uint32) bool {
	return a-b < secondsApart || b-a < secondsApart
}

// lose starts a hunt for the next record.
func (d *pcapDecoder) lose(f *file, pos int, truncated bool, text string) {
	d.hunt = hunt{on: true, start: f.base + int64(pos), truncated: truncated, text: text}
}

// search continues with the hunt at pos. It returns where it stopped; the hunt is off if a record begins
// there.
//
// Each byte is examined once, and a look costs a few headers at most.
func (d *pcapDecoder) search(f *file, data []byte, pos int, eof bool) int {
	if f.base+int64(pos) == d.hunt.start { // known to be bad
		pos++
	}
	for ; len(data)-pos >= d.record; pos++ {
		if d.order == capturedFirst && d.u32(data[pos+8:]) > d.sane {
			continue // most of all bytes, quickly
		}
		switch d.chain(data, pos, eof) {
		case verdictGood:
			d.hunt.on = false
			f.problem(f.count+1, d.hunt.start, nil, "%s; skipped %d bytes", d.hunt.text, f.base+int64(pos)-d.hunt.start)
			return pos
		case verdictWait:
			return pos
		}
	}
	if !eof {
		return pos
	}
	d.hunt.on = false
	end := f.base + int64(len(data))
	var err error
	if d.hunt.truncated {
		err = f.cause()
	}
	f.problem(f.count+1, d.hunt.start, err, "%s; %s", d.hunt.text, lostEnd(end-d.hunt.start))
	return len(data)
}

// lostEnd says that the last n bytes of a file are lost.
func lostEnd(n int64) string {
	if n == 1 {
		return "the last byte is lost"
	}
	return "the last " + strconv.FormatInt(n, 10) + " bytes are lost"
}

// chain reports whether a plausible sequence of records begins at pos. It must be longer if its time does not
// follow what was read before; it may be shorter if the file ends and its time does follow.
func (d *pcapDecoder) chain(data []byte, pos int, eof bool) verdict {
	var last uint32
	need := chainLength
	for i := 0; i < need; i++ {
		left := len(data) - pos
		if left < d.record {
			switch {
			case !eof:
				return verdictWait
			case left == 0 && i > 0 && d.follows(last, i > 1):
				return verdictGood
			}
			return verdictBad
		}
		r := d.recordAt(data[pos:])
		if !d.strict(&r) || i > 0 && !near(r.sec, last) {
			return verdictBad
		}
		if last = r.sec; !d.follows(last, true) {
			need = 2 * chainLength
		}
		pos += d.record + int(r.caplen)
		if pos > len(data) && eof {
			if i > 0 && d.follows(last, true) {
				return verdictGood // the last record is cut short
			}
			return verdictBad
		}
	}
	return verdictGood
}

// follows reports whether a time follows what was read before; it returns other if nothing was.
func (d *pcapDecoder) follows(sec uint32, other bool) bool {
	if !d.haveLast {
		return other
	}
	return near(sec, d.lastSec)
}
