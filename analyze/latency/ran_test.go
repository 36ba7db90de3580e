package latency_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Only the slowest transactions have drawings, each its own, and what ran in the intervals sums up to the groups.
func TestRanAndDrawings(t *testing.T) {
	const file = "../../samples/rocev2-nfs3-basic.pcap.zst"
	for _, top := range []int{0, 7, 300} {
		in, err := capture.Open([]string{filepath.FromSlash(file)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		drawn := 0
		r := latency.New(latency.Options{Top: top, Ran: true, Draw: func(b []byte, v *rpc.View) []byte {
			drawn++
			return fmt.Appendf(b, "%08x", v.Tx.XID)
		}})
		v := rpc.View{Names: &rpc.Names{}}
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			v.Set(tx)
			r.Add(&v)
			v.Learn()
		})
		if err := d.Run(in); err != nil {
			t.Fatal(err)
		}
		in.Close()
		rep := r.Report(latency.Source{})
		for i, x := range rep.Slowest {
			want := ""
			if i < 100 {
				want = fmt.Sprintf("%08x", x.XID)
			}
			if string(x.Drawing) != want {
				t.Errorf("top %d, number %d: drawing %q, want %q", top, i, x.Drawing, want)
			}
		}
		if len(rep.Slowest) != top || top == 0 && drawn != 0 {
			t.Errorf("top %d: %d slowest, %d drawn", top, len(rep.Slowest), drawn)
		}
		type sum struct {
			count uint64
			time  int64
		}
		ran := map[string]sum{}
		for i := range rep.Series.Slots {
			groups, _ := rep.Series.Slots[i].Ran()
			for j := range groups {
				g := &groups[j]
				s := ran[g.Key[0]]
				ran[g.Key[0]] = sum{s.count + g.Count, s.time + g.Sum}
				if j > 0 && g.Sum > groups[j-1].Sum {
					t.Errorf("interval %d: %v is not in order", i, groups)
				}
			}
		}
		for _, g := range rep.Groups {
			if got := ran[g.Key[0]]; got != (sum{g.Count, g.Latency.Sum}) {
				t.Errorf("%s: %v, want %d and %d", g.Key[0], got, g.Count, g.Latency.Sum)
			}
		}
	}
}
