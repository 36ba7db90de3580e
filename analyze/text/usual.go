package text

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/digits"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// prepared is a line of a procedure and two hosts as it is written, up to the latency. Left out are the time, the XID, the file
// and the latency: there are zeros and spaces in their places.
type prepared struct {
	procedure        *xdr.Procedure
	program, version uint32
	from             rdma.Side
	settled          *rdma.Connection // the connection, if it does not change
	ends             [2]netip.Addr
	width            int   // of all hosts at that time
	line             int   // width of the line
	xid, file, end   uint8 // where they are in text, and what is behind the file
	text             [128]byte
	more             [lineRoom - 128]byte // few lines have that much in front of the chunks
}

// place is how a file is written: its path as it is, or the short form of its handle, and spaces. Most of it is in a line of the cache.
type place struct {
	stamp uint64 // of the rpc.Place
	size  uint8  // of text; notKept if it has no room there, or something has to be escaped
	known bool   // it has a path
	first [54]byte
	rest  [64]byte
}

// notKept is the size of a text that a place does not have.
const notKept = 255

const (
	timeWidth = len("05:33:11.644754 ")
	noChunks  = len("- ") // in front of the latency
	lineRoom  = 256       // bytes of a line up to the latency
	// maxLine is how many bytes usual writes at most: a place is copied as a whole.
	maxLine = lineRoom + 128
)

// usual appends the line of a usual transaction as any does; false for all others. Usual is a call over RDMA without chunks
// and marks, listed with the time of day and without colors, about a file that fits.
func (s *Lister) usual(b []byte, v *rpc.View) ([]byte, bool) {
	tx := v.Tx
	if s.Color || s.Name != nil || s.Width < 0 || s.Clock.Format.Style != TimeOfDay || s.Clock.Format.Nano ||
		tx.State != transaction.Complete || tx.Retransmits|len(tx.Notes) != 0 || !tx.Chunkless() && !chunkless(tx) || v.Procedure == nil {
		return b, false
	}
	latency, size, ok := short(uint64(max(rdma.Between(tx.Call.First.Time, tx.Reply.Last.Time), 0)))
	f := v.File()
	if !ok || f == nil || f.Handle == nil {
		return b, false
	}
	p, k := s.place(v.Names, f.Handle), s.prepared(v)
	if p == nil || k == nil {
		return b, false
	}
	outcome := &success
	if !v.Succeeded() {
		if outcome = s.failure(v); outcome.size > statusWidth {
			return b, false
		}
	}
	at := len(b)
	if cap(b)-at < maxLine {
		b = slices.Grow(b, maxLine)
	}
	line := (*[maxLine]byte)(b[at : at+maxLine])
	k.copy(line)
	if !p.put(line[k.file:], int(k.end)-int(k.file), f) {
		return b, false
	}
	s.Clock.put((*[timeWidth]byte)(line[:]), tx.Call.First.Time)
	binary.BigEndian.PutUint64(line[k.xid:], digits.HexWord(tx.XID))
	end := line[k.end:] // a place may have been longer than its column
	binary.LittleEndian.PutUint16(end, '-'|' '<<8)
	binary.LittleEndian.PutUint64(end[noChunks:], latency)
	binary.LittleEndian.PutUint64(end[noChunks+size:], outcome.text)
	return b[:at+int(k.end)+noChunks+size+1+outcome.size], true
}

// chunkless reports of a transaction that does not say so by itself whether its messages were seen, and its call has no chunks.
func chunkless(tx *transaction.Transaction) bool {
	return tx.Call.Seen() && tx.Reply.Seen() && tx.Call.Transport && tx.Call.Header.Plain()
}

// outcome is a status as ShortStatus writes it, with a space before: up to seven characters, the first the lowest.
type outcome struct {
	status string
	size   int
	text   uint64
}

var success = outcome{size: 2, text: ' ' | 'o'<<8 | 'k'<<16}

