package memory

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/storetest"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

func TestModel(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := New(Options{RootMode: 0o777})
			before := s.space.used.Load()
			storetest.Model(t, s, storetest.Options{Seed: seed, Steps: modelSteps, Check: func(t testing.TB, empty bool) {
				s.invariants(t)
				if used := s.space.used.Load(); empty && used != before {
					t.Errorf("%d bytes are used by nothing", used-before)
				}
				if n := s.files.Load(); empty && n != 0 {
					t.Errorf("%d files are nowhere", n)
				}
			}})
		})
	}
}

// invariants checks what holds of the blocks of all files.
func (s *Store) invariants(t testing.TB) {
	t.Helper()
	for i := range s.shards {
		for _, n := range s.shards[i].inodes {
			if n.kind != store.Regular {
				continue
			}
			used, last := 0, int64(-1)
			for _, e := range n.extents {
				if int64(e.index) <= last {
					t.Errorf("block %d after %d", e.index, last)
				}
				last = int64(e.index)
				used += e.block.used()
				start := e.index << blockShift
				end := int(min(max(n.attr.Size, start)-start, uint64(len(e.block.data))))
				if !storetest.Zero(e.block.data[end:]) {
					t.Errorf("block %d has data beyond the size, %d", e.index, n.attr.Size)
				}
				for page := range len(e.block.data) / pageSize {
					hole := e.block.pages[page/64]>>(page%64)&1 == 0
					if hole && !storetest.Zero(e.block.data[page*pageSize:][:pageSize]) {
						t.Errorf("page %d of block %d is not a hole", page, e.index)
					}
				}
			}
			if uint64(used) != n.attr.Used {
				t.Errorf("%d bytes used, told %d", used, n.attr.Used)
			}
		}
	}
}

func TestConcurrent(t *testing.T) {
	s := New(Options{RootMode: 0o777})
	storetest.Concurrent(t, s, storetest.Options{Seed: 1, Steps: 400})
	s.invariants(t)
}
