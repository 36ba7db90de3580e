package compound

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// shown is all that a row may show of a COMPOUND's operations.
func shown(v *rpc.View) string {
	minor, is := v.MinorVersion()
	b := fmt.Append(nil, v.ProgramName(), v.Tx.Program, v.Tx.Version, v.ProcedureName(), minor, is, v.OperationGroup(), " ")
	b = v.AppendOperation(b)
	for _, o := range v.Steps() {
		b = fmt.Append(b, " ", o.Name, "=", o.Status)
	}
	return string(b)
}

// FuzzKinds looks at the transactions of changed captures: those of a kind show the same.
func FuzzKinds(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte) { kindsOf(t, which, program) })
}

func kindsOf(t *testing.T, which uint8, program []byte) (rows, all int) {
	t.Helper()
	var kinds Kinds
	texts := make(map[uint64]string)
	holds.Each(t, traffic.Apply(which, program), decode.Options{}, func(v *rpc.View) {
		list, text := slices.Clone(v.Steps()), shown(v)
		k := kinds.Of(v)
		if k == nil {
			if _, is := v.MinorVersion(); v.Procedure != nil && v.Tx.Named && (!v.Compound() || is && len(list) > 0 && len(list) <= longest && !v.MoreOperations()) {
				t.Fatalf("no kind: %s", text)
			}
			return
		}
		rows++
		if k != &kinds.known[k.Slot] {
			t.Fatalf("slot %d is that of another kind", k.Slot)
		}
		if was, ok := texts[k.Stamp]; ok && was != text {
			t.Fatalf("of the same kind:\n%s\n%s", was, text)
		}
		texts[k.Stamp] = text
		if again := kinds.Of(v); again.Stamp != k.Stamp {
			t.Fatal("the same call is of two kinds")
		}
		ended := true
		for _, o := range list {
			ended = ended && o.Status != ""
		}
		if k.Ended != ended {
			t.Fatalf("ended %t: %s", k.Ended, text)
		}
		if len(list) == 0 {
			return
		}
		for _, change := range []func(o *rpc.Step){
			func(o *rpc.Step) { o.Number++ }, func(o *rpc.Step) { o.Code += 1 << 16 }, func(o *rpc.Step) { o.Status += "X" },
			func(o *rpc.Step) { o.Status = "" },
		} {
			o := &list[int(v.Tx.XID)%len(list)]
			before, stamp := *o, k.Stamp // what k points to may become another
			change(o)
			if same := (o.Status == "") == (before.Status == "") && o.Number == before.Number && o.Code == before.Code; same != (kinds.of(v, list).Stamp == stamp) {
				t.Fatalf("%+v instead of %+v: same kind %t", *o, before, !same)
			}
			*o = before
			k = kinds.of(v, list)
		}
	})
	return rows, len(texts)
}

// TestKinds finds that some COMPOUNDs are of kinds that were seen before, in captures of a few packets each.
func TestKinds(t *testing.T) {
	rows, all := 0, 0
	for i := range traffic.Count() {
		r, n := kindsOf(t, uint8(i), nil)
		rows, all = rows+r, all+n
	}
	t.Logf("%d calls of %d kinds", rows, all)
	if all == 0 || rows <= all {
		t.Error("none are alike")
	}
}

// TestStamps gives kinds that take each other's place stamps of their own.
func TestStamps(t *testing.T) {
	var kinds, other Kinds
	seen := make(map[uint64]*Kind)
	holds.Each(t, traffic.Apply(3, nil), decode.Options{}, func(v *rpc.View) {
		list := slices.Clone(v.Steps())
		if kinds.Of(v) == nil || len(list) == 0 {
			return
		}
		if len(seen) > 0 {
			return
		}
		for i := range uint32(3 * Most) {
			list[0].Code = i
			for _, k := range []*Kinds{&kinds, &other} {
				x := k.of(v, list)
				if x.operations[0]>>32 != uint64(i) {
					t.Fatalf("code %d: %x", i, x.operations)
				}
				if was := seen[x.Stamp]; was != nil {
					t.Fatalf("stamp %d is given again: %p, %p", x.Stamp, was, x)
				}
				seen[x.Stamp] = x
			}
		}
	})
	if len(seen) < 6*Most {
		t.Errorf("%d stamps", len(seen))
	}
}