// failure is the outcome of a transaction that did not succeed. The last failure is kept: most are the same.
func (s *Lister) failure(v *rpc.View) *outcome {
	k, status := &s.failed, v.Status()
	if status != "" && k.status == status && v.Usual() && v.Failed() {
		return k
	}
	short := ShortStatus(v)
	*k = outcome{size: len(short), text: ' '}
	if v.Usual() && v.Failed() {
		k.status = status
	}
	for i := range min(len(short), 7) {
		k.text |= uint64(short[i]) << (8*i + 8)
	}
	return k
}

// copy copies a line.
func (k *prepared) copy(line *[maxLine]byte) {
	*(*[128]byte)(line[:]) = k.text
	if k.end > 128 {
		copy(line[128:], k.more[:])
	}
}

// put writes what a transaction is about where there are so many spaces; false if that does not fit, or has to be escaped. Behind
// them it may write a part of what there is room for in a place.
func (p *place) put(d []byte, room int, f *rpc.File) bool {
	at := 0
	if p.known || len(f.Name) == 0 {
		p.copy(d)
		at = int(p.size)
	}
	if f.Name != nil {
		if p.known && at < room {
			d[at] = '/'
			at++
		}
		if at > room || !printable.Put(d[at:room], f.Name) {
			return false
		}
		at += len(f.Name)
	}
	if f.HasRange || f.To != nil {
		return at < room && putExtent(d[at:room], f)
	}
	return at < room
}

// copy copies what there is of the text. Most have only the first part, which is copied without a call.
func (p *place) copy(d []byte) {
	*(*[len(p.first)]byte)(d) = p.first
	if int(p.size) > len(p.first) {
		copy(d[len(p.first):], p.rest[:])
	}
}

// putExtent writes the range of a file, or its new name; false if that does not fit, or has to be escaped.
func putExtent(d []byte, f *rpc.File) bool {
	var space [64]byte
	extent := space[:0]
	switch {
	case f.To == nil:
		extent = appendRange(append(extent, ' '), f)
	case f.HasRange || len(f.To) > len(space)-4 || !printable.Plain(f.To):
		return false
	default:
		extent = append(append(extent, " -> "...), f.To...)
	}
	return len(extent) < len(d) && copy(d, extent) > 0
}

// place returns how a file is written; nil if that is not kept.
func (s *Lister) place(names *rpc.Names, handle []byte) *place {
	p := names.Place(handle)
	if p == nil {
		return nil
	}
	k := &s.places[uint(p.Slot)%rpc.Places]
	if k.stamp != p.Stamp {
		k.write(p, handle)
	}
	if k.size == notKept {
		return nil
	}
	return k
}

func (k *place) write(p *rpc.Place, handle []byte) {
	k.stamp, k.size, k.known = p.Stamp, notKept, len(p.Path) > 0
	var room [len(k.first) + len(k.rest)]byte
	for i := range room {
		room[i] = ' '
	}
	if !k.known {
		k.size = uint8(len(Handle(room[:0], handle)))
	} else if printable.Put(room[:], p.Path) {
		k.size = uint8(len(p.Path))
	}
	k.first, k.rest = [len(k.first)]byte(room[:]), [len(k.rest)]byte(room[len(k.first):])
}

