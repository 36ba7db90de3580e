package nfs4

import (
	"fmt"
	"strings"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// tree is a Visitor that writes what it is shown, one field a line.
type tree struct {
	strings.Builder
	depth int
}

func (t *tree) line(format string, args ...any) {
	t.WriteString(strings.Repeat("  ", t.depth))
	fmt.Fprintf(t, format+"\n", args...)
}

func (t *tree) Begin(name, typ string, index int) {
	if index >= 0 {
		name = fmt.Sprintf("%s[%d]", name, index)
	}
	t.line("%s %s", name, typ)
	t.depth++
}
func (t *tree) End()                        { t.depth-- }
func (t *tree) Uint(name string, v uint64)  { t.line("%s: %d", name, v) }
func (t *tree) Int(name string, v int64)    { t.line("%s: %d", name, v) }
func (t *tree) Bool(name string, v bool)    { t.line("%s: %v", name, v) }
func (t *tree) Bytes(name string, v []byte) { t.line("%s: %x", name, v) }
func (t *tree) String(name string, v []byte) {
	t.line("%s: %q", name, v)
}
func (t *tree) Enum(name string, v uint32, symbol string) {
	t.line("%s: %s %d", name, symbol, v)
}
func (t *tree) Flags(name string, v uint64, symbols string) {
	t.line("%s: %#x %s", name, v, symbols)
}
func (t *tree) Data(name string, d xdr.Data) {
	t.line("%s: %d bytes, %d inline, chunk %d", name, d.Length, len(d.Inline), d.Chunk)
}
func (t *tree) Time(name string, sec int64, nsec uint32) {
	t.line("%s: %d.%09d", name, sec, nsec)
}

// show is the tree of what walk shows.
func show(walk func(xdr.Visitor)) string {
	var t tree
	walk(&t)
	if t.depth != 0 {
		t.line("unbalanced by %d", t.depth)
	}
	// (*tree).String shows a field, so Builder's method needs its full name.
	return t.Builder.String()
}

// count is a Visitor that allocates nothing.
type count int

func (c *count) Begin(string, string, int)   { *c++ }
func (c *count) End()                        {}
func (c *count) Uint(string, uint64)         { *c++ }
func (c *count) Int(string, int64)           { *c++ }
func (c *count) Bool(string, bool)           { *c++ }
func (c *count) Enum(string, uint32, string) { *c++ }
func (c *count) Flags(string, uint64, string) {
	*c++
}
func (c *count) Bytes(string, []byte)       { *c++ }
func (c *count) String(string, []byte)      { *c++ }
func (c *count) Data(string, xdr.Data)      { *c++ }
func (c *count) Time(string, int64, uint32) { *c++ }
