//go:build !race

package rocev2

import "hash/crc32"

// checksum adds payload to a CRC.
func checksum(sum uint32, payload []byte) uint32 {
	return crc32.Update(sum, crc32.IEEETable, payload)
}

// snapshot appends payload to b.
func snapshot(b, payload []byte) []byte { return append(b, payload...) }
