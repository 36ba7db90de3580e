// Package xdr is a cursor over XDR data (RFC 4506) and its counterpart that appends. The cursor never panics
// and never allocates in proportion to a number that comes from the wire: every count is checked against the
// bytes that are left.
//
// Over RDMA, some data items do not stand in the stream: their bytes travel in their own chunk (RFC 8166,
// section 3.4, "DDP-eligible" items). The cursor knows where those chunks belong, so that one codec serves
// both forms.
package xdr

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Kind classifies an error of the cursor.
type Kind uint8

// Kinds of errors.
const (
	None  Kind = iota
	Short      // the data ends before the item; see Error.Captured
	Range      // a length or count exceeds its limit or what is left
	Value      // a value that the protocol does not define, where it matters for what follows
	Pad        // reserved: non-zero padding, only reported by callers who care
)

var kindNames = [...]string{"no error", "data ends early", "length out of range", "undefined value", "bad padding"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown error"
}

// Error says what went wrong, where, and in which field.
type Error struct {
	Kind   Kind
	Offset int    // in the stream as given to the Reader (reduced items not counted)
	Field  string // innermost field or type being decoded
}

func (e *Error) Error() string {
	return fmt.Sprintf("xdr: %s at offset %d in %s", e.Kind, e.Offset, e.Field)
}

// Data is a variable-length opaque that may live in a chunk: the DDP-eligible
// items of RFC 8267 (READ and WRITE data, link texts).
type Data struct {
	Length uint32 // bytes, wherever they are
	// Inline aliases the stream when the bytes stand in it; shorter than
	// Length when the capture cut them.
	Inline []byte
	// Chunk is 1 + the index of the chunk that holds the bytes (in the Read
	// list of a call, or in the Write list of a reply), 0 if they are inline.
	Chunk int
}

// Reduced is a data item that is not in the stream.
type Reduced struct {
	// Position is where the bytes would start in the complete stream (calls,
	// RFC 8166 section 3.4.4). Replies do not have one: the n-th eligible item
	// belongs to the n-th chunk.
	Position uint32
	Length   uint32 // of all its segments together
}

// Reader is a cursor over one message. The zero value is an empty message; Reset gives it another one. After
// an error every read returns zero values, and Err is the first error.
type Reader struct {
	b    []byte
	off  int // the cursor, in which an error sets the bit failed
	full int // where the stream would end had nothing been cut; ≥ len(b)
	err  Error

	next    int    // index of the next reduced item
	removed uint32 // bytes and padding of reduced items passed so far
	byOrder bool   // reduced items are taken by order (reply), not by position (call)
	reduced []Reduced

	booleans uint32 // all bits of all booleans
	strange  bool   // an enumeration has a value that its type does not define
}

// failed makes an offset negative and so one that no read accepts: a read that compares its end with the end of
// the stream, as it must, need not ask for errors besides.
const failed = math.MinInt

// Reset starts a new message. full is the length that the message had on the
// wire; it is greater than len(b) when the capture cut it.
func (r *Reader) Reset(b []byte, full int) {
	if full < len(b) {
		full = len(b)
	}
	r.off, r.full, r.removed, r.err.Kind = 0, full, 0, None
	r.b, r.reduced = b, nil
	r.booleans, r.strange = 0, false
}

// StartAt says that the bytes given to Reset start at that position of the
// complete stream: the length of the RPC header, when they are only the
// arguments.
func (r *Reader) StartAt(position uint32) { r.removed = position - uint32(r.off) }

// ReduceCall names the chunks whose bytes are missing from a call, in
// ascending order of position.
func (r *Reader) ReduceCall(chunks []Reduced) { r.reduced, r.next, r.byOrder = chunks, 0, false }

// ReduceReply names the chunks that hold results of a reply, in the order of
// the Write list.
func (r *Reader) ReduceReply(chunks []Reduced) { r.reduced, r.next, r.byOrder = chunks, 0, true }

// Err returns the first error, or nil. The *Error belongs to the Reader.
func (r *Reader) Err() error {
	if !r.Failed() {
		return nil
	}
	return r.first()
}

