//go:build race

package rocev2

import (
	"hash/crc32"
	"slices"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// checksum adds payload to a CRC. As long as memory is open to the peer it may
// be read at any time, by a late copy of a request for one, whatever the
// consumer does with it meanwhile: an adapter reads memory like that. The packet
// is worth nothing then, and the peer wants nothing of it. The race detector
// need not know.
func checksum(sum uint32, payload []byte) uint32 {
	var b [roce.MaxMTU]byte
	return crc32.Update(sum, crc32.IEEETable, snapshot(b[:0], payload))
}

// snapshot appends payload to b, byte by byte because the runtime's own copying
// is what the race detector watches.
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
