package ladder

import (
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Schema is the value of the key "schema".
const Schema = "rpcrdma.show/1"

// Encoder converts transactions with their packets to JSON objects; see docs/reference/schema.md.
type Encoder struct {
	tx       ndjson.Encoder
	segments segments
	time     Timeline
}

// Append appends the object of a transaction, without a newline.
func (e *Encoder) Append(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	e.segments.reset(tx)
	e.time.Reset(tx)
	b = append(b, `{"schema":"`+Schema+`","transaction":`...)
	b = e.tx.Append(b, v)
	b = append(b, `,"packets":[`...)
	last := tx.First().Time
	for i := range tx.Packets {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.packet(b, tx, &tx.Packets[i], last)
		last = tx.Packets[i].Ref.Time
	}
	b = append(b, `],"packets_not_listed":`...)
	b = strconv.AppendInt(b, int64(tx.PacketsLost), 10)
	b = append(b, `,"operations":[`...)
	for i := range tx.Operations {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.operation(b, &tx.Operations[i], i+1)
	}
	b = append(b, `],"operations_not_listed":`...)
	b = strconv.AppendInt(b, int64(tx.OperationsLost), 10)
	b = append(b, `,"segments":[`...)
	for i := range e.segments.all {
		if i > 0 {
			b = append(b, ',')
		}
		b = segmentObject(b, &e.segments.all[i])
	}
	return append(b, "]}"...)
}

func key(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func number(b []byte, name string, v uint64) []byte {
	return strconv.AppendUint(key(b, name), v, 10)
}

func word(b []byte, name, v string) []byte { return ndjson.Quote(key(b, name), v) }

func boolean(b []byte, name string, v bool) []byte { return strconv.AppendBool(key(b, name), v) }

func (e *Encoder) packet(b []byte, tx *transaction.Transaction, p *transaction.Packet, last int64) []byte {
	b = append(b, `{"frame":`...)
	b = strconv.AppendUint(b, p.Ref.Number, 10)
	b = append(b, `,"time":"`...)
	b = e.tx.Time(b, p.Ref.Time)
	b = append(b, '"')
	b = strconv.AppendInt(key(b, "since_start_ns"), p.Ref.Time-tx.First().Time, 10)
	b = strconv.AppendInt(key(b, "delta_ns"), p.Ref.Time-last, 10)
	from := "server"
	if p.From == tx.From {
		from = "client"
	}
	b = word(b, "from", from)
	b = word(b, "role", p.Role.String())
	if e.time.Known {
		b = word(b, "phase", phaseName(e.time.Of(p.Ref)))
	} else {
		b = append(key(b, "phase"), "null"...)
	}
	if s := Opcode(p); s != "" {
		b = word(b, "opcode", s)
	} else {
		b = append(key(b, "opcode"), "null"...)
	}
	if h := &p.Header; h.Kind == rdma.HeaderBTH {
		b = number(b, "psn", uint64(h.PSN))
		if h.HasAETH {
			b = number(b, "syndrome", uint64(h.Syndrome))
			b = word(b, "syndrome_name", Syndrome(p))
			b = number(b, "msn", uint64(h.MSN))
		}
	} else if h.Kind == rdma.HeaderDDP {
		b = boolean(b, "last", h.Last)
		if h.MSN != 0 {
			b = number(b, "msn", uint64(h.MSN))
		}
	}
	b = number(b, "bytes", uint64(p.Bytes))
	if p.Role == transaction.WriteData || p.Role == transaction.ReadResponse {
		b = number(b, "offset", p.Offset)
	}
	if p.Operation > 0 {
		b = number(b, "operation", uint64(p.Operation))
	}
	if p.Role == transaction.Ack || p.Role == transaction.Nak {
		b = boolean(b, "acks_call", p.AcksCall)
		b = number(b, "acks_operations", uint64(p.Acked))
		b = boolean(b, "acks_reply", p.AcksReply)
	}
	b = boolean(b, "again", p.Again)
	if p.Beside {
		b = boolean(b, "beside", true)
	}
	return append(b, '}')
}

func (e *Encoder) operation(b []byte, o *transaction.Operation, n int) []byte {
	b = append(b, `{"operation":`...)
	b = strconv.AppendInt(b, int64(n), 10)
	kind := "read"
	if o.Kind == rdma.Write {
		kind = "write"
	}
	b = word(b, "kind", kind)
	if x := e.segments.find(o.Kind, o.Handle, o.Offset); x != nil {
		b = word(b, "segment", string(x.appendName(nil)))
	} else {
		b = append(key(b, "segment"), "null"...)
	}
	b = number(b, "handle", uint64(o.Handle))
	b = number(b, "offset", o.Offset)
	b = number(b, "length", uint64(o.Length))
	b = number(b, "bytes", uint64(o.Bytes))
	b = number(b, "first_frame", o.First.Number)
	b = number(b, "last_frame", o.Last.Number)
	b = number(b, "again", uint64(o.Again))
	return append(b, '}')
}

func segmentObject(b []byte, x *segment) []byte {
	b = append(b, `{"segment":"`...)
	b = x.appendName(b)
	b = append(b, '"')
	list := map[byte]string{'R': "read", 'Z': "position_zero", 'W': "write", 'P': "reply", 'S': "reply_read"}[x.list]
	b = word(b, "list", list)
	b = number(b, "chunk", uint64(x.chunk))
	b = number(b, "index", uint64(x.index))
	b = number(b, "handle", uint64(x.Handle))
	b = number(b, "offset", x.Offset)
	b = number(b, "length", uint64(x.Length))
	b = number(b, "moved", x.moved)
	if x.hasUsed {
		b = number(b, "used", x.used)
	}
	b = number(b, "operations", uint64(x.ops))
	if x.ops > 0 {
		b = number(b, "first_operation", uint64(x.first))
		b = number(b, "last_operation", uint64(x.last))
	}
	return append(b, '}')
}
