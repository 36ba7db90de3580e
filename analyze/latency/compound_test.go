package latency

import (
	"encoding/json"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// compoundReport is the report on a sample; with forget, no group is remembered from one transaction to the next. It returns how many
// COMPOUNDs were of a group that was.
func compoundReport(t *testing.T, name string, by []Key, forget bool) (report string, known int) {
	t.Helper()
	c, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := New(Options{By: by})
	r.kinds = new(compound.Kinds)
	v := rpc.View{Names: &rpc.Names{}}
	if err := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		if forget {
			r.ofKind = [compound.Most]grouped{}
		}
		if k := r.kinds.Of(&v); r.byOp && v.Compound() && k != nil && r.ofKind[k.Slot].stamp == k.Stamp {
			known++
		}
		g := r.Add(&v)
		if again := r.group(&v); g != again.index {
			t.Errorf("%s: a transaction of group %d was counted in %d", name, again.index, g)
		}
		v.Learn()
	}).Run(c); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r.Report(Source{}))
	if err != nil {
		t.Fatal(err)
	}
	return string(b), known
}

// TestCompound: the group of a COMPOUND is the same, be it remembered or not.
func TestCompound(t *testing.T) {
	names := sampled.Captures(t, "*nfs4*")
	known := 0
	for _, name := range names {
		for _, by := range [][]Key{nil, {ByOperation, ByClient}, {}} {
			short, n := compoundReport(t, name, by, false)
			long, none := compoundReport(t, name, by, true)
			if short != long || none > 0 || n > 0 && by != nil {
				t.Errorf("%s by %v: %d and %d groups were remembered\n%s\n%s", name, by, n, none, short, long)
			}
			known += n
		}
	}
	if known < 400 && !testing.Short() || known < 100 {
		t.Errorf("only %d groups were remembered", known)
	}
}
