package nlm

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
)

// TestDeadlock: whoever closes a circle of owners who wait for each other is refused; nobody
// else is.
func TestDeadlock(t *testing.T) {
	for _, c := range []struct {
		version uint32
		want    stat
	}{{1, nlm.NLM4_DENIED}, {3, nlm.NLM4_DEADLCK}, {4, nlm.NLM4_DEADLCK}} {
		for _, n := range []int{2, 3, 7} {
			t.Run(fmt.Sprintf("version %d, circle of %d", c.version, n), func(t *testing.T) {
				r := newRig(t, Options{}, state.Options{})
				var p []*process
				for i := range n {
					// on two hosts, and in two files
					p = append(p, r.process(fmt.Sprintf("192.0.2.%d", 7+i%2), fmt.Sprint("host", i%2), int32(i), c.version))
				}
				at := func(i int) ([]byte, uint64) { return r.fh[i%2], uint64(i) * 10 }
				for i := range n {
					fh, off := at(i)
					if st := p[i].try(fh, off, 10, i%3 != 0, true); st != nlm.NLM4_GRANTED {
						t.Fatal(i, st)
					}
				}
				for i := range n - 1 {
					fh, off := at(i + 1)
					if st := p[i].try(fh, off, 10, true, true); st != nlm.NLM4_BLOCKED {
						t.Fatal(i, st)
					}
				}
				fh, off := r.fh[0], uint64(0) // those of the first one
				for range 2 {
					if st := p[n-1].try(fh, off, 10, true, true); st != c.want {
						t.Errorf("the circle is closed: %v", st)
					}
				}
				if st := p[n-1].try(fh, off, 10, true, false); st != nlm.NLM4_DENIED {
					t.Errorf("a lock that does not wait: %v", st)
				}
				if c := r.Counts(); c.Waiters != n-1 {
					t.Errorf("%d wait", c.Waiters)
				}
				// who is not in the circle may wait for those who are
				q := r.process("192.0.2.77", "other", 77, c.version)
				if st := q.try(fh, off, 10, true, true); st != nlm.NLM4_BLOCKED {
					t.Errorf("outside: %v", st)
				}
				// the last one gives up what it has, and all go on
				q.cancel(fh, off, 10, true)
				for i := n - 1; i > 0; i-- {
					fh, off := at(i)
					p[i].unlock(fh, off, 10)
					r.callbacks(1)
					r.until("it waits still", func() bool { return r.Counts().Waiters == i-1 })
					fh2, off2 := at(i)
					p[i-1].unlock(fh2, off2, 10)
				}
				p[0].unlock(r.fh[0], 0, 0)
				r.empty()
			})
		}
	}
}

// TestNoDeadlock: what is over, or was given up, or is only tested for, closes no circle.
func TestNoDeadlock(t *testing.T) {
	r := newRig(t, Options{}, state.Options{})
	p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 4)
	p.try(r.fh[0], 0, 10, true, true)
	q.try(r.fh[1], 0, 10, true, true)
	if st := p.try(r.fh[1], 0, 10, true, false); st != nlm.NLM4_DENIED { // does not wait
		t.Fatal(st)
	}
	if st := p.try(r.fh[1], 0, 10, true, true); st != nlm.NLM4_BLOCKED {
		t.Fatal(st)
	}
	if st := q.try(r.fh[0], 10, 10, true, true); st != nlm.NLM4_GRANTED {
		t.Errorf("another range: %v", st)
	}
	p.cancel(r.fh[1], 0, 10, true)
	if st := q.try(r.fh[0], 5, 10, false, true); st != nlm.NLM4_BLOCKED {
		t.Errorf("after the other gave up: %v", st)
	}
	p.unlock(r.fh[0], 0, 0)
	r.callbacks(1)
	r.until("it waits still", func() bool { return r.Counts().Waiters == 0 })
	q.unlock(r.fh[0], 0, 0)
	q.unlock(r.fh[1], 0, 0)
	r.empty()
}
