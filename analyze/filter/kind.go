package filter

import "strings"

// kindSet is a set of kinds of values. A field has one kind usually; fields of several procedures that share
// a name may have several.
type kindSet uint16

const (
	kUint kindSet = 1 << iota
	kInt
	kDuration
	kTime
	kBool
	kString
	kEnum  // a number with a symbol
	kFlags // a mask with symbols
	kBytes
	kData // bytes that may live in a chunk
	kAddr
	kGroup // holds other fields; has no value
	kCount // with kUint: 0 stands for "none"
)

var kindNames = [...]string{
	"number", "number", "duration", "time", "boolean", "text", "symbol", "flags", "bytes", "bytes", "address", "group", "count",
}

// kindLiterals says which values a kind is compared with, for messages.
var kindLiterals = [...]string{
	"a number", "a number", "a duration such as 250us, or nanoseconds", "a time such as 2024-05-01T12:00:00.5Z",
	"true or false", "a text", "a symbol or a number", "a symbol or a number",
	"bytes such as 01:02:ff or 0x0102ff, or a text in quotes", "bytes such as 01:02:ff or 0x0102ff, or a text in quotes",
	"an IP address or prefix", "nothing", "a number",
}

func (k kindSet) list(names []string, sep string) string {
	var b strings.Builder
	seen := ""
	for i := range len(kindNames) {
		if k&(1<<i) == 0 || strings.Contains(seen, names[i]+"\x00") {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(sep)
		}
		b.WriteString(names[i])
		seen += names[i] + "\x00"
	}
	return b.String()
}

// String names the kinds: "number|symbol".
func (k kindSet) String() string {
	if k&kCount != 0 {
		return "count"
	}
	return k.list(kindNames[:], "|")
}

func (k kindSet) literals() string { return (k &^ kCount).list(kindLiterals[:], ", or ") }

// fits is the kinds that an operator can be used with.
func (o opcode) fits() kindSet {
	switch o {
	case opExists:
		return ^kindSet(0)
	case opLt, opLe, opGt, opGe:
		return kUint | kInt | kDuration | kTime | kString | kEnum | kFlags | kBytes
	case opContains:
		return kString | kBytes | kData | kEnum | kFlags
	case opMatches:
		return kString | kBytes | kData | kEnum | kFlags | kAddr
	case opMask:
		return kUint | kFlags
	}
	return ^(kGroup | kCount)
}

// equates reports whether an operator compares for equality only.
func (o opcode) equates() bool {
	switch o {
	case opEq, opNe, opAllEq, opAnyNe, opIn, opNotIn:
		return true
	}
	return false
}
