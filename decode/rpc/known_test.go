package rpc

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// about are calls that are about a file, with what they give back.
func about() (list []callAbout) {
	add := func(program, version, procedure uint32, args, results xdr.Message) {
		list = append(list, callAbout{program, version, procedure, args, results})
	}
	for number, m := range calls3() {
		add(nfs3.NFS_PROGRAM, nfs3.NFS_V3, number, m[0], m[1])
	}
	add(nfs3.NFS_PROGRAM, nfs3.NFS_V3, nfs3.NFSPROC3_WRITE,
		&nfs3.WRITE3args{File: file, Offset: 7, Count: 9, Stable: nfs3.FILE_SYNC, Data: xdr.Data{Length: 9, Inline: []byte("some data")}},
		&nfs3.WRITE3res{Resok: nfs3.WRITE3resok{FileWcc: nfs3.WccData{Before: nfs3.PreOpAttr{AttributesFollow: true}, After: after}, Count: 8}})
	add(nfs3.NFS_PROGRAM, nfs3.NFS_V3, nfs3.NFSPROC3_READ,
		&nfs3.READ3args{File: file, Offset: 7, Count: 9},
		&nfs3.READ3res{Resok: nfs3.READ3resok{FileAttributes: after, Count: 8, Eof: true, Data: xdr.Data{Length: 8, Inline: []byte("8 bytes.")}}})
	target := xdr.Data{Length: 6, Inline: []byte("target")}
	add(nfs3.NFS_PROGRAM, nfs3.NFS_V3, nfs3.NFSPROC3_SYMLINK,
		&nfs3.SYMLINK3args{Where: dir, Symlink: nfs3.Symlinkdata3{SymlinkData: target}},
		&nfs3.SYMLINK3res{Resok: nfs3.SYMLINK3resok{Obj: nfs3.PostOpFh3{HandleFollows: true, Handle: file}}})
	handle := [32]byte(bytes.Repeat([]byte("handle !"), 4))
	from := nfs2.Diropargs{Dir: handle, Name: []byte("name")}
	add(nfs2.NFS_PROGRAM, 2, nfs2.NFSPROC_READ, &nfs2.Readargs{File: handle, Offset: 7, Count: 9, Totalcount: 9}, &nfs2.Readres{})
	add(nfs2.NFS_PROGRAM, 2, nfs2.NFSPROC_WRITE, &nfs2.Writeargs{File: handle, Offset: 7, Data: xdr.Data{Length: 9, Inline: []byte("some data")}}, &nfs2.Attrstat{})
	add(nfs2.NFS_PROGRAM, 2, nfs2.NFSPROC_SYMLINK, &nfs2.Symlinkargs{From: from, To: target}, &nfs2.Attrstat{})
	add(nfs2.NFS_PROGRAM, 2, nfs2.NFSPROC_RENAME, &nfs2.Renameargs{From: from, To: nfs2.Diropargs{Dir: handle, Name: []byte("new")}}, &nfs2.Attrstat{})
	lock := nlm.Nlm4Lock{CallerName: []byte("client"), Fh: []byte("file"), Oh: []byte("owner"), Svid: 3, LOffset: 7, LLen: 9}
	add(nlm.NLM_PROG, nlm.NLM4_VERS, nlm.NLMPROC4_LOCK, &nlm.Nlm4Lockargs{Cookie: []byte("cookie"), Alock: lock}, &nlm.Nlm4Res{})
	add(nlm.NLM_PROG, nlm.NLM4_VERS, nlm.NLMPROC4_UNLOCK, &nlm.Nlm4Unlockargs{Cookie: []byte("cookie"), Alock: lock}, &nlm.Nlm4Res{})
	return list
}

type callAbout struct {
	program, version, procedure uint32
	args, results               xdr.Message
}

