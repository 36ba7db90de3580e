// Package ndjson writes transactions as JSON, one object a line: schema
// "rpcrdma.transaction/1", documented in docs/schema.md.
package ndjson

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/digits"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// Schema is the value of the key "schema".
const Schema = "rpcrdma.transaction/1"

// Encoder turns transactions into JSON objects. It keeps what repeats.
type Encoder struct {
	places   [rpc.Places]placed // first: each begins with a line of the cache
	addrs    map[netip.Addr]string
	second   int64    // since 1970, of the cached time
	ofMinute int64    // the same second of its minute
	stamp    [20]byte // 2006-01-02T15:04:05.
	path     []byte
	said     [64]said
	called   [64]called
	kinds    compound.Kinds
	listed   [compound.Most]listed
	shapes   [512]shape
	fronts   [256]front
	framed   [16]framed
	phases   transaction.Phases // of moving
	spelt    [64]spelt
	head     head
}

// said is what was written about the connection and direction of a transaction.
type said struct {
	id     int
	fabric rdma.Fabric
	from   rdma.Side
	back   bool
	first  int64
	ends   [2]rdma.End
	text   []byte
}

// called is what was written about a call of a procedure that consists of no operations.
type called struct {
	procedure        *xdr.Procedure
	program, version uint32
	text             []byte
}

// listed is what was written about a COMPOUND of a kind, likewise.
type listed struct {
	stamp uint64 // of the compound.Kind
	text  []byte
}

// spelt is a file handle, and how it is written, with the quotation mark behind it.
type spelt struct{ handle, text []byte }

// Append appends the object of a transaction, without a newline.
func (e *Encoder) Append(b []byte, v *rpc.View) []byte {
	b, ok := e.usual(b, v)
	if !ok {
		if b, ok = e.moving(b, v); !ok {
			b = append(e.any(b, v), '}')
		}
	}
	return b
}

// any appends the object of any transaction, without the brace at its end.
func (e *Encoder) any(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	b = e.Time(append(b, opening...), tx.First().Time)
	b = append(b, `","xid":`...)
	b = digits.Append(b, uint64(tx.XID))
	b = e.parties(b, tx)
	b = e.operation(b, v)
	b = status(b, v)
	b = wire(b, tx)
	if p, ok := tx.Phases(); ok {
		b = latency(b, &p)
	} else {
		b = append(b, `,"latency_ns":null`...)
	}
	b = ended(b, tx)
	if f := v.File(); f != nil {
		b = e.file(b, v, f)
	}
	return b
}

// parties appends the connection, and between whom the transaction took place. It is the same for all
// transactions of a connection and a direction.
func (e *Encoder) parties(b []byte, tx *transaction.Transaction) []byte {
	c := tx.Connection
	i := uint(2 * c.ID)
	if tx.Backward {
		i++
	}
	k := &e.said[i%uint(len(e.said))]
	if c.Tunnel == nil && k.text != nil && k.id == c.ID && k.back == tx.Backward && k.from == tx.From && k.fabric == c.Fabric &&
		k.first == c.First.Time && k.ends == c.Ends {
		return append(b, k.text...)
	}
	start := len(b)
	b = num(b, `,"connection":`, uint64(c.ID))
	b = append(b, `,"connection_key":"`...)
	b = e.Key(b, c)
	b = append(b, '"')
	b = e.ends(b, tx)
	if c.Tunnel == nil {
		*k = said{c.ID, c.Fabric, tx.From, tx.Backward, c.First.Time, c.Ends, append(k.text[:0], b[start:]...)}
	}
	return b
}

// ends appends between whom a transaction took place.
func (e *Encoder) ends(b []byte, tx *transaction.Transaction) []byte {
	b = str(b, `,"fabric":`, tx.Connection.Fabric.String())
	client, server := tx.Client(), tx.Server()
	b = str(b, `,"client":`, e.addr(client.Addr))
	b = str(b, `,"server":`, e.addr(server.Addr))
	b = num(b, `,"client_endpoint":`, uint64(client.Number()))
	b = num(b, `,"server_endpoint":`, uint64(server.Number()))
	if tx.Backward {
		b = append(b, `,"direction":"backward"`...)
	} else {
		b = append(b, `,"direction":"forward"`...)
	}
	if t := tx.Connection.Tunnel; t != nil {
		b = append(b, `,"tunnel":`...)
		b = e.Tunnel(b, t, tx.From)
	}
	return b
}

