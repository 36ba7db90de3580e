package v3_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// FuzzProcedures gives arbitrary arguments to every procedure of NFSv3 and
// MOUNT, with an item apart or none. Each reply is well-formed.
func FuzzProcedures(f *testing.F) {
	const generation = 1
	key := store.Key{1}
	handles := store.NewSeal(key)
	root := nfs3.NfsFh3{Data: handles.Append(nil, store.Handle{ID: 2, Generation: generation})}
	file := nfs3.NfsFh3{Data: handles.Append(nil, store.Handle{ID: 3, Generation: generation})}
	link := nfs3.NfsFh3{Data: handles.Append(nil, store.Handle{ID: 4, Generation: generation})}
	name := nfs3.Diropargs3{Dir: root, Name: []byte("name")}
	there := nfs3.Diropargs3{Dir: root, Name: []byte("file")}
	text := xdr.Data{Length: 5, Inline: []byte("hello")}
	for procedure, args := range map[uint32][]xdr.Message{
		nfs3.NFSPROC3_GETATTR:  {&nfs3.GETATTR3args{Object: file}},
		nfs3.NFSPROC3_SETATTR:  {&nfs3.SETATTR3args{Object: file, NewAttributes: nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: 1 << 62}}}},
		nfs3.NFSPROC3_LOOKUP:   {&nfs3.LOOKUP3args{What: there}},
		nfs3.NFSPROC3_ACCESS:   {&nfs3.ACCESS3args{Object: root, Access: 0x3f}},
		nfs3.NFSPROC3_READLINK: {&nfs3.READLINK3args{Symlink: link}},
		nfs3.NFSPROC3_READ:     {&nfs3.READ3args{File: file, Count: 1 << 31}, &nfs3.READ3args{File: file, Offset: 1<<64 - 1, Count: 9}},
		nfs3.NFSPROC3_WRITE:    {&nfs3.WRITE3args{File: file, Offset: 1 << 40, Count: 5, Data: text}, &nfs3.WRITE3args{File: file, Count: 6, Data: xdr.Data{Length: 6, Chunk: 1}}},
		nfs3.NFSPROC3_CREATE:   {&nfs3.CREATE3args{Where: name}, &nfs3.CREATE3args{Where: there, How: nfs3.Createhow3{Mode: nfs3.EXCLUSIVE}}},
		nfs3.NFSPROC3_MKDIR:    {&nfs3.MKDIR3args{Where: name}},
		nfs3.NFSPROC3_SYMLINK:  {&nfs3.SYMLINK3args{Where: name, Symlink: nfs3.Symlinkdata3{SymlinkData: text}}},
		nfs3.NFSPROC3_MKNOD:    {&nfs3.MKNOD3args{Where: name, What: nfs3.Mknoddata3{Type: nfs3.NF3FIFO}}, &nfs3.MKNOD3args{Where: name, What: nfs3.Mknoddata3{Type: nfs3.NF3CHR}}},
		nfs3.NFSPROC3_REMOVE:   {&nfs3.REMOVE3args{Object: there}},
		nfs3.NFSPROC3_RMDIR:    {&nfs3.RMDIR3args{Object: there}},
		nfs3.NFSPROC3_RENAME:   {&nfs3.RENAME3args{From: there, To: name}},
		nfs3.NFSPROC3_LINK:     {&nfs3.LINK3args{File: file, Link: name}},
		nfs3.NFSPROC3_READDIR:  {&nfs3.READDIR3args{Dir: root, Count: 1000}, &nfs3.READDIR3args{Dir: root, Cookie: 2, Count: 1<<32 - 1}},
		nfs3.NFSPROC3_READDIRPLUS: {
			&nfs3.READDIRPLUS3args{Dir: root, Dircount: 1000, Maxcount: 1<<32 - 1}, &nfs3.READDIRPLUS3args{Dir: root, Cookie: 1<<64 - 1, Dircount: 1, Maxcount: 300},
		},
		nfs3.NFSPROC3_FSSTAT:   {&nfs3.FSSTAT3args{Fsroot: root}},
		nfs3.NFSPROC3_FSINFO:   {&nfs3.FSINFO3args{Fsroot: root}},
		nfs3.NFSPROC3_PATHCONF: {&nfs3.PATHCONF3args{Object: link}},
		nfs3.NFSPROC3_COMMIT:   {&nfs3.COMMIT3args{File: file}},
	} {
		for _, a := range args {
			f.Add(uint8(procedure), a.Append(nil), uint16(0), []byte(nil), uint16(0))
			f.Add(uint8(procedure), a.Append(nil), uint16(0), []byte("abcdef"), uint16(100))
		}
	}
	for p := range uint8(7) {
		f.Add(128+p, (&mount.DirpathMessage{Dirpath: []byte("/export/./x")}).Append(nil), uint16(0), []byte(nil), uint16(0))
	}
	header := oncrpc.Call{XID: 1, RPCVersion: 2, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Cred: nfstest.Sys(0, 0)}
	f.Fuzz(func(t *testing.T, procedure uint8, args []byte, position uint16, item []byte, room uint16) {
		st := memory.New(memory.Options{Size: 4 << 20, Generation: generation, HandleKey: key, Clock: func() store.Time { return store.Time{Sec: 1} }})
		var a store.Attr
		var w store.Wcc
		if _, err := st.Create(&store.Cred{}, st.Root(), []byte("file"), &store.Create{}, &a, &w); err != nil {
			t.Fatal(err)
		}
		if err := st.Write(&store.Cred{}, a.Handle, 0, []byte("content"), false, &w); err != nil {
			t.Fatal(err)
		}
		if err := st.Symlink(&store.Cred{}, st.Root(), []byte("link"), []byte("text"), nil, &a, &w); err != nil {
			t.Fatal(err)
		}
		s := nfsserver.New(nfsserver.Options{})
		s.Register(v3.New(st, v3.Options{}))
		h := header
		table := &nfs3.Programs[0]
		h.Procedure = uint32(procedure)
		if procedure >= 128 {
			for i := range mount.Programs {
				if mount.Programs[i].Version == mount.MOUNT_V3 {
					table = &mount.Programs[i]
				}
			}
			h.Program, h.Procedure = mount.MOUNT_PROGRAM, uint32(procedure-128)
		}
		s.Register(mountd.New(st, mountd.Options{Path: "/export"}))
		call := &transport.Call{}
		call.Stream = append(h.Append(nil), args...)
		if len(item) > 0 {
			at := uint32(position)
			if at == 0 {
				at = uint32(len(call.Stream))
			}
			call.Items = []transport.Item{{Position: at, Data: item}}
		}
		if room > 0 {
			call.Results = [][]byte{make([]byte, room)}
		}
		if err := nfstest.NewDirect(s).Do(t.Context(), call); err != nil {
			if err == transport.ErrTooLong {
				return // a link text that is longer than the room for it
			}
			t.Fatal(err)
		}
		result := xdr.NewVoid()
		if p := table.Procedure(h.Procedure); p != nil {
			result = p.NewResult()
		}
		err := nfstest.ParseReply(&call.Reply, 1, result)
		if failed, ok := err.(*nfstest.Failed); ok && failed.Reply.Accept != oncrpc.SystemErr {
			return
		}
		if err != nil {
			t.Fatalf("%v: %x", err, call.Reply.Stream)
		}
	})
}
