package rpc

import (
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// body reads arguments or results, of which data items may be in chunks.
type body struct {
	reader  xdr.Reader
	reduced []xdr.Reduced
}

// reduceCall tells the reader which data items of the arguments are in chunks, reduceReply which of the results.
func (b *body) reduceCall(h *rpcrdma.Header) {
	b.reduced = h.ReducedCall(b.reduced[:0])
	b.reader.ReduceCall(b.reduced)
}

func (b *body) reduceReply(h *rpcrdma.Header) {
	if len(h.Reads) > 0 { // the read-read model
		b.reduceCall(h)
		return
	}
	b.reduced = h.ReducedReply(b.reduced[:0])
	b.reader.ReduceReply(b.reduced)
}