// prepared returns the line; nil if it has less room for the file than each file gets, or the transaction is not one of RDMA.
func (s *Lister) prepared(v *rpc.View) *prepared {
	tx := v.Tx
	c := tx.Connection
	k := &s.kept[(4*uint(c.ID)+uint(tx.Procedure))%uint(len(s.kept))]
	if k.procedure == v.Procedure && k.program == tx.Program && k.version == tx.Version && k.from == tx.From && k.width == s.hosts.width && k.line == s.Width &&
		(k.settled == c && c.Settled || k.of(c)) {
		return k
	}
	if !v.Usual() && v.Args() == nil {
		return nil // it may be a COMPOUND
	}
	if _, compound := v.MinorVersion(); compound || c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
		return nil
	}
	hosts := s.hosts.pair(s.Name, tx.Client().Addr, tx.Server().Addr, c.ID)
	called := s.called(v)
	var room [lineRoom]byte
	l := line{b: room[:0]}
	l.pad(timeWidth)
	l.b, l.col = append(l.b, hosts.text...), l.col+hosts.columns
	xid := len(l.b)
	l.str("01234567 ")
	l.b, l.col = append(l.b, called.b...), l.col+called.col
	file := len(l.b)
	end := s.Width
	if end == 0 {
		end = defaultWidth
	}
	end -= 1 + statusWidth + latencyWidth + noChunks
	k.procedure = nil
	if file != l.col || end-1-l.col < leastFile || end >= lineRoom {
		return nil
	}
	l.pad(end)
	k.text, k.more = [128]byte(room[:]), [lineRoom - 128]byte(room[128:])
	k.procedure, k.program, k.version, k.from, k.ends = v.Procedure, tx.Program, tx.Version, tx.From, [2]netip.Addr{c.Ends[0].Addr, c.Ends[1].Addr}
	k.width, k.line, k.xid, k.file, k.end = s.hosts.width, s.Width, uint8(xid), uint8(file), uint8(end)
	if k.settled = nil; c.Settled {
		k.settled = c
	}
	return k
}

// of reports whether a line is of the hosts of a connection.
func (k *prepared) of(c *rdma.Connection) bool {
	return k.ends[0] == c.Ends[0].Addr && k.ends[1] == c.Ends[1].Addr && c.Fabric != rdma.TCP && c.Fabric != rdma.UDP
}

// scale is how durations of one range are written: as four digits of a multiple of what they are rounded to.
type scale struct {
	half    uint32 // of what they are rounded to, in ns
	inverse uint64 // 2^63 by that
	point   uint8  // digits behind the decimal point
	size    uint8  // bytes that the text takes
	unit    uint64 // the unit behind five bytes
}

// span is the scales of the durations that have the same number of bits: that of most, and from a limit on the next one. Scales
// differ by 10, so that there are never three.
type span struct {
	limit uint32
	below uint8 // of scales
}

const shortest, longest = 1000, 999_950_000 // durations that short takes, in ns; the last is too long

var scales, spans = func() (list [6]scale, spans [32]span) {
	limits := [...]uint32{10_000, 99_995, 999_950, 9_999_500, 99_995_000, longest}
	unit := uint32(1)
	for i := range list {
		x := &list[i]
		*x = scale{unit / 2, 1 << 63 / uint64(unit), uint8(3 - i%3), latencyWidth, 'm'<<40 | 's'<<48}
		if unit > 1 {
			x.inverse++
		}
		if i < 3 {
			x.size++ // µ has two bytes
			x.unit = 0xc2<<40 | 0xb5<<48 | 's'<<56
		}
		unit *= 10
	}
	for n := range spans {
		i := 0
		for i < len(limits)-1 && limits[i] <= 1<<n>>1 {
			i++
		}
		spans[n] = span{limits[i], uint8(i)}
	}
	return list, spans
}()

// short is a duration as duration writes it in latencyWidth columns: so many bytes, the first the lowest. ok is false for those that
// take less room or are longer. Which scale it has is calculated and not asked for: nobody could foresee the answers.
func short(d uint64) (text uint64, size int, ok bool) {
	if d-shortest >= longest-shortest {
		return 0, 0, false
	}
	s := &spans[bits.Len32(uint32(d))&31]
	above := (uint64(s.limit) - 1 - d) >> 63 // 1: the next scale
	x := &scales[(uint64(s.below)+above)%uint64(len(scales))]
	digit, _ := bits.Mul64(2*(d+uint64(x.half)), x.inverse)
	return digits.PointWord(uint32(digit), int(x.point)) | x.unit, int(x.size), true
}
