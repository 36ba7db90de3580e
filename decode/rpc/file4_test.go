package rpc

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestResults: operations whose results a File needs, besides those that give a handle, are in take4, which reads them where they stand.
func TestResults(t *testing.T) {
	read := map[nfs4.NfsOpnum4]bool{nfs4.OP_READ: true, nfs4.OP_WRITE: true}
	for n := range uint32(256) {
		e := ops.Operation(n)
		if e == nil {
			continue
		}
		var res nfs4.CompoundRes
		b := xdr.AppendUint32(nil, uint32(nfs4.NFS4_OK))
		b = xdr.AppendOpaque(b, nil)
		b = xdr.AppendUint32(xdr.AppendUint32(b, 1), n)
		b = append(b, make([]byte, 400)...) // success, and all that follows is empty
		var r xdr.Reader
		r.Reset(b, 0)
		if res.Decode(&r); len(res.Ops) != 1 {
			t.Fatalf("%s: %+v", nfs4.OpName(n), res)
		}
		var o ops.Outcome
		e.Outcome(res.Ops[0].Body, &o)
		if read[nfs4.NfsOpnum4(n)] != o.HasMoved {
			t.Errorf("%s: %+v", nfs4.OpName(n), o)
		}
		if gives := e.Gives.Has(ops.Handle); gives != (n == uint32(nfs4.OP_GETFH)) {
			t.Errorf("%s gives a handle: %t", nfs4.OpName(n), gives)
		}
		if puts := e.Effect == ops.Puts; puts != (n == uint32(nfs4.OP_PUTFH)) {
			t.Errorf("%s has a handle among its arguments: %t", nfs4.OpName(n), puts)
		}
	}
}
