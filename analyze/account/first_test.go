package account

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestFirst merges accounts in all groupings: which Send was the first is known only if one input has any.
func TestFirst(t *testing.T) {
	with := func(frame uint64) *Account {
		a := &decode.Account{}
		if frame > 0 {
			a.Malformed.Counts[rpcrdma.FaultType] = 2
			a.Malformed.First = transaction.MalformedSend{Ref: rdma.Ref{Number: frame, Time: 1}, Fault: rpcrdma.FaultType, Offset: 12}
		}
		return New(a)
	}
	for _, c := range []struct {
		name    string
		a, b, c uint64 // first packets; 0 is none
		want    uint64
	}{
		{"none", 0, 0, 0, 0},
		{"the first", 38, 0, 0, 38},
		{"the second", 0, 38, 0, 38},
		{"the third", 0, 0, 38, 38},
		{"two", 38, 7, 0, 0},
		{"apart", 38, 0, 7, 0},
		{"all", 38, 38, 7, 0},
	} {
		x, y, z := with(c.a), with(c.b), with(c.c)
		for i, sum := range []*Account{Merge(x, y, z), Merge(Merge(x, y), z), Merge(x, Merge(y, z)), Merge(Merge(z, x), y), Merge(Merge(x), y, z)} {
			switch f := sum.First; {
			case c.want == 0 && f != nil, c.want > 0 && (f == nil || *f != FirstFault{c.want, 12, "type"}):
				t.Errorf("%s, grouping %d: %+v, want %d", c.name, i, f, c.want)
			}
		}
	}
}
