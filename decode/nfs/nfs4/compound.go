package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// CompoundArgs is COMPOUND4args: the call of every operation of NFSv4.
type CompoundArgs struct {
	Tag            []byte
	Minorversion   uint32
	NoMinorversion bool // Decode could not read it: the message is cut, or malformed, before it ends
	Operations
}

// Decode refills c. After an error c.Ops holds the operations before it.
func (c *CompoundArgs) Decode(r *xdr.Reader) {
	c.Tag = r.Opaque(0)
	r.Field("tag")
	c.Minorversion = r.Uint32()
	r.Field("minorversion")
	c.NoMinorversion = r.Failed()
	c.decode(r, foreOps, false, "argarray")
}

// Redact copies the members, and each operation.
func (*CompoundArgs) Redact(x *xdr.Redactor) {
	x.Text(xdr.Name, 0)
	x.Numbers(4)
	redactOps(x, foreOps, false)
}

// Append appends c in XDR.
func (c *CompoundArgs) Append(b []byte) []byte {
	b = xdr.AppendOpaque(b, c.Tag)
	b = xdr.AppendUint32(b, c.Minorversion)
	return c.append(b)
}

// EncodedSize is the number of bytes that Append appends.
func (c *CompoundArgs) EncodedSize() int { return xdr.SizeOpaque(len(c.Tag)) + 4 + c.size() }

// Walk visits the tag, the minor version, and each operation's arguments under
// the operation's name.
func (c *CompoundArgs) Walk(v xdr.Visitor) {
	v.String("tag", c.Tag)
	v.Uint("minorversion", uint64(c.Minorversion))
	c.walk(v, foreOps, false)
}

// CompoundRes is COMPOUND4res. The array ends with the operation that failed,
// whose status is also the status of the COMPOUND.
type CompoundRes struct {
	Status Nfsstat4
	Tag    []byte
	Operations
}

// Decode refills c. After an error c.Ops holds the operations before it.
func (c *CompoundRes) Decode(r *xdr.Reader) {
	c.Status = Nfsstat4(r.Uint32())
	r.Field("status")
	c.Tag = r.Opaque(0)
	r.Field("tag")
	c.decode(r, foreOps, true, "resarray")
}

// Redact copies the members, and each operation.
func (*CompoundRes) Redact(x *xdr.Redactor) {
	x.Numbers(4)
	x.Text(xdr.Name, 0)
	redactOps(x, foreOps, true)
}

// Append appends c in XDR.
func (c *CompoundRes) Append(b []byte) []byte {
	b = xdr.AppendUint32(b, uint32(c.Status))
	b = xdr.AppendOpaque(b, c.Tag)
	return c.append(b)
}

// EncodedSize is the number of bytes that Append appends.
func (c *CompoundRes) EncodedSize() int { return 4 + xdr.SizeOpaque(len(c.Tag)) + c.size() }

// Walk visits the status, the tag, and each operation's result under the
// operation's name.
func (c *CompoundRes) Walk(v xdr.Visitor) {
	v.Enum("status", uint32(c.Status), c.Status.Symbol())
	v.String("tag", c.Tag)
	c.walk(v, foreOps, true)
}

// StatusCode returns the status of the whole.
func (c *CompoundRes) StatusCode() (uint32, string) { return uint32(c.Status), c.Status.Symbol() }

// CbCompoundArgs is CB_COMPOUND4args: what a server asks of a client.
type CbCompoundArgs struct {
	Tag            []byte
	Minorversion   uint32
	NoMinorversion bool   // as in CompoundArgs
	CallbackIdent  uint32 // NFSv4.0 only
	Operations
}

// Decode refills c. After an error c.Ops holds the operations before it.
func (c *CbCompoundArgs) Decode(r *xdr.Reader) {
	c.Tag = r.Opaque(0)
	r.Field("tag")
	c.Minorversion = r.Uint32()
	r.Field("minorversion")
	c.NoMinorversion = r.Failed()
	c.CallbackIdent = r.Uint32()
	r.Field("callback_ident")
	c.decode(r, cbOps, false, "argarray")
}

// Redact copies the members, and each operation.
func (*CbCompoundArgs) Redact(x *xdr.Redactor) {
	x.Text(xdr.Name, 0)
	x.Numbers(8)
	redactOps(x, cbOps, false)
}

// Append appends c in XDR.
func (c *CbCompoundArgs) Append(b []byte) []byte {
	b = xdr.AppendOpaque(b, c.Tag)
	b = xdr.AppendUint32(b, c.Minorversion)
	b = xdr.AppendUint32(b, c.CallbackIdent)
	return c.append(b)
}

// EncodedSize is the number of bytes that Append appends.
func (c *CbCompoundArgs) EncodedSize() int { return xdr.SizeOpaque(len(c.Tag)) + 8 + c.size() }

// Walk visits the members, and each operation's arguments under the
// operation's name.
func (c *CbCompoundArgs) Walk(v xdr.Visitor) {
	v.String("tag", c.Tag)
	v.Uint("minorversion", uint64(c.Minorversion))
	v.Uint("callback_ident", uint64(c.CallbackIdent))
	c.walk(v, cbOps, false)
}

// CbCompoundRes is CB_COMPOUND4res.
type CbCompoundRes struct {
	Status Nfsstat4
	Tag    []byte
	Operations
}

// Decode refills c. After an error c.Ops holds the operations before it.
func (c *CbCompoundRes) Decode(r *xdr.Reader) {
	c.Status = Nfsstat4(r.Uint32())
	r.Field("status")
	c.Tag = r.Opaque(0)
	r.Field("tag")
	c.decode(r, cbOps, true, "resarray")
}

// Redact copies the members, and each operation.
func (*CbCompoundRes) Redact(x *xdr.Redactor) {
	x.Numbers(4)
	x.Text(xdr.Name, 0)
	redactOps(x, cbOps, true)
}

// Append appends c in XDR.
func (c *CbCompoundRes) Append(b []byte) []byte {
	b = xdr.AppendUint32(b, uint32(c.Status))
	b = xdr.AppendOpaque(b, c.Tag)
	return c.append(b)
}

// EncodedSize is the number of bytes that Append appends.
func (c *CbCompoundRes) EncodedSize() int { return 4 + xdr.SizeOpaque(len(c.Tag)) + c.size() }

// Walk visits the status, the tag, and each operation's result under the
// operation's name.
func (c *CbCompoundRes) Walk(v xdr.Visitor) {
	v.Enum("status", uint32(c.Status), c.Status.Symbol())
	v.String("tag", c.Tag)
	c.walk(v, cbOps, true)
}

// StatusCode returns the status of the whole.
func (c *CbCompoundRes) StatusCode() (uint32, string) { return uint32(c.Status), c.Status.Symbol() }