// first is the first error. That of a read that only lacked bytes is not recorded before it is asked for, so that
// such reads are small enough to be inlined.
//
//go:noinline
func (r *Reader) first() *Error {
	if r.err.Kind == None {
		r.err = Error{Kind: Short, Offset: r.Offset()}
	}
	return &r.err
}

// Failed reports whether an error has occurred.
func (r *Reader) Failed() bool { return r.off < 0 }

// Cut reports whether the error is only that the capture holds less of the
// message than was sent.
func (r *Reader) Cut() bool { return r.Failed() && r.first().Kind == Short && r.full > len(r.b) }

// Fail records an error at the cursor, unless there is one already.
func (r *Reader) Fail(k Kind, field string) {
	if !r.Failed() {
		r.err = Error{Kind: k, Offset: r.off, Field: field}
		r.off |= failed
	}
}

// Field names the field of an error that a generic read has recorded.
func (r *Reader) Field(name string) {
	if r.Failed() {
		r.field(name)
	}
}

//go:noinline
func (r *Reader) field(name string) {
	if e := r.first(); e.Field == "" {
		e.Field = name
	}
}

// Offset is the cursor's place in the bytes given to Reset.
func (r *Reader) Offset() int { return r.off &^ failed }

// Position is the cursor's place in the complete stream, reduced items
// included (RFC 8166 counts positions so).
func (r *Reader) Position() uint32 { return uint32(r.Offset()) + r.removed }

// Remaining is the number of bytes that follow the cursor.
func (r *Reader) Remaining() int {
	if r.Failed() {
		return 0
	}
	return len(r.b) - r.off
}

// Rest returns the bytes after the cursor without moving it.
func (r *Reader) Rest() []byte {
	if r.Failed() {
		return nil
	}
	return r.b[r.off:len(r.b):len(r.b)]
}

// Uint32 reads an unsigned integer, an enumeration or a length.
func (r *Reader) Uint32() uint32 {
	b, off := r.b, uint(r.off)
	end := off + 4
	if end > uint(len(b)) || off > end {
		r.off |= failed
		return 0
	}
	r.off = int(end)
	return binary.BigEndian.Uint32(b[off:end])
}

// Int32 reads a signed integer.
func (r *Reader) Int32() int32 { return int32(r.Uint32()) }

// Bool reads a boolean; every value but 0 is true. See Undefined.
func (r *Reader) Bool() bool { return r.True(r.Uint32()) }

// True is Bool for a value that was read.
func (r *Reader) True(v uint32) bool {
	r.booleans |= v
	return v != 0
}

// Defined is an enumeration that was read, whose type defines the values from first to last.
func (r *Reader) Defined(v, first, last uint32) uint32 {
	if v-first > last-first {
		r.strange = true
	}
	return v
}

// Undefined reports whether a boolean was neither 0 nor 1, or an enumeration had a value that its type does not define
// (RFC 4506, sections 4.3 and 4.4).
func (r *Reader) Undefined() bool { return r.booleans > 1 || r.strange }

// Uint64 reads an unsigned hyper integer.
func (r *Reader) Uint64() uint64 {
	b, off := r.b, uint(r.off)
	end := off + 8
	if end > uint(len(b)) || off > end {
		r.off |= failed
		return 0
	}
	r.off = int(end)
	return binary.BigEndian.Uint64(b[off:end])
}

// Int64 reads a signed hyper integer.
func (r *Reader) Int64() int64 { return int64(r.Uint64()) }

// Fixed reads an opaque of n bytes and its padding. The result aliases the
// message and is capped.
func (r *Reader) Fixed(n int) []byte {
	if r.Failed() {
		return nil
	}
	if n < 0 || n > len(r.b)-r.off {
		if n < 0 || n > r.full-r.off {
			r.Fail(Range, "")
		} else {
			r.Fail(Short, "")
		}
		return nil
	}
	v := r.b[r.off : r.off+n : r.off+n]
	r.off += n
	// The last item of a message may lack its padding: some senders omit it, which loses nothing.
	r.off += min(-n&3, len(r.b)-r.off)
	return v
}

