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

// prepared is the piece of a procedure, a connection and a status: from "connection" to the key of the call's frame.
type prepared struct {
	procedure        *xdr.Procedure
	program, version uint32
	settled          *rdma.Connection // the connection, if it does not change
	id               int
	fabric           rdma.Fabric
	from             rdma.Side
	back             bool
	first            int64
	ends             [2]rdma.End
	status           string
	text             []byte
}

// headers is what the headers of a call and a reply without chunks differ in, and the lengths of the messages.
type headers struct {
	call, reply           rpcrdma.Type
	asked, granted        uint32
	callBytes, replyBytes uint64
}

// framed is the piece of such messages: from their types to the key of the server's time.
type framed struct {
	headers
	text []byte
}

const (
	inOnePacket = `,"latency_ns":{"call_transfer":0,"argument_pull":0,"pull_wait":0,"server":`
	usualEnd    = "}" + nothingBefore + nothingLost + complete + noNotes
	replyFrame  = `,"reply_frame":`
	noTransfer  = `,"result_push":0,"reply_transfer":0,"total":`
	ackKey      = `,"ack":`
	ofFile      = `,"file":{"filehandle":"`
	ofName      = `,"name":"`
	ofPath      = `,"path":"`
)

// Pieces between numbers, with what fills a whole word behind them: of such a size a copy takes no call.
var (
	replyFrameText = [16]byte([]byte(replyFrame + " "))
	noTransferText = [48]byte([]byte(noTransfer + "    "))
	ackText        = [8]byte([]byte(ackKey + " "))
	ofFileText     = [24]byte([]byte(ofFile + " "))
	ofNameText     = [len(ofName)]byte([]byte(ofName))
)

