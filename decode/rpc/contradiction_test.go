package rpc

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestContradiction has replies to a COMPOUND of PUTROOTFH, SAVEFH and RESTOREFH.
func TestContradiction(t *testing.T) {
	const put, save, restore = nfs4.OP_PUTROOTFH, nfs4.OP_SAVEFH, nfs4.OP_RESTOREFH
	type answer struct {
		op     nfs4.NfsOpnum4
		status nfs4.Nfsstat4
	}
	const ok, stale, illegal = nfs4.NFS4_OK, nfs4.NFS4ERR_STALE, nfs4.NFS4ERR_OP_ILLEGAL
	call := (&oncrpc.Call{RPCVersion: oncrpc.Version, Program: nfs4.NFS4_PROGRAM, Version: nfs4.NFS_V4, Procedure: nfs4.NFSPROC4_COMPOUND}).Append(nil)
	args := nfs4.CompoundArgs{Minorversion: 1}
	for _, op := range []nfs4.NfsOpnum4{put, save, restore} {
		args.Ops = append(args.Ops, nfs4.Op{Number: uint32(op), Body: xdr.Void{}})
	}
	call = args.Append(call)
	for _, c := range []struct {
		name    string
		status  nfs4.Nfsstat4
		answers []answer
		want    string
	}{
		{"success", ok, []answer{{put, ok}, {save, ok}, {restore, ok}}, ""},
		{"failure", stale, []answer{{put, ok}, {save, stale}}, ""},
		{"failure before the first", nfs4.NFS4ERR_MINOR_VERS_MISMATCH, nil, ""},
		{"number that the server does not know", illegal, []answer{{put, ok}, {nfs4.OP_ILLEGAL, illegal}}, ""},
		{"other operation", ok, []answer{{put, ok}, {restore, ok}, {restore, ok}}, "result of RESTOREFH for SAVEFH"},
		{"more operations", ok, []answer{{put, ok}, {save, ok}, {restore, ok}, {save, ok}}, "result of SAVEFH, an operation that the call does not have"},
		{"fewer operations", ok, []answer{{put, ok}}, "success without a result of SAVEFH"},
		{"none", ok, nil, "success without a result of PUTROOTFH"},
		{"behind a failure", stale, []answer{{put, stale}, {save, ok}}, "result of SAVEFH behind a failed operation"},
		{"failure within a success", ok, []answer{{put, ok}, {save, ok}, {restore, stale}}, "status is not that of the last operation"},
		{"another failure", stale, []answer{{put, nfs4.NFS4ERR_DELAY}}, "status is not that of the last operation"},
		{"failure without a failed operation", stale, []answer{{put, ok}, {save, ok}}, "status is not that of the last operation"},
	} {
		reply := (&oncrpc.Reply{}).Append(nil)
		reply = xdr.AppendUint32(reply, uint32(c.status))
		reply = xdr.AppendOpaque(reply, nil)
		reply = xdr.AppendUint32(reply, uint32(len(c.answers)))
		for _, a := range c.answers {
			reply = xdr.AppendUint32(xdr.AppendUint32(reply, uint32(a.op)), uint32(a.status))
		}
		tx := &transaction.Transaction{Named: true, Program: nfs4.NFS4_PROGRAM, Version: nfs4.NFS_V4, Procedure: nfs4.NFSPROC4_COMPOUND}
		tx.Call.Last.Number, tx.Call.Payload, tx.Call.PayloadLength = 1, call, len(call)
		tx.Reply.Last.Number, tx.Reply.Payload, tx.Reply.PayloadLength = 2, reply, len(reply)
		var v View
		v.Set(tx)
		var got []string
		v.Malformed(func(packet uint64, part string, err error) {
			if packet != 2 || part != "results" {
				t.Errorf("%s: packet %d, %s", c.name, packet, part)
			}
			got = append(got, err.Error())
		})
		if len(got) > 1 || v.Contradiction() != c.want || v.Undecoded() != (c.want != "") || v.Undecoded() != (len(got) == 1) || len(got) == 1 && got[0] != c.want {
			t.Errorf("%s: %q and %q, want %q", c.name, v.Contradiction(), got, c.want)
		}
		for i, o := range v.Operations() {
			other := i < len(c.answers) && i < len(args.Ops) && uint32(c.answers[i].op) != args.Ops[i].Number
			if (o.Answer != "") != other {
				t.Errorf("%s: operation %d has the answer %q", c.name, i, o.Answer)
			}
		}
	}
}
