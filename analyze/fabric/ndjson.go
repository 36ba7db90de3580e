package fabric

import (
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// OperationSchema is the value of the key "schema" of an operation.
const OperationSchema = "rpcrdma.operation/1"

// Encoder converts operations to text and JSON. It caches repeated parts.
type Encoder struct {
	Clock text.Clock
	time  ndjson.Encoder
	addrs link.AddrTexts
}

// AppendJSON appends an operation as a JSON object, without a newline.
func (e *Encoder) AppendJSON(b []byte, o *Operation) []byte {
	c := o.Connection.Resolve()
	num := func(key string, v uint64) {
		b = append(b, ',', '"')
		b = append(b, key...)
		b = append(b, '"', ':')
		b = strconv.AppendUint(b, v, 10)
	}
	str := func(key, v string) {
		b = append(b, ',', '"')
		b = append(b, key...)
		b = append(b, '"', ':', '"')
		b = append(b, v...)
		b = append(b, '"')
	}
	from, to := &c.Ends[o.From], &c.Ends[o.From.Other()]
	b = append(b, `{"schema":"`+OperationSchema+`","time":"`...)
	b = e.time.Time(b, o.First.Time)
	b = append(b, '"')
	num("connection", uint64(c.ID))
	str("fabric", c.Fabric.String())
	str("service", o.Service.Name)
	str("service_source", o.Service.Source.String())
	str("kind", o.Kind.String())
	str("requester", e.addrs.Of(from.Addr))
	str("responder", e.addrs.Of(to.Addr))
	num("requester_endpoint", uint64(from.Number()))
	num("responder_endpoint", uint64(to.Number()))
	num("sequence", o.Seq)
	str("status", o.Status.String())
	num("length", uint64(o.Length))
	num("bytes", o.Bytes)
	num("packets", uint64(o.Packets))
	num("again", uint64(o.Again))
	num("in_flight", uint64(o.InFlight))
	if c.Fabric != rdma.IWARP {
		num("psn", uint64(o.PSN))
	}
	if o.Kind == rdma.WorkWrite || o.Kind == rdma.WorkRead {
		num("handle", uint64(o.Handle))
		num("offset", o.Offset)
	}
	num("first_frame", o.First.Number)
	num("last_frame", o.Last.Number)
	if o.End.Seen() {
		num("end_frame", o.End.Number)
	} else {
		b = append(b, `,"end_frame":null`...)
	}
	if d, ok := o.Latency(); ok {
		num("latency_ns", uint64(d))
		b = append(b, `,"lost_ns":`...)
		brace := len(b)
		for c, n := range o.Lost {
			if c := rdma.Cause(c); c != rdma.CauseReadSlot {
				num(c.String(), uint64(n))
			}
		}
		b[brace] = '{'
		b = append(b, '}')
	} else {
		b = append(b, `,"latency_ns":null,"lost_ns":null`...)
	}
	return append(b, '}')
}

// AppendText appends an operation as a line, with its newline: the time of its
// first packet, the connection, what it is, from whom to whom, bytes, latency, and anything
// unusual.
func (e *Encoder) AppendText(b []byte, o *Operation) []byte {
	c := o.Connection.Resolve()
	n := len(b)
	if b = e.Clock.Append(b, o.First.Time); len(b) > n {
		b = append(b, ' ')
	}
	b = append(b, '#')
	b = strconv.AppendInt(b, int64(c.ID), 10)
	b = append(b, ' ')
	b = append(b, e.addrs.Of(c.Ends[o.From].Addr)...)
	b = append(b, " > "...)
	b = append(b, e.addrs.Of(c.Ends[o.From.Other()].Addr)...)
	b = append(b, ' ')
	b = append(b, o.Service.Name...)
	if o.Service.Source == SourceGuess {
		b = append(b, '?')
	}
	b = append(b, ' ')
	b = append(b, o.Kind.String()...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, uint64(o.Length), 10)
	b = append(b, " bytes, "...)
	if d, ok := o.Latency(); ok {
		b = units.AppendDuration(b, d)
	} else {
		b = append(b, o.Status.String()...)
	}
	if o.Status == Completed && o.Bytes < uint64(o.Length) {
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(o.Length)-o.Bytes, 10)
		b = append(b, " bytes not captured"...)
	}
	if o.InFlight > 1 {
		b = append(b, ", "...)
		b = strconv.AppendInt(b, int64(o.InFlight), 10)
		b = append(b, " in flight"...)
	}
	if o.Again > 0 {
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(o.Again), 10)
		b = append(b, " packets again"...)
	}
	for c, n := range o.Lost {
		if c := rdma.Cause(c); n > 0 && c != rdma.CauseRest {
			b = append(b, ", "...)
			b = units.AppendDuration(b, time.Duration(n))
			b = append(b, " lost to "...)
			b = append(b, strings.ReplaceAll(c.String(), "_", " ")...)
		}
	}
	b = append(b, ", frames "...)
	b = strconv.AppendUint(b, o.First.Number, 10)
	if end := max(o.Last.Number, o.End.Number); end != o.First.Number {
		b = append(b, '-')
		b = strconv.AppendUint(b, end, 10)
	}
	return append(b, '\n')
}
