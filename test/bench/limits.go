// Package bench measures the decoder as a whole, and what the machine can do at best: BenchmarkDecode and BenchmarkWalk in
// memory, BenchmarkLimit for the machine. compare and nanoseconds are programs.
package bench

import (
	"errors"
	"hash/crc32"
	"io"
	"os"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// A decoder has to do at least this with a capture: get its bytes from the kernel, and check the CRCs of its packets. Both
// are measured with what the decoder uses.

// Reads is how many bytes ReadAll asks for at once: as many as the readers of captures do.
const Reads = 256 << 10

// ReadAll reads a file and looks at nothing: the copy from the page cache.
func ReadAll(name string) (n int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b := make([]byte, Reads)
	for {
		k, err := f.Read(b)
		n += int64(k)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var roceDecoder roce.FastDecoder

// CRC makes the checksums of all pieces of b, size bytes each: the invariant CRC of RoCE over IPv4, of 64 bytes at least, or CRC32C of
// iWARP. It returns a number that depends on all of them. b should be no larger than the cache that packets are in when the decoder checks them.
func CRC(b []byte, size int, iwarp bool) (sum uint32) {
	for ; len(b) >= size; b = b[size:] {
		if iwarp {
			sum ^= crc32.Update(0, castagnoli, b[:size])
		} else if roceDecoder.Intact(b[:size:size], 20) {
			sum++
		}
	}
	return sum
}

// Touch reads a word of each cache line of b. With a b that is larger than all caches, that is as fast as memory is.
func Touch(b []byte) (sum byte) {
	for i := 0; i+448 < len(b); i += 512 {
		sum += b[i] + b[i+64] + b[i+128] + b[i+192] + b[i+256] + b[i+320] + b[i+384] + b[i+448]
	}
	return sum
}
