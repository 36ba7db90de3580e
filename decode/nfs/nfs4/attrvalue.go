package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// value is an attribute that is not a structure. Its implementations are the
// types of the fields of Attrs under another name, so that a pointer to a field
// becomes a value without an allocation.
type value interface {
	decode(r *xdr.Reader)
	append(b []byte) []byte
	size() int
	walk(v xdr.Visitor, name string)
	redact(x *xdr.Redactor) // does not look at the receiver
}

type uint32Value uint32

func (x *uint32Value) decode(r *xdr.Reader)            { *x = uint32Value(r.Uint32()) }
func (x *uint32Value) append(b []byte) []byte          { return xdr.AppendUint32(b, uint32(*x)) }
func (x *uint32Value) size() int                       { return 4 }
func (x *uint32Value) walk(v xdr.Visitor, name string) { v.Uint(name, uint64(*x)) }

type uint64Value uint64

func (x *uint64Value) decode(r *xdr.Reader)            { *x = uint64Value(r.Uint64()) }
func (x *uint64Value) append(b []byte) []byte          { return xdr.AppendUint64(b, uint64(*x)) }
func (x *uint64Value) size() int                       { return 8 }
func (x *uint64Value) walk(v xdr.Visitor, name string) { v.Uint(name, uint64(*x)) }

type boolValue bool

func (x *boolValue) decode(r *xdr.Reader)            { *x = boolValue(r.Bool()) }
func (x *boolValue) append(b []byte) []byte          { return xdr.AppendBool(b, bool(*x)) }
func (x *boolValue) size() int                       { return 4 }
func (x *boolValue) walk(v xdr.Visitor, name string) { v.Bool(name, bool(*x)) }

type timeValue Nfstime4

func (x *timeValue) decode(r *xdr.Reader)            { (*Nfstime4)(x).Decode(r) }
func (x *timeValue) append(b []byte) []byte          { return (*Nfstime4)(x).Append(b) }
func (x *timeValue) size() int                       { return 12 }
func (x *timeValue) walk(v xdr.Visitor, name string) { v.Time(name, x.Seconds, x.Nseconds) }

type textValue []byte

func (x *textValue) decode(r *xdr.Reader)            { *x = r.Opaque(0) }
func (x *textValue) append(b []byte) []byte          { return xdr.AppendOpaque(b, *x) }
func (x *textValue) size() int                       { return xdr.SizeOpaque(len(*x)) }
func (x *textValue) walk(v xdr.Visitor, name string) { v.String(name, *x) }

type handleValue []byte

func (x *handleValue) decode(r *xdr.Reader)            { *x = r.Opaque(NFS4_FHSIZE) }
func (x *handleValue) append(b []byte) []byte          { return xdr.AppendOpaque(b, *x) }
func (x *handleValue) size() int                       { return xdr.SizeOpaque(len(*x)) }
func (x *handleValue) walk(v xdr.Visitor, name string) { v.Bytes(name, *x) }

type bitmapValue AttrBitmap4

func (x *bitmapValue) decode(r *xdr.Reader)            { x.Bitmap4.Decode(r) }
func (x *bitmapValue) append(b []byte) []byte          { return x.Bitmap4.Append(b) }
func (x *bitmapValue) size() int                       { return x.EncodedSize() }
func (x *bitmapValue) walk(v xdr.Visitor, name string) { AttrBitmap4(*x).WalkField(v, name) }

type aclValue []Nfsace4

func (x *aclValue) decode(r *xdr.Reader) {
	s := xdr.Reuse([]Nfsace4(*x))
	for n := r.Count(0, 16); n > 0 && r.More(); n-- {
		s = xdr.Extend(s)
		s[len(s)-1].Decode(r)
	}
	*x = s
}

func (x *aclValue) append(b []byte) []byte {
	b = xdr.AppendUint32(b, uint32(len(*x)))
	for i := range *x {
		b = (*x)[i].Append(b)
	}
	return b
}

func (x *aclValue) size() int {
	n := 4
	for i := range *x {
		n += (*x)[i].EncodedSize()
	}
	return n
}

