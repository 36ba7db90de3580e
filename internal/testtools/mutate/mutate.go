// Package mutate turns the input of a fuzz target into changes of real
// messages. The input is a program: steps of eight bytes that drop, double, swap
// or change messages which a capture has shown. What comes out is close to what
// peers send, so that it gets past the first check of a parser; and a changed
// bit of the program is a changed message, not a file that cannot be opened.
//
//	 0       1       2       3       4       5       6       7
//	┌───────┬───────┬───────────────┬───────────────────────────────┐
//	│  op   │  at   │     where     │             value             │
//	└───────┴───────┴───────────────┴───────────────────────────────┘
//
// Nothing here is random: the same program gives the same messages, in time and
// memory that MaxSteps bounds. Package mutate knows no protocol. What does know
// one (lengths, checksums) is to be put right by the caller; package traffic
// does that for packets.
package mutate

import (
	"encoding/binary"
	"hash/crc32"
)

// Sizes of a program.
const (
	StepSize = 8
	MaxSteps = 32
)

// Step is one change.
type Step struct {
	Op    uint8
	At    uint8  // the message, counted round
	Where uint16 // a place in it
	Value uint32
}

// Steps calls f for each step of a program, until f returns false. A rest of less than a step counts, with
// zeros after it.
func Steps(program []byte, f func(Step) bool) {
	var last [StepSize]byte
	for n := 0; len(program) > 0 && n < MaxSteps; n++ {
		b := program
		if len(b) < StepSize {
			copy(last[:], b)
			b = last[:]
		}
		s := Step{Op: b[0], At: b[1], Where: binary.LittleEndian.Uint16(b[2:]), Value: binary.LittleEndian.Uint32(b[4:])}
		if !f(s) {
			return
		}
		program = program[min(StepSize, len(program)):]
	}
}

// Program is the program of some steps, for seeds.
func Program(steps ...Step) []byte {
	var b []byte
	for _, s := range steps {
		b = append(b, s.Op, s.At)
		b = binary.LittleEndian.AppendUint16(b, s.Where)
		b = binary.LittleEndian.AppendUint32(b, s.Value)
	}
	return b
}

// Index is the message that the step is about, of n.
func (s Step) Index(n int) int { return int(s.At) % n }

// Second is another message that the step is about, of n.
func (s Step) Second(n int) int { return int(s.Value>>24) % n }

// interesting are values at which counts, lengths and numbers break.
var interesting = [...]uint32{
	0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 63, 64, 127, 128, 255, 256, 1000, 1023, 1024, 1025, 4095, 4096, 4097,
	0x7fff, 0x8000, 0xffff, 0x10000, 0xffffff, 0x1000000, 0x7ffffffc, 0x7fffffff, 0x80000000, 0x80000004, 0xfffffff0, 0xfffffffc, 0xfffffffe, 0xffffffff,
}

// Changes of the words of a message, which Word makes.
const (
	SetInteresting = iota
	Add
	CopyWord
	Xor
	SetValue
	SetByte
	SetHalf
	SwapWords
	Words // how many there are
)

// Word changes a word of a message in place: of its aligned words of 32 bits,
// counted from its start, the one that the step names. Headers come first in
// messages, so that half of all steps change one of the first 48 words. other
// is a message to take words from.
func Word(b []byte, kind int, s Step, other []byte) {
	n := len(b) / 4
	if n == 0 {
		return
	}
	at := s.place(n)
	w := b[4*at : 4*at+4]
	v := binary.BigEndian.Uint32(w)
	switch kind % Words {
	case SetInteresting:
		v = interesting[s.Value%uint32(len(interesting))]
	case Add:
		v += uint32(int32(int8(s.Value)))
		if s.Value>>8&3 == 3 {
			v += s.Value &^ 0xff
		}
	case CopyWord:
		if m := len(other) / 4; m > 0 {
			from := at
			if s.Value&1 != 0 {
				from += int(int8(s.Value >> 8))
			}
			v = binary.BigEndian.Uint32(other[4*(((from%m)+m)%m):])
		}
	case Xor:
		v ^= 1 << (s.Value & 31)
		if s.Value&32 != 0 {
			v ^= s.Value >> 8
		}
	case SetValue:
		v = s.Value
	case SetByte:
		w[s.Value>>8&3] = byte(s.Value)
		return
	case SetHalf:
		binary.BigEndian.PutUint16(w[s.Value>>16&2:], uint16(s.Value))
		return
	case SwapWords:
		o := b[4*(int(s.Value&0xffff)%n):][:4]
		x := binary.BigEndian.Uint32(o)
		binary.BigEndian.PutUint32(o, v)
		v = x
	}
	binary.BigEndian.PutUint32(w, v)
}

// place is an index below n: small ones are likelier.
func (s Step) place(n int) int {
	at := int(s.Where >> 1)
	if s.Where&1 == 0 {
		return at % min(n, 48)
	}
	return at % n
}

// Grow inserts up to 255 bytes into a copy of a message: of the other message,
// or zeros.
func Grow(b []byte, s Step, other []byte, most int) []byte {
	at, n := s.offset(len(b)), int(s.Value&0xff)
	if s.Value&0x300 != 0 {
		n &^= 3 // as XDR is
	}
	n = min(n, most-len(b))
	n = max(n, 0)
	out := make([]byte, len(b)+n)
	copy(out, b[:at])
	copy(out[at+n:], b[at:])
	if s.Value&0x400 != 0 && len(other) > 0 {
		from := other[int(s.Value>>16)%len(other):]
		copy(out[at:at+n], from)
	}
	return out
}

// Shrink takes up to 1023 bytes out of a copy of a message.
func Shrink(b []byte, s Step) []byte {
	at, n := s.offset(len(b)), int(s.Value&0x3ff)
	if s.Value&0xc00 != 0 {
		n &^= 3
	}
	n = min(n, len(b)-at)
	out := make([]byte, 0, len(b)-n)
	return append(append(out, b[:at]...), b[at+n:]...)
}

// Copy overwrites bytes of a message with bytes of another.
func Copy(b []byte, s Step, other []byte) {
	if len(other) == 0 || len(b) == 0 {
		return
	}
	at := s.offset(len(b))
	from := int(s.Value&0xffff) % len(other) &^ 3
	n := int(s.Value >> 16 & 0xff)
	copy(b[at:min(len(b), at+n)], other[from:])
}

// offset is a place in n bytes: a multiple of four usually.
func (s Step) offset(n int) int {
	at := int(s.Where)
	if at&3 != 3 {
		at &^= 3
	}
	return at % (n + 1)
}

// Duration is a time that the step stands for, in nanoseconds: of either sign
// and any size.
func (s Step) Duration() int64 { return int64(int8(s.Value)) << (s.Value >> 8 & 63) }

// Sample reports whether an input is one of those that are asked what takes long to
// find out: one in n, which its bytes alone decide. That of no bytes is one.
func Sample(program []byte, n uint32) bool { return crc32.ChecksumIEEE(program)%n == 0 }
