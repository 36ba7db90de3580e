package extract

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestRestored: data belong to the file whose handle is the current one, also after
// RESTOREFH, and to none if that is not known.
func TestRestored(t *testing.T) {
	put := func(h string) nfs4.Op {
		return nfs4.Op{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.PUTFH4args{Object: []byte(h)}}
	}
	void := func(n nfs4.NfsOpnum4) nfs4.Op { return nfs4.Op{Number: uint32(n), Body: xdr.Void{}} }
	write := func(s string) nfs4.Op {
		return nfs4.Op{Number: uint32(nfs4.OP_WRITE), Body: &nfs4.WRITE4args{Data: xdr.Data{Length: uint32(len(s)), Inline: []byte(s)}}}
	}
	lookup := nfs4.Op{Number: uint32(nfs4.OP_LOOKUP), Body: &nfs4.LOOKUP4args{Objname: []byte("x")}}

	dir := filepath.Join(t.TempDir(), "out")
	x, err := New(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	view := rpc.View{Names: new(rpc.Names)}
	for i, list := range [][]nfs4.Op{
		{put("a"), void(nfs4.OP_SAVEFH), put("b"), write("to b"), void(nfs4.OP_RESTOREFH), write("to a")},
		{put("b"), lookup, write("to what has no handle")},
	} {
		xid := uint32(i + 1)
		args, res := &nfs4.CompoundArgs{Minorversion: 1}, &nfs4.CompoundRes{}
		for _, o := range list {
			args.Ops = append(args.Ops, o)
			var m xdr.Message = &nfs4.Status4res{}
			if o.Number == uint32(nfs4.OP_WRITE) {
				m = &nfs4.WRITE4res{}
			}
			res.Ops = append(res.Ops, nfs4.Op{Number: o.Number, Body: m})
		}
		c := oncrpc.Call{XID: xid, RPCVersion: 2, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: nfs4.NFSPROC4_COMPOUND}
		tx := &transaction.Transaction{
			Connection: &rdma.Connection{ID: 1, Fabric: rdma.TCP}, XID: xid, Named: true, Program: c.Program, Version: 4, Procedure: c.Procedure,
		}
		tx.Call.Payload = args.Append(c.Append(nil))
		tx.Call.PayloadLength = len(tx.Call.Payload)
		tx.Call.First = rdma.Ref{Time: 1, Number: 1}
		tx.Call.Last = tx.Call.First
		tx.Reply.Payload = res.Append(append(xdr.AppendUint32(xdr.AppendUint32(nil, xid), 1), make([]byte, 16)...))
		tx.Reply.PayloadLength = len(tx.Reply.Payload)
		tx.Reply.First = rdma.Ref{Time: 2, Number: 2}
		tx.Reply.Last = tx.Reply.First
		view.Set(tx)
		if view.ArgsErr != nil || view.ResultErr != nil {
			t.Fatal(view.ArgsErr, view.ResultErr)
		}
		if err := x.Add(&view); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.Close(view.Names); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"61": "to a", "62": "to b"} {
		b, err := os.ReadFile(filepath.Join(dir, "by-handle", name))
		if err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %q", name, b, err, want)
		}
	}
}
