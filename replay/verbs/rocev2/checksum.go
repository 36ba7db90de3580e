//go:build !race

package rocev2

import "github.com/rpcrdma/toolkit/internal/crc"

// checksum adds payload to a CRC.
func checksum(sum uint32, payload []byte) uint32 {
	return crc.Update(sum, payload)
}

// snapshot appends payload to b.
func snapshot(b, payload []byte) []byte { return append(b, payload...) }
