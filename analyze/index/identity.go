package index

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Identity tells a capture from others, and from itself after a change.
type Identity struct {
	Size     int64
	Modified int64  // ns since 1970
	Samples  string // HMAC of the samples
}

const (
	samples    = 32 // places that are looked at, besides both ends
	sampleSize = 4 << 10
)

// Identify looks at a regular file.
func Identify(f *os.File, key []byte) (Identity, error) {
	info, err := f.Stat()
	if err != nil {
		return Identity{}, err
	}
	if !info.Mode().IsRegular() {
		return Identity{}, fmt.Errorf("%s: not a regular file", f.Name())
	}
	id := Identity{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	sum := hmac.New(sha256.New, key)
	buf := make([]byte, sampleSize)
	look := func(at int64) error {
		n, err := f.ReadAt(buf, at)
		if err != nil && err != io.EOF {
			return err
		}
		sum.Write(buf[:n])
		return nil
	}
	last := max(id.Size-sampleSize, 0)
	if err := look(0); err != nil {
		return id, err
	}
	for i := range samples {
		if err := look(place(key, i, id.Size) % (last + 1)); err != nil {
			return id, err
		}
	}
	if err := look(last); err != nil {
		return id, err
	}
	id.Samples = hex.EncodeToString(sum.Sum(nil))
	return id, nil
}

// place is where a sample is taken: somebody without the key cannot change a capture beside the samples on purpose.
func place(key []byte, i int, size int64) int64 {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "sample %d of %d", i, size)
	return int64(binary.BigEndian.Uint64(h.Sum(nil)) >> 1)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC-32C of a part of a file.
func checksum(r io.ReaderAt, from, to int64) (uint32, error) {
	buf := make([]byte, 256<<10)
	sum := uint32(0)
	for from < to {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
		if n == 0 {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, buf[:n])
		from += int64(n)
	}
	return sum, nil
}
