package decode_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/floods"
)

// several reads several floods, a batch of each in turn.
type several struct {
	list   []*floods.Reader
	number uint64
}

func (s *several) Read(b *capture.Batch) error {
	for len(s.list) > 0 {
		r := s.list[0]
		s.list = s.list[1:]
		if r.Read(b) == nil {
			s.list = append(s.list, r)
			for i := range b.Packets {
				s.number++
				b.Packets[i].Number, b.Packets[i].Time = s.number, int64(s.number)
			}
			return nil
		}
	}
	return io.EOF
}

func (*several) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (*several) Close() error                        { return nil }

// TestTrackersMemory floods groups of hosts all at once: what is given up does not depend on how many trackers there
// are, and what is held exceeds the limit by little.
func TestTrackersMemory(t *testing.T) {
	const limit = 16 << 20
	part := 100
	if testing.Short() {
		part = 300
	}
	var want []string
	for _, n := range []int{1, 3} {
		s := &several{}
		for i := range floods.All {
			f := &floods.All[i]
			s.list = append(s.list, f.Read(f.N/part))
		}
		var got []string
		opt := decode.Options{Memory: limit, Trackers: n, Observers: []decode.Observer{{Closed: func(c *rdma.Connection) {
			got = append(got, fmt.Sprint(c.ID, c.Fabric, c.First.Number, c.Last.Number, c.Terminated))
		}}}}
		d := decode.New(opt, func(tx *transaction.Transaction) {
			got = append(got, fmt.Sprint(tx.Connection.ID, tx.XID, tx.State, tx.Notes, tx.First().Number, tx.Memory()))
		})
		peak := d.RunInTurn(s, n, 0)
		got = append(got, fmt.Sprintf("%+v %+v %+v %d", d.Stats(), d.Account(), d.Orphans(), peak))
		if peak > limit+limit/4 {
			t.Errorf("%d trackers: %d bytes held, limit %d", n, peak, limit)
		}
		if n == 1 {
			want = got
			if s := d.Stats(); !testing.Short() && (s.EvictedConnections == 0 || peak < limit/2) {
				t.Errorf("nothing was given up: %d bytes held, %+v", peak, s)
			}
			continue
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%d trackers: line %d of %d is %q, and not, of %d, %q", n, i, len(got), at(got, i), len(want), at(want, i))
			}
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}