// operation appends what was called.
func (e *Encoder) operation(b []byte, v *rpc.View) []byte {
	if k := e.kinds.Of(v); k != nil {
		x := &e.listed[k.Slot]
		if x.stamp != k.Stamp {
			minor, _ := v.MinorVersion()
			*x = listed{k.Stamp, operations(x.text[:0], v, v.Steps(), minor, true)}
		}
		return append(b, x.text...)
	}
	ops := v.Steps()
	minor, isCompound := v.MinorVersion()
	if v.Procedure == nil || len(ops) > 0 || isCompound {
		return operations(b, v, ops, minor, isCompound)
	}
	k := &e.called[v.Tx.Procedure%uint32(len(e.called))]
	if k.procedure != v.Procedure || k.program != v.Tx.Program || k.version != v.Tx.Version {
		*k = called{v.Procedure, v.Tx.Program, v.Tx.Version, operations(k.text[:0], v, nil, 0, false)}
	}
	return append(b, k.text...)
}

func operations(b []byte, v *rpc.View, ops []rpc.Step, minor uint32, isCompound bool) []byte {
	b = str(b, `,"program":`, v.ProgramName())
	b = num(b, `,"version":`, uint64(v.Tx.Version))
	b = str(b, `,"procedure":`, v.ProcedureName())
	if isCompound {
		b = num(b, `,"minor_version":`, uint64(minor))
	}
	b = append(b, `,"operation":"`...)
	b = v.AppendOperation(b)
	b = append(b, '"')
	b = str(b, `,"operation_group":`, v.OperationGroup())
	if len(ops) > 0 {
		b = append(b, `,"operations":[`...)
		for i := range ops {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"op":"`...)
			b = append(b, ops[i].Name...)
			b = append(b, `","status":`...)
			if ops[i].Status == "" {
				b = append(b, `null}`...)
			} else {
				b = append(b, '"')
				b = append(b, ops[i].Status...)
				b = append(b, `"}`...)
			}
		}
		b = append(b, ']')
	}
	return b
}

// status appends how it ended, and how it was protected.
func status(b []byte, v *rpc.View) []byte {
	b = str(b, `,"status":`, v.Status())
	if w := v.Wrapped(); w != "" {
		b = str(b, `,"gss":`, w)
	}
	if o := v.Opening(); o != rpc.NotOpened {
		b = str(b, `,"gss_opened":`, o.String())
	}
	if v.Principal != "" {
		b = append(b, `,"gss_principal":`...)
		b = Quote(b, v.Principal)
	}
	return b
}

// wire appends the messages and the RDMA operations.
func wire(b []byte, tx *transaction.Transaction) []byte {
	b = frame(b, `,"call_frame":`, tx.Call.Last)
	b = frame(b, `,"reply_frame":`, tx.Reply.Last)
	b = transport(b, tx)
	b = digits.Append(b, tx.Call.Bytes)
	b = num(b, `,"reply_bytes":`, tx.Reply.Bytes)
	b = num(b, `,"retransmits":`, uint64(tx.Retransmits))
	if tx.Reply.Invalidates {
		b = num(b, `,"invalidated_handle":`, uint64(tx.Reply.Handle))
	}
	return b
}

// transport appends the headers of the messages, the RDMA operations, and the key of what follows.
func transport(b []byte, tx *transaction.Transaction) []byte {
	b = framing(b, &tx.Call, &tx.Reply)
	b = chunks(b, tx)
	b = num(b, `,"rdma_reads":`, uint64(tx.Reads))
	b = num(b, `,"rdma_read_bytes":`, tx.ReadBytes)
	b = num(b, `,"rdma_writes":`, uint64(tx.Writes))
	b = num(b, `,"rdma_write_bytes":`, tx.WriteBytes)
	return append(b, `,"call_bytes":`...)
}

