package filter

import "strings"

// kindSet is a set of kinds of values. A field usually has one kind; a field name shared by several
// procedures may have several.
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
	kData // bytes that may be in a chunk
	kAddr
	kGroup // holds other fields; has no value
	kCount // with kUint: 0 stands for "none"
)

var kindNames = [...]string{
	"number", "number", "duration", "time", "boolean", "text", "symbol", "flags", "bytes", "bytes", "address", "group", "count",
}

// kindLiterals describes, for messages, the literals that a kind is compared with.
var kindLiterals = [...]string{
	"a number", "a number", "a duration such as 250us, or nanoseconds", "a time such as 2024-05-01T12:00:00.5Z or 12:00:00.5",
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

// fits returns the kinds that an operator applies to.
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

// equates reports whether an operator only compares for equality.
func (o opcode) equates() bool {
	switch o {
	case opEq, opNe, opAllEq, opAnyNe, opIn, opNotIn:
		return true
	}
	return false
}
