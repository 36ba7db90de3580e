package transaction

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/internal/prefetch"
)

// prefetched is how much of a message is fetched: what most of them have, and more than their headers.
const prefetched = 128

// Prefetch is for a consumer of a list of transactions: it is to be called with those that are left, before the first one of
// them is examined. It has the processor fetch the next ones meanwhile, which the tracker has left in the cache of another
// processor.
func Prefetch(left []*Transaction) {
	if len(left) > 2 {
		prefetch.Lines(unsafe.Pointer(left[2]), unsafe.Sizeof(Transaction{}))
	}
	if len(left) > 1 { // it has been fetched, except in the beginning
		left[1].Call.prefetch()
		left[1].Reply.prefetch()
	}
}

func (m *Message) prefetch() {
	if n := len(m.Payload); n > 0 {
		prefetch.Lines(unsafe.Pointer(unsafe.SliceData(m.Payload)), uintptr(min(n, prefetched)))
	}
}
