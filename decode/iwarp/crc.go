package iwarp

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC32C of b as MPA uses it (RFC 5044 4.4): Castagnoli polynomial, initial ones, final
// complement. It is the only little-endian number of iWARP.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
