package rpc

import (
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

var (
	dir   = nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: []byte("directory")}, Name: []byte("name")}
	file  = nfs3.NfsFh3{Data: []byte("file")}
	after = nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Size: 1 << 40}}
)

// calls3 are arguments and results of the procedures of NFSv3 that are about a file.
func calls3() map[uint32][2]xdr.Message {
	return map[uint32][2]xdr.Message{
		nfs3.NFSPROC3_LOOKUP:  {&nfs3.LOOKUP3args{What: dir}, &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: file}}},
		nfs3.NFSPROC3_ACCESS:  {&nfs3.ACCESS3args{Object: file}, &nfs3.ACCESS3res{}},
		nfs3.NFSPROC3_GETATTR: {&nfs3.GETATTR3args{Object: file}, &nfs3.GETATTR3res{}},
		nfs3.NFSPROC3_SETATTR: {&nfs3.SETATTR3args{Object: file}, &nfs3.SETATTR3res{}},
		nfs3.NFSPROC3_READ:    {&nfs3.READ3args{File: file, Offset: 7, Count: 9}, &nfs3.READ3res{Resok: nfs3.READ3resok{Count: 8, Eof: true}}},
		nfs3.NFSPROC3_WRITE:   {&nfs3.WRITE3args{File: file, Offset: 7, Count: 9, Stable: nfs3.DATA_SYNC}, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 8}}},
		nfs3.NFSPROC3_CREATE:  {&nfs3.CREATE3args{Where: dir}, &nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: nfs3.PostOpFh3{HandleFollows: true, Handle: file}}}},
		nfs3.NFSPROC3_MKDIR:   {&nfs3.MKDIR3args{Where: dir}, &nfs3.MKDIR3res{Resok: nfs3.MKDIR3resok{Obj: nfs3.PostOpFh3{HandleFollows: true, Handle: file}}}},
		nfs3.NFSPROC3_SYMLINK: {&nfs3.SYMLINK3args{Where: dir}, &nfs3.SYMLINK3res{Resok: nfs3.SYMLINK3resok{Obj: nfs3.PostOpFh3{HandleFollows: true, Handle: file}}}},
		nfs3.NFSPROC3_MKNOD:   {&nfs3.MKNOD3args{Where: dir}, &nfs3.MKNOD3res{Resok: nfs3.MKNOD3resok{Obj: nfs3.PostOpFh3{HandleFollows: true, Handle: file}}}},
		nfs3.NFSPROC3_REMOVE:  {&nfs3.REMOVE3args{Object: dir}, &nfs3.REMOVE3res{}},
		nfs3.NFSPROC3_RMDIR:   {&nfs3.RMDIR3args{Object: dir}, &nfs3.RMDIR3res{}},
		nfs3.NFSPROC3_RENAME:  {&nfs3.RENAME3args{From: dir, To: nfs3.Diropargs3{Dir: dir.Dir, Name: []byte("new")}}, &nfs3.RENAME3res{}},
		nfs3.NFSPROC3_LINK:    {&nfs3.LINK3args{File: file, Link: dir}, &nfs3.LINK3res{}},
	}
}

