package diagnosis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestAdapters: a recording of a client's events with the counters of its adapter. In one of ten seconds, the adapter waits for acknowledgements, and
// so do the calls.
func TestAdapters(t *testing.T) {
	b := new(capture.Batch)
	put := func(at int64, data []byte) {
		b.Packets = append(b.Packets, capture.Packet{Time: at, Number: uint64(len(b.Packets) + 1), Link: capture.LinkTrace, Data: data})
	}
	for i := range int64(100) {
		at, took := i*1e8, int64(1000)
		if i/10 == 4 {
			took = 67000
		}
		if i%10 == 0 && i > 0 {
			e := ftrace.Event{Kind: ftrace.Counter, Program: []byte("mlx5_0/1"), Procedure: []byte("rx_write_requests"), Grown: 9}
			if put(at+1e6, e.Append(nil)); i == 50 { // of the second before
				e.Procedure = []byte("local_ack_timeout_err")
				put(at+1e6, e.Append(nil))
			}
		}
		for j, s := range []string{
			"xprtrdma_inline_thresh: 192.0.2.2:5 -> 192.0.2.1:20049 neg send/recv=4096/4096, calc send/recv=3780/3884",
			"xprtrdma_marshal: task:00000001@00000002 xid=%#08[1]x hdr=28 xdr=40/0/0 pullup/inline",
			"xprtrdma_reply: task:00000001@00000002 xid=%#08[1]x credits=64",
			"rpc_stats_latency: task:00000001@00000002 xid=%#08[1]x nfsv3 GETATTR backlog=1 rtt=%[2]d execute=%[2]d xprt_id=0",
		} {
			x := at + 2e6
			if j > 1 {
				x += took * 1000
			}
			line := s
			if j > 0 {
				line = strings.Split(fmt.Sprintf(s+"|%[2]d", i+1, took), "|")[0]
			}
			put(x, fmt.Appendf(nil, "x-7 [000] .... %d.%09d: %s", x/1e9, x%1e9, line))
		}
	}
	r := diagnosis.New(diagnosis.Options{})
	opt := decode.Options{}
	r.Attach(&opt, 0, nil)
	var v rpc.View
	d := decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		r.Transaction(&v)
	})
	d.Batch(b)
	d.Flush()
	list := r.Report().Adapters
	if len(list) != 1 || list[0].Calls != 10 || list[0].Mean != 67e6 || list[0].Others != 1e6 || !strings.HasPrefix(list[0].Text, "The adapter mlx5_0/1 counted 9 local_ack_timeout_err") {
		t.Errorf("%+v", list)
	}
}
