// Package ndjson writes transactions as JSON, one object a line: schema
// "rpcrdma.transaction/1", documented in docs/schema.md.
package ndjson

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Schema is the value of the key "schema".
const Schema = "rpcrdma.transaction/1"

// Encoder turns transactions into JSON objects. It keeps what repeats.
type Encoder struct {
	addrs map[netip.Addr]string
	day   int64 // of the cached date, in days since 1970
	date  [11]byte
	hex   [2 * 64]byte
	path  []byte
}

// Append appends the object of a transaction, without a newline.
func (e *Encoder) Append(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	b = append(b, `{"schema":"`...)
	b = append(b, Schema...)
	b = append(b, `","time":"`...)
	b = e.Time(b, tx.First().Time)
	b = append(b, '"')
	b = num(b, "xid", uint64(tx.XID))
	b = num(b, "connection", uint64(tx.Connection.ID))
	b = append(b, `,"connection_key":"`...)
	b = e.Key(b, tx.Connection)
	b = append(b, '"')
	b = e.ends(b, tx)
	b = operation(b, v)
	b = status(b, v)
	b = wire(b, tx)
	if p, ok := tx.Phases(); ok {
		b = latency(b, &p)
	} else {
		b = append(b, `,"latency_ns":null`...)
	}
	b = lost(b, tx)
	b = str(b, "state", tx.State.String())
	b = notes(b, tx.Notes)
	if f := v.File(); f != nil {
		b = e.file(b, v, f)
	}
	return append(b, '}')
}

// ends appends between whom a transaction took place.
func (e *Encoder) ends(b []byte, tx *transaction.Transaction) []byte {
	b = str(b, "fabric", tx.Connection.Fabric.String())
	client, server := tx.Client(), tx.Server()
	b = str(b, "client", e.addr(client.Addr))
	b = str(b, "server", e.addr(server.Addr))
	b = num(b, "client_endpoint", uint64(client.Number()))
	b = num(b, "server_endpoint", uint64(server.Number()))
	if tx.Backward {
		b = append(b, `,"direction":"backward"`...)
	} else {
		b = append(b, `,"direction":"forward"`...)
	}
	if t := tx.Connection.Tunnel; t != nil {
		b = name(b, "tunnel")
		b = e.Tunnel(b, t, tx.From)
	}
	return b
}

// operation appends what was called.
func operation(b []byte, v *rpc.View) []byte {
	b = str(b, "program", v.ProgramName())
	b = num(b, "version", uint64(v.Tx.Version))
	b = str(b, "procedure", v.ProcedureName())
	if minor, ok := v.MinorVersion(); ok {
		b = num(b, "minor_version", uint64(minor))
	}
	b = append(b, `,"operation":"`...)
	b = v.AppendOperation(b)
	b = append(b, '"')
	b = str(b, "operation_group", v.OperationGroup())
	if ops := v.Operations(); len(ops) > 0 {
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
	b = str(b, "status", v.Status())
	if w := v.Wrapped(); w != "" {
		b = str(b, "gss", w)
	}
	if o := v.Opening(); o != rpc.NotOpened {
		b = str(b, "gss_opened", o.String())
	}
	if v.Principal != "" {
		b = name(b, "gss_principal")
		b = Quote(b, v.Principal)
	}
	return b
}

// wire appends the messages and the RDMA operations.
func wire(b []byte, tx *transaction.Transaction) []byte {
	b = frame(b, "call_frame", tx.Call.Last)
	b = frame(b, "reply_frame", tx.Reply.Last)
	b = str(b, "call_type", tx.Call.TypeName())
	b = str(b, "reply_type", tx.Reply.TypeName())
	b = num(b, "credits_requested", uint64(tx.Call.Credits()))
	b = num(b, "credits_granted", uint64(tx.Reply.Credits()))
	b = chunks(b, tx)
	b = num(b, "rdma_reads", uint64(tx.Reads))
	b = num(b, "rdma_read_bytes", tx.ReadBytes)
	b = num(b, "rdma_writes", uint64(tx.Writes))
	b = num(b, "rdma_write_bytes", tx.WriteBytes)
	b = num(b, "call_bytes", tx.Call.Bytes)
	b = num(b, "reply_bytes", tx.Reply.Bytes)
	b = num(b, "retransmits", uint64(tx.Retransmits))
	if tx.Reply.Invalidates {
		b = num(b, "invalidated_handle", uint64(tx.Reply.Handle))
	}
	return b
}

// notes appends the notes of a transaction as sentences, then their codes.
func notes(b []byte, list []transaction.Note) []byte {
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
	b = appendReads(b, "read_chunks", &tx.Call)
	b = appendWrites(b, "write_chunks", &tx.Call)
	b = appendReply(b, "reply_chunk", &tx.Call)
	b = appendWrites(b, "written_chunks", &tx.Reply)
	b = appendReply(b, "written_reply_chunk", &tx.Reply)
	if tx.Reply.Transport && len(tx.Reply.Header.Reads) > 0 {
		b = appendReads(b, "reply_read_chunks", &tx.Reply)
	}
	return b
}

// phaseOrder is the order of the keys of "latency_ns", before the total.
var phaseOrder = [...]transaction.Phase{
	transaction.PhaseCall, transaction.PhasePull, transaction.PhaseWait, transaction.PhaseServer, transaction.PhasePush, transaction.PhaseReply,
}

func latency(b []byte, p *transaction.Phases) []byte {
	b = append(b, `,"latency_ns":`...)
	brace := len(b)
	for _, ph := range phaseOrder {
		b = dur(b, ph.String(), p.Of(ph))
	}
	b[brace] = '{' // instead of the first comma
	b = dur(b, "total", p.Total)
	if p.Ack >= 0 {
		b = dur(b, transaction.PhaseAck.String(), p.Ack)
	}
	return append(b, '}')
}

// lost appends what the time was lost to.
func lost(b []byte, tx *transaction.Transaction) []byte {
	b = dur(b, "credit_wait_ns", tx.Credits)
	b = dur(b, "slot_wait_ns", tx.Slots)
	if tx.Blame == nil {
		return append(b, `,"lost_ns":null`...)
	}
	b = append(b, `,"lost_ns":`...)
	brace := len(b)
	sum := time.Duration(0)
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		d := tx.Blame.Of(c)
		sum += d
		b = dur(b, c.String(), d)
	}
	b[brace] = '{'
	b = dur(b, "total", sum)
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
				b = dur(b, c.String(), d)
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

// Tunnel appends the wrapping of a connection as an object; client is the side
// of its client.
func (e *Encoder) Tunnel(b []byte, t *rdma.Tunnel, client rdma.Side) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, t.Type...)
	b = append(b, '"')
	if t.Version != 0 {
		b = num(b, "version", uint64(t.Version))
	}
	if t.HasID {
		b = num(b, "id", uint64(t.ID))
	}
	if t.Ends[0].IsValid() {
		b = str(b, "outer_client", e.addr(t.Ends[client]))
		b = str(b, "outer_server", e.addr(t.Ends[client.Other()]))
	}
	return append(b, '}')
}