// file is what is said of the file if so much of arguments and results was captured, and what is learned.
func (c *callAbout) file(args, results []byte, fullArgs, fullResults int) (File, *Names) {
	call, reply := (&oncrpc.Call{RPCVersion: oncrpc.Version}).Append(nil), (&oncrpc.Reply{}).Append(nil)
	tx := transaction.Transaction{Named: true, Program: c.program, Version: c.version, Procedure: c.procedure}
	tx.Call.Last.Number, tx.Call.Payload, tx.Call.PayloadLength = 1, append(call, args...), len(call)+fullArgs
	tx.Reply.Last.Number, tx.Reply.Payload, tx.Reply.PayloadLength = 2, append(reply, results...), len(reply)+fullResults
	v := View{Names: knownBefore()}
	v.SetAll(&tx)
	v.Learn()
	if f := v.File(); f != nil {
		return *f, v.Names
	}
	return File{}, v.Names
}

func knownBefore() *Names {
	n := &Names{}
	n.learn([]byte("directory"), []byte("file"), []byte("name"))
	return n
}

// TestKnown cuts arguments and results at each byte: what is said of the file is true, or is not said.
func TestKnown(t *testing.T) {
	for _, c := range about() {
		args, results := c.args.Append(nil), c.results.Append(nil)
		whole, names := c.file(args, results, len(args), len(results))
		if whole.Handle == nil {
			t.Errorf("program %d, procedure %d is about no file", c.program, c.procedure)
		}
		check := func(args, results []byte, fullArgs, fullResults int) {
			t.Helper()
			f, learned := c.file(args, results, fullArgs, fullResults)
			same := func(a, b []byte) bool { return a == nil || bytes.Equal(a, b) }
			if !same(f.Handle, whole.Handle) || !same(f.Name, whole.Name) || !same(f.To, whole.To) || !same(f.Result, whole.Result) ||
				f.HasRange && (f.Offset != whole.Offset || f.Count != whole.Count) || f.HasMoved && f.Moved != whole.Moved || f.EOF && !whole.EOF ||
				f.Stable != "" && f.Stable != whole.Stable {
				t.Errorf("program %d, procedure %d, %d of %d and %d of %d bytes:\n%+v, is\n%+v", c.program, c.procedure, len(args), fullArgs, len(results), fullResults, f, whole)
			}
			if !SameNames(learned, names) && !SameNames(learned, knownBefore()) && len(learned.byHandle()) > 0 {
				t.Errorf("program %d, procedure %d, %d of %d and %d of %d bytes: names %+v", c.program, c.procedure, len(args), fullArgs, len(results), fullResults, learned.byHandle())
			}
		}
		for n := range args {
			check(args[:n], results, len(args), len(results)) // cut by the capture
			check(args[:n], results, n, len(results))         // malformed
		}
		for n := range results {
			check(args, results[:n], len(args), len(results))
			check(args, results[:n], len(args), n)
			if _, learned := c.file(args, results[:n], len(args), len(results)); n < 4 && !SameNames(learned, knownBefore()) {
				t.Errorf("program %d, procedure %d: its status is not known, but names %+v", c.program, c.procedure, learned.byHandle())
			}
		}
	}
}

// TestKnownUnstable: zeros in front of something that was captured are true.
func TestKnownUnstable(t *testing.T) {
	args := &nfs3.WRITE3args{File: file, Count: 4, Stable: nfs3.UNSTABLE, Data: xdr.Data{Length: 4, Inline: []byte("data")}}
	c := callAbout{nfs3.NFS_PROGRAM, nfs3.NFS_V3, nfs3.NFSPROC3_WRITE, args, &nfs3.WRITE3res{}}
	b := args.Append(nil)
	for left, want := range map[int]File{
		1:  {Handle: file.Data, HasRange: true, Count: 4, Stable: "UNSTABLE"}, // cut in the data
		8:  {Handle: file.Data, HasRange: true, Count: 4},                     // before its length
		12: {Handle: file.Data, HasRange: true, Count: 4},
		16: {Handle: file.Data},
	} {
		if f, _ := c.file(b[:len(b)-left], nil, len(b), 100); !reflect.DeepEqual(f, want) {
			t.Errorf("without %d bytes: %+v, want %+v", left, f, want)
		}
	}
}