func (x *aclValue) walk(v xdr.Visitor, name string) {
	for i := range *x {
		v.Begin(name, "nfsace4", i)
		(*x)[i].Walk(v)
		v.End()
	}
}

type layoutTypesValue []Layouttype4

func (x *layoutTypesValue) decode(r *xdr.Reader) {
	s := xdr.Reuse([]Layouttype4(*x))
	for n := r.Count(0, 4); n > 0 && r.More(); n-- {
		s = append(s, Layouttype4(r.Uint32()))
	}
	*x = s
}

func (x *layoutTypesValue) append(b []byte) []byte {
	b = xdr.AppendUint32(b, uint32(len(*x)))
	for _, t := range *x {
		b = xdr.AppendUint32(b, uint32(t))
	}
	return b
}

func (x *layoutTypesValue) size() int { return 4 + 4*len(*x) }

func (x *layoutTypesValue) walk(v xdr.Visitor, name string) {
	for _, t := range *x {
		v.Enum(name, uint32(t), t.Symbol())
	}
}

// Enumerations.

type ftypeValue NfsFtype4

func (x *ftypeValue) decode(r *xdr.Reader)   { *x = ftypeValue(r.Uint32()) }
func (x *ftypeValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *ftypeValue) size() int              { return 4 }
func (x *ftypeValue) walk(v xdr.Visitor, name string) {
	v.Enum(name, uint32(*x), NfsFtype4(*x).Symbol())
}

type statusValue Nfsstat4

func (x *statusValue) decode(r *xdr.Reader)   { *x = statusValue(r.Uint32()) }
func (x *statusValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *statusValue) size() int              { return 4 }
func (x *statusValue) walk(v xdr.Visitor, name string) {
	v.Enum(name, uint32(*x), Nfsstat4(*x).Symbol())
}

type changeTypeValue ChangeAttrType4

func (x *changeTypeValue) decode(r *xdr.Reader)   { *x = changeTypeValue(r.Uint32()) }
func (x *changeTypeValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *changeTypeValue) size() int              { return 4 }
func (x *changeTypeValue) walk(v xdr.Visitor, name string) {
	v.Enum(name, uint32(*x), ChangeAttrType4(*x).Symbol())
}

type aclModelValue Aclmodel4

func (x *aclModelValue) decode(r *xdr.Reader)   { *x = aclModelValue(r.Uint32()) }
func (x *aclModelValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *aclModelValue) size() int              { return 4 }
func (x *aclModelValue) walk(v xdr.Visitor, name string) {
	v.Enum(name, uint32(*x), Aclmodel4(*x).Symbol())
}

type aclScopeValue Aclscope4

func (x *aclScopeValue) decode(r *xdr.Reader)   { *x = aclScopeValue(r.Uint32()) }
func (x *aclScopeValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *aclScopeValue) size() int              { return 4 }
func (x *aclScopeValue) walk(v xdr.Visitor, name string) {
	v.Enum(name, uint32(*x), Aclscope4(*x).Symbol())
}

// Masks.

type modeValue uint32

func (x *modeValue) decode(r *xdr.Reader)   { *x = modeValue(r.Uint32()) }
func (x *modeValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *modeValue) size() int              { return 4 }
func (x *modeValue) walk(v xdr.Visitor, name string) {
	v.Flags(name, uint64(*x), xdr.FlagNames(uint64(*x), flagsMode4))
}

type fhExpireValue uint32

// fhExpireFlags are the bits of fh_expire_type; none is FH4_PERSISTENT.
var fhExpireFlags = []xdr.Flag{
	{Mask: FH4_NOEXPIRE_WITH_OPEN, Name: "FH4_NOEXPIRE_WITH_OPEN"},
	{Mask: FH4_VOLATILE_ANY, Name: "FH4_VOLATILE_ANY"},
	{Mask: FH4_VOL_MIGRATION, Name: "FH4_VOL_MIGRATION"},
	{Mask: FH4_VOL_RENAME, Name: "FH4_VOL_RENAME"},
}

