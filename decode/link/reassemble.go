package link

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"
)

// ReassemblerOptions bounds the memory of a Reassembler. A zero field selects the default.
type ReassemblerOptions struct {
	Datagrams int           // incomplete datagrams at a time; default 256
	Bytes     int           // bytes of memory for them; default 8 MiB
	Timeout   time.Duration // packet time from the first fragment on; default 30 s
}

// ReassemblerStats counts what became of fragments and datagrams.
type ReassemblerStats struct {
	Fragments  uint64 // given to Add
	Datagrams  uint64 // completed
	Overlaps   uint64 // fragments with bytes that had already arrived: repeated, or hostile
	Differing  uint64 // those among Overlaps that have other bytes
	Bad        uint64 // invalid fragments, and datagrams that they made unusable
	Incomplete uint64 // datagrams given up because of Timeout or by Flush; but not what repeats parts of a completed one
	EvictedOld uint64 // datagrams given up because of Timeout
	EvictedFor uint64 // datagrams given up to make room for others
}

const (
	// maxDatagram is the longest datagram with its header. IPv6 headers do not count in the length field, but
	// such a datagram does not justify a larger type.
	maxDatagram = 65535
	// maxHeader is the longest unfragmentable part; IPv4 has at most 60 bytes.
	maxHeader = 256
	// maxRanges is how many separate runs of bytes an incomplete datagram may have. Adjacent fragments form
	// one run; a 64 KiB datagram has 45 fragments at an MTU of 1500.
	maxRanges = 64
	// maxSpare is how many datagrams are kept for reuse, in addition to the limits of the options: 2 MiB at
	// most.
	maxSpare = 16
	// maxMade is how many completed datagrams are remembered.
	maxMade = 64
)

// Reassembler reassembles IP fragments. Its memory is bounded in every respect. Where fragments overlap, the
// bytes seen first win. It is not safe for concurrent use.
type Reassembler struct {
	options ReassemblerOptions
	stats   ReassemblerStats
	open    map[datagramKey]*datagram
	oldest  *datagram // list in order of the first fragment
	newest  *datagram
	bytes   int
	spare   []*datagram

	made   [maxMade]datagramKey // completed last
	madeAt uint8

	spareBytes int       // of spare
	done       *datagram // the one that out refers to
	out        Frame
}

// datagramKey identifies the fragments of one datagram: RFC 791 section 3.2, and without the protocol RFC
// 8200 section 4.5.
type datagramKey struct {
	src, dst netip.Addr
	id       uint32
	proto    uint8
	vlan     uint16
	tenant   uint64
}

// byteRange is a run of bytes that have arrived, [from, to) in the datagram's
// payload.
type byteRange struct{ from, to uint16 }

type datagram struct {
	key          datagramKey
	older, newer *datagram
	first        int64  // time of the first fragment
	buf          []byte // maxHeader bytes of room, then the payload
	head         int    // length of the header, right before the payload; 0 if not seen yet
	fragProto    uint8  // of the fragment with offset 0
	total        int    // length of the payload; -1 if not known yet
	captured     int    // payload bytes before the first one that the capture lacks
	ranges       []byteRange
	congested    bool
}

