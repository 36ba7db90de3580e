package adapter

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// A counter is read at the end of a second, a little late: it is joined with the calls that ended in that second.
func TestTrouble(t *testing.T) {
	r := New()
	for s := range int64(10) {
		for i := range int64(31) {
			latency := int64(1e6)
			if s == 4 {
				latency = 67e6
			}
			r.Call((100+s)*1e9+i*1e7, latency)
		}
		at := rdma.Ref{Time: (101+s)*1e9 + 2e6}
		r.counter(at, "mlx5_0/1", "port_rcv_packets", 1000)
		if s == 4 {
			r.counter(at, "mlx5_0/1", "local_ack_timeout_err", 214)
		}
	}
	list := r.Trouble()
	if len(list) != 1 || list[0].Count != 214 || list[0].Seconds != 1 || list[0].Calls != 31 || list[0].Mean != 67e6 || list[0].Others != 1e6 {
		t.Fatalf("%+v", list)
	}
	want := "The adapter mlx5_0/1 counted 214 local_ack_timeout_err (no acknowledgement in time) in 1 second, in which 31 calls took 67 ms on average; in all other seconds, calls took 1.0 ms."
	if list[0].Text != want {
		t.Errorf("%s, not\n%s", list[0].Text, want)
	}
	r.Roll()
	if all := r.Totals(); len(all) != 2 || all[0].Counter != "local_ack_timeout_err" || all[1].All != 10000 || all[1].Now != 10000 {
		t.Errorf("%+v", all)
	}
	r.Roll()
	if all := r.Totals(); all[1].Now != 0 || all[1].All != 10000 {
		t.Errorf("%+v", all)
	}
}

func TestBounded(t *testing.T) {
	r := New()
	for s := range int64(maxSeconds + 100) {
		r.Call(s*1e9, 1)
		r.counter(rdma.Ref{Time: s * 1e9}, "rxe0/1", "rcvd_rnr_err", 1)
		r.counter(rdma.Ref{Time: s * 1e9}, "rxe0/1", strings.Repeat("x", int(s)%maxCounters), 1)
	}
	if len(r.seconds) != maxSeconds || len(r.grown[key{"rxe0/1", "rcvd_rnr_err"}]) != maxSeconds || len(r.totals) > maxCounters {
		t.Errorf("%d seconds, %d counters", len(r.seconds), len(r.totals))
	}
}
