package parquet

import (
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/fields"
)

// value implements fields.Values: it takes the value of an attribute, or several of a list.
type value struct {
	e      *encoder
	of     *fields.Field
	is     bool
	number int64
	text   string
	bytes  []byte // instead of text, if their memory may be used again
	list   []string
}

// keep makes the value hold on when memory is used again.
func (x *value) keep() {
	if x.bytes != nil {
		x.text, x.bytes = string(x.bytes), nil
	}
}

func (x *value) num(n int64) { x.is, x.number = true, n }

// Uint implements fields.Values.
func (x *value) Uint(n uint64) { x.num(int64(n)) }

// Count implements fields.Values.
func (x *value) Count(n uint64) { x.num(int64(n)) }

// Duration implements fields.Values.
func (x *value) Duration(d time.Duration) { x.num(int64(d)) }

// Time implements fields.Values.
func (x *value) Time(ns int64) { x.num(ns) }

// Bool implements fields.Values. False is null.
func (x *value) Bool(b bool) {
	if b {
		x.num(1)
	}
}

// Symbol implements fields.Values.
func (x *value) Symbol(s string) {
	if x.of.Several {
		x.list = append(x.list, s)
		return
	}
	x.is, x.text = true, s
}

// Text implements fields.Values.
func (x *value) Text(s string) {
	if !utf8.ValidString(s) {
		s = string(x.e.valid([]byte(s)))
	}
	x.Symbol(s)
}

// TextBytes implements fields.Values.
func (x *value) TextBytes(b []byte) { x.is, x.bytes = true, x.e.valid(b) }

// Hex implements fields.Values.
func (x *value) Hex(b []byte) { x.is, x.bytes = true, b }

// Enum implements fields.Values.
func (x *value) Enum(code uint32, symbol string) {
	if symbol == "" {
		symbol = strconv.FormatUint(uint64(code), 10)
	}
	x.Symbol(symbol)
}

// Addr implements fields.Values.
func (x *value) Addr(a netip.Addr) { x.Symbol(x.e.addrs.Of(a)) }

// Stopped implements fields.Values. All values are wanted.
func (x *value) Stopped() bool { return false }
