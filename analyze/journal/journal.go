package journal

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// Limits of an entry. A datagram has to fit the buffer of a socket, which is 208 KiB unless an administrator
// has changed it.
const (
	maxMessage = 48 << 10
	maxFields  = 48 << 10
	// MaxEntry bounds what Append appends.
	MaxEntry = maxMessage + maxFields + 1<<10
)

// standard are the fields of every entry, as far as a transaction has them; RPCRDMA_XID comes before them.
var standard = sync.OnceValue(func() (names []string) {
	for _, f := range fields.All() {
		if f.In(fields.Journal) && f.Name != "xid" {
			names = append(names, f.Name)
		}
	}
	return names
})

// prefix begins the names of the fields.
const prefix = "RPCRDMA_"

// Encoder makes entries. It may not be used by several goroutines at once.
type Encoder struct {
	List text.Lister
	Tree *text.Tree // nil: MESSAGE is one line

	fields  []field
	values  []string
	message []byte
	value   []byte
}

type field struct {
	ref  *filter.FieldRef
	name string
}

// New returns an Encoder that writes the standard fields, and those named more.
func New(more []string) (*Encoder, error) {
	e := &Encoder{}
	for i, name := range slices.Concat(standard(), more) {
		ref, err := filter.Field(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f := field{ref, fieldName(name)}
		if !validName(f.name) {
			return nil, fmt.Errorf("%s: the journal takes names of at most %d characters, %s has %d", name, maxName, f.name, len(f.name))
		}
		if i >= len(standard()) && (name == "xid" || slices.ContainsFunc(e.fields, func(x field) bool { return x.name == f.name })) {
			continue
		}
		e.fields = append(e.fields, f)
	}
	return e, nil
}

// Blame reports whether a field needs Transaction.Blame.
func (e *Encoder) Blame() bool {
	return slices.ContainsFunc(e.fields, func(f field) bool { return f.ref.Blame() })
}

// fieldName is the name in the journal of a field of the display filter.
func fieldName(name string) string {
	return prefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// Append appends the entry of a transaction: at most MaxEntry bytes. RPCRDMA_TRUNCATED=1 marks an entry of
// which something had to be left out.
func (e *Encoder) Append(b []byte, v *rpc.View) []byte {
	truncated := false
	e.message = e.List.Append(e.message[:0], v)
	e.message = append(bytes.TrimRight(e.message, " "), '\n')
	if e.Tree != nil {
		e.message = e.Tree.Append(e.message, v)
	}
	e.message = bytes.TrimRight(e.message, "\n")
	if len(e.message) > maxMessage {
		truncated = true
		cut := bytes.LastIndexByte(e.message[:maxMessage], '\n')
		if cut < 0 { // one line of that length
			for cut = maxMessage; !utf8.RuneStart(e.message[cut]); cut-- {
			}
		}
		left := len(e.message) - cut
		e.message = fmt.Appendf(e.message[:cut], "\n(%d bytes more)", left)
	}
	b = AppendField(b, "MESSAGE", e.message)
	b = append(b, "PRIORITY="...)
	b = strconv.AppendInt(b, int64(PriorityOf(v)), 10)
	b = append(b, "\nSYSLOG_IDENTIFIER=rpcrdma-dump\n"...)
	b = fmt.Appendf(b, prefix+"XID=0x%08x\n", v.Tx.XID)
	start := len(b)
	for i := range e.fields {
		f := &e.fields[i]
		e.values = f.ref.Append(e.values[:0], v)
		for _, s := range e.values {
			e.value = printable.Backslash(e.value[:0], []byte(s))
			if len(b)-start+len(f.name)+len(e.value)+16 > maxFields {
				truncated = true
				continue
			}
			b = AppendField(b, f.name, e.value)
		}
	}
	if truncated {
		b = append(b, prefix+"TRUNCATED=1\n"...)
	}
	return b
}