// NewReassembler makes a Reassembler.
func NewReassembler(o ReassemblerOptions) *Reassembler {
	if o.Datagrams <= 0 {
		o.Datagrams = 256
	}
	if o.Bytes <= 0 {
		o.Bytes = 8 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	return &Reassembler{options: o, open: make(map[datagramKey]*datagram)}
}

// Add takes a frame with the Proto Fragment that was captured at the given
// time, in nanoseconds. If that completes a datagram, the result is a frame
// with the whole of it, decoded as if it had come in one piece; it is valid
// until the next call. Else the result is nil. If it was the datagram of a tunnel
// that carries a fragment itself, the frame has the Proto Fragment again, for
// another Reassembler.
//
// If the capture cut a fragment, the rebuilt frame ends where bytes are
// missing, and its PayloadLen is as declared.
func (r *Reassembler) Add(f *Frame, now int64) *Frame {
	r.recycle()
	r.stats.Fragments++
	r.expire(now)
	if !usable(f) {
		r.stats.Bad++
		return nil
	}
	key := datagramKey{src: f.Src, dst: f.Dst, id: f.FragmentID, vlan: f.VLAN, tenant: f.Tenant()}
	if f.Src.Is4() {
		key.proto = f.FragmentProto
	}
	d := r.open[key]
	if d == nil {
		d = r.start(key, now)
	}
	from, to := int(f.FragmentOffset), int(f.FragmentOffset)+f.PayloadLen
	if !d.extend(to, !f.MoreFragments) {
		return r.spoiled(d)
	}
	if !r.grow(d, to) {
		r.stats.EvictedFor++
		r.drop(d)
		return nil
	}
	if from == 0 && d.head == 0 {
		d.setHeader(f)
	}
	d.congested = d.congested || f.ECN == 3
	if !d.insert(r, from, to, f.Payload) {
		return r.spoiled(d)
	}
	if !d.whole() {
		return nil
	}
	return r.complete(d, f)
}

// expire gives up the datagrams that have waited too long.
func (r *Reassembler) expire(now int64) {
	for r.oldest != nil && now-r.oldest.first > int64(r.options.Timeout) {
		r.stats.EvictedOld++
		r.lacking(r.oldest)
	}
}

// Flush gives up all datagrams that are incomplete.
func (r *Reassembler) Flush() {
	for r.oldest != nil {
		r.lacking(r.oldest)
	}
}

// lacking drops a datagram of which fragments have not come. Those of a datagram that is complete may come twice, and the last of the copies then begin
// it again.
func (r *Reassembler) lacking(d *datagram) {
	if !slices.Contains(r.made[:], d.key) {
		r.stats.Incomplete++
	}
	r.drop(d)
}

// usable reports whether a frame is a fragment that can be part of a datagram: in all but the last one the
// payload is a multiple of 8 bytes.
func usable(f *Frame) bool {
	n := f.PayloadLen
	return f.Proto == Fragment &&
		n > 0 && n <= maxDatagram && int(f.FragmentOffset)+n <= maxDatagram &&
		(!f.MoreFragments || n%8 == 0) &&
		len(f.Net) >= 20 && len(f.Net) <= maxHeader
}

// extend notes a fragment that ends at offset to, and reports whether that agrees with the others.
func (d *datagram) extend(to int, last bool) bool {
	if last {
		if d.total >= 0 && d.total != to {
			return false
		}
		d.total = to
	}
	return d.total < 0 || to <= d.total && (len(d.ranges) == 0 || int(d.ranges[len(d.ranges)-1].to) <= d.total)
}

// whole reports whether all fragments have arrived.
func (d *datagram) whole() bool {
	return d.total >= 0 && d.head != 0 && len(d.ranges) == 1 && d.ranges[0] == byteRange{0, uint16(d.total)}
}

// Stats returns the counts so far.
func (r *Reassembler) Stats() ReassemblerStats { return r.stats }

// Open is the number of incomplete datagrams.
func (r *Reassembler) Open() int { return len(r.open) }

func (r *Reassembler) start(key datagramKey, now int64) *datagram {
	for len(r.open) >= r.options.Datagrams {
		r.stats.EvictedFor++
		r.drop(r.oldest)
	}
	var d *datagram
	if n := len(r.spare); n > 0 {
		d = r.spare[n-1]
		r.spare = r.spare[:n-1]
		r.spareBytes -= datagramSize + cap(d.buf)
		if r.bytes+cap(d.buf) > r.options.Bytes {
			d.buf = nil
		}
	} else {
		d = new(datagram)
	}
	*d = datagram{key: key, first: now, total: -1, captured: maxDatagram, buf: d.buf, ranges: d.ranges[:0], older: r.newest}
	if r.newest != nil {
		r.newest.newer = d
	} else {
		r.oldest = d
	}
	r.newest = d
	r.open[key] = d
	r.bytes += cap(d.buf)
	return d
}

// unlink takes d out of the table and the list.
func (r *Reassembler) unlink(d *datagram) {
	delete(r.open, d.key)
	if d.older != nil {
		d.older.newer = d.newer
	} else {
		r.oldest = d.newer
	}
	if d.newer != nil {
		d.newer.older = d.older
	} else {
		r.newest = d.older
	}
	d.older, d.newer = nil, nil
	r.bytes -= cap(d.buf)
}

func (r *Reassembler) drop(d *datagram) {
	r.unlink(d)
	r.keep(d)
}

func (r *Reassembler) keep(d *datagram) {
	if len(r.spare) < maxSpare {
		r.spare = append(r.spare, d)
		r.spareBytes += datagramSize + cap(d.buf)
	}
}

// spoiled drops a datagram whose fragments contradict each other.
func (r *Reassembler) spoiled(d *datagram) *Frame {
	r.stats.Bad++
	r.drop(d)
	return nil
}

func (r *Reassembler) recycle() {
	if r.done != nil {
		r.keep(r.done)
		r.done = nil
		r.out = Frame{Tunnels: r.out.Tunnels[:0]}
	}
}

// grow makes room for payload up to the offset to, evicting older datagrams if necessary.
func (r *Reassembler) grow(d *datagram, to int) bool {
	if need := maxHeader + to; need > cap(d.buf) {
		size := 4096
		for size < need {
			size *= 2
		}
		for r.bytes+size-cap(d.buf) > r.options.Bytes {
			victim := r.oldest
			if victim == d {
				victim = d.newer
			}
			if victim == nil {
				return false
			}
			r.stats.EvictedFor++
			r.drop(victim)
		}
		buf := make([]byte, size)
		copy(buf, d.buf[:cap(d.buf)])
		r.bytes += size - cap(d.buf)
		d.buf = buf
	}
	d.buf = d.buf[:cap(d.buf)]
	return true
}

// setHeader keeps the header of the first fragment, which is the header of the datagram.
func (d *datagram) setHeader(f *Frame) {
	header := f.Net
	if f.Src.Is6() {
		header = header[:len(header)-8] // without the fragment header
	}
	d.head = copy(d.buf[maxHeader-len(header):maxHeader], header)
	d.fragProto = f.FragmentProto
}

// insert copies the new part of [from, to) and reports whether it could be kept. p is the captured part.
func (d *datagram) insert(r *Reassembler, from, to int, p []byte) bool {
	// The ranges are sorted and not adjacent. [i, j) are those that touch or overlap the new one; they are
	// merged with it.
	i := 0
	for i < len(d.ranges) && int(d.ranges[i].to) < from {
		i++
	}
	at, j, overlap, differs := from, i, false, false
	for ; j < len(d.ranges) && int(d.ranges[j].from) <= to; j++ {
		d.fill(at, min(to, int(d.ranges[j].from)), from, p)
		if lo, hi := max(from, int(d.ranges[j].from)), min(to, int(d.ranges[j].to)); lo < hi {
			overlap = true
			differs = differs || d.differs(lo, hi, from, p)
		}
		at = max(at, int(d.ranges[j].to))
	}
	d.fill(at, to, from, p)
	if overlap {
		r.stats.Overlaps++
	}
	if differs {
		r.stats.Differing++
	}
	merged := byteRange{uint16(from), uint16(to)}
	if j > i {
		merged.from = min(merged.from, d.ranges[i].from)
		merged.to = max(merged.to, d.ranges[j-1].to)
		d.ranges[i] = merged
		d.ranges = append(d.ranges[:i+1], d.ranges[j:]...)
		return true
	}
	if len(d.ranges) == maxRanges {
		return false
	}
	d.ranges = append(d.ranges, merged)
	copy(d.ranges[i+1:], d.ranges[i:])
	d.ranges[i] = merged
	return true
}

// differs reports whether other bytes of [a, b) have arrived than those of p, which starts at from, as far as both were captured.
func (d *datagram) differs(a, b, from int, p []byte) bool {
	b = min(b, from+len(p), d.captured)
	return a < b && !bytes.Equal(d.buf[maxHeader+a:maxHeader+b], p[a-from:b-from])
}

// fill copies [a, b) of the datagram from p, which starts at from.
func (d *datagram) fill(a, b, from int, p []byte) {
	if a >= b {
		return
	}
	got := min(b, from+len(p))
	if got > a {
		copy(d.buf[maxHeader+a:], p[a-from:got-from])
	}
	if got < b {
		d.captured = min(d.captured, max(a, got))
	}
}

// complete decodes the datagram. Its length fields are set to what they would be in one piece, so that Net is
// as the sender made it before fragmentation, except for the IPv4 header checksum.
func (r *Reassembler) complete(d *datagram, last *Frame) *Frame {
	r.unlink(d)
	r.done = d
	packet := d.buf[maxHeader-d.head:]
	captured := d.head + min(d.captured, d.total)
	n := d.head + d.total
	r.out = Frame{VLAN: last.VLAN, Priority: last.Priority, Tunnels: append(r.out.Tunnels[:0], last.Tunnels...)}
	if last.Src.Is4() {
		if n > maxDatagram {
			r.stats.Bad++
			return nil
		}
		binary.BigEndian.PutUint16(packet[2:], uint16(n))
		packet[6] &= 0x40 // all that stays is "don't fragment"
		packet[7] = 0
		r.out.decode(decodeIPv4, packet[:captured:captured], n)
	} else {
		if n-40 > maxDatagram || !unfragment(packet[:d.head], d.fragProto) {
			r.stats.Bad++
			return nil
		}
		binary.BigEndian.PutUint16(packet[4:], uint16(n-40))
		r.out.decode(decodeIPv6, packet[:captured:captured], n)
	}
	same := len(r.out.Tunnels) == len(last.Tunnels) // else this was the datagram of a tunnel
	if r.out.Proto == Fragment && same {
		r.out = Frame{Src: r.out.Src, Dst: r.out.Dst, Problem: ProblemNestedFragment, Tunnels: r.out.Tunnels}
	}
	if d.congested && same {
		r.out.ECN = 3 // RFC 3168 section 5.3
	}
	r.stats.Datagrams++
	r.made[r.madeAt] = d.key
	r.madeAt = (r.madeAt + 1) % maxMade
	return &r.out
}

// unfragment replaces the "next header" value that announced the fragment
// header, at the end of the unfragmentable part of an IPv6 packet.
func unfragment(header []byte, proto uint8) bool {
	at, next := 6, 40 // of the value, and of the header that it announces
	for next < len(header) {
		if next+2 > len(header) {
			return false
		}
		switch header[at] {
		case ipAuth:
			at, next = next, next+8+int(header[next+1])*4
		case ipFragment: // an atomic fragment before a real one
			at, next = next, next+8
		default:
			at, next = next, next+8+int(header[next+1])*8
		}
	}
	if next != len(header) || header[at] != ipFragment {
		return false
	}
	header[at] = proto
	return true
}
