package transaction_test

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// TestPath has a call whose acknowledgement takes 6 ms, and a reply whose acknowledgement takes 1 ms.
func TestPath(t *testing.T) {
	for _, c := range []struct {
		name         string
		acked        bool // before the reply
		server, path time.Duration
		known        bool
	}{
		{"acknowledged", true, 6 * time.Millisecond, 6 * time.Millisecond, true},
		{"with the reply", false, -1, 0, false},
	} {
		seen := 0
		w := newWire(t, rdma.RoCEv2)
		w.tr = transaction.NewTracker(keepData, func(tx *transaction.Transaction) {
			seen++
			if got, want := tx.Ways(), (transaction.Ways{Server: c.server, Client: time.Millisecond}); got != want {
				t.Errorf("%s: %v, want %v", c.name, got, want)
			}
			if d, ok := tx.Path(); d != c.path || ok != c.known {
				t.Errorf("%s: path %v, %v", c.name, d, ok)
			}
		})
		header := rpcrdma.Header{XID: 7, Version: 1, Credits: 2, Type: rpcrdma.TypeMsg}
		call := w.send(0, msg(header, rpc(7, false, rocetest.Program, 8)))
		if c.acked {
			w.now += 6_000_000 - 1000
			w.ack(call)
		}
		w.now += 1_000_000
		reply := w.send(1, msg(header, rpc(7, true, 0, 8)))
		w.now += 1_000_000 - 1000
		w.ack(reply)
		if w.end(); seen != 1 {
			t.Errorf("%s: %d transactions", c.name, seen)
		}
	}
}

// TestFirstSent has a call that is sent again, under its XID, on another connection, twice.
func TestFirstSent(t *testing.T) {
	type sent struct {
		first int64
		on    int
		took  time.Duration
	}
	var got []sent
	w := newWire(t, rdma.RoCEv2)
	w.tr = transaction.NewTracker(keepData, func(tx *transaction.Transaction) {
		d, _ := tx.AppLatency()
		got = append(got, sent{tx.FirstSent(), tx.FirstOn(), d})
	})
	header := rpcrdma.Header{XID: 7, Version: 1, Credits: 2, Type: rpcrdma.TypeMsg}
	w.send(0, msg(header, rpc(7, false, rocetest.Program, 8)))
	first := w.now
	for id := 2; id <= 3; id++ {
		w.tr.Closed(w.c, w.ref())
		w.now += 2_000_000_000
		ends := w.c.Ends
		w.c = &rdma.Connection{ID: id, Fabric: rdma.RoCEv2, Ends: ends, First: w.ref()}
		w.send(0, msg(header, rpc(7, false, rocetest.Program, 8)))
	}
	w.send(1, msg(header, rpc(7, true, 0, 8)))
	end := w.now
	w.end()
	if len(got) != 3 {
		t.Fatalf("%d transactions: %v", len(got), got)
	}
	for _, s := range got {
		if s.first != first || s.on != 1 {
			t.Errorf("first sent at %d on connection %d, want %d on 1", s.first, s.on, first)
		}
	}
	if last := got[2].took; last != time.Duration(end-first) {
		t.Errorf("the application waited %v, want %v", last, time.Duration(end-first))
	}
}
