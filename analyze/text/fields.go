package text

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/digits"
)

// node is a field of a message, or a structure of fields.
type node struct {
	name     string
	index    int  // of an array's element; -1 outside arrays
	leaf     bool // from and to delimit its value in fields.values
	zero     bool // of a leaf: the value is zero, as that of every unread field
	time     bool // of a leaf
	seconds  bool // of a time: it has no fraction of a second
	from, to int
	end      int // of a structure: the node after its last one
}

// fields is a Visitor that records the fields it is given, so that they can be laid out once all of them are
// known. It is reused for each message.
type fields struct {
	full   bool // do not shorten values
	nodes  []node
	open   []int
	values []byte
}

var _ xdr.Visitor = (*fields)(nil)

func (f *fields) reset(full bool) {
	f.full = full
	f.nodes, f.open, f.values = f.nodes[:0], f.open[:0], f.values[:0]
}

// Begin implements xdr.Visitor.
func (f *fields) Begin(name, _ string, index int) {
	f.open = append(f.open, len(f.nodes))
	f.nodes = append(f.nodes, node{name: name, index: index})
}

// End implements xdr.Visitor.
func (f *fields) End() {
	if n := len(f.open); n > 0 {
		f.nodes[f.open[n-1]].end = len(f.nodes)
		f.open = f.open[:n-1]
	}
}

// close closes what an incomplete message left open.
func (f *fields) close() {
	for len(f.open) > 0 {
		f.End()
	}
}

// until removes the fields that were not read because of err. They are zero, and would be shown as values: a file of type 0 that
// belongs to root. The last nonzero field was read, and so were all fields before it. The zeros behind it stay up to the field
// at which decoding failed, found by its name. If no field has that name, they are removed, since it is not known which were sent.
func (f *fields) until(err error) {
	f.close()
	if err == nil {
		return
	}
	read := 0 // nodes
	for i := range f.nodes {
		if n := &f.nodes[i]; n.leaf && !n.zero {
			read = i + 1
		}
	}
	if e, ok := err.(*xdr.Error); ok {
		// A time is one leaf here, and may lack its fraction only.
		if read > 0 && f.nodes[read-1].seconds && (e.Field == "nseconds" || e.Field == "useconds") {
			read--
		}
		for i := read; i < len(f.nodes); i++ {
			if n := &f.nodes[i]; n.name == e.Field || n.time {
				read = i
				break
			}
		}
	}
	// A structure of which nothing is left was not read either.
	for read > 0 && !f.nodes[read-1].leaf {
		read--
	}
	f.nodes = f.nodes[:read]
	for i := range f.nodes {
		f.nodes[i].end = min(f.nodes[i].end, read)
	}
}

func (f *fields) leaf(name string, zero bool) *node {
	f.nodes = append(f.nodes, node{name: name, index: -1, leaf: true, zero: zero, from: len(f.values), end: len(f.nodes) + 1})
	return &f.nodes[len(f.nodes)-1]
}

// Uint implements xdr.Visitor.
func (f *fields) Uint(name string, v uint64) {
	n := f.leaf(name, v == 0)
	switch name {
	case "handle", "xid", "rdma_xid", "rdma_inv_handle":
		f.values = hexNumber(f.values, v, 8)
	case "mode":
		f.values = append(f.values, '0')
		f.values = strconv.AppendUint(f.values, v, 8)
	default:
		f.values = strconv.AppendUint(f.values, v, 10)
	}
	n.to = len(f.values)
}

// Int implements xdr.Visitor.
func (f *fields) Int(name string, v int64) {
	n := f.leaf(name, v == 0)
	f.values = strconv.AppendInt(f.values, v, 10)
	n.to = len(f.values)
}

// Bool implements xdr.Visitor.
func (f *fields) Bool(name string, v bool) {
	n := f.leaf(name, !v)
	f.values = strconv.AppendBool(f.values, v)
	n.to = len(f.values)
}

// Enum implements xdr.Visitor.
func (f *fields) Enum(name string, v uint32, symbol string) {
	n := f.leaf(name, v == 0)
	f.values = append(f.values, symbol...)
	if symbol == "" || f.full {
		if symbol != "" {
			f.values = append(f.values, " ("...)
		}
		f.values = strconv.AppendUint(f.values, uint64(v), 10)
		if symbol != "" {
			f.values = append(f.values, ')')
		}
	}
	n.to = len(f.values)
}