// FuzzUsual3 compares the short way with the table of operations, for all procedures of NFSv3, and what is learned.
func FuzzUsual3(f *testing.F) {
	f.Add(byte(nfs3.NFSPROC3_READ), (&nfs3.READ3args{File: file, Count: 9}).Append(nil),
		(&nfs3.READ3res{Resok: nfs3.READ3resok{FileAttributes: after, Count: 8}}).Append(nil), true)
	f.Add(byte(nfs3.NFSPROC3_WRITE), (&nfs3.WRITE3args{File: file, Count: 9}).Append(nil),
		(&nfs3.WRITE3res{Resok: nfs3.WRITE3resok{FileWcc: nfs3.WccData{Before: nfs3.PreOpAttr{AttributesFollow: true}, After: after}, Count: 8}}).Append(nil), true)
	for number, m := range calls3() {
		f.Add(byte(number), m[0].Append(nil), m[1].Append(nil), true)
		f.Add(byte(number), m[0].Append(nil), append([]byte{0, 0, 0, 2}, make([]byte, 40)...), true) // an error, without attributes
		f.Add(byte(number), m[0].Append(nil), []byte{}, false)
	}
	for number, m := range map[uint32]xdr.Message{
		nfs3.NFSPROC3_READLINK: &nfs3.READLINK3args{Symlink: file}, nfs3.NFSPROC3_READDIR: &nfs3.READDIR3args{Dir: file},
		nfs3.NFSPROC3_READDIRPLUS: &nfs3.READDIRPLUS3args{Dir: file}, nfs3.NFSPROC3_COMMIT: &nfs3.COMMIT3args{File: file, Offset: 1},
		nfs3.NFSPROC3_FSSTAT: &nfs3.FSSTAT3args{Fsroot: file}, nfs3.NFSPROC3_FSINFO: &nfs3.FSINFO3args{Fsroot: file}, nfs3.NFSPROC3_PATHCONF: &nfs3.PATHCONF3args{Object: file},
		nfs3.NFSPROC3_NULL: xdr.Void{},
	} {
		f.Add(byte(number), m.Append(nil), make([]byte, 200), true)
	}
	listed := nfs3.READDIRPLUS3res{Resok: nfs3.READDIRPLUS3resok{DirAttributes: after, Reply: nfs3.Dirlistplus3{Entries: []nfs3.Entryplus3{
		{Name: []byte("x"), NameHandle: nfs3.PostOpFh3{HandleFollows: true, Handle: file}},
		{Name: []byte("without a handle"), NameAttributes: after},
		{Name: []byte("."), NameHandle: nfs3.PostOpFh3{HandleFollows: true, Handle: dir.Dir}},
		{Name: []byte("name"), NameAttributes: after, NameHandle: nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: []byte("other")}}},
	}, Eof: true}}}
	f.Add(byte(nfs3.NFSPROC3_READDIRPLUS), (&nfs3.READDIRPLUS3args{Dir: dir.Dir}).Append(nil), listed.Append(nil), true)
	listed.Resok.DirAttributes.AttributesFollow = false
	f.Add(byte(nfs3.NFSPROC3_READDIRPLUS), (&nfs3.READDIRPLUS3args{Dir: dir.Dir}).Append(nil), listed.Append(nil), true)
	// What is learned again, but for one item.
	other := nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: []byte("director2")}, Name: []byte("name")}
	for _, m := range [][2]xdr.Message{
		{&nfs3.LOOKUP3args{What: other}, &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: file}}},
		{&nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: dir.Dir, Name: []byte("nam2")}}, &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: file}}},
		{&nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: dir.Dir, Name: []byte("..")}}, &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: file}}},
		{&nfs3.LOOKUP3args{What: dir}, &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte("fil2")}}}},
		{&nfs3.LOOKUP3args{What: dir}, &nfs3.LOOKUP3res{}},
	} {
		f.Add(byte(nfs3.NFSPROC3_LOOKUP), m[0].Append(nil), m[1].Append(nil), true)
	}
	f.Add(byte(nfs3.NFSPROC3_CREATE), (&nfs3.CREATE3args{Where: other}).Append(nil),
		(&nfs3.CREATE3res{Resok: nfs3.CREATE3resok{ObjAttributes: after}}).Append(nil), true) // no handle follows
	f.Add(byte(nfs3.NFSPROC3_CREATE), (&nfs3.CREATE3args{Where: other}).Append(nil),
		(&nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: nfs3.PostOpFh3{HandleFollows: true, Handle: file}}}).Append(nil), true)
	call, reply := oncrpc.Call{RPCVersion: oncrpc.Version}, oncrpc.Reply{}
	f.Fuzz(func(t *testing.T, number byte, args, result []byte, replied bool) {
		tx := transaction.Transaction{Named: true, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: uint32(number)}
		e := ops.Procedure(tx.Program, tx.Version, tx.Procedure)
		if e == nil {
			return
		}
		tx.Call.Last.Number, tx.Call.Payload = 1, append(call.Append(nil), args...)
		if replied {
			tx.Reply.Last.Number, tx.Reply.Payload = 2, append(reply.Append(nil), result...)
		}
		v, all := View{Names: &Names{}}, View{Names: &Names{}}
		for _, n := range []*Names{v.Names, all.Names} {
			n.learn([]byte("directory"), []byte("file"), []byte("name"))
		}
		v.Set(&tx)
		v.Learn()
		v.File()
		all.SetAll(&tx)
		all.Learn()
		all.file, all.fileDone = File{}, true
		all.follower().take(e, all.Args(), all.Result())
		all.file.Result = all.projection.walk.outcome.Handle
		all.known()
		if !reflect.DeepEqual(v.file, all.file) {
			t.Errorf("%s: %+v, want %+v", v.ProcedureName(), v.file, all.file)
		}
		if !SameNames(v.Names, all.Names) {
			t.Errorf("%s: names %+v, want %+v", v.ProcedureName(), v.Names.byHandle(), all.Names.byHandle())
		}
		asked := View{Names: &Names{}} // for the File before it learns
		asked.Names.learn([]byte("directory"), []byte("file"), []byte("name"))
		asked.Set(&tx)
		asked.File()
		if asked.Learn(); !SameNames(asked.Names, all.Names) {
			t.Errorf("%s: after the File, names %+v, want %+v", v.ProcedureName(), asked.Names.byHandle(), all.Names.byHandle())
		}
	})
}
