package transaction

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestOrdinary compares what is ordinary with all phases, for transactions of random times.
func TestOrdinary(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	number := uint64(0)
	ref := func(at int64) rdma.Ref {
		if r.IntN(24) == 0 {
			return rdma.Ref{}
		}
		number++
		return rdma.Ref{Number: number, Time: at}
	}
	times := []int64{0, 1, 5, 1000, 1001, -7, math.MaxInt64, math.MinInt64, math.MaxInt64 / 2}
	ordinary := 0
	for range 200000 {
		var tx Transaction
		at := func() int64 { return times[r.IntN(len(times))] }
		a, b := at(), at()
		tx.Call.First, tx.Reply.First = ref(a), ref(b)
		tx.Call.Last, tx.Reply.Last = tx.Call.First, tx.Reply.First
		for _, x := range []*rdma.Ref{&tx.Call.Last, &tx.Reply.Last, &tx.Times.FirstRead, &tx.Times.LastRead, &tx.Times.FirstPush, &tx.Times.LastPush, &tx.Times.Ack} {
			if r.IntN(8) == 0 {
				*x = ref(at())
			}
		}
		tx.late = r.IntN(8) == 0
		if r.IntN(30) == 0 {
			tx.State = State(r.IntN(4))
		}
		took, ok := tx.Ordinary()
		if !ok {
			continue
		}
		ordinary++
		p, known := tx.Phases()
		if want := (Phases{Server: took, Total: took, Ack: tx.Acked()}); !known || p != want {
			t.Fatalf("%+v: %v, %v, %+v", tx.Times, took, known, p)
		}
	}
	if ordinary < 1000 {
		t.Errorf("%d were ordinary", ordinary)
	}
}

// TestSetOrdinary: what setOrdinary finds of a transaction of which completeUsual is sure is what is found without it.
func TestSetOrdinary(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	times := []int64{0, 1, 5, 1000, math.MaxInt64, math.MinInt64, math.MinInt64 + 1}
	ordinary := 0
	for n := range uint64(100000) {
		var tx Transaction
		ref := func() rdma.Ref { return rdma.Ref{Number: n + 1, Time: times[r.IntN(len(times))]} }
		tx.Call.First, tx.Reply.Last = ref(), ref()
		if tx.Call.First.Time > tx.Reply.Last.Time {
			continue
		}
		tx.Call.Last, tx.Reply.First = tx.Call.First, tx.Reply.Last
		switch r.IntN(8) {
		case 0:
			tx.Call.Last = ref()
		case 1:
			tx.Reply.First = ref()
		case 2:
			tx.Notes = make([]Note, 1)
		case 3:
			tx.Troubles = make([]Trouble, 1)
		case 4:
			tx.Retransmits = 1
		}
		want, known := tx.Ordinary()
		tx.setOrdinary()
		if got, ok := tx.Ordinary(); got != want || ok != known || ok != (tx.took != 0) {
			t.Fatalf("%+v: %v, %v, not %v, %v", tx, got, ok, want, known)
		}
		if known {
			ordinary++
		}
	}
	if ordinary < 1000 {
		t.Errorf("%d were ordinary", ordinary)
	}
}
