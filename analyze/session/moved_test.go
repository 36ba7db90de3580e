package session

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestMoved has replies that say that more was read or written than the call asks for.
func TestMoved(t *testing.T) {
	data := xdr.Data{Length: 8, Inline: []byte("8 bytes.")}
	write := &nfs3.WRITE3args{File: nfs3.NfsFh3{Data: []byte("file")}, Count: 8, Data: data}
	read := &nfs3.READ3args{File: nfs3.NfsFh3{Data: []byte("file")}, Count: 8}
	for _, c := range []struct {
		procedure     uint32
		args, results xdr.Message
		read, written uint64
	}{
		{nfs3.NFSPROC3_WRITE, write, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 8}}, 0, 8},
		{nfs3.NFSPROC3_WRITE, write, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 5}}, 0, 5},
		{nfs3.NFSPROC3_WRITE, write, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 1<<32 - 1}}, 0, 8},
		{nfs3.NFSPROC3_READ, read, &nfs3.READ3res{Resok: nfs3.READ3resok{Count: 8, Data: data}}, 8, 0},
		{nfs3.NFSPROC3_READ, read, &nfs3.READ3res{Resok: nfs3.READ3resok{Count: 1<<32 - 1, Data: data}}, 8, 0},
	} {
		call := c.args.Append((&oncrpc.Call{RPCVersion: oncrpc.Version, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: c.procedure}).Append(nil))
		reply := c.results.Append((&oncrpc.Reply{}).Append(nil))
		tx := &transaction.Transaction{Named: true, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: c.procedure}
		tx.Call.Last.Number, tx.Call.Payload, tx.Call.PayloadLength = 1, call, len(call)
		tx.Reply.Last.Number, tx.Reply.Payload, tx.Reply.PayloadLength = 2, reply, len(reply)
		var v rpc.View
		v.Set(tx)
		if read, written := moved(&v); read != c.read || written != c.written {
			t.Errorf("procedure %d: %d bytes read, %d written, want %d and %d", c.procedure, read, written, c.read, c.written)
		}
	}
}