// usual appends the object of a usual transaction, without the brace at its end; false for all others.
func (e *Encoder) usual(b []byte, v *rpc.View) ([]byte, bool) {
	tx := v.Tx
	call, reply := &tx.Call, &tx.Reply
	took, ok := tx.Calm()
	if !ok || tx.Blame == nil || reply.Invalidates || tx.Connection.Tunnel != nil || !tx.Chunkless() && !(call.Chunkless() && reply.Chunkless()) ||
		!v.Usual() && !legible(v) {
		return b, false
	}
	k := e.prepared(v)
	if k == nil {
		return b, false
	}
	h := e.headers(tx)
	if len(k.text)+len(h) > inObject-maxNumbers {
		return b, false
	}
	if cap(b)-len(b) < maxObject {
		b = slices.Grow(b, maxObject)
	}
	d := (*[maxObject]byte)(b[len(b):cap(b)])
	n := e.begin(d[:], call.First.Time)
	n += digits.Put(number(d, n), uint64(tx.XID))
	n += copy(d[n&inObject:], k.text)
	n += e.frames.put(number(d, n), call.Last.Number)
	*(*[len(replyFrameText)]byte)(d[n&inObject:]) = replyFrameText
	n += len(replyFrame)
	n += e.frames.put(number(d, n), reply.Last.Number)
	n += copy(d[n&inObject:], h)
	n += putTwice(d, n, uint64(took))
	if acked := tx.Acked(); acked >= 0 {
		*(*[len(ackText)]byte)(d[n&inObject:]) = ackText
		n += len(ackKey)
		n += digits.Put(number(d, n), uint64(acked))
	}
	n += copy(d[n&inObject:], usualEnd)
	return e.usualFile(b[:len(b)+n], v), true
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

// frames writes the numbers of packets. Most have the same digits as the one before, but for the last four.
type frames struct {
	high uint64 // a number by 10^4; 0: none
	text uint64 // its digits, the first in the lowest byte
	size int
}

func (f *frames) put(d *[digits.Room]byte, v uint64) int {
	high := v / 10_000
	if high != f.high || high == 0 {
		if high == 0 || high >= 100_000_000 {
			return digits.Put(d, v)
		}
		f.high = high
		f.text, f.size = digits.Word(uint32(high))
	}
	binary.LittleEndian.PutUint64(d[:], f.text)
	binary.LittleEndian.PutUint32(d[f.size&15:], digits.FourWord(uint32(v-10_000*high)))
	return f.size + 4
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

// usualFile appends the file of a usual transaction.
func (e *Encoder) usualFile(b []byte, v *rpc.View) []byte {
	f := v.File()
	if f == nil {
		return b
	}
	var k *placed
	if f.Handle != nil {
		k = e.place(v.Names, f.Handle)
	}
	if k == nil || f.Name != nil && len(f.Name) == 0 {
		return e.file(b, v, f)
	}
	if room := len(ofFile) + 2*keptSize + 2*len(f.Name) + 64; cap(b)-len(b) < room {
		b = slices.Grow(b, room)
	}
	d := b[len(b):cap(b)]
	*(*[len(ofFileText)]byte)(d) = ofFileText
	n := len(ofFile)
	k.copy(d[n:])
	if f.Name == nil {
		n += int(k.whole)
	} else if size := k.name(d[n:], f.Name); size > 0 {
		n += size
	} else {
		return e.file(b, v, f)
	}
	return append(e.rest(b[:len(b)+n], f), '}')
}

// copy copies what there is of the text.
func (k *placed) copy(d []byte) {
	*(*[len(k.text.first)]byte)(d) = k.text.first
	if int(k.whole) > len(k.text.first) {
		copy(d[len(k.text.first):], k.text.rest[:])
	}
}

// name writes a name behind the handle of its directory, and in its path; 0 if it has to be escaped.
func (k *placed) name(d, name []byte) int {
	n := int(k.handle)
	*(*[len(ofNameText)]byte)(d[n:]) = ofNameText
	n += len(ofName)
	if !printable.Put(d[n:], name) {
		return 0
	}
	n += len(name)
	d[n] = '"'
	n++
	n += k.copyPath(d[n:])
	n += copy(d[n:], name)
	d[n] = '"'
	return n + 1
}

// copyPath copies what is in front of a name in its path.
func (k *placed) copyPath(d []byte) int {
	n, most := int(k.path)-int(k.handle), len(k.text.first)
	if int(k.path) <= most {
		copy(d, k.text.first[k.handle:k.path])
	} else if m := copy(d, k.text.first[min(int(k.handle), most):]); m > 0 {
		copy(d[m:], k.text.rest[:int(k.path)-most])
	} else {
		copy(d, k.text.rest[int(k.handle)-most:int(k.path)-most])
	}
	if k.whole == k.path {
		d[n-1] = '/'
	}
	return n
}

// placed is how a file is written that transactions were about lately. Most of it is in two lines of the cache.
type placed struct {
	stamp  uint64 // of the rpc.Place
	handle uint8  // so much of text is its handle with the quotation mark behind it; 0 if it is not kept, or needs escapes
	whole  uint8  // and with its path, if it has one, so much
	path   uint8  // from the handle up to here is what is in front of a name in its path; the last quotation mark is a slash there
	text   keptText
}

// keptText is the text in two parts. Most have only the first, which is copied without a call.
type keptText struct {
	first [117]byte
	rest  [128]byte
}

const keptSize = len(keptText{}.first) + len(keptText{}.rest)

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
	k.stamp, k.handle = p.Stamp, 0
	if !printable.Plain(p.Path) || 2*len(handle)+1+len(ofPath)+len(p.Path)+1 > keptSize {
		return
	}
	var room [keptSize]byte
	b := append(digits.Hex(room[:0], handle), '"')
	k.handle = uint8(len(b))
	k.whole = k.handle
	b = append(b, ofPath...)
	if len(p.Path) > 0 {
		b = append(append(b, p.Path...), '"')
		k.whole = uint8(len(b))
	}
	k.path = uint8(len(b))
	k.text.first, k.text.rest = [len(k.text.first)]byte(room[:]), [len(k.text.rest)]byte(room[len(k.text.first):])
}

// prepared is the piece of the transaction's procedure, connection and status; nil if the procedure consists of operations.
func (e *Encoder) prepared(v *rpc.View) *prepared {
	tx, c := v.Tx, v.Tx.Connection
	i := uint(2*c.ID) + 5*uint(tx.Procedure)
	if tx.Backward {
		i++
	}
	status := v.Status()
	k := &e.kept[i%uint(len(e.kept))]
	if k.procedure == v.Procedure && k.program == tx.Program && k.version == tx.Version && k.from == tx.From && k.back == tx.Backward &&
		(k.settled == c && c.Settled || k.of(c)) && k.status == status {
		return k
	}
	if _, compound := v.MinorVersion(); compound || len(v.Operations()) > 0 {
		return nil
	}
	b := e.parties(k.text[:0], tx)
	b = e.operation(b, v)
	b = str(b, `,"status":`, status)
	b = append(b, `,"call_frame":`...)
	*k = prepared{v.Procedure, tx.Program, tx.Version, nil, c.ID, c.Fabric, tx.From, tx.Backward, c.First.Time, c.Ends, status, b}
	if c.Settled {
		k.settled = c
	}
	return k
}

// of reports whether a piece is of a connection.
func (k *prepared) of(c *rdma.Connection) bool {
	return k.id == c.ID && k.fabric == c.Fabric && k.first == c.First.Time && k.ends[0].Is(&c.Ends[0]) && k.ends[1].Is(&c.Ends[1])
}

// headers is the piece of the transaction's headers and lengths.
func (e *Encoder) headers(tx *transaction.Transaction) []byte {
	call, reply := &tx.Call, &tx.Reply
	x := headers{call.Header.Type, reply.Header.Type, call.Header.Credits, reply.Header.Credits, call.Bytes, reply.Bytes}
	k := &e.framed[(uint64(x.asked+x.granted)+x.callBytes/4+5*(x.replyBytes/4))%uint64(len(e.framed))]
	if k.headers != x || k.text == nil {
		b := transport(k.text[:0], tx)
		b = digits.Append(b, call.Bytes)
		b = num(b, `,"reply_bytes":`, reply.Bytes)
		b = append(b, `,"retransmits":0`+inOnePacket...)
		*k = framed{x, b}
	}
	return k.text
}
