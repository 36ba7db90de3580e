package capture

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
)

// pieces cuts a capture into its header and records, or its blocks; what is
// neither, into pieces of 40 bytes.
func pieces(b []byte, order binary.ByteOrder) (list [][]byte) {
	next := func(n int) {
		n = min(max(n, 1), len(b))
		list = append(list, b[:n:n])
		b = b[n:]
	}
	switch {
	case order == nil:
		for len(b) > 0 {
			next(40)
		}
	case binary.LittleEndian.Uint32(b) == blockSection:
		for len(b) >= 8 {
			next(int(order.Uint32(b[4:])))
		}
	default:
		next(pcapFileHeader)
		for len(b) >= pcapRecordHeader {
			next(pcapRecordHeader + int(order.Uint32(b[8:])))
		}
	}
	return list
}

// FuzzOpen opens two captures, which may be compressed, each alone and both
// merged: which captures to begin with is in which, the program changes their
// records. As many packets come out together as one by one, and copied ahead by two goroutines.
func FuzzOpen(f *testing.F) {
	small := smallCaptures()
	files := [][][]byte{
		pieces(small["pcap"], binary.LittleEndian), pieces(small["pcapng"], binary.LittleEndian),
		pieces(small["pcap, big-endian"], binary.BigEndian), pieces(small["pcapng, big-endian"], binary.BigEndian),
		pieces(gz(small["pcap"][:100], small["pcap"][100:]), nil), pieces(zs(small["pcapng"]), nil), nil,
	}
	for i := range files {
		for j := range files {
			if i < 4 || j == i {
				f.Add(uint8(i*len(files)+j), []byte{})
			}
		}
	}
	dir, err := os.MkdirTemp("/dev/shm", "open") // in memory, if that is possible
	if err != nil {
		dir = f.TempDir()
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	names := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	f.Fuzz(func(t *testing.T, which uint8, program []byte) {
		a, b := files[int(which)/len(files)%len(files)], files[int(which)%len(files)]
		list := mutate.Units(append(append([][]byte{}, a...), b...), program, 4096)
		for i, part := range [][][]byte{list[:min(len(a), len(list))], list[min(len(a), len(list)):]} {
			if err := os.WriteFile(names[i], bytes.Join(part, nil), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		count := 0
		for i, name := range names {
			r, err := Open(names[i:i+1], Options{BatchSize: 300})
			if err != nil {
				if err.Error() == "" || len(err.Error()) > 1000 {
					t.Fatalf("%s: %q", name, err)
				}
				continue
			}
			n := drain(t, r)
			if n < 0 {
				return
			}
			count += n
		}
		r, err := Open(names, Options{BatchSize: 300})
		if err != nil {
			return
		}
		if n := drain(t, r); n != count {
			t.Fatalf("%d packets merged, %d one by one", n, count)
		}
	})
}
