package rpc_test

import (
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestViewIsSetAnew: a View that has shown other transactions shows each as a new one does. It sets only what is
// not so already, so that something of an earlier transaction could stay.
func TestViewIsSetAnew(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-longcall.pcap", "rocev2-nfs41-recall.pcap", "rocev2-nfs3-snaplen256.pcap.zst"} {
		r, err := capture.Open([]string{"../../samples/" + name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var used rpc.View
		compared := 0
		for tx, err := range decode.Transactions(r, decode.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, tx := range parts(tx) {
				used.Set(tx)
				var fresh rpc.View
				fresh.SetAll(tx)
				if got, want := shown(&used), shown(&fresh); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, XID %#x: %+v\nnot %+v", name, tx.XID, got, want)
				}
				compared++
			}
		}
		r.Close()
		if compared < 100 {
			t.Errorf("%s: %d views compared", name, compared)
		}
	}
}

// parts are a transaction, and the same with less of it: cut, with half of its messages, and of another program.
func parts(tx *transaction.Transaction) []*transaction.Transaction {
	noCall, noReply, other, unnamed, cut := *tx, *tx, *tx, *tx, *tx
	noCall.Call = transaction.Message{}
	noReply.Reply = transaction.Message{}
	other.Program = 0x20000001
	unnamed.Named = false
	for _, m := range []*transaction.Message{&cut.Call, &cut.Reply} {
		m.Payload = m.Payload[:len(m.Payload)*3/4]
	}
	return []*transaction.Transaction{tx, &cut, tx, &noCall, tx, &noReply, tx, &other, tx, &unnamed}
}

// shown is what a View says.
func shown(v *rpc.View) []any {
	var names []string
	for _, o := range v.Operations() {
		names = append(names, o.Name+" "+o.Status)
	}
	all := []any{
		v.CallErr, v.ReplyErr, v.Program, v.Procedure, v.ArgsErr, v.ResultErr, v.ArgsCut, v.ResultCut, v.ArgsLeft, v.ResultLeft,
		*v.CallBody(), *v.ReplyBody(), names, v.Status(), v.Failed(), v.OperationGroup(), v.Wrapped(),
	}
	if v.CallErr == nil {
		all = append(all, v.Call().Cred, v.Call().Verf, v.Call().GSS, v.Call().Procedure, v.Call().Length)
	}
	if v.ReplyErr == nil {
		all = append(all, v.Reply().Stat, v.Reply().Accept, v.Reply().Verf, v.Reply().Length)
	}
	for _, m := range []xdr.Message{v.Args(), v.Result()} {
		if m != nil {
			all = append(all, m.Append(nil))
		}
	}
	return all
}
