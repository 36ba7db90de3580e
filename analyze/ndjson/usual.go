package ndjson

import (
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
	noTransfer  = `,"result_push":0,"reply_transfer":0,"total":`
	usualEnd    = "}" + nothingBefore + nothingLost + complete + noNotes
	ofFile      = `,"file":{"filehandle":"`
)

// usual appends the object of a usual transaction, without the brace at its end; false for all others.
func (e *Encoder) usual(b []byte, v *rpc.View) ([]byte, bool) {
	tx := v.Tx
	call, reply := &tx.Call, &tx.Reply
	took, ok := tx.Calm()
	if !ok || tx.Blame == nil || reply.Invalidates || tx.Connection.Tunnel != nil || !call.Chunkless() || !reply.Chunkless() ||
		v.Procedure == nil || !v.Usual() && v.Args() == nil || v.Wrapped() != "" || v.Opening() != rpc.NotOpened || v.Principal != "" {
		return b, false
	}
	k := e.prepared(v)
	if k == nil {
		return b, false
	}
	b = e.begin(b, call.First.Time)
	b = digits.Append(b, uint64(tx.XID))
	b = append(b, k.text...)
	b = digits.Append(b, call.Last.Number)
	b = append(b, ',', '"', 'r', 'e', 'p', 'l', 'y', '_', 'f', 'r', 'a', 'm', 'e', '"', ':')
	b = digits.Append(b, reply.Last.Number)
	b = append(b, e.headers(tx)...)
	start := len(b)
	b = digits.Append(b, uint64(took))
	end := len(b)
	b = append(b, noTransfer...)
	b = append(b, b[start:end]...)
	if acked := tx.Acked(); acked >= 0 {
		b = append(b, ',', '"', 'a', 'c', 'k', '"', ':')
		b = digits.Append(b, uint64(acked))
	}
	return e.usualFile(b, v), true
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

// begin appends the beginning of an object.
func (e *Encoder) begin(b []byte, ns int64) []byte {
	h := &e.head
	if frac := uint64(ns - h.from); frac < 1e9 && h.from != 0 {
		at := len(b) + len(opening) + stampSize
		b = append(b, h.text[:]...)
		digits.PutNano((*[9]byte)(b[at:]), uint32(frac))
		return b
	}
	at := len(b)
	b = e.Time(append(b, opening...), ns)
	b = append(b, afterTime[1:]...)
	h.from = 0
	if len(b)-at == len(h.text) && e.stamp[0] != 0 {
		h.from = e.second * 1e9
		copy(h.text[:], b[at:])
	}
	return b
}

// usualFile appends the end of a usual transaction, and its file.
func (e *Encoder) usualFile(b []byte, v *rpc.View) []byte {
	f := v.File()
	if f == nil {
		return append(b, usualEnd...)
	}
	var k *placed
	if f.Handle != nil {
		k = e.place(v.Names, f.Handle)
	}
	switch {
	case k == nil || len(k.text) == 0:
		return e.file(append(b, usualEnd...), v, f)
	case f.Name == nil:
		b = append(b, usualEnd+ofFile...)
		b = append(b, k.text...)
	case len(f.Name) == 0 || !printable.Plain(f.Name):
		return e.file(append(b, usualEnd...), v, f)
	default:
		b = append(b, usualEnd+ofFile...)
		b = append(b, k.name...)
		b = append(b, f.Name...)
		b = append(b, k.path...)
		b = append(b, f.Name...)
		b = append(b, '"')
	}
	return append(e.rest(b, f), '}')
}

// placed is how a file is written that transactions were about lately. All is empty if its path needs escapes.
type placed struct {
	stamp uint64 // of the rpc.Place
	text  []byte // its handle, and its path if it has one
	name  []byte // its handle, up to a name in it
	path  []byte // what is between that name and the same name in its path
}

// place returns how a file is written; nil if that is not kept.
func (e *Encoder) place(names *rpc.Names, handle []byte) *placed {
	p := names.Place(handle)
	if p == nil {
		return nil
	}
	k := &e.places[uint(p.Slot)%rpc.Places]
	if k.stamp == p.Stamp {
		return k
	}
	k.stamp, k.text, k.name, k.path = p.Stamp, k.text[:0], k.name[:0], k.path[:0]
	if !printable.Plain(p.Path) {
		return k
	}
	k.text = append(digits.Hex(k.text, handle), '"')
	k.name = append(append(k.name, k.text...), `,"name":"`...)
	k.path = append(k.path, `","path":"`...)
	if len(p.Path) > 0 {
		k.text = append(append(append(k.text, `,"path":"`...), p.Path...), '"')
		k.path = append(append(k.path, p.Path...), '/')
	}
	return k
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
	if k.procedure == v.Procedure && k.program == tx.Program && k.version == tx.Version && k.id == c.ID && k.fabric == c.Fabric &&
		k.from == tx.From && k.back == tx.Backward && k.first == c.First.Time && k.ends[0].Is(&c.Ends[0]) && k.ends[1].Is(&c.Ends[1]) &&
		k.status == status {
		return k
	}
	if _, compound := v.MinorVersion(); compound || len(v.Operations()) > 0 {
		return nil
	}
	b := e.parties(k.text[:0], tx)
	b = e.operation(b, v)
	b = str(b, `,"status":`, status)
	b = append(b, `,"call_frame":`...)
	*k = prepared{v.Procedure, tx.Program, tx.Version, c.ID, c.Fabric, tx.From, tx.Backward, c.First.Time, c.Ends, status, b}
	return k
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
