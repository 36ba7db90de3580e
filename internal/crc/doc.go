// Package crc computes the CRC-32 of Ethernet, which RoCE uses as its invariant CRC, of long runs of bytes in less time
// than hash/crc32.
//
// hash/crc32 folds 64 bytes at a time, and each step waits for the one before it: that is the limit, and not the
// multiplications. Four runs side by side have no such wait. They need the 512-bit multiplication without carries of
// AVX-512; other processors, and short runs, take hash/crc32.
package crc
