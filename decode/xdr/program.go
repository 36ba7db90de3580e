package xdr

import (
	"strconv"
	"sync/atomic"
)

// Message is a type that the generator has written from a protocol's XDR.
type Message interface {
	// Decode refills the message; what it held before is overwritten and its memory used again. The reader's
	// Err reports whether it succeeded. Items that could not be read are zero. Opaques alias the reader's
	// bytes.
	Decode(r *Reader)
	// Append appends the encoded message to b.
	Append(b []byte) []byte
	// EncodedSize is the number of bytes that Append would append. (Size would
	// collide with the many fields of that name.)
	EncodedSize() int
	// Walk calls v for each field in the order of the wire, without a Begin
	// and End around the whole.
	Walk(v Visitor)
}

// New returns an empty message of type T.
func New[T any, P interface {
	*T
	Message
}]() Message {
	return P(new(T))
}

// Status is a message that holds the status of a call. Most results do.
type Status interface {
	// StatusCode returns the number and its symbol, which is empty if the
	// protocol does not define the number.
	StatusCode() (code uint32, symbol string)
}

// Procedure is one procedure of a program (RFC 5531, section 12). The zero
// Procedure stands for a number that is not assigned.
type Procedure struct {
	Name      string // "READ"
	Number    uint32
	NewArgs   func() Message // an empty message to decode arguments into
	NewResult func() Message
	// StatusFirst says that results begin with their status, and that 0 is success.
	StatusFirst bool
}

// Program is one version of an RPC program.
type Program struct {
	Name       string // "nfs"
	Number     uint32
	Version    uint32
	Procedures []Procedure // the index is the procedure's number
}

// Procedure returns the procedure of that number, or nil.
func (p *Program) Procedure(number uint32) *Procedure {
	if p == nil || uint64(number) >= uint64(len(p.Procedures)) || p.Procedures[number].Name == "" {
		return nil
	}
	return &p.Procedures[number]
}

// Void is the message without content.
type Void struct{}

// NewVoid returns a Void.
func NewVoid() Message { return Void{} }

// Decode reads nothing.
func (Void) Decode(*Reader) {}

// Skip passes over nothing.
func (Void) Skip(_ *Reader, off uint) uint { return off }

// Redact copies nothing.
func (Void) Redact(*Redactor) {}

// Append appends nothing.
func (Void) Append(b []byte) []byte { return b }

// EncodedSize is 0.
func (Void) EncodedSize() int { return 0 }

// Walk visits nothing.
func (Void) Walk(Visitor) {}

// Flag is a named bit, or several, of a bit mask.
type Flag struct {
	Mask uint64
	Name string
}

// FlagNames joins the names of those flags whose bits are all set in v with
// "|". It is empty if there is none. What it has joined it remembers for a
// while, so a stream of similar messages allocates nothing; flags must not
// change.
func FlagNames(v uint64, flags []Flag) string {
	if v == 0 || len(flags) == 0 {
		return ""
	}
	slot := &joinedFlags[(v*0x9e3779b97f4a7c15+uint64(len(flags)))>>(64-joinedBits)]
	if j := slot.Load(); j != nil && j.v == v && j.flags == &flags[0] && j.n == len(flags) {
		return j.names
	}
	names, several := joinFlags(v, flags)
	if several {
		slot.Store(&joined{v: v, flags: &flags[0], n: len(flags), names: names})
	}
	return names
}

// joinedBits gives the number of joined names that are remembered, as a power of two. New names replace old
// ones.
const joinedBits = 9

var joinedFlags [1 << joinedBits]atomic.Pointer[joined]

type joined struct {
	v     uint64
	flags *Flag
	n     int
	names string
}

func joinFlags(v uint64, flags []Flag) (names string, several bool) {
	var buf [256]byte
	b, first := buf[:0], ""
	for i := range flags {
		f := &flags[i]
		if f.Mask == 0 || v&f.Mask != f.Mask {
			continue
		}
		if first == "" {
			first = f.Name
			continue
		}
		if len(b) == 0 {
			b = append(b, first...)
		}
		b = append(append(b, '|'), f.Name...)
	}
	if len(b) == 0 {
		return first, false
	}
	return string(b), true
}

// EnumString is symbol, or the number v if symbol is empty.
func EnumString(v uint32, symbol string) string {
	if symbol == "" {
		return strconv.FormatUint(uint64(v), 10)
	}
	return symbol
}

// Or returns p, or an empty T if p is nil: the value of a union arm that was not allocated.
func Or[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// Micros turns microseconds into nanoseconds, without overflow.
func Micros(usec uint32) uint32 { return min(usec, 4294967) * 1000 }
