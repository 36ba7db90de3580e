package state

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"
)

// errShort is the reason of most damage: a value lies beyond the end.
var errShort = errors.New("it ends too early")

// Coder writes values to a section, or reads them. One function goes through the fields of a type for both
// directions, so that they cannot differ:
//
//	func (x *point) code(c *state.Coder) {
//		state.Number(c, &x.count)
//		c.Text(&x.name, 256)
//	}
//
// The first error is kept; after it, all values read are zero. Memory for what is read is bounded by the number of
// bytes read: see List.
type Coder struct {
	b       []byte
	reading bool
	err     error
}

// NewWriter makes a Coder that appends to b.
func NewWriter(b []byte) *Coder { return &Coder{b: b} }

// NewReader makes a Coder that reads b.
func NewReader(b []byte) *Coder { return &Coder{b: b, reading: true} }

// Reading reports whether the Coder reads.
func (c *Coder) Reading() bool { return c.reading }

// Bytes is what was written so far, or what is left to read.
func (c *Coder) Bytes() []byte { return c.b }

// Err is the first error of reading.
func (c *Coder) Err() error { return c.err }

// End checks that all was read, and returns the first error.
func (c *Coder) End() error {
	if c.err == nil && c.reading && len(c.b) > 0 {
		c.Fail("%d bytes follow the last value", len(c.b))
	}
	return c.err
}

// Fail records an error, unless there is one already, or nothing is read.
func (c *Coder) Fail(format string, args ...any) {
	if c.reading && c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.b = nil
	}
}

func (c *Coder) uvarint() uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b)
	switch {
	case n == 0:
		c.Fail("%w", errShort)
		return 0
	case n < 0, n > 1 && c.b[n-1] == 0: // one value has one encoding
		c.Fail("a number is not encoded as it should be")
		return 0
	}
	c.b = c.b[n:]
	return v
}

// Number codes an unsigned number, or one that is never negative. A value that does not fit its type is an error.
func Number[T ~int | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Coder, v *T) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
		return
	}
	n := c.uvarint()
	if *v = T(n); *v < 0 || uint64(*v) != n {
		*v = 0
		c.Fail("%d is out of range", n)
	}
}

// Enum codes a number below n.
func Enum[T ~uint8](c *Coder, v *T, n int) {
	Number(c, v)
	if int(*v) >= n {
		c.Fail("%d is not one of %d values", *v, n)
		*v = 0
	}
}

// Signed codes a signed number.
func Signed[T ~int32 | ~int64](c *Coder, v *T) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, int64(*v))
		return
	}
	u := c.uvarint()
	n := int64(u>>1) ^ -int64(u&1)
	if *v = T(n); int64(*v) != n {
		*v = 0
		c.Fail("%d is out of range", n)
	}
}

// maxFloat is more than any sum of times can be.
const maxFloat = 1 << 90

// Float codes a sum: a number that is not negative.
func (c *Coder) Float(v *float64) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(*v))
		return
	}
	*v = 0
	if len(c.b) < 8 {
		c.Fail("%w", errShort)
		return
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(c.b))
	c.b = c.b[8:]
	if !(f >= 0 && f <= maxFloat) || math.Signbit(f) {
		c.Fail("%v is not a sum", f)
		return
	}
	*v = f
}

// Flag codes a truth value.
func (c *Coder) Flag(v *bool) {
	n := uint8(0)
	if *v {
		n = 1
	}
	Enum(c, &n, 2)
	*v = n != 0
}

// Text codes a string of at most most bytes.
func (c *Coder) Text(v *string, most int) {
	b := []byte(*v)
	c.Blob(&b, most)
	*v = string(b)
}

// Blob codes at most most bytes. What is read is a part of the input.
func (c *Coder) Blob(v *[]byte, most int) {
	n := len(*v)
	Number(c, &n)
	if !c.reading {
		c.b = append(c.b, *v...)
		return
	}
	*v = nil
	switch {
	case n > most:
		c.Fail("%d bytes where at most %d are allowed", n, most)
	case n > len(c.b):
		c.Fail("%w", errShort)
	default:
		*v, c.b = c.b[:n:n], c.b[n:]
	}
}

// JSON codes what is shown as it is, of at most most bytes: v is a pointer to plain data.
func (c *Coder) JSON(v any, most int) {
	var b []byte
	if !c.reading {
		b, _ = json.Marshal(v) // plain data: it never fails
	}
	if c.Blob(&b, most); !c.reading || c.err != nil {
		return
	}
	if err := json.Unmarshal(b, v); err != nil {
		c.Fail("%w", err)
	}
}

// Moment codes a time in nanoseconds since 1970.
func (c *Coder) Moment(v *time.Time) {
	ns := int64(0)
	if !c.reading {
		ns = v.UnixNano()
	}
	Signed(c, &ns)
	*v = time.Unix(0, ns).UTC()
}

// Address codes an address, which may be the zero one.
func (c *Coder) Address(a *netip.Addr) {
	b, _ := a.MarshalBinary() // it never fails
	c.Blob(&b, 64)
	if c.reading && a.UnmarshalBinary(b) != nil {
		*a = netip.Addr{}
		c.Fail("%x is not an address", b)
	}
}

// Count codes the number of elements of a list, each of which takes least bytes or more, at least one.
// There may be at most most of them.
func (c *Coder) Count(n *int, least, most int) {
	Number(c, n)
	if !c.reading {
		return
	}
	switch {
	case *n > most:
		c.Fail("a list of %d, where at most %d are allowed", *n, most)
	case *n > len(c.b)/max(least, 1):
		c.Fail("%w", errShort)
	}
	if c.err != nil {
		*n = 0
	}
}

// List codes a list of at most most elements. When reading, it grows with the bytes that were really read.
func List[T any](c *Coder, v *[]T, most int, code func(*T)) {
	n := len(*v)
	c.Count(&n, 1, most)
	if !c.reading {
		for i := range *v {
			code(&(*v)[i])
		}
		return
	}
	*v = nil
	for range n {
		var x T
		if code(&x); c.err != nil {
			*v = nil
			return
		}
		*v = append(*v, x)
	}
}
