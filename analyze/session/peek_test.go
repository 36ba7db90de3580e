package session

import (
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// each decodes a capture.
func each(t testing.TB, file string, f func(v *rpc.View)) {
	t.Helper()
	c, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var v rpc.View
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		f(&v)
	})
	if err := d.Run(c); err != nil {
		t.Fatal(err)
	}
}

// TestPeek compares the values read from the bytes with those of the full decoder.
func TestPeek(t *testing.T) {
	calls, replies, created, callbacks := 0, 0, 0, 0
	for _, file := range []string{"../../samples/rocev2-nfs41-recall.pcap", "../../samples/rocev2-nfs41-restart.pcap.zst", "../../samples/rocev2-nfs42-basic.pcap.zst", "../../samples/iwarp-nfs40-basic.pcap.zst"} {
		each(t, file, func(v *rpc.View) {
			ops := v.Operations()
			if len(ops) == 0 {
				return
			}
			callback := v.Tx.Program != 100003
			q, minor, g, ok := peekCall(v.Tx.Call.Payload, callback)
			if m, known := v.MinorVersion(); !callback && known && m != minor {
				t.Errorf("%s: minor version %d, is %d", file, minor, m)
			}
			switch a := ops[0].Args.(type) {
			case *nfs4.SEQUENCE4args:
				calls++
				if !ok || callback || q != (sequence{session: a.SaSessionid, slot: a.SaSlotid, highest: a.SaHighestSlotid}) {
					t.Errorf("%s: %+v, is %+v", file, q, *a)
				}
				r, ok := peekReply(v.Tx.Reply.Payload, g)
				if res, good := ops[0].Result.(*nfs4.SEQUENCE4res); good && (ok != (res.SrStatus == 0) || ok && r.target != res.SrResok4.SrTargetHighestSlotid) {
					t.Errorf("%s: %+v, is %+v", file, r, *res)
				}
				replies++
			case *nfs4.CB_SEQUENCE4args:
				callbacks++
				if !ok || !callback || q.session != a.CsaSessionid || q.slot != a.CsaSlotid {
					t.Errorf("%s: %+v, is %+v", file, q, *a)
				}
			case *nfs4.CREATE_SESSION4args:
				id, slots, back, good := peekCreated(v.Tx.Reply.Payload, g)
				res := ops[0].Result.(*nfs4.CREATE_SESSION4res)
				if ok || good != (res.CsrStatus == 0) || good && (id != res.CsrResok4.CsrSessionid || slots != res.CsrResok4.CsrForeChanAttrs.CaMaxrequests ||
					back != res.CsrResok4.CsrBackChanAttrs.CaMaxrequests) {
					t.Errorf("%s: %x %d %d, is %+v", file, id, slots, back, *res)
				}
				created++
			default:
				if ok {
					t.Errorf("%s: a SEQUENCE in %s", file, ops[0].Name)
				}
			}
		})
	}
	if calls < 300 || replies < 300 || created < 3 || callbacks < 3 {
		t.Error(calls, replies, created, callbacks)
	}
}

// TestAllocations: a call and its reply cost no allocation once the session is known.
func TestAllocations(t *testing.T) {
	var call, reply []byte
	each(t, "../../samples/rocev2-nfs41-recall.pcap", func(v *rpc.View) {
		if ops := v.Operations(); len(ops) > 1 && ops[0].Number == uint32(nfs4.OP_SEQUENCE) && call == nil {
			call, reply = append(call, v.Tx.Call.Payload...), append(reply, v.Tx.Reply.Payload...)
		}
	})
	r := New(nil)
	tx := &transaction.Transaction{Connection: &rdma.Connection{}, Program: 100003, Version: 4, Procedure: 1, Named: true}
	tx.Call.Payload, tx.Reply.Payload = call, reply
	s := &rdma.Send{}
	if n := testing.AllocsPerRun(100, func() {
		s.First.Time += 1000
		s.Last = s.First
		r.Message(tx, false, s)
		s.Last.Time += 500
		r.Message(tx, true, s)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if x := r.order[0]; x.fore.most != 1 || x.target == 0 {
		t.Errorf("%+v", x)
	}
}

// TestAllocationsTransaction: nor does it with the transaction included.
func TestAllocationsTransaction(t *testing.T) {
	var call, reply []byte
	each(t, "../../samples/rocev2-nfs41-recall.pcap", func(v *rpc.View) {
		if ops := v.Operations(); len(ops) > 1 && ops[0].Number == uint32(nfs4.OP_SEQUENCE) && v.Clean() && call == nil {
			call, reply = append(call, v.Tx.Call.Payload...), append(reply, v.Tx.Reply.Payload...)
		}
	})
	r := New(nil)
	var v rpc.View
	tx := &transaction.Transaction{Connection: &rdma.Connection{}, Program: 100003, Version: 4, Procedure: 1, Named: true}
	tx.Call.Payload, tx.Call.PayloadLength, tx.Reply.Payload, tx.Reply.PayloadLength = call, len(call), reply, len(reply)
	s := &rdma.Send{}
	if n := testing.AllocsPerRun(100, func() {
		s.First.Number++
		s.First.Time += 1000
		s.Last = s.First
		tx.Call.First, tx.Call.Last = s.First, s.Last
		r.Message(tx, false, s)
		s.Last.Time += 500
		tx.Reply.First, tx.Reply.Last = s.Last, s.Last
		r.Message(tx, true, s)
		r.Ended(tx)
		v.Set(tx)
		r.Transaction(&v)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if x := r.order[0]; x.fore.most != 1 || x.target == 0 || x.calls != 101 || !v.Clean() {
		t.Errorf("%+v", x)
	}
}

// FuzzPeek: the readers never read beyond the bytes, and find the same at fixed places as elsewhere.
func FuzzPeek(f *testing.F) {
	n := 0
	each(f, "../../samples/rocev2-nfs41-recall.pcap", func(v *rpc.View) {
		if n++; n%5 == 0 {
			f.Add(append([]byte{}, v.Tx.Call.Payload...), append([]byte{}, v.Tx.Reply.Payload...))
		}
	})
	f.Fuzz(func(t *testing.T, call, reply []byte) {
		_, _, g, _ := peekCall(call, false)
		peekCall(call, true)
		for _, g := range []guard{g, bare, integrity, private} {
			peekReply(reply, g)
			peekCreated(reply, g)
		}
	})
}
