package rpc

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// step is an operation of a COMPOUND with its result.
type step struct {
	op     nfs4.NfsOpnum4
	args   xdr.Message
	result xdr.Message
}

func put(h string) step {
	return step{nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: []byte(h)}, &nfs4.Status4res{}}
}

func get(h string) step {
	return step{nfs4.OP_GETFH, xdr.Void{}, &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: []byte(h)}}}
}

func void(op nfs4.NfsOpnum4) step { return step{op, xdr.Void{}, &nfs4.Status4res{}} }

func lookup(name string) step {
	return step{nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(name)}, &nfs4.Status4res{}}
}

func read(data string) step {
	return step{nfs4.OP_READ, &nfs4.READ4args{Offset: 7, Count: 100}, &nfs4.READ4res{Resok4: nfs4.READ4resok{
		Eof: true, Data: xdr.Data{Length: uint32(len(data)), Inline: []byte(data)},
	}}}
}

func rename(old, name string) step {
	return step{nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte(old), Newname: []byte(name)}, &nfs4.RENAME4res{}}
}

// compound is the transaction of a COMPOUND.
func compound(steps ...step) *transaction.Transaction {
	args, res := &nfs4.CompoundArgs{Minorversion: 1}, &nfs4.CompoundRes{}
	for _, s := range steps {
		args.Ops = append(args.Ops, nfs4.Op{Number: uint32(s.op), Body: s.args})
		res.Ops = append(res.Ops, nfs4.Op{Number: uint32(s.op), Body: s.result})
	}
	c := oncrpc.Call{XID: 1, RPCVersion: 2, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: nfs4.NFSPROC4_COMPOUND}
	tx := &transaction.Transaction{
		Connection: &rdma.Connection{ID: 1, Fabric: rdma.TCP}, XID: 1, Named: true, Program: c.Program, Version: 4, Procedure: c.Procedure,
	}
	tx.Call.Payload = args.Append(c.Append(nil))
	tx.Call.PayloadLength = len(tx.Call.Payload)
	tx.Call.First = rdma.Ref{Time: 1, Number: 1}
	tx.Call.Last = tx.Call.First
	tx.Reply.Payload = res.Append(append([]byte{0, 0, 0, 1, 0, 0, 0, 1}, make([]byte, 16)...))
	tx.Reply.PayloadLength = len(tx.Reply.Payload)
	tx.Reply.First = rdma.Ref{Time: 2, Number: 2}
	tx.Reply.Last = tx.Reply.First
	return tx
}

// TestFileOfCompound: the file that a COMPOUND is about, wherever its handles have
// been saved in between.
func TestFileOfCompound(t *testing.T) {
	for _, c := range []struct {
		what                     string
		steps                    []step
		handle, name, to, result string
	}{
		{"by handle", []step{put("f"), read("x")}, "f", "", "", ""},
		{"by name", []step{put("d"), lookup("n"), get("h")}, "d", "n", "", "h"},
		{"by name and then used", []step{put("d"), lookup("n"), get("h"), read("x")}, "d", "n", "", "h"},
		{"used before its handle is shown", []step{put("d"), lookup("n"), read("x"), get("h")}, "d", "n", "", "h"},
		{"two names", []step{put("d"), lookup("a"), lookup("b"), get("h")}, "", "b", "", "h"},
		{"rename", []step{put("from"), void(nfs4.OP_SAVEFH), put("to"), rename("a", "b")}, "from", "a", "b", ""},
		{"restored", []step{put("d"), void(nfs4.OP_SAVEFH), lookup("n"), get("h"), void(nfs4.OP_RESTOREFH), read("x")}, "d", "", "", ""},
		{"another handle", []step{put("d"), lookup("n"), put("f"), read("x")}, "f", "", "", ""},
		{"an extended attribute", []step{put("f"), {nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaKey: []byte("a")}, &nfs4.SETXATTR4res{}}}, "f", "", "", ""},
		{"an extended attribute of a name", []step{put("d"), lookup("n"), get("h"), {nfs4.OP_GETXATTR, &nfs4.GETXATTR4args{GxaName: []byte("a")}, &nfs4.GETXATTR4res{}}}, "d", "n", "", "h"},
		{"an extended attribute that is removed", []step{put("f"), {nfs4.OP_REMOVEXATTR, &nfs4.REMOVEXATTR4args{RxaName: []byte("a")}, &nfs4.REMOVEXATTR4res{}}}, "f", "", "", ""},
		{"handle of something else", []step{put("d"), lookup("n"), get("h"), put("x"), get("x")}, "d", "n", "", "h"},
	} {
		var v View
		v.Set(compound(c.steps...))
		if v.ArgsErr != nil || v.ResultErr != nil {
			t.Fatal(c.what, v.ArgsErr, v.ResultErr)
		}
		f := v.File()
		if f == nil || string(f.Handle) != c.handle || string(f.Name) != c.name || string(f.To) != c.to || string(f.Result) != c.result {
			t.Errorf("%s: %+v", c.what, f)
		}
		if last := c.steps[len(c.steps)-1]; last.op == nfs4.OP_READ && (!f.HasRange || f.Offset != 7 || f.Count != 100 || !f.HasMoved || f.Moved != 1 || !f.EOF) {
			t.Errorf("%s: range %+v", c.what, f)
		}
	}
}

// TestLearnThroughSaved: names are learned in the directory that they were looked
// up in.
func TestLearnThroughSaved(t *testing.T) {
	v := View{Names: new(Names)}
	for _, steps := range [][]step{
		{put("root"), lookup("d"), get("D")},
		{put("D"), void(nfs4.OP_SAVEFH), lookup("a"), void(nfs4.OP_RESTOREFH), lookup("b"), get("B")},
		{put("D"), void(nfs4.OP_SAVEFH), put("root"), rename("b", "c")},
		{put("D"), void(nfs4.OP_SAVEFH), lookup("a"), void(nfs4.OP_RESTOREFH), get("D")}, // not a
	} {
		v.Set(compound(steps...))
		v.Learn()
	}
	for h, want := range map[string]string{"D": "d", "B": "c", "root": ""} {
		if got := v.Names.Path([]byte(h)); got != want {
			t.Errorf("%s is %q, want %q", h, got, want)
		}
	}
}

// TestLearnOfFailed: a COMPOUND that failed tells names before the operation that did.
func TestLearnOfFailed(t *testing.T) {
	failed := read("")
	failed.result = &nfs4.READ4res{Status: nfs4.NFS4ERR_IO}
	tx := compound(put("root"), lookup("d"), get("D"), failed)
	binary.BigEndian.PutUint32(tx.Reply.Payload[24:], uint32(nfs4.NFS4ERR_IO)) // behind the header of RPC
	v := View{Names: new(Names)}
	v.Set(tx)
	if v.Learn(); v.clean == nil || !v.projection.Failed || v.Names.Path([]byte("D")) != "d" {
		t.Errorf("usual %t, failed %t, name %q", v.clean != nil, v.projection.Failed, v.Names.Path([]byte("D")))
	}
}

func TestFileAllocates(t *testing.T) {
	tx := compound(put("d"), void(nfs4.OP_SAVEFH), lookup("n"), get("h"), read("x"), void(nfs4.OP_RESTOREFH))
	v := View{Names: new(Names)}
	once := func() {
		v.Set(tx)
		if v.File() == nil {
			t.Fatal("no file")
		}
		v.Learn()
	}
	once()
	if n := testing.AllocsPerRun(200, once); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
