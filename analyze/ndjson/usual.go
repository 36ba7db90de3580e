package ndjson

import (
	"encoding/binary"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/digits"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// Most transactions are calls of one procedure, each message in one packet without chunks, of which nothing was lost. Their
// objects are put together from pieces that are kept as they are written: up to the second, what was called, how it was
// framed, the end, and the file. Between them are numbers.

// shape is the piece of a procedure, a connection and a status, and of messages of such headers and lengths: from "connection" to
// the key of the server's time. The last eight digits of the numbers of both packets are written into it.
type shape struct {
	origin
	headers
	asked, answered packet // the last packets of the call and the reply
	text            []byte
}

// origin is what follows from a connection, what was called, and how that ended.
type origin struct {
	procedure        *xdr.Procedure
	kind             uint64 // stamp of the compound.Kind; 0: no COMPOUND
	program, version uint32
	settled          *rdma.Connection // the connection, if it does not change
	from             rdma.Side
	back             bool
	done             bool // the procedure succeeded, see rpc.View.Done
	status           string

	// The connection, if it may change.
	id     int
	fabric rdma.Fabric
	first  int64
	ends   [2]rdma.End
}

// is reports whether a transaction has it.
func (k *origin) is(v *rpc.View, kind uint64) bool {
	tx, c := v.Tx, v.Tx.Connection
	return k.procedure == v.Procedure && k.kind == kind && k.program == tx.Program && k.version == tx.Version && k.from == tx.From && k.back == tx.Backward &&
		(k.settled == c && c.Settled || k.of(c)) && (k.done && v.Done() || k.status == v.Status())
}

// of reports whether it is of a connection.
func (k *origin) of(c *rdma.Connection) bool {
	return k.id == c.ID && k.fabric == c.Fabric && k.first == c.First.Time && k.ends[0].Is(&c.Ends[0]) && k.ends[1].Is(&c.Ends[1])
}

// set takes that of a transaction.
func (k *origin) set(v *rpc.View, kind uint64) {
	tx, c := v.Tx, v.Tx.Connection
	*k = origin{
		procedure: v.Procedure, kind: kind, program: tx.Program, version: tx.Version, from: tx.From, back: tx.Backward, status: v.Status(), done: v.Done(),
		id: c.ID, fabric: c.Fabric, first: c.First.Time, ends: c.Ends,
	}
	if c.Settled {
		k.settled = c
	}
}

// from appends what all with an origin have in common, from the connection to the status, and the key of what follows.
func (e *Encoder) from(b []byte, v *rpc.View, status string) []byte {
	b = e.parties(b, v.Tx)
	b = e.operation(b, v)
	b = str(b, `,"status":`, status)
	return append(b, callFrame...)
}

// headers is what the headers of a call and a reply without chunks differ in, and the lengths of the messages.
type headers struct {
	call, reply           rpcrdma.Type
	asked, granted        uint32
	callBytes, replyBytes uint64
}

// is reports whether messages have these headers and lengths.
func (h *headers) is(call, reply *transaction.Message) bool {
	a, b := &call.Header, &reply.Header
	return uint64(h.call^a.Type|h.reply^b.Type)|uint64(h.asked^a.Credits|h.granted^b.Credits)|(h.callBytes^call.Bytes)|(h.replyBytes^reply.Bytes) == 0
}

// packet is where the number of a packet is in a shape: numbers of as many digits differ in the last ones, eight at most.
type packet struct {
	low, span uint64 // the least number, and how many there are
	base      uint64 // what the digits before the last ones say
	lead      uint   // bits of leading zeros, if the last ones are less than eight
	behind    uint64 // what is behind the last ones, up to eight bytes
	at        int    // where the last ones are
}

// newPacket is the place of a number that ends there, with those eight bytes behind it.
func newPacket(number uint64, end int, behind uint64) packet {
	const most = 100_000_000
	p, n := packet{low: number / most * most, span: most}, 8
	if p.base = p.low; number < most {
		p.span = 10
		for n = 1; number >= p.low+p.span; n++ {
			p.low += p.span
			p.span = 9 * p.low
		}
	}
	p.lead, p.behind, p.at = uint(64-8*n), behind<<(8*n), end-n
	return p
}

func (p *packet) has(number uint64) bool { return number-p.low < p.span }

// put writes numbers that both packets have into a shape that begins at n: the last digits, and what is behind them.
func (k *shape) put(d *[maxObject]byte, n int, asked, answered uint64) {
	p, q := &k.asked, &k.answered
	binary.LittleEndian.PutUint64(d[(n+p.at)&inObject:], digits.EightWord(uint32(asked-p.base))>>(p.lead&63)|p.behind)
	binary.LittleEndian.PutUint64(d[(n+q.at)&inObject:], digits.EightWord(uint32(answered-q.base))>>(q.lead&63)|q.behind)
}

const (
	inOnePacket = `,"latency_ns":{"call_transfer":0,"argument_pull":0,"pull_wait":0,"server":`
	usualEnd    = "}" + nothingBefore + nothingLost + acknowledged + noNotes
	unackedEnd  = "}" + nothingBefore + nothingLost + unconfirmed + noNotes
	replyFrame  = `,"reply_frame":`
	noTransfer  = `,"result_push":0,"reply_transfer":0,"total":`
	ackKey      = `,"ack":`
	ofFile      = `,"file":{"filehandle":"`
	ofName      = `,"name":"`
	ofPath      = `,"path":"`
	inPath      = `"` + ofPath
	resultKey   = `,"new_filehandle":"`
	offsetKey   = `,"offset":`
	countKey    = `,"count":`
	stableKey   = `,"stable":`
	movedKey    = `,"moved":`
	atEOF       = `,"eof":true`
	callFrame   = `,"call_frame":`
)

// What follows the numbers of packets.
const (
	behindCall  = ',' | '"'<<8 | 'r'<<16 | 'e'<<24 | 'p'<<32 | 'l'<<40 | 'y'<<48 | '_'<<56
	behindReply = ',' | '"'<<8 | 'c'<<16 | 'a'<<24 | 'l'<<32 | 'l'<<40 | '_'<<48 | 't'<<56
)

// Pieces between numbers, with what fills a whole word behind them: of such a size a copy takes no call.
var (
	noTransferText = [48]byte([]byte(noTransfer + "    "))
	ackText        = [8]byte([]byte(ackKey + " "))
	endText        = [len(usualEnd + ofFile)]byte([]byte(usualEnd + ofFile)) // most have a file
	unackedText    = [len(unackedEnd + ofFile)]byte([]byte(unackedEnd + ofFile))
	resultText     = [len(resultKey)]byte([]byte(resultKey))
	offsetText     = [16]byte([]byte(offsetKey + "      "))
	countText      = [16]byte([]byte(countKey + "       "))
	movedText      = [16]byte([]byte(movedKey + "       "))
	bothEnd        = [2]byte{'}', '}'}
	ofNameText     = [len(ofName)]byte([]byte(ofName))
)

// usual appends the object of a usual transaction; false for all others.
func (e *Encoder) usual(b []byte, v *rpc.View) ([]byte, bool) {
	tx := v.Tx
	call, reply := &tx.Call, &tx.Reply
	took, ok := tx.Calm()
	if !ok || tx.Blame == nil || reply.Invalidates || tx.Connection.Tunnel != nil || !tx.Chunkless() && !(call.Chunkless() && reply.Chunkless()) ||
		!v.Usual() && !legible(v) {
		return b, false
	}
	k := e.shape(v)
	if k == nil || len(k.text) > inObject-maxNumbers {
		return b, false
	}
	if cap(b)-len(b) < maxObject {
		b = slices.Grow(b, maxObject)
	}
	d := (*[maxObject]byte)(b[len(b):cap(b)])
	n := e.begin(d[:], call.First.Time)
	n += digits.Put(number(d, n), uint64(tx.XID))
	size := copy(d[n&inObject:], k.text)
	k.put(d, n, call.Last.Number, reply.Last.Number)
	n += size
	n += putTwice(d, n, uint64(took))
	if acked := tx.Acked(); acked >= 0 {
		*(*[len(ackText)]byte)(d[n&inObject:]) = ackText
		n += len(ackKey)
		n += digits.Put(number(d, n), uint64(acked))
	} else {
		*(*[len(unackedText)]byte)(d[n&inObject:]) = unackedText
		return e.usualFile(b, d, n+len(unackedEnd), v), true
	}
	*(*[len(endText)]byte)(d[n&inObject:]) = endText
	return e.usualFile(b, d, n+len(usualEnd), v), true
}

// putTwice writes the time that a server took, and that the transaction took, which is the same.
func putTwice(d *[maxObject]byte, n int, took uint64) int {
	if took >= 100_000_000 {
		size := digits.Put(number(d, n), took)
		*(*[len(noTransferText)]byte)(d[(n+size)&inObject:]) = noTransferText
		return size + len(noTransfer) + digits.Put(number(d, n+size+len(noTransfer)), took)
	}
	w, size := digits.Word(uint32(took))
	binary.LittleEndian.PutUint64(d[n&inObject:], w)
	n += size
	*(*[len(noTransferText)]byte)(d[n&inObject:]) = noTransferText
	n += len(noTransfer)
	binary.LittleEndian.PutUint64(d[n&inObject:], w)
	return 2*size + len(noTransfer)
}

// A usual object has room for maxObject bytes. What is written before the file takes less than half: maxNumbers at most, beside the
// two pieces that are looked for. So inObject leaves a place as it is, and lets the compiler see that there is room behind it.
const (
	maxObject  = 4096
	inObject   = maxObject/2 - 1
	maxNumbers = 640
)

// number is where a number is to be written.
func number(d *[maxObject]byte, n int) *[digits.Room]byte {
	return (*[digits.Room]byte)(d[n&inObject:])
}

// legible reports of a transaction that rpc.View has not found usual whether it is a call that is known, without any protection.
func legible(v *rpc.View) bool {
	return v.Procedure != nil && v.Args() != nil && v.Wrapped() == "" && v.Opening() == rpc.NotOpened && v.Principal == ""
}

// head is the beginning of an object up to its XID. Times of one second differ in nine digits only.
type head struct {
	from int64 // when the second began; 0: none
	text [len(opening) + stampSize + len("123456789") + len(afterTime)]byte
}

const (
	opening   = `{"schema":"` + Schema + `","time":"`
	afterTime = `Z","xid":`
	stampSize = len("2006-01-02T15:04:05.")
)

// begin writes the beginning of an object.
func (e *Encoder) begin(d []byte, ns int64) int {
	h := &e.head
	if frac := uint64(ns - h.from); frac < 1e9 && h.from != 0 {
		*(*[len(h.text)]byte)(d) = h.text
		digits.PutNano((*[9]byte)(d[len(opening)+stampSize:]), uint32(frac))
		return len(h.text)
	}
	b := e.Time(append(d[:0], opening...), ns)
	b = append(b, afterTime[1:]...)
	h.from = 0
	if len(b) == len(h.text) && e.stamp[0] != 0 {
		h.from = e.second * 1e9
		copy(h.text[:], b)
	}
	return len(b)
}

// usualFile appends what d has up to n, the file of a usual transaction, and the brace at the end of the object. At n, d has the
// key of a file already.
func (e *Encoder) usualFile(b []byte, d *[maxObject]byte, n int, v *rpc.View) []byte {
	f := v.File()
	if f == nil {
		return append(b[:len(b)+n], '}')
	}
	var k *placed
	if f.Handle != nil {
		k = e.place(v.Names.Of(v.Tx), f.Handle)
	}
	if k == nil || f.Name != nil && uint(len(f.Name)-1) >= maxName {
		return append(e.file(b[:len(b)+n], v, f), '}')
	}
	t := (*[maxFile]byte)(d[(n+len(ofFile))&inObject:])
	k.copy(t)
	size := int(k.whole)
	if f.Name != nil {
		if size = k.name(t, f.Name); size == 0 {
			return append(e.file(b[:len(b)+n], v, f), '}')
		}
	}
	if f.To != nil || len(f.Result) > maxResult || len(f.Stable) > maxStable {
		return append(e.rest(b[:len(b)+n+len(ofFile)+size], f), '}', '}')
	}
	if f.Result != nil {
		size = result(t, size, f.Result)
	}
	if f.HasRange || f.HasMoved || f.EOF || f.Stable != "" {
		size = span(t, size, f)
	}
	*(*[len(bothEnd)]byte)(t[size&inFile:]) = bothEnd
	return b[:len(b)+n+len(ofFile)+size+len(bothEnd)]
}

// result writes the handle that the reply gives, as rest does, and returns where that ends. Many are new: they are not kept.
func result(t *[maxFile]byte, n int, handle []byte) int {
	*(*[len(resultText)]byte)(t[n&inFile:]) = resultText
	n += len(resultText)
	n += digits.PutHex(t[n&inFile:], handle)
	t[n&inFile] = '"'
	return n + 1
}

// span writes what rest writes of what was read or written, and returns where that ends.
func span(t *[maxFile]byte, n int, f *rpc.File) int {
	if f.HasRange {
		*(*[len(offsetText)]byte)(t[n&inFile:]) = offsetText
		n += len(offsetKey)
		n += digits.Put((*[digits.Room]byte)(t[n&inFile:]), f.Offset)
		*(*[len(countText)]byte)(t[n&inFile:]) = countText
		n += len(countKey)
		n += digits.Put((*[digits.Room]byte)(t[n&inFile:]), f.Count)
	}
	if f.Stable != "" {
		n = len(str(t[:n&inFile], stableKey, f.Stable))
	}
	if f.HasMoved {
		*(*[len(movedText)]byte)(t[n&inFile:]) = movedText
		n += len(movedKey)
		n += digits.Put((*[digits.Room]byte)(t[n&inFile:]), f.Moved)
	}
	if f.EOF {
		n += copy(t[n&inFile:], atEOF)
	}
	return n
}

// A file has room for maxFile bytes, of which mostOfFile are written behind its key. So inFile leaves a place as it is.
const (
	maxFile    = maxObject / 2
	inFile     = maxFile/2 - 1
	maxName    = 128
	maxResult  = 64
	maxStable  = 32
	mostOfFile = keptSize + len(ofName) + 2*maxName + len(placed{}.dir) + len(placed{}.dirRest) + len(resultKey) + 2*maxResult +
		len(offsetKey+countKey+stableKey+movedKey+atEOF) + maxStable + 4*digits.Room
)

var _ [inFile - mostOfFile]byte // there is room

// copy copies what is written of the file itself.
func (k *placed) copy(t *[maxFile]byte) {
	*(*[len(k.first)]byte)(t[:]) = k.first
	if int(k.whole) > len(k.first) {
		*(*[len(k.rest)]byte)(t[len(k.first):]) = k.rest
	}
}

// name writes a name behind the handle of its directory, and in its path; 0 if it has to be escaped. What copy writes is there.
func (k *placed) name(t *[maxFile]byte, name []byte) int {
	if k.dirSize == 0 {
		k.writeDir(t)
	}
	n := int(k.handle)
	*(*[len(ofNameText)]byte)(t[n:]) = ofNameText
	n += len(ofName)
	if !printable.Put(t[n:], name) {
		return 0
	}
	named := n
	n += len(name)
	*(*[len(k.dir)]byte)(t[n&inFile:]) = k.dir
	if int(k.dirSize) > len(k.dir) {
		*(*[len(k.dirRest)]byte)(t[(n+len(k.dir))&inFile:]) = k.dirRest
	}
	n += int(k.dirSize)
	if len(name) <= 16 { // most: they are copied from where they stand already, with what is behind them
		a, b := binary.LittleEndian.Uint64(t[named&inFile:]), binary.LittleEndian.Uint64(t[(named+8)&inFile:])
		binary.LittleEndian.PutUint64(t[n&inFile:], a)
		binary.LittleEndian.PutUint64(t[(n+8)&inFile:], b)
	} else {
		copy(t[n&inFile:], name)
	}
	n += len(name)
	t[n&inFile] = '"'
	return n + 1
}

// placed is how a file is written that transactions were about lately. What most have is copied without a call: it is in the first
// two lines of the cache, and in the fifth.
type placed struct {
	stamp   uint64 // of the rpc.Place
	handle  uint8  // so much of first is its handle with the quotation mark behind it; 0 if it is not kept, or needs escapes
	whole   uint8  // so much of first and rest is its handle, and its path if it has one
	dirSize uint8  // so much of dir and dirRest is what is between the name of a file in it and the same name in the path of that; 0: not written yet
	first   [117]byte
	rest    [128]byte
	dir     [64]byte
	dirRest [64]byte
}

const keptSize = len(placed{}.first) + len(placed{}.rest)

// place returns how a file is written; nil if that is not kept.
func (e *Encoder) place(names *rpc.Names, handle []byte) *placed {
	p := names.Place(handle)
	if p == nil {
		return nil
	}
	k := &e.places[uint(p.Slot)%rpc.Places]
	if k.stamp != p.Stamp {
		k.write(p, handle)
	}
	if k.handle == 0 {
		return nil
	}
	return k
}

func (k *placed) write(p *rpc.Place, handle []byte) {
	k.stamp, k.handle, k.dirSize = p.Stamp, 0, 0
	n := 2*len(handle) + 1
	if n+len(ofPath) > len(k.first) || len(inPath)+len(p.Path)+1 > len(k.dir)+len(k.dirRest) || !printable.Plain(p.Path) {
		return
	}
	digits.PutHex(k.first[:], handle)
	k.first[n-1] = '"'
	k.handle, k.whole = uint8(n), uint8(n)
	if len(p.Path) == 0 {
		return
	}
	n += copy(k.first[n:], ofPath)
	if at := copy(k.first[n:], p.Path); at < len(p.Path) {
		copy(k.rest[:], p.Path[at:])
	}
	if n += len(p.Path); n < len(k.first) {
		k.first[n] = '"'
	} else {
		k.rest[n-len(k.first)] = '"'
	}
	k.whole = uint8(n + 1)
}

// writeDir writes dir and dirRest, which only directories need. What copy writes is in t.
func (k *placed) writeDir(t *[maxFile]byte) {
	var d [len(k.dir) + len(k.dirRest)]byte
	n := copy(d[:], inPath)
	if k.whole > k.handle {
		n += copy(d[n:], t[int(k.handle)+len(ofPath):k.whole-1])
		d[n] = '/'
		n++
	}
	k.dir, k.dirRest = [len(k.dir)]byte(d[:]), [len(k.dirRest)]byte(d[len(k.dir):])
	k.dirSize = uint8(n)
}

// shape returns the shape of a transaction; nil for a COMPOUND whose operations are not kept.
func (e *Encoder) shape(v *rpc.View) *shape {
	tx, c := v.Tx, v.Tx.Connection
	call, reply := &tx.Call, &tx.Reply
	procedure, kind := uint(tx.Procedure), uint64(0)
	if !v.Usual() || v.Compound() {
		var ok bool
		if procedure, kind, ok = e.kind(v); !ok {
			return nil
		}
	}
	i := uint(2*c.ID) + 5*procedure + 16*uint(call.Bytes/4) + 64*uint(reply.Bytes/4)
	if tx.Backward {
		i++
	}
	k := &e.shapes[i%uint(len(e.shapes))]
	if !k.headers.is(call, reply) || !k.asked.has(call.Last.Number) || !k.answered.has(reply.Last.Number) || !k.origin.is(v, kind) {
		e.write(k, v, kind)
	}
	return k
}

// kind returns a number that most procedures and kinds of COMPOUNDs have for themselves, and the stamp of a COMPOUND; false for one that
// has none.
func (e *Encoder) kind(v *rpc.View) (procedure uint, stamp uint64, ok bool) {
	if k := e.kinds.Of(v); k != nil {
		return uint(k.Slot), k.Stamp, true
	}
	return uint(v.Tx.Procedure), 0, !v.Compound() && len(v.Steps()) == 0
}

// write makes a shape.
func (e *Encoder) write(k *shape, v *rpc.View, kind uint64) {
	tx := v.Tx
	call, reply := &tx.Call, &tx.Reply
	k.origin.set(v, kind)
	k.headers = headers{call.Header.Type, reply.Header.Type, call.Header.Credits, reply.Header.Credits, call.Bytes, reply.Bytes}
	b := e.from(k.text[:0], v, k.status)
	b = digits.Append(b, call.Last.Number)
	k.asked = newPacket(call.Last.Number, len(b), behindCall)
	b = num(b, replyFrame, reply.Last.Number)
	k.answered = newPacket(reply.Last.Number, len(b), behindReply)
	b = transport(b, tx)
	b = digits.Append(b, call.Bytes)
	b = num(b, `,"reply_bytes":`, reply.Bytes)
	k.text = append(b, `,"retransmits":0`+inOnePacket...)
}
