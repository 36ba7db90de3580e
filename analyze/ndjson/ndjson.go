// Package ndjson writes transactions as JSON, one object a line: schema
// "rpcrdma.transaction/1", documented in docs/schema.md. The keys come
// from the table of attributes, package fields.
package ndjson

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/digits"
)

// Schema is the value of the key "schema".
const Schema = "rpcrdma.transaction/1"

// Encoder turns transactions into JSON objects. It keeps a template for each of the kinds of transactions seen lately.
type Encoder struct {
	clock     clock
	addrs     link.AddrTexts
	kinds     compound.Kinds
	ends      [256]connection
	templates [1024]*template
	reader    fields.Reader
	row       row
}

// Append appends the object of a transaction, without a newline.
func (e *Encoder) Append(b []byte, v *rpc.View) []byte {
	e.begin()
	return e.template(v).append(e, b, v)
}

// begin gets ready for the next transaction.
func (e *Encoder) begin() *Encoder {
	e.row.e, e.reader.Values = e, &e.row
	e.reader.Reset()
	return e
}

// row takes the values of the object that is being written: fields.Values.
type row struct {
	e *Encoder
	b []byte
}

func (r *row) Uint(v uint64)            { r.b = digits.Append(r.b, v) }
func (r *row) Count(v uint64)           { r.b = digits.Append(r.b, v) }
func (r *row) Duration(d time.Duration) { r.b = strconv.AppendInt(r.b, int64(d), 10) }
func (r *row) Time(ns int64)            { r.b = append(r.e.Time(append(r.b, '"'), ns), '"') }
func (r *row) Text(s string)            { r.b = Quote(r.b, s) }
func (r *row) TextBytes(s []byte)       { r.b = QuoteBytes(r.b, s) }
func (r *row) Hex(v []byte)             { r.b = append(digits.Hex(append(r.b, '"'), v), '"') }
func (r *row) Symbol(s string)          { r.b = text(r.b, s) }
func (r *row) Addr(a netip.Addr)        { r.b = text(r.b, r.e.addrs.Of(a)) }
func (r *row) Stopped() bool            { return false }

// Bool writes what is true. What is not is left out.
func (r *row) Bool(v bool) {
	if v {
		r.b = append(r.b, "true"...)
	}
}

func (r *row) Enum(code uint32, symbol string) {
	if symbol == "" {
		symbol = strconv.FormatUint(uint64(code), 10)
	}
	r.b = text(r.b, symbol)
}

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
		b = str(b, `,"outer_client":`, e.addrs.Of(t.Ends[client]))
		b = str(b, `,"outer_server":`, e.addrs.Of(t.Ends[client.Other()]))
	}
	return append(b, '}')
}

// clock keeps the text of the second that was written last.
type clock struct {
	second   int64    // since 1970
	ofMinute int64    // the same second of its minute
	stamp    [20]byte // 2006-01-02T15:04:05.
}

// Time appends a time as RFC 3339 with nanoseconds, UTC.
func (e *Encoder) Time(b []byte, ns int64) []byte { return e.clock.append(b, ns) }

// append appends a time as RFC 3339 with nanoseconds, UTC.
func (c *clock) append(b []byte, ns int64) []byte {
	sec, frac := ns/1e9, ns%1e9
	if frac < 0 {
		sec, frac = sec-1, frac+1e9
	}
	if sec != c.second || c.stamp[0] == 0 {
		if c.stamp[0] != 0 && sec > c.second && sec-c.second < 60-c.ofMinute { // the next seconds of a minute
			c.ofMinute += sec - c.second
			c.stamp[17], c.stamp[18] = '0'+byte(c.ofMinute/10), '0'+byte(c.ofMinute%10)
		} else {
			t := time.Unix(sec, 0).UTC()
			s := t.AppendFormat(c.stamp[:0], "2006-01-02T15:04:05.")
			if len(s) != len(c.stamp) {
				c.stamp[0] = 0
				return time.Unix(0, ns).UTC().AppendFormat(b, "2006-01-02T15:04:05.000000000Z")
			}
			c.ofMinute = int64(t.Second())
		}
		c.second = sec
	}
	b = digits.Nano(append(b, c.stamp[:]...), uint32(frac))
	return append(b, 'Z')
}

// num appends a key and a number. Like that of the functions below, the key is as it is written, with the comma before and
// the colon behind it: one copy instead of three.
func num(b []byte, key string, v uint64) []byte {
	return digits.Append(append(b, key...), v)
}

// str appends a key and a string that needs no escapes.
func str(b []byte, key, v string) []byte { return text(append(b, key...), v) }

// text appends a string that needs no escapes.
func text(b []byte, v string) []byte {
	return append(append(append(b, '"'), v...), '"')
}
