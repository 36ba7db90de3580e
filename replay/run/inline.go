package run

import "github.com/rpcrdma/toolkit/decode/xdr"

// inline counts the bytes of file data and link texts that a message has in its stream, not in chunks: over TCP all of
// them, over RDMA what the endpoint asked for no chunk for.
type inline uint64

var _ xdr.Nameless = (*inline)(nil)

// Data implements xdr.Visitor.
func (n *inline) Data(_ string, d xdr.Data) {
	if d.Chunk == 0 {
		*n += inline(len(d.Inline))
	}
}

// Nameless implements xdr.Nameless.
func (*inline) Nameless()                    {}
func (*inline) Begin(string, string, int)    {}
func (*inline) End()                         {}
func (*inline) Uint(string, uint64)          {}
func (*inline) Int(string, int64)            {}
func (*inline) Bool(string, bool)            {}
func (*inline) Enum(string, uint32, string)  {}
func (*inline) Flags(string, uint64, string) {}
func (*inline) Bytes(string, []byte)         {}
func (*inline) String(string, []byte)        {}
func (*inline) Time(string, int64, uint32)   {}
