package judge

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// tree holds the fields of a message as Walk visits them, in one slice: a node is
// followed by its children.
type tree struct {
	nodes []leaf
	data  []xdr.Data // file data, in order
	open  []int32
}

// permissions are the bits of a mode that do not say of what type an object is.
const permissions = 0o7777

type leaf struct {
	name  string
	typ   string // of what Begin opens; empty for values
	index int    // element of an array, -1 outside
	end   int32  // behind the last child
	kind  valueKind
	num   uint64 // value, or the length of data
	sub   uint32 // nanoseconds; chunk
	text  string // symbol
	bytes []byte
}

type valueKind uint8

const (
	group valueKind = iota
	number
	signed
	boolean
	enum
	flags
	opaque
	text
	data
	moment
)

func (t *tree) fill(m xdr.Message) {
	t.clear()
	m.Walk(t)
}

func (t *tree) clear() { t.nodes, t.data, t.open = t.nodes[:0], t.data[:0], t.open[:0] }

func (t *tree) add(n leaf) {
	n.end = int32(len(t.nodes) + 1)
	t.nodes = append(t.nodes, n)
}

// Begin implements xdr.Visitor, as do the methods that follow.
func (t *tree) Begin(name, typ string, index int) {
	t.open = append(t.open, int32(len(t.nodes)))
	t.add(leaf{name: name, typ: typ, index: index})
}

// End closes what Begin opened.
func (t *tree) End() {
	if n := len(t.open); n > 0 {
		t.nodes[t.open[n-1]].end = int32(len(t.nodes))
		t.open = t.open[:n-1]
	}
}

// Uint visits an unsigned integer.
func (t *tree) Uint(name string, v uint64) { t.add(leaf{name: name, kind: number, num: v, index: -1}) }

// Int visits a signed integer.
func (t *tree) Int(name string, v int64) {
	t.add(leaf{name: name, kind: signed, num: uint64(v), index: -1})
}

// Bool visits a boolean.
func (t *tree) Bool(name string, v bool) {
	n := leaf{name: name, kind: boolean, index: -1}
	if v {
		n.num = 1
	}
	t.add(n)
}

// Enum visits an enumeration.
func (t *tree) Enum(name string, v uint32, symbol string) {
	t.add(leaf{name: name, kind: enum, num: uint64(v), text: symbol, index: -1})
}

// Flags visits a bit mask. Some servers of NFSv3 return the type of an object in its mode, which has a field of its own.
func (t *tree) Flags(name string, v uint64, symbols string) {
	if name == "mode" {
		v &= permissions
		symbols = fmt.Sprintf("%04o", v)
	}
	t.add(leaf{name: name, kind: flags, num: v, text: symbols, index: -1})
}

// Bytes visits an opaque.
func (t *tree) Bytes(name string, v []byte) {
	t.add(leaf{name: name, kind: opaque, bytes: v, index: -1})
}

func (t *tree) String(name string, v []byte) {
	t.add(leaf{name: name, kind: text, bytes: v, index: -1})
}

// Data visits file data.
func (t *tree) Data(name string, d xdr.Data) {
	t.data = append(t.data, d)
	t.add(leaf{name: name, kind: data, num: uint64(d.Length), index: -1})
}

// Time visits a moment.
func (t *tree) Time(name string, sec int64, nsec uint32) {
	t.add(leaf{name: name, kind: moment, num: uint64(sec), sub: nsec, index: -1})
}

// equal compares two values, not their children.
func (n *leaf) equal(o *leaf) bool {
	return n.kind == o.kind && n.num == o.num && n.sub == o.sub && string(n.bytes) == string(o.bytes)
}

// child finds the child of a node by name and index; -1 if there is none. hint is its likely
// position.
func (t *tree) child(parent int32, name string, index int, hint int32) int32 {
	first, end := t.children(parent)
	if hint >= first && hint < end && t.nodes[hint].name == name && t.nodes[hint].index == index {
		return hint
	}
	for i := first; i < end; i = t.nodes[i].end {
		if t.nodes[i].name == name && t.nodes[i].index == index {
			return i
		}
	}
	return -1
}

// children returns the first child of a node and the end behind the last; a parent of -1 stands
// for the whole message.
func (t *tree) children(parent int32) (first, end int32) {
	if parent < 0 {
		return 0, int32(len(t.nodes))
	}
	return parent + 1, t.nodes[parent].end
}

// rename gives the outermost nodes of a name another one.
func (t *tree) rename(from, to string) {
	for i := int32(0); i < int32(len(t.nodes)); i = t.nodes[i].end {
		if n := &t.nodes[i]; n.name == from {
			n.name = to
		}
	}
}

// entryName is the name of a directory entry.
func (t *tree) entryName(i int32) string {
	if t.nodes[i].kind != group {
		return string(t.nodes[i].bytes)
	}
	if j := t.child(i, "name", -1, i+2); j >= 0 {
		return string(t.nodes[j].bytes)
	}
	return ""
}

// value is a node in readable form.
func (n *leaf) value() string {
	switch n.kind {
	case number, flags:
		if n.text != "" {
			return n.text
		}
		return strconv.FormatUint(n.num, 10)
	case signed:
		return strconv.FormatInt(int64(n.num), 10)
	case boolean:
		return strconv.FormatBool(n.num != 0)
	case enum:
		if n.text != "" {
			return n.text
		}
		return strconv.FormatUint(n.num, 10)
	case opaque:
		if len(n.bytes) > shownBytes {
			return hex.EncodeToString(n.bytes[:shownBytes]) + "…"
		}
		return hex.EncodeToString(n.bytes)
	case text:
		return strconv.Quote(string(n.bytes))
	case data:
		return strconv.FormatUint(n.num, 10) + " bytes"
	case moment:
		return time.Unix(int64(n.num), int64(n.sub)).UTC().Format(time.RFC3339Nano)
	}
	return "present"
}

// shownBytes is how many bytes of an opaque are shown.
const shownBytes = 16

// values are two nodes that differ in readable form. If they look the same, the part that differs is shown.
func values(want, have *leaf) (was, now string) {
	was, now = want.value(), have.value()
	if was != now {
		return was, now
	}
	if want.kind != have.kind {
		return want.kind.String(), have.kind.String()
	}
	if n := len(want.bytes); n != len(have.bytes) {
		return fmt.Sprintf("%s (%d bytes)", was, n), fmt.Sprintf("%s (%d bytes)", now, len(have.bytes))
	}
	for i := range want.bytes {
		if want.bytes[i] != have.bytes[i] {
			part := func(b []byte) string {
				return fmt.Sprintf("%s at byte %d", hex.EncodeToString(b[i:min(i+shownBytes, len(b))]), i)
			}
			return part(want.bytes), part(have.bytes)
		}
	}
	return fmt.Sprintf("%s (%#x)", was, want.num), fmt.Sprintf("%s (%#x)", now, have.num)
}

var kindNames = [...]string{group: "a structure", number: "a number", signed: "a signed number", boolean: "a boolean", enum: "a symbol", flags: "a mask", opaque: "bytes", text: "text", data: "data", moment: "a time"}

func (k valueKind) String() string { return kindNames[k] }