// TestMany asks for more kinds than are known at a time, of several programs and minor versions.
func TestMany(t *testing.T) {
	var kinds, other Kinds
	var v rpc.View
	rng := rand.New(rand.NewPCG(7, 8))
	texts := make(map[uint64]string)
	succeeded := 0
	for i := range uint32(30000) {
		program, version, list := uint32(100003), uint32(4), []nfs4.NfsOpnum4{nfs4.OP_PUTROOTFH, nfs4.OP_PUTPUBFH, nfs4.OP_SAVEFH, nfs4.OP_RESTOREFH, nfs4.OP_LOOKUPP}
		callback := rng.IntN(8) == 0
		if callback {
			program, version, list = 0x40000000+rng.Uint32N(3), 1, []nfs4.NfsOpnum4{nfs4.NfsOpnum4(nfs4.OP_CB_WANTS_CANCELLED)}
		}
		var args, res xdr.Message
		a, r := nfs4.Operations{}, nfs4.Operations{}
		status := nfs4.NFS4_OK
		for range 1 + rng.IntN(1+rng.IntN(5)) {
			n := list[rng.IntN(len(list))]
			var body xdr.Message = xdr.Void{}
			if callback {
				body = &nfs4.CB_WANTS_CANCELLED4args{}
			}
			a.Ops = append(a.Ops, nfs4.Op{Number: uint32(n), Body: body})
			if status == nfs4.NFS4_OK {
				if rng.IntN(40) == 0 {
					status = nfs4.NFS4ERR_STALE
				}
				r.Ops = append(r.Ops, nfs4.Op{Number: uint32(n), Body: &nfs4.Status4res{Status: status}})
			}
		}
		minor := rng.Uint32N(3)
		args, res = &nfs4.CompoundArgs{Minorversion: minor, Operations: a}, &nfs4.CompoundRes{Status: status, Operations: r}
		if callback {
			args, res = &nfs4.CbCompoundArgs{Minorversion: minor, Operations: a}, &nfs4.CbCompoundRes{Status: status, Operations: r}
		}
		call, reply := xdr.AppendUint32(nil, i), xdr.AppendUint32(nil, i)
		for _, w := range [...]uint32{0, 2, program, version, 1, 0, 0, 0, 0} {
			call = xdr.AppendUint32(call, w)
		}
		for _, w := range [...]uint32{1, 0, 0, 0, 0} {
			reply = xdr.AppendUint32(reply, w)
		}
		tx := &transaction.Transaction{Connection: &rdma.Connection{}, XID: i, Program: program, Version: version, Procedure: 1, Named: true}
		for m, b := range map[*transaction.Message][]byte{&tx.Call: args.Append(call), &tx.Reply: res.Append(reply)} {
			m.Payload, m.PayloadLength, m.First, m.Last = b, len(b), rdma.Ref{Number: 1}, rdma.Ref{Number: 1}
		}
		v.Set(tx)
		if v.CompoundKind() != 0 && v.Done() {
			succeeded++
		} else if status == nfs4.NFS4_OK {
			t.Fatalf("no kind: %s", shown(&v))
		}
		text, k := shown(&v), kinds.Of(&v)
		if was, ok := texts[k.Stamp]; ok && was != text {
			t.Fatalf("of the same kind:\n%s\n%s", was, text)
		}
		texts[k.Stamp] = text
		if stamp := k.Stamp; kinds.Of(&v).Stamp != stamp {
			t.Fatalf("two kinds: %s", text)
		}
		if want := other.of(&v, v.Steps()); k.Ended != want.Ended || !slices.Equal(k.operations, want.operations) || k != &kinds.known[k.Slot] {
			t.Fatalf("%+v, want %+v", k, want)
		}
	}
	if succeeded < 25000 {
		t.Errorf("only %d are clean", succeeded)
	}
}
