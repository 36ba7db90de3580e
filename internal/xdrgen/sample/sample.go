// Package sample is generated from a protocol that uses every feature of the
// generator. It exists for the generator's tests.
package sample

import "github.com/rpcrdma/toolkit/decode/xdr"

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package sample -o sample_gen.go sample.x

// Tag is written by hand too: a number that shows as one field.
type Tag uint32

// Decode refills t.
func (t *Tag) Decode(r *xdr.Reader) { *t = Tag(r.Uint32()) }

// Skip passes over a number.
func (*Tag) Skip(_ *xdr.Reader, off uint) uint { return off + 4 }

// Redact copies a number.
func (*Tag) Redact(x *xdr.Redactor) { x.Numbers(4) }

// Append appends t in XDR.
func (t *Tag) Append(b []byte) []byte { return xdr.AppendUint32(b, uint32(*t)) }

// EncodedSize is 4.
func (t *Tag) EncodedSize() int { return 4 }

// WalkField visits t.
func (t *Tag) WalkField(v xdr.Visitor, name string) { v.Enum(name, uint32(*t), "TAG") }

// Blob is written by hand: an opaque that the protocol does not look into.
type Blob struct{ Content []byte }

// Decode refills t.
func (t *Blob) Decode(r *xdr.Reader) { t.Content = r.Opaque(0) }

// Skip passes over an opaque.
func (*Blob) Skip(r *xdr.Reader, off uint) uint { return r.SkipOpaque(off, 0) }

// Redact copies an opaque.
func (*Blob) Redact(x *xdr.Redactor) { x.Text(xdr.Secret, 0) }

// Append appends t in XDR.
func (t *Blob) Append(b []byte) []byte { return xdr.AppendOpaque(b, t.Content) }

// EncodedSize is the number of bytes that Append appends.
func (t *Blob) EncodedSize() int { return xdr.SizeOpaque(len(t.Content)) }

// Walk visits the content.
func (t *Blob) Walk(v xdr.Visitor) { v.Bytes("content", t.Content) }
