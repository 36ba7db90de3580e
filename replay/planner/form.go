package planner

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// form collects the fields of arguments together with their captured bytes. The bytes must equal
// the encoded arguments; otherwise the fields say something else.
type form struct {
	fields []plan.Field
	bytes  []byte
}

func (f *form) reset() { f.fields, f.bytes = nil, f.bytes[:0] }

func (f *form) u32(n string, v uint32) {
	f.add(plan.Field{N: n, Kind: plan.FieldU32, Value: uint64(v)})
	f.bytes = xdr.AppendUint32(f.bytes, v)
}

func (f *form) bool(n string, v bool) {
	if v {
		f.u32(n, 1)
	} else {
		f.u32(n, 0)
	}
}

func (f *form) u64(n string, v uint64) {
	f.add(plan.Field{N: n, Kind: plan.FieldU64, Value: v})
	f.bytes = xdr.AppendUint64(f.bytes, v)
}

func (f *form) text(n string, b []byte) {
	f.add(opaque(plan.Field{N: n, Kind: plan.FieldText}, b))
	f.bytes = xdr.AppendOpaque(f.bytes, b)
}

// name adds a component; to is the object that it leads to, 0 if unknown.
func (f *form) name(n string, b []byte, to int) {
	f.add(opaque(plan.Field{N: n, Kind: plan.FieldName, Ref: to}, b))
	f.bytes = xdr.AppendOpaque(f.bytes, b)
}

// raw adds the encoding of m unchanged.
func (f *form) raw(n string, m interface{ Append([]byte) []byte }) {
	at := len(f.bytes)
	f.bytes = m.Append(f.bytes)
	f.add(plan.Field{N: n, Kind: plan.FieldRaw, Bytes: bytes.Clone(f.bytes[at:])})
}

func (f *form) rawBytes(n string, b []byte) {
	f.bytes = append(f.bytes, b...)
	f.add(plan.Field{N: n, Kind: plan.FieldRaw, Bytes: bytes.Clone(b)})
}

// symbol adds a field whose value in the capture was b.
func (f *form) symbol(x plan.Field, b []byte) {
	f.add(x)
	f.bytes = append(f.bytes, b...)
}

func (f *form) handle(n string, object int, h []byte) {
	f.add(plan.Field{N: n, Kind: plan.FieldHandle, Ref: object})
	f.bytes = xdr.AppendOpaque(f.bytes, h)
}

// data adds data that may travel in a chunk.
func (f *form) data(n string, p *plan.Payload, d xdr.Data) {
	f.add(plan.Field{N: n, Kind: plan.FieldData, Data: p})
	f.bytes = xdr.AppendData(f.bytes, d)
}

func (f *form) add(x plan.Field) { f.fields = append(f.fields, x) }

// opaque fills text or bytes of a field.
func opaque(x plan.Field, b []byte) plan.Field {
	if utf8.Valid(b) {
		x.Text = string(b)
	} else {
		x.Bytes = bytes.Clone(b)
	}
	return x
}

// matches reports whether the fields say what the arguments said.
func (f *form) matches(m xdr.Message, scratch []byte) bool {
	return bytes.Equal(f.bytes, m.Append(scratch[:0]))
}

func itoa(n int) string { return strconv.Itoa(n) }