// framing appends what the headers of the messages say of themselves.
func framing(b []byte, call, reply *transaction.Message) []byte {
	b = str(b, `,"call_type":`, call.TypeName())
	b = str(b, `,"reply_type":`, reply.TypeName())
	b = num(b, `,"credits_requested":`, uint64(call.Credits()))
	return num(b, `,"credits_granted":`, uint64(reply.Credits()))
}

// notes appends the notes of a transaction as sentences, then their codes.
func notes(b []byte, list []transaction.Note) []byte {
	if len(list) == 0 {
		return append(b, noNotes...)
	}
	b = append(b, `,"notes":[`...)
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = Quote(b, n.String())
	}
	b = append(b, `],"note_codes":[`...)
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = Quote(b, n.Kind.Code())
	}
	return append(b, ']')
}

// chunks appends the chunk lists of call and reply.
func chunks(b []byte, tx *transaction.Transaction) []byte {
	b = appendReads(b, `,"read_chunks":`, &tx.Call)
	b = appendWrites(b, `,"write_chunks":`, &tx.Call)
	b = appendReply(b, `,"reply_chunk":`, &tx.Call)
	b = appendWrites(b, `,"written_chunks":`, &tx.Reply)
	b = appendReply(b, `,"written_reply_chunk":`, &tx.Reply)
	if tx.Reply.Transport && len(tx.Reply.Header.Reads) > 0 {
		b = appendReads(b, `,"reply_read_chunks":`, &tx.Reply)
	}
	return b
}

func latency(b []byte, p *transaction.Phases) []byte {
	if p.Divided() {
		b = dur(b, `,"latency_ns":{"call_transfer":`, p.CallTransfer)
		b = dur(b, `,"argument_pull":`, p.ArgumentPull)
		b = dur(b, `,"pull_wait":`, p.PullWait)
		b = dur(b, `,"server":`, p.Server)
		b = dur(b, `,"result_push":`, p.ResultPush)
		b = dur(b, `,"reply_transfer":`, p.ReplyTransfer)
		b = dur(b, `,"total":`, p.Total)
	} else {
		b = dur(b, `,"latency_ns":{"total":`, p.Total)
	}
	if p.Ack >= 0 {
		b = dur(b, `,"ack":`, p.Ack)
	}
	return append(b, '}')
}

// ended appends what the time was lost to, how it ended, and the notes.
func ended(b []byte, tx *transaction.Transaction) []byte {
	b = lost(b, tx)
	b = str(b, `,"state":`, tx.State.String())
	b = str(b, `,"call_delivery":`, tx.CallDelivery().String())
	b = str(b, `,"reply_delivery":`, tx.ReplyDelivery().String())
	return notes(b, tx.Notes)
}

// lost appends what the time was lost to.
func lost(b []byte, tx *transaction.Transaction) []byte {
	b = dur(b, `,"credit_wait_ns":`, tx.Credits)
	b = dur(b, `,"slot_wait_ns":`, tx.Slots)
	if tx.Blame == nil {
		return append(b, `,"lost_ns":null`...)
	}
	if lossless(tx.Blame) {
		return append(b, nothingLost...)
	}
	b = append(b, `,"lost_ns":`...)
	brace := len(b)
	sum := time.Duration(0)
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		d := tx.Blame.Of(c)
		sum += d
		b = dur(name(b, c.String()), "", d)
	}
	b[brace] = '{'
	b = dur(b, `,"total":`, sum)
	if sum > 0 {
		b = append(b, `,"phases":`...)
		brace = len(b)
		for ph := range transaction.Parts() {
			inner := 0
			for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
				d := tx.Blame.Shares[ph][c]
				if d == 0 {
					continue
				}
				if inner == 0 {
					b = name(b, ph.String())
					inner = len(b)
				}
				b = dur(name(b, c.String()), "", d)
			}
			if inner > 0 {
				b[inner] = '{'
				b = append(b, '}')
			}
		}
		b[brace] = '{'
		b = append(b, '}')
	}
	return append(b, '}')
}

// lossless reports whether nothing was lost.
func lossless(b *transaction.Blame) bool {
	if b.Quiet {
		return true
	}
	var any time.Duration
	for ph := range b.Shares {
		s := &b.Shares[ph]
		any |= s[rdma.CauseNotReady] | s[rdma.CauseRecovery] | s[rdma.CauseCongestion] | s[rdma.CauseReadSlot] | s[rdma.CauseUnknown]
	}
	return any == 0
}

