//go:build !race

package nfs4

// With the race detector a sync.Pool drops objects at random.

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// The steady path allocates nothing for a COMPOUND.
func TestAllocations(t *testing.T) {
	s, h, sid := fastPath(newRig(t, Options{}))
	for _, c := range []struct {
		name string
		max  []uint32
		ops  []nfs4.Op
		most float64
	}{
		{"GETATTR", nil, []nfs4.Op{putfh(h), getattr(linuxAttrs...)}, 0},
		{"LOOKUP", nil, []nfs4.Op{putroot, lookup("f"), getfh, getattr(linuxAttrs...)}, 0},
		{"ACCESS", nil, []nfs4.Op{putfh(h), access(0x1f), getattr(linuxAttrs...)}, 0},
		{"READ 4096", []uint32{4096}, []nfs4.Op{putfh(h), read(sid, 4096, 4096)}, 0},
		{"WRITE 4096", nil, []nfs4.Op{putfh(h), write(sid, 4096, string(make([]byte, 4096)))}, 0},
	} {
		s.slot++
		do, x := repeat(s, c.max, c.ops...)
		do()
		n := testing.AllocsPerRun(200, do)
		if x.bytes == 0 || x.failed > 0 {
			t.Fatalf("%s: %d bytes, %d failed", c.name, x.bytes, x.failed)
		}
		if n > c.most {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
