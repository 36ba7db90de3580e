package guard

import (
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// values checks what encoding the arguments again does not show: undefined values of
// enumerations, and data in chunks.
type values struct {
	items     []transport.Item
	chunks    int  // that belong to data
	length    bool // one has another length than its data
	undefined bool
	field     string
	value     uint32
}

// Enum is called for enumerations, and so are the others for what they say:
// methods of xdr.Visitor.
func (v *values) Enum(name string, n uint32, symbol string) {
	if symbol == "" && !v.undefined {
		v.undefined, v.field, v.value = true, name, n
	}
}

// Data counts the chunks that are where data belong.
func (v *values) Data(_ string, d xdr.Data) {
	if d.Chunk == 0 {
		return
	}
	v.chunks++
	if d.Chunk > len(v.items) || int64(d.Length) != int64(len(v.items[d.Chunk-1].Data)) {
		v.length = true
	}
}

// Nameless implements xdr.Nameless: names are not used here.
func (*values) Nameless() {}

// Begin and what follows look at nothing.
func (*values) Begin(string, string, int) {}

// End ends what Begin began.
func (*values) End() {}

// Uint is an unsigned integer.
func (*values) Uint(string, uint64) {}

// Int is a signed integer.
func (*values) Int(string, int64) {}

// Bool is a boolean: encoding it again showed whether it is 0 or 1.
func (*values) Bool(string, bool) {}

// Flags are a bit mask.
func (*values) Flags(string, uint64, string) {}

// Bytes are an opaque.
func (*values) Bytes(string, []byte) {}

// String is a text.
func (*values) String(string, []byte) {}

// Time is a time.
func (*values) Time(string, int64, uint32) {}
