package rpc_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// samples visits the transactions of a capture.
func samples(t testing.TB, name string, visit func(*transaction.Transaction)) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for tx, err := range decode.Transactions(r, decode.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		visit(tx)
	}
}

// TestClean: each transaction that has nothing unusual is Clean, and Set allocates nothing for it.
func TestClean(t *testing.T) {
	names := sampled.Captures(t, "*")
	for _, name := range names {
		var v, some rpc.View
		n := 0
		samples(t, name, func(tx *transaction.Transaction) {
			for _, tx := range parts(tx) {
				v.SetAll(tx)
				some.Set(tx)
				n++
				if !some.Clean() && usual(&v) {
					t.Errorf("%s, packet %d: %s is not clean", name, tx.First().Number, v.ProcedureName())
				}
				if some.Clean() && (n%16 == 0 || !testing.Short()) && allocates(func() { some.Set(tx) }) {
					t.Errorf("%s allocates", v.ProcedureName())
				}
			}
		})
	}
}

// usual reports whether a transaction has to be Clean.
func usual(v *rpc.View) bool {
	switch {
	case v.Args() == nil || v.Result() == nil || v.ArgsErr != nil || v.ResultErr != nil:
		return false
	case len(v.Operations()) > 64 || !answered(v):
		return false
	case v.Call().Cred.Flavor == oncrpc.RPCSecGSS || v.Call().Verf.Flavor != oncrpc.AuthNone || v.Reply().Verf.Flavor != oncrpc.AuthNone:
		return false
	}
	_, status := v.Result().(xdr.Status)
	return status == v.Procedure.StatusFirst
}

// answered reports whether the reply has no other operations than the call.
func answered(v *rpc.View) bool {
	var call, reply []nfs4.Op
	switch a := v.Args().(type) {
	case *nfs4.CompoundArgs:
		call, reply = a.Ops, v.Result().(*nfs4.CompoundRes).Ops
	case *nfs4.CbCompoundArgs:
		call, reply = a.Ops, v.Result().(*nfs4.CbCompoundRes).Ops
	}
	for i := range reply {
		if i >= len(call) || reply[i].Number != call[i].Number {
			return false
		}
	}
	return true
}

// FuzzClean compares a View that decodes what it is asked for with one that decodes all at once, for any two messages: as RPC-over-RDMA, with chunks, or as
// the RPC messages alone.
func FuzzClean(f *testing.F) {
	for _, name := range []string{"rocev2-nfs3-longcall.pcap", "rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs3-basic.pcap.zst"} {
		kinds := map[string]int{}
		samples(f, "../../samples/"+name, func(tx *transaction.Transaction) {
			var v rpc.View
			v.Set(tx)
			kind := v.OperationGroup() + v.Status()
			if kinds[kind]++; kinds[kind] > 2 || len(tx.Call.Raw())+len(tx.Reply.Raw()) > 4000 {
				return
			}
			if tx.Call.Transport {
				f.Add(true, tx.Call.Raw(), tx.Reply.Raw())
			}
			f.Add(false, tx.Call.Payload, tx.Reply.Payload)
		})
	}
	var v, some rpc.View
	f.Fuzz(func(t *testing.T, transport bool, call, reply []byte) {
		var tx transaction.Transaction
		for i, m := range []*transaction.Message{&tx.Call, &tx.Reply} {
			m.First = rdma.Ref{Number: uint64(i) + 1, Time: int64(i)}
			m.Last = m.First
			m.Payload = [][]byte{call, reply}[i]
			if m.Transport = transport; transport {
				if m.Header.Decode(m.Payload, 0) != nil {
					return
				}
				m.Payload = m.Header.Payload
			}
			m.PayloadLength = len(m.Payload)
		}
		if peeked, ok := oncrpc.Peek(tx.Call.Payload); ok {
			tx.Named, tx.Program, tx.Version, tx.Procedure = true, peeked.Program, peeked.Version, peeked.Procedure
		}
		v.SetAll(&tx)
		some.Set(&tx)
		v.Names, some.Names = &rpc.Names{}, &rpc.Names{}
		if len(call)%2 == 0 { // else Learn is the first who asks
			holds.Demand(t, &some, &v, uint64(len(reply)))
		}
		v.Learn()
		some.Learn()
		if !rpc.SameNames(v.Names, some.Names) {
			t.Fatalf("other names are learned from %s", v.ProcedureName())
		}
		if !some.Clean() && usual(&v) && v.Contradiction() == "" && v.ArgsLeft > 0 && v.ResultLeft > 0 && len(v.Call().Verf.Body) == 0 && len(v.Reply().Verf.Body) == 0 {
			t.Fatalf("%s is not clean", v.ProcedureName())
		}
	})
}
