//go:build race

package rocev2

import (
	"hash/crc32"
	"slices"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// checksum adds payload to a CRC. Memory that is open to the peer may be read at any
// time, for instance by a late copy of a request, whatever the consumer does with it
// meanwhile. An adapter reads memory in the same way. The packet is useless then, and the
// peer ignores it. The race detector must not report this.
func checksum(sum uint32, payload []byte) uint32 {
	var b [roce.MaxMTU]byte
	return crc32.Update(sum, crc32.IEEETable, snapshot(b[:0], payload))
}

// snapshot appends payload to b, byte by byte, because the race detector checks the copy
// functions of the runtime.
//
//go:norace
func snapshot(b, payload []byte) []byte {
	n := len(b)
	b = slices.Grow(b, len(payload))[:n+len(payload)]
	for i := range payload {
		b[n+i] = payload[i]
	}
	return b
}
