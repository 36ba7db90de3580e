package nfs4

import (
	"strconv"
	"sync"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Fattr4 is a fattr4: a mask of attributes and their values, which stand in the order of the mask's bits
// without a length of their own (RFC 7530, section 5). The values are not inspected until they are asked for,
// by Attrs or by Walk: a directory's thousand entries would cost memory and time for nothing.
type Fattr4 struct {
	Attrmask AttrBitmap4
	AttrVals []byte
}

// Decode refills f.
func (f *Fattr4) Decode(r *xdr.Reader) {
	f.Attrmask.Decode(r)
	r.Field("attrmask")
	f.AttrVals = r.Opaque(0)
	r.Field("attr_vals")
}

// Skip passes over attributes.
func (*Fattr4) Skip(r *xdr.Reader, off uint) uint {
	return r.SkipOpaque(r.SkipArray(off, 0, 4), 0)
}

// Redact copies attributes up to the first that is not defined.
func (*Fattr4) Redact(x *xdr.Redactor) {
	mask := Bitmap4(x.Words())
	x.Nested(func(x *xdr.Redactor) {
		for n := mask.Next(0); n >= 0 && !x.Failed(); n = mask.Next(n + 1) {
			if n >= len(attrTable) {
				x.Ignore()
				return
			}
			attrTable[n].redact(x)
		}
	})
}

// Append appends f in XDR.
func (f *Fattr4) Append(b []byte) []byte {
	b = f.Attrmask.Append(b)
	return xdr.AppendOpaque(b, f.AttrVals)
}

// EncodedSize is the number of bytes that Append appends.
func (f *Fattr4) EncodedSize() int {
	return f.Attrmask.EncodedSize() + xdr.SizeOpaque(len(f.AttrVals))
}

var attrsPool = sync.Pool{New: func() any { return new(Attrs) }}

// Walk visits the attributes, each under its name. Values that cannot be read
// are visited as bytes, under "unknown attribute N", "malformed NAME" or
// "trailing bytes".
func (f *Fattr4) Walk(v xdr.Visitor) {
	a := attrsPool.Get().(*Attrs)
	_ = a.Decode(f) // Walk shows what is wrong
	a.Walk(v)
	attrsPool.Put(a)
}

// Attrs returns the values, decoded into their own memory except for opaques and texts. It
// returns what could be read, and the *xdr.Error that ended it.
func (f *Fattr4) Attrs() (*Attrs, error) {
	a := new(Attrs)
	err := a.Decode(f)
	return a, err
}

// Has reports whether attribute n has been decoded, or is to be encoded.
func (a *Attrs) Has(n int) bool {
	return n >= 0 && n < len(attrTable) && a.Mask.Has(uint32(n)) && (!a.Partial || n < a.RestFrom)
}

// restAll is the RestFrom of bytes after the last value.
const restAll = 1<<31 - 1

// Decode refills a with the values of f. The error is nil or an *xdr.Error that
// belongs to a; RestFrom is then the attribute that could not be read. An undefined number, and
// bytes after the last value, are not errors. Decode allocates nothing once a has held as much.
func (a *Attrs) Decode(f *Fattr4) error { return a.DecodeUntil(f, restAll) }

// DecodeUntil is Decode for callers who want no attributes from number end on: those are in Rest.
func (a *Attrs) DecodeUntil(f *Fattr4, end int) error {
	a.Mask, a.Rest, a.RestFrom, a.Partial = f.Attrmask.Bitmap4, nil, 0, false
	r := &a.reader
	r.Reset(f.AttrVals, len(f.AttrVals))
	for n := a.Mask.Next(0); n >= 0; n = a.Mask.Next(n + 1) {
		at := r.Offset()
		if n >= end {
			a.Partial, a.RestFrom, a.Rest = true, n, r.Rest()
			return nil
		}
		if n < len(attrTable) {
			t := &attrTable[n]
			if t.value != nil {
				t.value(a).decode(r)
			} else {
				t.message(a).Decode(r)
			}
			r.Field(t.name)
		}
		if n >= len(attrTable) || r.Failed() {
			a.Partial, a.RestFrom = true, n
			a.Rest = f.AttrVals[at:len(f.AttrVals):len(f.AttrVals)]
			return r.Err()
		}
	}
	if r.Remaining() > 0 {
		a.Partial, a.RestFrom, a.Rest = true, restAll, r.Rest()
	}
	return nil
}

// each calls do for the attributes whose values a holds, in order.
func (a *Attrs) each(do func(n int)) {
	for n := a.Mask.Next(0); n >= 0 && a.Has(n); n = a.Mask.Next(n + 1) {
		do(n)
	}
}

// AppendValues appends the values of the attributes in Mask, and Rest: an
// attrlist4 without its length.
func (a *Attrs) AppendValues(b []byte) []byte {
	a.each(func(n int) {
		if t := &attrTable[n]; t.value != nil {
			b = t.value(a).append(b)
		} else {
			b = t.message(a).Append(b)
		}
	})
	return append(b, a.Rest...)
}

// ValuesSize is the number of bytes that AppendValues appends.
func (a *Attrs) ValuesSize() int {
	size := len(a.Rest)
	a.each(func(n int) {
		if t := &attrTable[n]; t.value != nil {
			size += t.value(a).size()
		} else {
			size += t.message(a).EncodedSize()
		}
	})
	return size
}

// Fattr4 encodes a. The result shares Mask with a.
func (a *Attrs) Fattr4() Fattr4 {
	return Fattr4{
		Attrmask: AttrBitmap4{a.Mask},
		AttrVals: a.AppendValues(make([]byte, 0, a.ValuesSize())),
	}
}

// Walk visits the attributes as Fattr4.Walk does.
func (a *Attrs) Walk(v xdr.Visitor) {
	a.each(func(n int) {
		if t := &attrTable[n]; t.value != nil {
			t.value(a).walk(v, t.name)
		} else {
			v.Begin(t.name, t.typ, -1)
			t.message(a).Walk(v)
			v.End()
		}
	})
	switch {
	case !a.Partial:
	case a.RestFrom == restAll:
		v.Bytes("trailing bytes", a.Rest)
	case a.RestFrom < len(attrTable):
		v.Bytes("malformed "+attrTable[a.RestFrom].name, a.Rest)
	default:
		v.Bytes("unknown attribute "+strconv.Itoa(a.RestFrom), a.Rest)
	}
}
