package chrometrace

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzWriter writes changed captures as traces, which are valid JSON.
func FuzzWriter(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), []byte{})
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which uint8, program []byte) {
		packets := traffic.Apply(which, program)
		memory.Start()
		var out bytes.Buffer
		n := uint64(0)
		v := rpc.View{Names: &rpc.Names{}}
		var d *decode.Decoder
		w := New(&out, func() int64 { return d.Stats().First.Time })
		d = decode.New(decode.Options{Observers: []decode.Observer{w.Observer()}}, func(tx *transaction.Transaction) {
			n++
			holds.Transaction(t, tx)
			v.Set(tx)
			if err := w.Add(&v); err != nil {
				t.Fatal(err)
			}
			v.Learn()
		})
		traffic.Run(d, packets, 16)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out.Bytes()) {
			t.Fatalf("%s", out.Bytes())
		}
		if s := w.stats; s.Transactions > n {
			t.Fatalf("%+v of %d transactions", s, n)
		}
		memory.End(t)
	})
}