// Flags implements xdr.Visitor.
func (f *fields) Flags(name string, v uint64, symbols string) {
	n := f.leaf(name, v == 0)
	if name == "mode" || name == "mu_mode" || name == "mu_umask" {
		f.values = append(f.values, '0')
		f.values = strconv.AppendUint(f.values, v, 8)
		if f.full && symbols != "" {
			f.values = append(f.values, ' ')
			f.values = append(f.values, symbols...)
		}
		n.to = len(f.values)
		return
	}
	if symbols == "" || f.full {
		f.values = hexNumber(f.values, v, 1)
		if symbols != "" {
			f.values = append(f.values, ' ')
		}
	}
	f.values = append(f.values, symbols...)
	n.to = len(f.values)
}

// How much of a value is shown in the short form.
const (
	maxBytes = 32
	maxText  = 64
)

// Bytes implements xdr.Visitor.
func (f *fields) Bytes(name string, v []byte) {
	n := f.leaf(name, len(bytes.Trim(v, "\x00")) == 0) // those of a fixed length are there, whether they were read or not
	f.values = f.bytes(f.values, v)
	n.to = len(f.values)
}

func (f *fields) bytes(b, v []byte) []byte {
	switch {
	case len(v) == 0:
		return append(b, "(empty)"...)
	case f.full || len(v) <= maxBytes:
		return digits.Hex(b, v)
	}
	b = digits.Hex(b, v[:maxBytes])
	b = append(b, ellipsis...)
	b = append(b, " ("...)
	b = strconv.AppendInt(b, int64(len(v)), 10)
	return append(b, " bytes)"...)
}

// String implements xdr.Visitor.
func (f *fields) String(name string, v []byte) {
	n := f.leaf(name, len(v) == 0)
	f.values = f.text(f.values, v)
	n.to = len(f.values)
}

func (f *fields) text(b, v []byte) []byte {
	b = append(b, '"')
	if f.full || len(v) <= maxText {
		b, _ = Safe(b, v)
		return append(b, '"')
	}
	cut := v[:maxText]
	for i := 0; i < utf8.UTFMax && len(cut) > 0 && !utf8.RuneStart(v[len(cut)]); i++ {
		cut = cut[:len(cut)-1]
	}
	b, _ = Safe(b, cut)
	b = append(b, '"')
	b = append(b, ellipsis...)
	b = append(b, " ("...)
	b = strconv.AppendInt(b, int64(len(v)), 10)
	return append(b, " bytes)"...)
}

// Data implements xdr.Visitor.
func (f *fields) Data(name string, d xdr.Data) {
	n := f.leaf(name, d.Length == 0)
	f.values = strconv.AppendUint(f.values, uint64(d.Length), 10)
	f.values = append(f.values, " bytes"...)
	switch {
	case d.Chunk != 0:
		f.values = append(f.values, " in chunk "...)
		f.values = strconv.AppendInt(f.values, int64(d.Chunk-1), 10)
	case len(d.Inline) > 0:
		f.values = append(f.values, ' ')
		v := d.Inline[:min(len(d.Inline), maxText)]
		full := f.full
		f.full = true // the data shown is only a sample anyway
		if isText(v) {
			f.values = f.text(f.values, v)
		} else {
			f.values = f.bytes(f.values, v[:min(len(v), maxBytes)])
			v = v[:min(len(v), maxBytes)]
		}
		f.full = full
		if len(v) < int(d.Length) {
			f.values = append(f.values, ellipsis...)
		}
	}
	n.to = len(f.values)
}

// isText reports whether most of v is text.
func isText(v []byte) bool {
	n := 0
	for _, c := range v {
		if c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' || c >= 0x80 {
			n++
		}
	}
	return utf8.Valid(v[:max(0, len(v)-utf8.UTFMax)]) && n == len(v)
}

// Time implements xdr.Visitor.
func (f *fields) Time(name string, sec int64, nsec uint32) {
	n := f.leaf(name, sec == 0 && nsec == 0)
	n.time, n.seconds = true, nsec == 0
	f.values = time.Unix(sec, int64(nsec)).UTC().AppendFormat(f.values, "2006-01-02T15:04:05.999999999Z")
	n.to = len(f.values)
}

// maxElements is how many elements of an array the short form shows.
const maxElements = 3

// layout writes the fields, each line at least indent columns in.
func (t *Tree) layout(b []byte, f *fields, indent int) []byte {
	f.close()
	return t.children(b, f, 0, len(f.nodes), indent)
}

