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
	kind             uint64 // see Lister.kind; 0: no COMPOUND
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
	plain bool   // nothing has to be escaped
	// The text. It is in two arrays, since the compiler copies arrays without a call only as a whole.
	first [53]byte
	rest  [64]byte
}

// notKept is the size of a text that a place does not have.
const notKept = 255

const (
	timeWidth = len("05:33:11.644754 ")
	maxChunks = 64  // bytes
	lineRoom  = 256 // bytes of a line up to the latency
	// maxLine is how many bytes usual writes at most: a place is copied as a whole.
	maxLine = lineRoom + 128
)

// hasPlace reports whether a transaction is about a file that has a rpc.Place.
func hasPlace(f *rpc.File) bool { return f != nil && f.Handle != nil && !f.Unnamed }

// usual appends the line of a usual transaction as any does; false for all others. Usual is a call without marks, listed with
// the time of day and without colors, about a file that needs no escapes.
func (s *Lister) usual(b []byte, v *rpc.View) ([]byte, bool) {
	tx := v.Tx
	if s.Color || s.Name != nil || s.Width < 0 || s.Clock.Format.Style != TimeOfDay || s.Clock.Format.Nano ||
		tx.State != transaction.Complete || tx.Retransmits|len(tx.Notes) != 0 || v.Procedure == nil {
		return b, false
	}
	from, to := tx.Call.First.Time, tx.Reply.Last.Time
	latency, size, ok := short(uint64(to - from))
	f := v.File()
	if to < from || !ok || !hasPlace(f) {
		return b, false
	}
	where := v.Names.Of(tx).Place(f.Handle)
	if where == nil {
		return b, false
	}
	p := &s.places[uint(where.Slot)%rpc.Places]
	if p.stamp != where.Stamp {
		p.write(where, f.Handle)
	}
	k := s.prepared(v)
	if k == nil {
		return b, false
	}
	chunks := noChunks
	if !tx.Chunkless() {
		if chunks, ok = s.offered(tx); !ok {
			return b, false
		}
	}
	outcome := &success
	if !v.Succeeded() {
		if outcome = s.failure(v); outcome.size > 1+statusWidth {
			return b, false
		}
	}
	at := len(b)
	if cap(b)-at < maxLine {
		b = slices.Grow(b, maxLine)
	}
	line := (*[maxLine]byte)(b[at : at+maxLine])
	k.copy(line)
	end := int(k.end) + 1 - len(chunks)
	if end-1-int(k.file) < leastFile {
		return b[:at], false
	}
	if !p.put(line[k.file:], end-int(k.file), f) {
		if !s.cut(line[k.file:], end-1-int(k.file), p, where.Path, f) {
			return b[:at], false
		}
		end += len(ellipsis) - 1
		line[end-1] = ' '
	}
	s.Clock.put((*[timeWidth]byte)(line[:]), from)
	binary.BigEndian.PutUint64(line[k.xid:], digits.HexWord(tx.XID))
	if len(chunks) == 1 {
		line[end] = chunks[0]
	} else {
		copy(line[end:], chunks)
	}
	end += len(chunks)
	behind := (*[maxLine - lineRoom - maxChunks]byte)(line[end:]) // a place may have been longer than its column
	behind[0] = ' '
	binary.LittleEndian.PutUint64(behind[1:], latency)
	binary.LittleEndian.PutUint64(behind[(1+size)&15:], outcome.text)
	return b[:at+end+1+size+outcome.size], true
}

var noChunks = []byte("-")

// offered returns the chunks of a call that offers some, as Chunks writes them; false if that is long, or a message was not seen.
func (s *Lister) offered(tx *transaction.Transaction) ([]byte, bool) {
	if !tx.Call.Seen() || !tx.Reply.Seen() {
		return nil, false
	}
	s.chunks = Chunks(s.chunks[:0], tx)
	return s.chunks, len(s.chunks) <= maxChunks
}

// outcome is a status as ShortStatus writes it, with a space before: up to seven characters, the first the lowest.
type outcome struct {
	status string
	size   int // with the space
	text   uint64
}

var success = outcome{size: 1 + 2, text: ' ' | 'o'<<8 | 'k'<<16}

