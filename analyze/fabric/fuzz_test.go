package fabric_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzRecorder changes captures, and checks properties that hold for any capture.
func FuzzRecorder(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), false, []byte{})
		f.Add(uint8(i), true, []byte{traffic.Drop, 5, 0, 0, 0, traffic.Double, 9, 0, 3, 0, traffic.Swap, 12, 0, 2, 0})
	}
	f.Fuzz(func(t *testing.T, which uint8, small bool, program []byte) {
		packets := traffic.Apply(which, program)
		var opt decode.Options
		if small {
			opt.RoCE = roce.Limits{Connections: 4, SendBytes: 1 << 12, Requests: 16, Assembly: 1 << 14}
			opt.TCP = decode.TCPLimits{Connections: 4}
		}
		run := func(observers ...decode.Observer) (out [][]byte) {
			opt.Observers = observers
			d := decode.New(opt, func(tx *transaction.Transaction) { out = append(out, holds.Digest(nil, tx)) })
			traffic.Run(d, packets, 16)
			return out
		}
		var e fabric.Encoder
		ops := [5]uint64{}
		episodes := uint64(0)
		r := fabric.New(fabric.Options{
			Top: 3,
			Operation: func(o *fabric.Operation) {
				ops[o.Kind]++
				if !json.Valid(e.AppendJSON(nil, o)) {
					t.Errorf("%s", e.AppendJSON(nil, o))
				}
				e.AppendText(nil, o)
				if o.Status == fabric.Completed && !o.End.Seen() && o.Lost != (fabric.Share{}) || o.InFlight < 1 || o.Connection == nil {
					t.Errorf("%+v", *o)
				}
			},
			Episode: func(x *fabric.Episode) {
				episodes++
				if n := x.CaughtUp.Number; n != 0 && n < x.Start().Number || x.NAK.Seen() && x.Notice == fabric.ByTimeout && x.NAK.Number < x.Start().Number || x.Connection == nil {
					t.Errorf("%+v", *x)
				}
				if x.Behind > 1<<23 || len(x.Lost) > 16 {
					t.Errorf("%+v", *x)
				}
			},
		})
		watched, alone := run(r.Observer()), run()
		if len(watched) != len(alone) {
			t.Fatalf("%d transactions while somebody watches, %d alone", len(watched), len(alone))
		}
		for i := range alone {
			if !bytes.Equal(watched[i], alone[i]) {
				t.Fatalf("transaction %d is another one while somebody watches", i+1)
			}
		}
		p := r.Report(nil)
		if _, err := json.Marshal(p); err != nil {
			t.Fatal(err)
		}
		if slots, steps := r.Held(); slots != 0 || steps != 0 {
			t.Errorf("%d operations and %d packets are held for nothing", slots, steps)
		}
		if p.Totals.Episodes != episodes || len(p.Episodes) > 3 {
			t.Errorf("%d episodes, %d said, %d named", episodes, p.Totals.Episodes, len(p.Episodes))
		}
		for _, g := range p.Operations {
			n := uint64(0)
			for kind := rdma.WorkSend; kind <= rdma.WorkAtomic; kind++ {
				if kind.String() == g.Kind {
					n = ops[kind]
				}
			}
			if g.Count != n || g.Completed > g.Count || g.Latency.Count > g.Completed {
				t.Errorf("%+v: %d were reported", g, n)
			}
		}
	})
}