func (t *Tree) children(b []byte, f *fields, from, to, indent int) []byte {
	for i := from; i < to; {
		n := &f.nodes[i]
		if n.leaf {
			j := i
			for j < to && f.nodes[j].leaf {
				j++
			}
			if f.full {
				b = t.column(b, f, i, j, indent)
			} else {
				b = t.spaces(b, indent)
				b = t.row(b, f, i, j, indent, indent)
				b = append(b, '\n')
			}
			i = j
			continue
		}
		if !f.full && n.index >= maxElements {
			// The rest of an array.
			count := 0
			last := i
			for i < to && !f.nodes[i].leaf && f.nodes[i].name == n.name && f.nodes[i].index >= maxElements {
				last = i
				i = f.nodes[i].end
				count++
			}
			if count > 1 {
				b = t.spaces(b, indent)
				b = append(b, ellipsis...)
				b = append(b, ' ')
				b = strconv.AppendInt(b, int64(count), 10)
				b = append(b, " more (-vv shows all)\n"...)
				continue
			}
			i = last
		}
		b = t.branch(b, f, i, indent)
		i = f.nodes[i].end
	}
	return b
}

// branch writes a structure.
func (t *Tree) branch(b []byte, f *fields, i, indent int) []byte {
	n := &f.nodes[i]
	b = t.spaces(b, indent)
	start := len(b)
	b = t.label(b, n)
	width := len(b) - start
	// A structure that holds only another structure shares its line.
	for !f.full && i+1 < n.end && !f.nodes[i+1].leaf && f.nodes[i+1].end == n.end {
		i++
		n = &f.nodes[i]
		b = append(b, '.')
		start = len(b)
		b = t.label(b, n)
		width += 1 + len(b) - start
	}
	b = append(b, ':')
	if i+1 == n.end {
		return append(b, " (empty)\n"...)
	}
	if !f.full {
		all := true
		for j := i + 1; j < n.end; j++ {
			all = all && f.nodes[j].leaf
		}
		if all {
			b = append(b, ' ')
			b = t.row(b, f, i+1, n.end, indent+width+2, indent+4)
			return append(b, '\n')
		}
	}
	b = append(b, '\n')
	return t.children(b, f, i+1, n.end, indent+2)
}

func (t *Tree) label(b []byte, n *node) []byte {
	b = append(b, n.name...)
	if n.index >= 0 {
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(n.index), 10)
		b = append(b, ']')
	}
	return b
}

// column writes leaves one below another.
func (t *Tree) column(b []byte, f *fields, from, to, indent int) []byte {
	for i := from; i < to; i++ {
		n := &f.nodes[i]
		b = t.spaces(b, indent)
		b = Paint(b, t.Color, ColorDim, n.name)
		b = append(b, ": "...)
		b = append(b, f.values[n.from:n.to]...)
		b = append(b, '\n')
	}
	return b
}

// row writes leaves side by side and continues on the next line when one is full. col is the current column.
// Several leaves with the same name form a list.
func (t *Tree) row(b []byte, f *fields, from, to, col, indent int) []byte {
	width := t.width()
	for i := from; i < to; i++ {
		n := &f.nodes[i]
		again := i > from && f.nodes[i-1].name == n.name
		v := f.values[n.from:n.to]
		need := utf8.RuneCount(v) + 1
		if !again {
			need += len(n.name) + 1
		}
		if i > from {
			b = append(b, ',')
			col++
			if col+1+need > width {
				b = append(b, '\n')
				b = t.spaces(b, indent)
				col = indent
			} else {
				b = append(b, ' ')
				col++
			}
		}
		if !again {
			b = Paint(b, t.Color, ColorDim, n.name)
			b = append(b, ' ')
		}
		if !again {
			col += len(n.name) + 1
		}
		if width-indent < need {
			b, col = t.wrap(b, v, col, indent+2)
			continue
		}
		b = append(b, v...)
		col += utf8.RuneCount(v)
	}
	return b
}

// wrap writes a value that is longer than a line. The names of a bit mask are broken at the end of a line.
func (t *Tree) wrap(b, v []byte, col, indent int) ([]byte, int) {
	for {
		i := bytes.IndexByte(v, '|') + 1
		if i == 0 {
			i = len(v)
		}
		if n := utf8.RuneCount(v[:i]); col+n > t.width() && col > indent {
			b = append(b, '\n')
			b = t.spaces(b, indent)
			col = indent
		}
		b = append(b, v[:i]...)
		col += utf8.RuneCount(v[:i])
		if v = v[i:]; len(v) == 0 {
			return b, col
		}
	}
}

const blanks = "                                                                "

func (t *Tree) spaces(b []byte, n int) []byte {
	for n > len(blanks) {
		b = append(b, blanks...)
		n -= len(blanks)
	}
	return append(b, blanks[:max(n, 0)]...)
}
