package oncrpc

import (
	"bytes"
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Record marking (RFC 5531, section 11): over TCP a message is a record of one
// or more fragments. Each starts with a word whose high bit says "last" and
// whose other bits are the fragment's length in bytes.
const (
	markSize     = 4
	lastFragment = 0x80000000
)

// DefaultRecordLimit is how many bytes of a record are kept unless
// RecordParser.Limit says otherwise.
const DefaultRecordLimit = 4 << 20

// maxRecord is the longest record in bytes that is believed while the parser
// looks for the start of one. The largest that servers accept are a few MiB.
const maxRecord = 64 << 20

// AppendRecord appends a message as a record of one fragment.
func AppendRecord(b, msg []byte) []byte {
	b = xdr.AppendUint32(b, lastFragment|uint32(len(msg)))
	return append(b, msg...)
}

// Record is an RPC message found in a TCP stream. It is valid during the call
// that delivers it.
type Record struct {
	// Data is the start of the message: all that was captured before the
	// first hole and within the limit.
	Data []byte
	// Length is the size of the message in bytes. If Broken is set, it is only the known part, which may be there as a whole.
	Length int
	// Claimed is what the record's mark says of its size, if that is not true: a record that the peer has answered lies within.
	Claimed int
	// Broken says that the end of the record was not seen.
	Broken bool
	// Start and End delimit the record in the stream, marks included.
	Start, End uint64
	// First and Last are the packets of the record with the lowest and the
	// highest number.
	First, Last rdma.Ref
	Packets     int
	Fragments   int
	Parts       []rdma.Part // its packets, if RecordParser.Trace is set
}

// RecordParser finds the records in one direction of a TCP connection. It is fed with the stream in order by
// Data and Skip; the zero value with a Deliver function is ready for the start of a stream, or for any place
// in it.
//
// While it does not know where a record starts it looks for a record mark with a plausible RPC header after
// it, first where a segment starts.
type RecordParser struct {
	// Limit is how many bytes of a record are kept; 0 means
	// DefaultRecordLimit. The rest of a longer record is skipped.
	Limit int
	// Deliver receives the records.
	Deliver func(*Record)
	// Trace fills Record.Parts.
	Trace bool
	// Lost counts how often the parser lost track of the records, Skipped the
	// bytes that it passed over while it looked for one.
	Lost, Skipped uint64
	// Given counts what follows a record and is not a record, since its mark or its header is invalid, with the bytes up to the next
	// record. What the capture lacks is not counted.
	Given rdma.Given
	// Sealed counts the bytes from where TLS begins (RFC 9289). Alert counts an alert in plain text, which refuses TLS: its
	// Offset is the description (RFC 8446, section 6).
	Sealed, Alert rdma.Given

	off      uint64 // of the next byte in the stream
	synced   bool
	followed bool // a record has ended where the open one starts
	astray   bool // what is passed over belongs to Given
	sealed   bool // the rest of the stream is TLS
	tls      tlsReader
	open     bool // rec holds a record whose end has not come yet

	mark     [markSize]byte
	markLen  int
	need     uint32 // bytes of the fragment still to come
	last     bool   // of the record
	hole     bool   // the record has one: nothing more is added to Data
	verified bool   // the record starts with an RPC header
	ready    rdma.Ref
	strict   bool // the start of the record is a guess

	// See suspect.go.
	suspects []suspect
	pieces   []piece
	released released

	rec   Record
	buf   []byte      // memory of Data
	parts []rdma.Part // and of Parts
}

// Offset is the place in the stream of the byte that comes next.
func (p *RecordParser) Offset() uint64 { return p.off }

// Synced reports whether the parser knows where in a record it is.
func (p *RecordParser) Synced() bool { return p.synced }

// Open returns the offset where a record starts whose end has not come yet.
func (p *RecordParser) Open() (start uint64, open bool) { return p.rec.Start, p.open }

// Restart forgets the stream for another one.
func (p *RecordParser) Restart() {
	p.End()
	p.lose()
	p.off, p.synced, p.followed, p.astray, p.sealed, p.tls = 0, false, false, false, false, tlsReader{}
}

// Data consumes the next bytes of the stream. b ought to start where the
// payload of a TCP segment starts, or where its first new byte is.
func (p *RecordParser) Data(b []byte, ref rdma.Ref) { p.data(b, ref, ref) }

// data is Data for bytes that could be read only from the packet ready on.
func (p *RecordParser) data(b []byte, ref, ready rdma.Ref) {
	p.ready = ready
	if p.need > 0 {
		p.suspicious(b, ref)
	}
	counted := false
	for len(b) > 0 {
		if !p.synced {
			if p.sealed {
				p.alert(b, ref)
				p.off += uint64(len(b))
				p.Sealed.Bytes += uint64(len(b))
				return
			}
			n := findRecord(b)
			p.strict = n == len(b) && mayStart(b)
			if p.strict {
				n = 0
			}
			p.off += uint64(n)
			p.Skipped += uint64(n)
			if p.astray {
				p.Given.Bytes += uint64(n)
			}
			if b = b[n:]; len(b) == 0 {
				return
			}
			p.synced, p.astray = true, p.astray && p.strict
			counted = false
		}
		if p.need == 0 {
			b = p.readMark(b, ref, &counted)
			continue
		}
		p.count(ref, &counted)
		if p.Trace {
			p.carried(ref, int(min(uint64(len(b)), uint64(p.need))))
		}
		b = p.read(b)
	}
}

// carried notes that a packet holds n bytes of the open record.
func (p *RecordParser) carried(ref rdma.Ref, n int) {
	if i := len(p.parts) - 1; i >= 0 && p.parts[i].Ref.Number == ref.Number {
		p.parts[i].Bytes += uint32(n)
	}
}

// count notes that a packet holds a part of the open record.
func (p *RecordParser) count(ref rdma.Ref, counted *bool) {
	if *counted {
		return
	}
	*counted = true
	if p.Trace {
		p.parts = rdma.AddPart(p.parts, rdma.Part{Ref: ref, Header: rdma.Header{Kind: rdma.HeaderTCP}})
	}
	p.rec.Packets++
	if ref.Number < p.rec.First.Number {
		p.rec.First = ref
	}
	if last := later(ref, p.ready); last.Number > p.rec.Last.Number {
		p.rec.Last = last
	}
}

// readMark consumes bytes of a record mark.
func (p *RecordParser) readMark(b []byte, ref rdma.Ref, counted *bool) []byte {
	if !p.open {
		buf := p.buf[:0]
		p.parts = p.parts[:0]
		p.rec = Record{Start: p.off, First: ref, Last: ref}
		p.buf, p.open, p.hole, p.verified = buf, true, false, false
		p.suspects, p.pieces = p.suspects[:0], p.pieces[:0]
		*counted = false
	}
	p.count(ref, counted)
	n := copy(p.mark[p.markLen:], b)
	p.carried(ref, n)
	p.markLen += n
	p.off += uint64(n)
	if p.markLen < markSize {
		return nil
	}
	p.markLen = 0
	m := binary.BigEndian.Uint32(p.mark[:])
	p.last = m&lastFragment != 0
	p.need = m &^ lastFragment
	p.rec.Fragments++
	p.rec.Length += int(p.need)
	if p.rec.Length > maxRecord || p.need == 0 && (p.last && p.rec.Length == 0 || p.rec.Fragments > maxEmpty) {
		p.giveUp()
		return b[n:]
	}
	if p.need == 0 && p.last {
		p.deliver(p.buf)
	}
	return b[n:]
}

// maxEmpty is after how many fragments an empty one is no longer believed.
const maxEmpty = 1024

// read consumes bytes of a fragment.
func (p *RecordParser) read(b []byte) []byte {
	k := len(b)
	if uint64(k) > uint64(p.need) {
		k = int(p.need)
	}
	part, rest := b[:k:k], b[k:]
	ends := uint32(k) == p.need && p.last
	if ends && len(p.buf) == 0 && !p.hole && p.rec.Length == k {
		if !p.verify(part) {
			return p.resume(b)
		}
		p.off += uint64(k)
		p.need = 0
		p.deliver(part)
		return rest
	}
	if !p.verified && !p.hole && len(p.buf) < minPlausible {
		// Judge the header before anything is kept of a record that may be
		// none: a wrong mark would swallow what follows it.
		head := p.head(part)
		if (len(head) >= minPlausible || ends) && !p.verify(head) {
			return p.resume(b)
		}
	}
	p.keep(part)
	p.off += uint64(k)
	p.need -= uint32(k)
	if ends {
		p.deliver(p.buf)
	}
	return rest
}

// head is the start of the record, with part behind what is kept already.
func (p *RecordParser) head(part []byte) []byte {
	if len(p.buf) == 0 {
		return part
	}
	n := min(len(part), minPlausible)
	p.buf = append(p.buf, part[:n]...)
	head := p.buf
	p.buf = p.buf[:len(p.buf)-n]
	return head
}

// verify checks the start of a record once. It is more lenient than Plausible, since the record is known by
// its mark already: calls of an RPC version or a program that does not exist are there to be reported.
func (p *RecordParser) verify(b []byte) bool {
	if p.verified {
		return true
	}
	if len(b) < minPlausible {
		return false
	}
	p.verified = true
	if p.strict {
		return Plausible(b, p.rec.Length)
	}
	switch MsgType(binary.BigEndian.Uint32(b[4:])) {
	case TypeCall:
		v := binary.BigEndian.Uint32(b[8:])
		return v > 0 && v < 16
	case TypeReply:
		return binary.BigEndian.Uint32(b[8:]) <= uint32(Denied)
	}
	return false
}

// keep adds to Data.
func (p *RecordParser) keep(part []byte) {
	limit := p.Limit
	if limit <= 0 {
		limit = DefaultRecordLimit
	}
	if p.hole || len(p.buf) >= limit {
		return
	}
	p.buf = append(p.buf, part[:min(len(part), limit-len(p.buf))]...)
}

// deliver ends the open record. A record whose first bytes are lost is useless: its XID and its kind are
// unknown.
func (p *RecordParser) deliver(data []byte) {
	p.rec.Data = data
	p.rec.Parts = p.parts
	p.rec.End = p.off
	p.open, p.need, p.markLen = false, 0, 0
	switch {
	case !p.verify(data):
		if !p.hole { // a record that is too short for a message
			p.given()
		}
	case p.Deliver != nil:
		p.Deliver(&p.rec)
	}
	p.followed, p.astray = true, false
	p.strict = false
	p.rec.Data = nil
	if cap(p.buf) > keepBuffer {
		p.buf = nil
	}
	p.buf = p.buf[:0]
}

// keepBuffer is the largest buffer that is kept for the next record. NFS
// traffic has records of 1 MiB in a row.
const keepBuffer = 2 << 20

// lose forgets the open record: what was taken for its mark was none.
func (p *RecordParser) lose() {
	p.synced, p.open, p.need, p.markLen, p.followed = false, false, 0, 0, false
	p.buf = p.buf[:0]
	if !p.strict {
		p.Lost++
	}
	p.strict = false
}

// giveUp calls lose, and counts the open record if a record ends right before it in the capture.
func (p *RecordParser) giveUp() {
	switch {
	case p.astray:
		p.Given.Bytes += p.off - p.rec.Start
	case !p.followed: // where it starts was a guess
	case p.rec.Fragments == 1 && startsTLS(p.mark):
		p.sealed, p.tls = true, tlsReader{followed: true, have: uint8(copy(p.tls.head[:], p.mark[:])), head: p.tls.head}
		p.Sealed.Add(rdma.Given{Count: 1, Bytes: p.off - p.rec.Start, First: p.rec.First.Number, Offset: p.rec.Start})
	default:
		p.given()
		p.astray = true
	}
	p.lose()
}

// tlsReader follows the records of TLS (RFC 8446, section 5.1) up to an alert in plain text, which has 2 bytes: an encrypted one has more.
type tlsReader struct {
	followed bool
	head     [markSize + 1]byte // type, version, length
	have     uint8              // bytes of head
	rest     uint16             // of the record
}

// tlsAlert is the type of a record of TLS with an alert, and closeNotify an alert that refuses nothing.
const tlsAlert, closeNotify = 21, 0

// alert takes what follows the first bytes of TLS, in one segment or several.
func (p *RecordParser) alert(b []byte, ref rdma.Ref) {
	for x := &p.tls; x.followed && len(b) > 0; {
		if int(x.have) < len(x.head) {
			n := copy(x.head[x.have:], b)
			x.have, b = x.have+uint8(n), b[n:]
			x.rest = binary.BigEndian.Uint16(x.head[markSize-1:])
			x.followed = int(x.have) < len(x.head) || x.rest > 0 && startsTLS([markSize]byte(x.head[:]))
			continue
		}
		n := min(int(x.rest), len(b))
		if x.rest -= uint16(n); x.rest == 0 {
			x.have = 0
			if x.head[0] == tlsAlert && x.head[markSize-1] == 0 && x.head[markSize] == 2 && b[n-1] != closeNotify {
				p.Alert.Add(rdma.Given{Count: 1, First: ref.Number, Offset: uint64(b[n-1])})
				x.followed = false
			}
		}
		b = b[n:]
	}
}

// given counts the open record as one that makes no sense.
func (p *RecordParser) given() {
	p.Given.Add(rdma.Given{Count: 1, Bytes: p.off - p.rec.Start, First: p.rec.First.Number, Offset: p.rec.Start})
}

// startsTLS reports whether what stands in the place of a record mark is the start of a TLS record (RFC 8446, section 5.1): its type, its version,
// and the high byte of a length of at most 2^14+256. As a mark, it would announce a fragment of more than 320 MB.
func startsTLS(m [markSize]byte) bool {
	return m[0] >= 20 && m[0] <= 23 && m[1] == 3 && m[2] <= 4 && m[3] <= 0x41
}

// resume gives up the open record in the middle of a segment.
func (p *RecordParser) resume(b []byte) []byte {
	p.giveUp()
	return b
}

// End delivers the open record as far as it came: nothing follows.
func (p *RecordParser) End() {
	if !p.open || !p.verify(p.buf) {
		return // nothing is known of it
	}
	p.rec.Broken = p.need == 0 || !p.last
	p.deliver(p.buf)
}

// Skip passes over n bytes of the stream that are not in the capture. ref is
// the packet at or after the hole.
func (p *RecordParser) Skip(n uint64, ref rdma.Ref) {
	if n == 0 {
		return
	}
	start := p.off
	p.off += n
	p.tls.followed = false
	if !p.synced {
		p.Skipped += n
		p.astray = false
		return
	}
	if p.need == 0 || n > uint64(p.need) {
		// The position of the next mark is unknown.
		broken := p.need == 0 || !p.last
		if p.open && p.rec.Length > 0 {
			p.rec.Broken = broken
			end := p.off
			p.off = start + uint64(p.need)
			p.deliver(p.buf)
			p.off = end
		}
		p.lose()
		return
	}
	p.hole = true
	p.need -= uint32(n)
	if p.need == 0 && p.last {
		if ref.Number > p.rec.Last.Number {
			p.rec.Last = ref
		}
		p.deliver(p.buf)
	}
}

// findRecord returns the offset in b of the first place that looks like the
// start of a record, len(b) if there is none. The start of b is tried first.
func findRecord(b []byte) int {
	if StartsRecord(b) {
		return 0
	}
	// A call has msg_type 0 and rpcvers 2 in a row, eight bytes after its mark; a reply has msg_type 1 and
	// reply_stat 0 or 1. The search goes window by window, so that its cost is in proportion to the result.
	const window, overlap = 1024, 7
	for start := 0; start < len(b); start += window {
		w := b[start:min(start+window+overlap, len(b))]
		call, reply := next(w, 0, callPattern), next(w, 0, replyPattern)
		for call < len(w) || reply < len(w) {
			at := min(call, reply)
			if i := start + at - markSize - 4; i >= 0 && StartsRecord(b[i:]) {
				return i
			}
			if call == at {
				call = next(w, at+1, callPattern)
			}
			if reply == at {
				reply = next(w, at+1, replyPattern)
			}
		}
	}
	return len(b)
}

// mayStart reports whether b, a short segment, may be the start of a record
// that goes on in the next one: some senders write the mark by itself.
func mayStart(b []byte) bool {
	if len(b) < markSize || len(b) >= markSize+minPlausible {
		return false
	}
	n := binary.BigEndian.Uint32(b) &^ lastFragment
	return n >= minPlausible && n <= maxRecord
}

var (
	callPattern  = []byte{0, 0, 0, 0, 0, 0, 0, 2}
	replyPattern = []byte{0, 0, 0, 1, 0, 0, 0}
)

// next is the index of pattern in b at or after from; len(b) if there is none.
func next(b []byte, from int, pattern []byte) int {
	if i := bytes.Index(b[from:], pattern); i >= 0 {
		return from + i
	}
	return len(b)
}

// StartsRecord reports whether b, the payload of a TCP segment, starts with a record mark and a plausible RPC
// header, and whether the marks that follow within it are plausible, too. It distinguishes RPC connections
// from others: call it for the segments of a connection that is not yet known, and create a TCPTracker when
// it returns true. It keeps no state and costs a few nanoseconds.
func StartsRecord(b []byte) bool {
	const chain = 3 // records to look at
	for i := 0; i < chain; i++ {
		if len(b) < markSize+minPlausible {
			// Nothing, or too little to judge, after a good record.
			return i > 0
		}
		m := binary.BigEndian.Uint32(b)
		n := int(m &^ lastFragment)
		if n < minPlausible || n > maxRecord {
			return false
		}
		head := b[markSize:]
		if n < len(head) {
			head = head[:n]
		}
		full := n
		if m&lastFragment == 0 {
			full = maxRecord // more fragments follow
		}
		if !Plausible(head, full) {
			return false
		}
		if m&lastFragment == 0 || len(b)-markSize < n {
			return true
		}
		b = b[markSize+n:]
	}
	return true
}

// later is the packet with the higher number.
func later(a, b rdma.Ref) rdma.Ref {
	if b.Number > a.Number {
		return b
	}
	return a
}