// Time appends a time as RFC 3339 with nanoseconds, UTC.
func (e *Encoder) Time(b []byte, ns int64) []byte {
	const nsPerDay = 24 * 60 * 60 * 1e9
	day := ns / nsPerDay
	rest := ns % nsPerDay
	if rest < 0 {
		day, rest = day-1, rest+nsPerDay
	}
	if day != e.day || e.date[0] == 0 {
		t := time.Unix(day*24*60*60, 0).UTC()
		e.day = day
		s := t.AppendFormat(e.date[:0], "2006-01-02T")
		if len(s) != len(e.date) {
			return time.Unix(0, ns).UTC().AppendFormat(b, "2006-01-02T15:04:05.000000000Z")
		}
	}
	b = append(b, e.date[:]...)
	sec, frac := rest/1e9, rest%1e9
	b = two(b, sec/3600)
	b = append(b, ':')
	b = two(b, sec/60%60)
	b = append(b, ':')
	b = two(b, sec%60)
	b = append(b, '.')
	var d [9]byte
	for i := 8; i >= 0; i-- {
		d[i] = byte('0' + frac%10)
		frac /= 10
	}
	b = append(b, d[:]...)
	return append(b, 'Z')
}

func two(b []byte, n int64) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

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
	b = name(b, key)
	b = append(b, '[')
	if m.Transport {
		for ci, c := range m.Header.ReadChunks() {
			if ci > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"position":`...)
			b = strconv.AppendUint(b, uint64(c.Position), 10)
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
	b = name(b, key)
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
	b = name(b, key)
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
	b = append(b, `{"handle":`...)
	b = strconv.AppendUint(b, uint64(s.Handle), 10)
	b = append(b, `,"length":`...)
	b = strconv.AppendUint(b, uint64(s.Length), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendUint(b, s.Offset, 10)
	return append(b, '}')
}

func (e *Encoder) file(b []byte, v *rpc.View, f *rpc.File) []byte {
	b = append(b, `,"file":{`...)
	start := len(b)
	if f.Handle != nil {
		b = e.handle(b, "filehandle", f.Handle)
	}
	if f.Name != nil {
		b = name(b, "name")
		b = QuoteBytes(b, f.Name)
	}
	if e.path = v.AppendPath(e.path[:0]); len(e.path) > 0 {
		b = name(b, "path")
		b = QuoteBytes(b, e.path)
	}
	if f.To != nil {
		b = name(b, "to")
		b = QuoteBytes(b, f.To)
	}
	if f.Result != nil {
		b = e.handle(b, "new_filehandle", f.Result)
	}
	if f.HasRange {
		b = num(b, "offset", f.Offset)
		b = num(b, "count", f.Count)
	}
	if f.Stable != "" {
		b = str(b, "stable", f.Stable)
	}
	if f.HasMoved {
		b = num(b, "moved", f.Moved)
	}
	if f.EOF {
		b = append(b, `,"eof":true`...)
	}
	if len(b) > start && b[start] == ',' {
		b = append(b[:start], b[start+1:]...)
	}
	return append(b, '}')
}

func (e *Encoder) handle(b []byte, key string, h []byte) []byte {
	b = name(b, key)
	b = append(b, '"')
	for len(h) > 0 {
		n := min(len(h), len(e.hex)/2)
		hex.Encode(e.hex[:], h[:n])
		b = append(b, e.hex[:2*n]...)
		h = h[n:]
	}
	return append(b, '"')
}

func name(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

func num(b []byte, key string, v uint64) []byte {
	b = name(b, key)
	return strconv.AppendUint(b, v, 10)
}

func dur(b []byte, key string, d time.Duration) []byte {
	b = name(b, key)
	return strconv.AppendInt(b, int64(d), 10)
}

func frame(b []byte, key string, r rdma.Ref) []byte {
	if !r.Seen() {
		b = name(b, key)
		return append(b, "null"...)
	}
	return num(b, key, r.Number)
}

// str appends a key and a string that needs no escapes.
func str(b []byte, key, v string) []byte {
	b = name(b, key)
	b = append(b, '"')
	b = append(b, v...)
	return append(b, '"')
}
