package truth

import (
	"fmt"
	"strconv"
	"strings"
)

// XID is a transaction id as the value of the big-endian word on the wire. In
// JSON it is eight hexadecimal digits.
type XID uint32

func (x XID) String() string { return fmt.Sprintf("%08x", uint32(x)) }

// MarshalText writes eight hexadecimal digits.
func (x XID) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads hexadecimal digits.
func (x *XID) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 32)
	*x = XID(n)
	return err
}

// Segment is one RDMA segment. Its text is length@offset:handle, the length in
// decimal and the others in hexadecimal.
type Segment struct {
	Handle uint32
	Length uint32
	Offset uint64
}

func (s Segment) String() string {
	return fmt.Sprintf("%d@%x:%x", s.Length, s.Offset, s.Handle)
}

// MarshalText writes length@offset:handle.
func (s Segment) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads length@offset:handle.
func (s *Segment) UnmarshalText(b []byte) error {
	l, rest, ok1 := strings.Cut(string(b), "@")
	o, h, ok2 := strings.Cut(rest, ":")
	length, err1 := strconv.ParseUint(l, 10, 32)
	offset, err2 := strconv.ParseUint(o, 16, 64)
	handle, err3 := strconv.ParseUint(h, 16, 32)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || err3 != nil {
		return fmt.Errorf("segment %q is not length@offset:handle", b)
	}
	*s = Segment{Handle: uint32(handle), Length: uint32(length), Offset: offset}
	return nil
}

// ReadSegment is a segment of the Read list with its position in the call. Its
// text is position+length@offset:handle.
type ReadSegment struct {
	Position uint32
	Segment
}

func (s ReadSegment) String() string { return fmt.Sprintf("%d+%s", s.Position, s.Segment) }

// MarshalText writes position+length@offset:handle.
func (s ReadSegment) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads position+length@offset:handle.
func (s *ReadSegment) UnmarshalText(b []byte) error {
	p, rest, ok := strings.Cut(string(b), "+")
	n, err := strconv.ParseUint(p, 10, 32)
	if !ok || err != nil {
		return fmt.Errorf("read segment %q is not position+length@offset:handle", b)
	}
	s.Position = uint32(n)
	return s.Segment.UnmarshalText([]byte(rest))
}
