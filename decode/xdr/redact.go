package xdr

import "encoding/binary"

// Class says what an item of a message tells about those who sent it. The protocols name the classes of their
// opaques and texts with %redact. What they do not name is Secret.
type Class uint8

// Classes.
const (
	Secret  Class = iota // file data, tokens, anything unlisted
	Name                 // the name of a file or an attribute
	Path                 // names with slashes between them
	Handle               // what is only compared: a file handle, an id of a client, session or state, a verifier
	Who                  // a user or a group: "name@domain", or the digits of its number
	User                 // the number of a user or a group
	Host                 // a name of a host or a domain
	Owner                // a client, a server, or the owner of a lock: text or not
	Address              // a universal address (RFC 5665)
	Known                // one of the values that the specifications list, such as the name of a transport
)

// Redactable is a message that can be copied without what it tells of its senders. What the generator writes is one.
type Redactable interface {
	// Redact copies the message at the cursor of x. It does not look at the receiver, which may be nil.
	Redact(x *Redactor)
}

// Redactor copies one message to another of the same length: numbers without a class as they are, opaques, texts and other numbers through Replace.
// What nobody copies is zero: padding, what follows the message, and what cannot be decoded.
type Redactor struct {
	Reader
	// Replace fills dst, which is zero, with what takes the place of src. Both have the same length.
	Replace func(c Class, dst, src []byte)
	// KeepData copies file data: the items that may travel in chunks and have no class.
	KeepData bool
	// DataMoved says that a chunk holds file data, OtherMoved that one holds something else, such as the target of a link.
	DataMoved, OtherMoved bool

	out []byte
}

// ResetTo starts a message: b is what was captured of full bytes, as in Reset, and out, which has the length of b and is
// zero, receives the copy.
func (x *Redactor) ResetTo(out, b []byte, full int) {
	x.Reset(b, full)
	x.out = out[:len(b)]
	x.DataMoved, x.OtherMoved = false, false
}

// copied copies the bytes from offset at to the cursor.
func (x *Redactor) copied(at int) { copy(x.out[at:x.Offset()], x.b[at:]) }

// Numbers copies n bytes that are numbers. Of a message that the capture cuts there, those that were captured are copied.
func (x *Redactor) Numbers(n int) {
	if x.Failed() {
		return
	}
	at := x.off
	if left := len(x.b) - at; n > left {
		x.off += left
		x.copied(at)
		x.Fail(Short, "")
		return
	}
	x.off += n
	x.copied(at)
}

// Word copies a number and returns it.
func (x *Redactor) Word() uint32 {
	at := x.Offset()
	v := x.Uint32()
	if !x.Failed() {
		binary.BigEndian.PutUint32(x.out[at:], v)
	}
	return v
}

// Elements copies the count of an array, as Count reads it.
func (x *Redactor) Elements(limit uint32, size int) int {
	at := x.Offset()
	n := x.Count(limit, size)
	x.copied(at)
	return n
}

// Text copies what Opaque reads.
func (x *Redactor) Text(c Class, limit uint32) {
	at := x.Offset()
	v := x.Opaque(limit)
	x.text(c, at, v)
}

// Item copies what Data reads.
func (x *Redactor) Item(c Class, limit uint32) {
	at := x.Offset()
	d := x.Data(limit)
	if d.Chunk > 0 {
		x.DataMoved, x.OtherMoved = x.DataMoved || c == Secret, x.OtherMoved || c != Secret
	}
	if c == Secret && x.KeepData && len(d.Inline) > 0 {
		copy(x.out[at+4:], d.Inline)
	}
	if x.Failed() && len(d.Inline) > 0 { // cut: what is left of a name is none
		x.length(at)
		return
	}
	x.text(c, at, d.Inline)
}

// text copies an opaque whose length is at offset at.
func (x *Redactor) text(c Class, at int, v []byte) {
	if x.Failed() {
		if x.Cut() && x.Offset() > at {
			x.length(at)
		}
		return
	}
	x.length(at)
	x.replace(c, at+4, v)
}

func (x *Redactor) length(at int) { copy(x.out[at:at+4], x.b[at:at+4]) }

func (x *Redactor) replace(c Class, at int, v []byte) {
	if c != Secret && len(v) > 0 {
		x.Replace(c, x.out[at:at+len(v)], v)
	}
}

// Bytes copies an opaque of n bytes.
func (x *Redactor) Bytes(c Class, n int) {
	at := x.Offset()
	if v := x.Fixed(n); !x.Failed() {
		x.replace(c, at, v)
	}
}

// Words copies an array of numbers of four bytes, and returns them as they stand in the message.
func (x *Redactor) Words() []byte {
	n := x.Elements(0, 4) * 4
	at := x.Offset()
	x.Numbers(n)
	if x.Failed() {
		return nil
	}
	return x.b[at : at+n : at+n]
}

// Ignore passes over the rest of the message, which stays zero.
func (x *Redactor) Ignore() {
	if !x.Failed() {
		x.off = len(x.b)
	}
}

// Nested copies an opaque that holds a message of its own. If redact does not find all of it to be one, it stays zero.
func (x *Redactor) Nested(redact func(x *Redactor)) {
	at := x.Offset()
	v := x.Opaque(0)
	x.text(Secret, at, v)
	if x.Failed() {
		return
	}
	outer, from := x.Reader, at+4
	x.Reset(outer.b[:from+len(v)], from+len(v))
	x.off = from
	if redact(x); x.Failed() || x.Remaining() > 0 {
		clear(x.out[from : from+len(v)])
	}
	x.Reader = outer
}