// What most transactions have at their end.
const (
	nothingBefore = `,"credit_wait_ns":0,"slot_wait_ns":0`
	complete      = `,"state":"complete","call_delivery":"acknowledged","reply_delivery":`
	acknowledged  = complete + `"acknowledged"`
	unconfirmed   = complete + `"unknown"`
	noNotes       = `,"notes":[],"note_codes":[]`
)

// nothingLost is what lost writes if nothing was.
const nothingLost = `,"lost_ns":{"receiver_not_ready":0,"recovery":0,"congestion":0,"read_slot":0,"unknown":0,"total":0}`

// Tunnel appends the wrapping of a connection as an object; client is the side
// of its client.
func (e *Encoder) Tunnel(b []byte, t *rdma.Tunnel, client rdma.Side) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, t.Type...)
	b = append(b, '"')
	if t.Version != 0 {
		b = num(b, `,"version":`, uint64(t.Version))
	}
	if t.HasID {
		b = num(b, `,"id":`, uint64(t.ID))
	}
	if t.Ends[0].IsValid() {
		b = str(b, `,"outer_client":`, e.addr(t.Ends[client]))
		b = str(b, `,"outer_server":`, e.addr(t.Ends[client.Other()]))
	}
	return append(b, '}')
}

// Time appends a time as RFC 3339 with nanoseconds, UTC.
func (e *Encoder) Time(b []byte, ns int64) []byte {
	sec, frac := ns/1e9, ns%1e9
	if frac < 0 {
		sec, frac = sec-1, frac+1e9
	}
	if sec != e.second || e.stamp[0] == 0 {
		if e.stamp[0] != 0 && sec > e.second && sec-e.second < 60-e.ofMinute { // the next seconds of a minute
			e.ofMinute += sec - e.second
			e.stamp[17], e.stamp[18] = '0'+byte(e.ofMinute/10), '0'+byte(e.ofMinute%10)
		} else {
			t := time.Unix(sec, 0).UTC()
			s := t.AppendFormat(e.stamp[:0], "2006-01-02T15:04:05.")
			if len(s) != len(e.stamp) {
				e.stamp[0] = 0
				return time.Unix(0, ns).UTC().AppendFormat(b, "2006-01-02T15:04:05.000000000Z")
			}
			e.ofMinute = int64(t.Second())
		}
		e.second = sec
	}
	b = digits.Nano(append(b, e.stamp[:]...), uint32(frac))
	return append(b, 'Z')
}

// addr is the text of an address.
func (e *Encoder) addr(a netip.Addr) string {
	s, ok := e.addrs[a]
	if !ok {
		if e.addrs == nil || len(e.addrs) > 4096 {
			e.addrs = make(map[netip.Addr]string)
		}
		s = link.AddrString(a)
		e.addrs[a] = s
	}
	return s
}

func appendReads(b []byte, key string, m *transaction.Message) []byte {
	b = append(b, key...)
	b = append(b, '[')
	if m.Transport {
		for ci, c := range m.Header.ReadChunks() {
			if ci > 0 {
				b = append(b, ',')
			}
			b = num(b, `{"position":`, uint64(c.Position))
			b = append(b, `,"segments":[`...)
			for i := range c.Segments {
				if i > 0 {
					b = append(b, ',')
				}
				b = segment(b, c.Segments[i].Segment)
			}
			b = append(b, `]}`...)
		}
	}
	return append(b, ']')
}

func appendWrites(b []byte, key string, m *transaction.Message) []byte {
	b = append(b, key...)
	b = append(b, '[')
	if m.Transport {
		for i, c := range m.Header.Writes {
			if i > 0 {
				b = append(b, ',')
			}
			b = segments(b, c)
		}
	}
	return append(b, ']')
}

func appendReply(b []byte, key string, m *transaction.Message) []byte {
	b = append(b, key...)
	if !m.Transport || !m.Header.HasReply {
		return append(b, "null"...)
	}
	return segments(b, m.Header.Reply)
}

