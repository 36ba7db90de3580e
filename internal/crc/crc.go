package crc

import "hash/crc32"

// least is the length in bytes from which on four runs side by side are faster.
const least = 512

// Update adds p to a checksum, as crc32.Update(sum, crc32.IEEETable, p) does.
func Update(sum uint32, p []byte) uint32 {
	if wide && len(p) >= least {
		n := len(p) &^ 15
		sum = ^fold(&p[0], n, ^sum)
		if p = p[n:]; len(p) == 0 {
			return sum
		}
	}
	return crc32.Update(sum, crc32.IEEETable, p)
}
