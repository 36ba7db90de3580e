package rpc_test

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestDemand: a View that decodes what it is asked for says what one says that decodes all at once, whatever it was asked before,
// and learns the same names. It allocates nothing.
func TestDemand(t *testing.T) {
	names := sampled.Captures(t, "*")
	usual := 0
	for _, name := range names {
		v, all := rpc.View{Names: &rpc.Names{}}, rpc.View{Names: &rpc.Names{}}
		seed := uint64(0)
		samples(t, name, func(tx *transaction.Transaction) {
			for _, tx := range parts(tx) {
				seed++
				all.SetAll(tx)
				v.Set(tx)
				if seed%3 == 0 && seed%16 < 10 { // of the others, Learn is the first who asks
					holds.Demand(t, &v, &all, seed)
				}
				for _, v := range []*rpc.View{&v, &all} {
					v.Learn()
				}
				if seed%64 == 0 && !rpc.SameNames(v.Names, all.Names) || v.Path() != all.Path() {
					t.Fatalf("%s, packet %d: other names are learned from %s", name, tx.First().Number, v.ProcedureName())
				}
				if !v.Clean() {
					continue
				}
				usual++
				ask := func() {
					v.Set(tx)
					v.Call()
					v.Reply()
					v.Args()
					v.Result()
					v.File()
				}
				if seed%64 == 0 && allocates(ask) {
					t.Errorf("%s allocates", v.ProcedureName())
				}
			}
		})
	}
	if usual < 10_000 && !testing.Short() || usual < 1000 {
		t.Errorf("%d usual transactions", usual)
	}
}

// allocates reports whether f allocates each time: what reads the capture may do so beside it.
func allocates(f func()) bool {
	for range 20 {
		if testing.AllocsPerRun(1, f) == 0 {
			return false
		}
	}
	return true
}

// opener is an Unwrapper that tells what it is told to.
type opener struct{ how rpc.Opening }

func (o *opener) Unwrap(v *rpc.View) {
	v.CallOpened.How, v.ReplyOpened.How, v.Principal = o.how, o.how, "someone"
}

// TestNothingStays: what was opened of one transaction is not said of a usual one after it.
func TestNothingStays(t *testing.T) {
	v := rpc.View{Unwrap: &opener{rpc.Verified}}
	after := 0
	samples(t, "../../samples/rocev2-nfs41-recall.pcap", func(tx *transaction.Transaction) {
		secured := *tx
		secured.Call.Payload = append([]byte(nil), tx.Call.Payload...)
		if len(secured.Call.Payload) < 28 {
			return
		}
		binary.BigEndian.PutUint32(secured.Call.Payload[24:], uint32(oncrpc.RPCSecGSS))
		v.Set(&secured)
		opened := v.Opening() == rpc.Verified && v.Principal != ""
		v.Set(tx)
		if v.Opening() != rpc.NotOpened || v.Principal != "" {
			t.Fatalf("%s was opened: %v, %q", v.ProcedureName(), v.Opening(), v.Principal)
		}
		if opened && v.Clean() {
			after++
		}
	})
	if after < 40 {
		t.Errorf("%d usual transactions after one that was opened", after)
	}
}