func segments(b []byte, c rpcrdma.WriteChunk) []byte {
	b = append(b, '[')
	for i := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = segment(b, c[i])
	}
	return append(b, ']')
}

func segment(b []byte, s rpcrdma.Segment) []byte {
	b = num(b, `{"handle":`, uint64(s.Handle))
	b = num(b, `,"length":`, uint64(s.Length))
	b = num(b, `,"offset":`, s.Offset)
	return append(b, '}')
}

func (e *Encoder) file(b []byte, v *rpc.View, f *rpc.File) []byte {
	b = append(b, `,"file":{`...)
	start := len(b)
	if f.Handle != nil {
		b = e.handle(b, `,"filehandle":"`, f.Handle)
	}
	if f.Name != nil {
		b = quoted(b, `,"name":"`, f.Name)
	}
	b = e.rest(e.pathOf(b, v), f)
	if len(b) > start && b[start] == ',' {
		b = append(b[:start], b[start+1:]...)
	}
	return append(b, '}')
}

// rest appends what else is known of a file.
func (e *Encoder) rest(b []byte, f *rpc.File) []byte {
	if f.To != nil {
		b = quoted(b, `,"to":"`, f.To)
	}
	if f.Result != nil {
		b = e.handle(b, resultKey, f.Result)
	}
	if f.HasRange {
		b = num(b, offsetKey, f.Offset)
		b = num(b, countKey, f.Count)
	}
	if f.Stable != "" {
		b = str(b, stableKey, f.Stable)
	}
	if f.HasMoved {
		b = num(b, movedKey, f.Moved)
	}
	if f.EOF {
		b = append(b, atEOF...)
	}
	return b
}

// quoted appends a key with a quotation mark, and a name behind it.
func quoted(b []byte, key string, name []byte) []byte {
	b = append(b, key...)
	if !printable.Plain(name) {
		return QuoteBytes(b[:len(b)-1], name)
	}
	return append(append(b, name...), '"')
}

// pathOf appends the path, if it is known. It is put together where it belongs, and once more if it needs escapes.
func (e *Encoder) pathOf(b []byte, v *rpc.View) []byte {
	const key = `,"path":"`
	before := len(b)
	b = v.AppendPath(append(b, key...))
	path := b[before+len(key):]
	switch {
	case len(path) == 0:
		return b[:before]
	case !printable.Plain(path):
		e.path = append(e.path[:0], path...)
		return QuoteBytes(b[:before+len(key)-1], e.path)
	}
	return append(b, '"')
}

// handle appends a key and a file handle. Those used lately are kept as they are written: files are used several times in
// a row.
func (e *Encoder) handle(b []byte, key string, h []byte) []byte {
	b = append(b, key...)
	k := &e.spelt[slot(h)%uint64(len(e.spelt))]
	if k.text == nil || !bytes.Equal(k.handle, h) {
		k.handle = append(k.handle[:0], h...)
		k.text = append(digits.Hex(k.text[:0], h), '"')
	}
	return append(b, k.text...)
}

// slot is a number that differs for most file handles: servers tell them apart at the end.
func slot(h []byte) uint64 {
	if len(h) >= 8 {
		h = h[len(h)-8:]
		return binary.LittleEndian.Uint64(h) * 0x9e3779b97f4a7c15 >> 32
	}
	return uint64(len(h))
}

// name appends a key that is not known before the program runs.
func name(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

// num appends a key and a number. Like that of the functions below, the key is as it is written, with the comma before and
// the colon behind it: one copy instead of three.
func num(b []byte, key string, v uint64) []byte {
	return digits.Append(append(b, key...), v)
}

func dur(b []byte, key string, d time.Duration) []byte {
	b = append(b, key...)
	if d < 0 {
		return strconv.AppendInt(b, int64(d), 10)
	}
	return digits.Append(b, uint64(d))
}

func frame(b []byte, key string, r rdma.Ref) []byte {
	if !r.Seen() {
		b = append(b, key...)
		return append(b, "null"...)
	}
	return num(b, key, r.Number)
}

// str appends a key and a string that needs no escapes.
func str(b []byte, key, v string) []byte {
	b = append(b, key...)
	b = append(b, '"')
	b = append(b, v...)
	return append(b, '"')
}
