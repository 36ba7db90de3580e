package main

import (
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/duplicates"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// compareCaptures compares the latencies of the original and the replay, phase by phase. In the replay, only
// the calls of the plan count.
func compareCaptures(original, replay string, memory *cli.Memory, known func(xid uint32) bool) (*latency.Diff, error) {
	a, err := analyse(original, memory, nil)
	if err != nil {
		return nil, err
	}
	b, err := analyse(replay, memory, known)
	if err != nil {
		return nil, err
	}
	return latency.Compare(a, b), nil
}

func analyse(name string, memory *cli.Memory, known func(xid uint32) bool) (*latency.Report, error) {
	r, err := duplicates.Open([]string{name}, capture.Options{BatchSize: memory.Batch()})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rec := latency.New(latency.Options{Memory: memory.Scale(latency.DefaultMemory)})
	var view rpc.View
	d := decode.New(decode.Options{Memory: memory.Decoder()}, func(tx *transaction.Transaction) {
		if known != nil && !known(tx.XID) {
			return
		}
		view.Set(tx)
		rec.Add(&view)
	})
	if err := d.Run(r); err != nil {
		return nil, err
	}
	return rec.Report(latency.Source{Inputs: []string{name}}), nil
}