// failure is the outcome of a transaction that did not succeed. The last failure is kept: most are the same.
func (s *Lister) failure(v *rpc.View) *outcome {
	k, status := &s.failed, v.Status()
	if status != "" && k.status == status && v.Usual() && v.Failed() {
		return k
	}
	short := ShortStatus(v)
	*k = outcome{size: 1 + len(short), text: ' '}
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
	at := int(p.size)
	switch {
	case at == notKept || at >= room:
		return false
	case f.Name == nil:
		p.copy(d)
	default:
		if at = p.named(d, room, f.Name); at >= room {
			return false
		}
	}
	if f.HasRange || f.To != nil {
		return putExtent(d[at:room], f)
	}
	return true
}

// named writes a name in a directory, and returns how much room it takes; all if it does not fit, or has to be escaped.
func (p *place) named(d []byte, room int, name []byte) int {
	at := 0
	if p.known || len(name) == 0 {
		p.copy(d)
		at = int(p.size)
	}
	if p.known {
		d[at] = '/'
		at++
	}
	if end := at + len(name); end < room && printable.Put(d[at:room], name) {
		return end
	}
	return room
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

// cutRoom is how many columns cut leaves at most.
const cutRoom = 64

// cut writes what a transaction is about as subject does if it has to be shortened to so many columns; false if it has to be
// escaped, or does not fit.
func (s *Lister) cut(d []byte, limit int, p *place, path []byte, f *rpc.File) bool {
	if !p.plain || f.HasRange && f.To != nil {
		return false
	}
	var extent []byte
	if f.HasRange {
		s.path = appendRange(append(s.path[:0], ' '), f)
		extent = s.path
		if limit -= len(extent); limit < 8 {
			return false
		}
	}
	if limit > cutRoom {
		return false
	}
	head, tail := sides(limit)
	name, kept := f.Name, p.size != notKept
	if len(path) < head || f.To != nil {
		var ok bool
		if path, ok = s.compose(path, f); !ok {
			return false
		}
		name, kept = nil, false
	}
	n := len(path)
	if name != nil {
		n += 1 + len(name)
	}
	if n <= limit {
		return false
	}
	line := (*[cutRoom + len(ellipsis)]byte)(d)
	if kept {
		first := [cutRoom / 2]byte(p.first[:]) // else the compiler would take care of arrays that overlap
		*(*[cutRoom / 2]byte)(line[:]) = first
	} else {
		copy(line[:], path[:head])
	}
	binary.LittleEndian.PutUint32(line[head:], ellipsisWord)
	rest, from := line[head+len(ellipsis):], n-tail
	switch {
	case name == nil:
		copy(rest, path[from:])
	case from <= len(path):
		at := copy(rest, path[from:])
		rest[at] = '/'
		if !printable.Put(rest[at+1:], name) {
			return false
		}
	case printable.Plain(name):
		copy(rest, name[len(name)-tail:])
	default:
		return false
	}
	if len(extent) > 0 {
		copy(d[limit-1+len(ellipsis):], extent)
	}
	return true
}

// ellipsisWord is the ellipsis, the first byte the lowest, and a byte that is overwritten.
const ellipsisWord = 0xe2 | 0x80<<8 | 0xa6<<16

// compose puts together what cut shortens; false if it has to be escaped, or is long.
func (s *Lister) compose(path []byte, f *rpc.File) ([]byte, bool) {
	b := append(s.whole[:0], path...)
	if len(b) > 0 && f.Name != nil {
		b = append(b, '/')
	}
	b = append(b, f.Name...)
	if f.To != nil {
		b = append(append(b, " -> "...), f.To...)
	}
	return b, len(path)+len(f.Name) > 0 && len(b) <= len(s.whole) && printable.Plain(b[len(path):])
}

// write writes a file that was not written yet.
func (k *place) write(p *rpc.Place, handle []byte) {
	k.stamp, k.size, k.known = p.Stamp, notKept, len(p.Path) > 0
	room := placeBlanks
	if !k.known {
		k.size, k.plain = uint8(len(Handle(room[:0], handle))), true
	} else if k.plain = printable.Plain(p.Path); k.plain && len(p.Path) <= len(room) {
		k.size = uint8(copy(room[:], p.Path))
	}
	k.first, k.rest = [len(k.first)]byte(room[:]), [len(k.rest)]byte(room[len(k.first):])
}

var placeBlanks = [len(place{}.first) + len(place{}.rest)]byte([]byte(blanks + blanks))

// prepared returns the line; nil if it has less room for the file than each file gets.
func (s *Lister) prepared(v *rpc.View) *prepared {
	tx := v.Tx
	c := tx.Connection
	slot, kind := tx.Procedure, uint64(0)
	if v.Compound() {
		if slot, kind = s.kind(v); kind == 0 {
			return nil
		}
	}
	k := &s.kept[(4*uint(c.ID)+uint(slot))%uint(len(s.kept))]
	if k.procedure == v.Procedure && k.kind == kind && (k.program^tx.Program)|(k.version^tx.Version) == 0 && k.from == tx.From && (k.width^s.hosts.width)|(k.line^s.Width) == 0 &&
		(k.settled == c && c.Settled || k.of(c)) {
		return k
	}
	if kind == 0 && !v.Usual() && v.Args() == nil {
		return nil // it may be a COMPOUND
	}
	return s.prepare(k, v, kind)
}

// kind identifies what the line of a COMPOUND shows of its operations, and says where it is kept; 0 if nothing does.
func (s *Lister) kind(v *rpc.View) (slot uint32, kind uint64) {
	if shape := v.Shape(); shape != 0 {
		return 7 * uint32(shape), shape | 1<<63
	}
	if list := s.kinds.Of(v); list != nil {
		return 7 * uint32(list.Slot), list.Stamp
	}
	return 0, 0
}

// prepare makes a line.
func (s *Lister) prepare(k *prepared, v *rpc.View, kind uint64) *prepared {
	tx := v.Tx
	c := tx.Connection
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
	end -= 1 + statusWidth + latencyWidth + len("- ")
	k.procedure = nil
	if file != l.col || end-1-l.col < leastFile || end >= lineRoom {
		return nil
	}
	l.pad(end)
	k.text, k.more = [128]byte(room[:]), [lineRoom - 128]byte(room[128:])
	k.procedure, k.kind, k.program, k.version, k.from, k.ends = v.Procedure, kind, tx.Program, tx.Version, tx.From, [2]netip.Addr{c.Ends[0].Addr, c.Ends[1].Addr}
	k.width, k.line, k.xid, k.file, k.end = s.hosts.width, s.Width, uint8(xid), uint8(file), uint8(end)
	if k.settled = nil; c.Settled {
		k.settled = c
	}
	return k
}

// of reports whether a line is of the hosts of a connection.
func (k *prepared) of(c *rdma.Connection) bool {
	return k.ends[0] == c.Ends[0].Addr && k.ends[1] == c.Ends[1].Addr
}

// scale is how durations of one range are written: as four digits of a multiple of what they are rounded to.
type scale struct {
	half    uint32 // of what they are rounded to, in ns
	whole   uint8  // bits of the digits before the decimal point
	size    uint8  // bytes that the text takes
	inverse uint64 // 2^63 by what they are rounded to
	rest    uint64 // the point, and the unit behind five bytes
}

// span is the scales of the durations that have the same number of bits: that of most, and from a limit on the next one. Scales
// differ by 10, so that there are never three.
type span struct {
	limit uint32
	below uint8 // of scales
}

const shortest, longest = 1000, 999_950_000 // durations that short takes, in ns; the last is too long

var scales, spans = func() (list [8]scale, spans [32]span) {
	limits := [...]uint32{10_000, 99_995, 999_950, 9_999_500, 99_995_000, longest}
	unit := uint32(1)
	for i := range limits {
		x := &list[i]
		*x = scale{half: unit / 2, inverse: 1 << 63 / uint64(unit), whole: uint8(8 * (1 + i%3)), size: latencyWidth, rest: 'm'<<40 | 's'<<48}
		if unit > 1 {
			x.inverse++
		}
		if i < 3 {
			x.size++ // µ has two bytes
			x.rest = 0xc2<<40 | 0xb5<<48 | 's'<<56
		}
		x.rest |= '.' << x.whole
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
	x := &scales[(uint64(s.below)+above)&7]
	v, _ := bits.Mul64(2*(d+uint64(x.half)), x.inverse)
	high := v * 5243 >> 19 // by 100
	pair := high | (v-100*high)<<16
	tens := pair * 103 >> 10 & 0x000f_000f
	four := tens | (pair-10*tens)<<8 | '0'*0x01010101
	return four&(1<<(x.whole&63)-1) | four>>(x.whole&63)<<((x.whole+8)&63) | x.rest, int(x.size), true
}