// Opaque reads a variable-length opaque or string of at most max bytes (0: no
// limit of the protocol). The result aliases the message.
func (r *Reader) Opaque(max uint32) []byte {
	b, off := r.b, uint(r.off)
	if at := off + 4; at <= uint(len(b)) && off <= at {
		n := binary.BigEndian.Uint32(b[off:at])
		end := at + uint(n)
		if next := at + (uint(n)+3)&^3; next <= uint(len(b)) && at <= end && end <= next && (n <= max || max == 0) {
			r.off = int(next)
			return b[at:end:end]
		}
	}
	return r.opaque(max)
}

// opaque is Opaque for one that is not there with its padding, or too long.
func (r *Reader) opaque(max uint32) []byte {
	n := r.Uint32()
	if r.Failed() {
		return nil
	}
	if max != 0 && n > max || uint64(n) > uint64(r.full-r.off) {
		r.off -= 4
		r.Fail(Range, "")
		return nil
	}
	return r.Fixed(int(n))
}

// Data reads a DDP-eligible opaque, which may be reduced.
func (r *Reader) Data(max uint32) Data {
	n := r.Uint32()
	if r.Failed() {
		return Data{}
	}
	if max != 0 && n > max {
		r.off -= 4
		r.Fail(Range, "")
		return Data{}
	}
	if r.next < len(r.reduced) {
		c := r.reduced[r.next]
		switch {
		case r.byOrder && c.Length == 0 && n != 0:
			// The responder left this chunk unused and sent the item inline.
			r.next++
		case r.byOrder || c.Position == r.Position():
			r.next++
			if n > c.Length {
				r.off -= 4
				r.Fail(Range, "")
				return Data{}
			}
			// The padding goes with the chunk (RFC 8166, section 3.4.5).
			r.removed += (n + 3) &^ 3
			return Data{Length: n, Chunk: r.next}
		}
	}
	if uint64(n) > uint64(r.full-r.off) {
		r.off -= 4
		r.Fail(Range, "")
		return Data{}
	}
	d := Data{Length: n}
	if have := len(r.b) - r.off; int(n) > have {
		d.Inline = r.b[r.off:len(r.b):len(r.b)]
		r.off = len(r.b)
		r.Fail(Short, "")
		return d
	}
	d.Inline = r.Fixed(int(n))
	return d
}

// Count reads the number of elements of a variable-length array whose elements take at least size bytes each.
// It fails when fewer bytes are left than the elements need, so that a caller can safely allocate that many
// elements.
func (r *Reader) Count(max uint32, size int) int {
	n := r.Uint32()
	if r.Failed() {
		return 0
	}
	if size < 1 {
		size = 1
	}
	if max != 0 && n > max || uint64(n)*uint64(size) > uint64(r.full-r.off) {
		r.off -= 4
		r.Fail(Range, "")
		return 0
	}
	if left := (len(r.b) - r.off) / size; int(n) > left {
		// Cut by the capture: the elements that are there are still read.
		// One more makes the read fail as Short afterwards.
		n = uint32(left) + 1
	}
	return int(n)
}

// Skip passes over n bytes.
func (r *Reader) Skip(n int) {
	if r.Failed() {
		return
	}
	if n < 0 || n > len(r.b)-r.off {
		r.Fail(Short, "")
		return
	}
	r.off += n
}

// AppendUint32 appends an unsigned integer.
func AppendUint32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }

// AppendUint64 appends an unsigned hyper integer.
func AppendUint64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// AppendBool appends a boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0, 0, 0, 1)
	}
	return append(b, 0, 0, 0, 0)
}

var zeros [4]byte

// AppendFixed appends an opaque of fixed length, with padding.
func AppendFixed(b, v []byte) []byte {
	b = append(b, v...)
	return append(b, zeros[:-len(v)&3]...)
}

// AppendOpaque appends a variable-length opaque or string, with padding.
func AppendOpaque(b, v []byte) []byte {
	b = AppendUint32(b, uint32(len(v)))
	return AppendFixed(b, v)
}

// AppendData appends a DDP-eligible item: its length, and its bytes unless
// they travel in a chunk.
func AppendData(b []byte, d Data) []byte {
	b = AppendUint32(b, d.Length)
	if d.Chunk != 0 {
		return b
	}
	return AppendFixed(b, d.Inline)
}

// SizeOpaque is the encoded size of a variable-length opaque of n bytes.
func SizeOpaque(n int) int { return 4 + (n+3)&^3 }
