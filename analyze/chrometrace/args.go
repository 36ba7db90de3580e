package chrometrace

import (
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/digits"
)

// shown are the attributes of a transaction's slice, in the order of the table.
var shown = sync.OnceValue(func() (list []*fields.Field) {
	table := fields.All()
	for i := range table {
		if f := &table[i]; f.In(fields.Timeline) && f.Name != "xid" && f.Name != "notes" {
			list = append(list, f)
		}
	}
	return list
})

// shortKeys are the keys of attributes that do not go by their own name.
var shortKeys = map[string]string{"file.offset": "offset", "file.count": "count"}

// args implements fields.Values: it writes the attributes of a transaction as members of an object.
type args struct {
	reader fields.Reader
	times  ndjson.Encoder
	b      []byte
	field  *fields.Field
	values int // of the field, so far
}

// append appends the attributes that a transaction has. Counts of 0 are left out.
func (a *args) append(b []byte, v *rpc.View) []byte {
	a.b, a.reader.Values = b, a
	a.reader.Reset()
	for _, f := range shown() {
		a.field, a.values = f, 0
		f.Read(&a.reader, v)
		switch {
		case a.values > 0 && f.Several:
			a.b = append(a.b, ']')
		case a.values == 0 && f.Absent == fields.Empty:
			a.Text("")
		}
	}
	b, a.b = a.b, nil
	return b
}

// next begins a value.
func (a *args) next() {
	a.values++
	if a.values > 1 {
		a.b = append(a.b, ',')
		return
	}
	name := a.field.Name
	if s := shortKeys[name]; s != "" {
		name = s
	}
	a.b = append(append(append(a.b, `,"`...), name...), `":`...)
	if a.field.Several {
		a.b = append(a.b, '[')
	}
}

// Count implements fields.Values.
func (a *args) Count(v uint64) {
	if v != 0 {
		a.Uint(v)
	}
}

// Bool implements fields.Values. False is left out.
func (a *args) Bool(v bool) {
	if v {
		a.next()
		a.b = append(a.b, "true"...)
	}
}

// Enum implements fields.Values.
func (a *args) Enum(code uint32, symbol string) {
	if symbol == "" {
		symbol = strconv.FormatUint(uint64(code), 10)
	}
	a.Text(symbol)
}

// Addr implements fields.Values.
func (a *args) Addr(x netip.Addr) {
	if x.IsValid() {
		a.Text(link.AddrString(x))
	}
}

// Uint implements fields.Values.
func (a *args) Uint(v uint64) { a.next(); a.b = strconv.AppendUint(a.b, v, 10) }

// Duration implements fields.Values.
func (a *args) Duration(d time.Duration) { a.next(); a.b = strconv.AppendInt(a.b, int64(d), 10) }

// Time implements fields.Values.
func (a *args) Time(ns int64) { a.next(); a.b = append(a.times.Time(append(a.b, '"'), ns), '"') }

// Text implements fields.Values.
func (a *args) Text(s string) { a.next(); a.b = ndjson.Quote(a.b, s) }

// TextBytes implements fields.Values.
func (a *args) TextBytes(s []byte) { a.next(); a.b = ndjson.QuoteBytes(a.b, s) }

// Symbol implements fields.Values.
func (a *args) Symbol(s string) { a.Text(s) }

// Hex implements fields.Values.
func (a *args) Hex(v []byte) { a.next(); a.b = append(digits.Hex(append(a.b, '"'), v), '"') }

// Stopped implements fields.Values. All values are wanted.
func (a *args) Stopped() bool { return false }
