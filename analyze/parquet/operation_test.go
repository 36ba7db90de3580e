package parquet_test

import (
	"bytes"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/parquet"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestOperations reads back what was written, in several row groups.
func TestOperations(t *testing.T) {
	r, err := capture.Open([]string{"../../samples/rocev2-nfs3-loss.both.pcapng.zst"}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var buf bytes.Buffer
	w := parquet.NewOperationWriter(&buf, nil, 8000)
	var want []fabric.Operation
	rec := fabric.New(fabric.Options{Operation: func(o *fabric.Operation) {
		want = append(want, *o)
		if err := w.Add(o); err != nil {
			t.Fatal(err)
		}
	}})
	if err := decode.New(decode.Options{Observers: []decode.Observer{rec.Observer()}}, func(*transaction.Transaction) {}).Run(r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := pq.Read[parquet.OperationRow](bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	if err != nil || len(rows) != len(want) || w.Rows() != uint64(len(want)) || len(want) < 300 {
		t.Fatal(err, len(rows), len(want), w.Rows())
	}
	lost := int64(0)
	for i := range rows {
		x, o := &rows[i], &want[i]
		if x.TimeNS != o.First.Time || x.Kind != o.Kind.String() || x.Sequence != int64(o.Seq) || *x.PSN != int64(o.PSN) || x.Service != "NFS/RDMA" {
			t.Fatalf("%d: %+v", i, x)
		}
		d, ok := o.Latency()
		if ok != (x.Latency != nil) {
			t.Fatalf("%d: %+v", i, x)
		}
		if ok {
			l := &x.Lost
			if *x.Latency != int64(d) || *l.Rest+*l.NotReady+*l.Recovery+*l.Congestion+*l.Unknown != int64(d) {
				t.Fatalf("%d: %+v", i, x)
			}
			lost += *l.Recovery
		}
	}
	if lost == 0 {
		t.Error("nothing was lost")
	}
}