func (x *fhExpireValue) decode(r *xdr.Reader)   { *x = fhExpireValue(r.Uint32()) }
func (x *fhExpireValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *fhExpireValue) size() int              { return 4 }
func (x *fhExpireValue) walk(v xdr.Visitor, name string) {
	symbols := "FH4_PERSISTENT"
	if *x != FH4_PERSISTENT {
		symbols = xdr.FlagNames(uint64(*x), fhExpireFlags)
	}
	v.Flags(name, uint64(*x), symbols)
}

type aclSupportValue uint32

var aclSupportFlags = []xdr.Flag{
	{Mask: ACL4_SUPPORT_ALLOW_ACL, Name: "ACL4_SUPPORT_ALLOW_ACL"},
	{Mask: ACL4_SUPPORT_DENY_ACL, Name: "ACL4_SUPPORT_DENY_ACL"},
	{Mask: ACL4_SUPPORT_AUDIT_ACL, Name: "ACL4_SUPPORT_AUDIT_ACL"},
	{Mask: ACL4_SUPPORT_ALARM_ACL, Name: "ACL4_SUPPORT_ALARM_ACL"},
}

func (x *aclSupportValue) decode(r *xdr.Reader)   { *x = aclSupportValue(r.Uint32()) }
func (x *aclSupportValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *aclSupportValue) size() int              { return 4 }
func (x *aclSupportValue) walk(v xdr.Visitor, name string) {
	v.Flags(name, uint64(*x), xdr.FlagNames(uint64(*x), aclSupportFlags))
}

type charsetValue uint32

var charsetFlags = []xdr.Flag{
	{Mask: FSCHARSET_CAP4_CONTAINS_NON_UTF8, Name: "FSCHARSET_CAP4_CONTAINS_NON_UTF8"},
	{Mask: FSCHARSET_CAP4_ALLOWS_ONLY_UTF8, Name: "FSCHARSET_CAP4_ALLOWS_ONLY_UTF8"},
}

func (x *charsetValue) decode(r *xdr.Reader)   { *x = charsetValue(r.Uint32()) }
func (x *charsetValue) append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*x)) }
func (x *charsetValue) size() int              { return 4 }
func (x *charsetValue) walk(v xdr.Visitor, name string) {
	v.Flags(name, uint64(*x), xdr.FlagNames(uint64(*x), charsetFlags))
}

// Redacting. Texts are those of owners.

func (*uint32Value) redact(x *xdr.Redactor)      { x.Numbers(4) }
func (*uint64Value) redact(x *xdr.Redactor)      { x.Numbers(8) }
func (*boolValue) redact(x *xdr.Redactor)        { x.Numbers(4) }
func (*timeValue) redact(x *xdr.Redactor)        { x.Numbers(12) }
func (*textValue) redact(x *xdr.Redactor)        { x.Text(xdr.Who, 0) }
func (*handleValue) redact(x *xdr.Redactor)      { x.Text(xdr.Handle, NFS4_FHSIZE) }
func (*bitmapValue) redact(x *xdr.Redactor)      { x.Words() }
func (*layoutTypesValue) redact(x *xdr.Redactor) { x.Words() }
func (*ftypeValue) redact(x *xdr.Redactor)       { x.Numbers(4) }
func (*statusValue) redact(x *xdr.Redactor)      { x.Numbers(4) }
func (*changeTypeValue) redact(x *xdr.Redactor)  { x.Numbers(4) }
func (*aclModelValue) redact(x *xdr.Redactor)    { x.Numbers(4) }
func (*aclScopeValue) redact(x *xdr.Redactor)    { x.Numbers(4) }
func (*modeValue) redact(x *xdr.Redactor)        { x.Numbers(4) }
func (*fhExpireValue) redact(x *xdr.Redactor)    { x.Numbers(4) }
func (*aclSupportValue) redact(x *xdr.Redactor)  { x.Numbers(4) }
func (*charsetValue) redact(x *xdr.Redactor)     { x.Numbers(4) }

func (*aclValue) redact(x *xdr.Redactor) {
	for n := x.Elements(0, 16); n > 0 && !x.Failed(); n-- {
		(*Nfsace4)(nil).Redact(x)
	}
}
