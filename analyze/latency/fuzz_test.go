package latency

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzReport makes reports of changed captures. Groups count all transactions,
// and the report is JSON.
func FuzzReport(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), uint8(i), []byte{})
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := traffic.Apply(which, program)
		memory.Start()
		opt := Options{Top: int(how & 3), Interval: time.Duration(how&4) * time.Millisecond, Unordered: how&8 != 0}
		if how&16 != 0 {
			opt.Inline = DefaultInline
		}
		if how&32 != 0 {
			opt.By = []Key{}
		}
		r := New(opt)
		v := rpc.View{Names: &rpc.Names{}}
		n := uint64(0)
		d := decode.New(decode.Options{Observers: []decode.Observer{r.Observer()}}, func(tx *transaction.Transaction) {
			holds.Transaction(t, tx)
			v.Set(tx)
			r.Add(&v)
			v.Learn()
			n++
		})
		traffic.Run(d, packets, 16)
		st := d.Stats()
		rep := r.Report(Source{Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last})
		count := uint64(0)
		for i := range rep.Groups {
			count += rep.Groups[i].Count
		}
		if count != n {
			t.Fatalf("%d transactions in groups, of %d", count, n)
		}
		if how&0xc0 == 0 {
			if _, err := json.Marshal(rep); err != nil {
				t.Fatal(err)
			}
		}
		memory.End(t)
	})
}
