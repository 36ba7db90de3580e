package v3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
)

func newServer(opt nfsserver.Options, st memory.Options) *nfsserver.Server {
	s := nfsserver.New(opt)
	m := memory.New(st)
	s.Register(v3.New(m, v3.Options{}))
	s.Register(mountd.New(m, mountd.Options{Path: "/export"}))
	return s
}

// fixture is a client of a server, and the root of its export.
type fixture struct {
	*testing.T
	nfstest.Client3
	doer nfstest.Doer
	root []byte
	ctx  context.Context
}

// each runs a test without a transport, over TCP with workers, and over RDMA
// within the process.
func each(t *testing.T, st memory.Options, f func(t *fixture)) {
	t.Run("direct", func(t *testing.T) {
		s := newServer(nfsserver.Options{}, st)
		t.Cleanup(s.Close)
		run(t, nfstest.NewDirect(s), f)
	})
	t.Run("tcp", func(t *testing.T) {
		s := newServer(nfsserver.Options{Workers: 4}, st)
		l, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", s, tcprpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := tcprpc.Dial(t.Context(), l.Addr().String(), tcprpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Close()
			l.Close()
			s.Close()
		})
		run(t, c, f)
	})
	t.Run("rdma", func(t *testing.T) {
		s := newServer(nfsserver.Options{}, st)
		p := loop.New(loop.Options{})
		l, err := endpoint.Listen(t.Context(), p, netip.MustParseAddrPort("127.0.0.1:0"), s, endpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := endpoint.Dial(t.Context(), p, l.Addr(), endpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Close()
			l.Close()
			s.Close()
			p.Close()
		})
		run(t, c, f)
	})
}

func run(t *testing.T, d nfstest.Doer, f func(t *fixture)) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	root, err := nfstest.Mount(ctx, d, "/export")
	if err != nil {
		t.Fatal(err)
	}
	f(&fixture{T: t, Client3: nfstest.New3(d, 0, 0), doer: d, root: root, ctx: ctx})
}

func (t *fixture) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (t *fixture) want(err error, st nfs3.Nfsstat3) {
	t.Helper()
	if st == nfs3.NFS3_OK {
		t.ok(err)
		return
	}
	if got := nfstest.Status(0); !errors.As(err, &got) || nfs3.Nfsstat3(got) != st {
		t.Errorf("got %v, want %v", err, st)
	}
}

func fh(b []byte) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: b} }

func TestGetattr(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		a, err := t.Getattr(t.ctx, t.root)
		t.ok(err)
		if a.Type != nfs3.NF3DIR || a.Mode != 0o1777 || a.Nlink != 2 || a.Fsid == 0 || a.Fileid == 0 || a.Mtime.Seconds == 0 {
			t.Errorf("root: %+v", a)
		}
		stale := bytes.Clone(t.root)
		stale[len(stale)-1] ^= 1
		_, err = t.Getattr(t.ctx, stale)
		t.want(err, nfs3.NFS3ERR_STALE)
		for _, bad := range [][]byte{nil, t.root[1:], append([]byte{9}, t.root...), make([]byte, 64)} {
			_, err = t.Getattr(t.ctx, bad)
			t.want(err, nfs3.NFS3ERR_BADHANDLE)
		}
	})
}

func TestSetattr(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		f, _, err := t.Create(t.ctx, t.root, "f", 0o644)
		t.ok(err)
		args := &nfs3.SETATTR3args{Object: fh(f)}
		args.NewAttributes = nfs3.Sattr3{
			Mode: nfs3.SetMode3{SetIt: true, Mode: 0o640}, Uid: nfs3.SetUid3{SetIt: true, Uid: 7}, Gid: nfs3.SetGid3{SetIt: true, Gid: 8},
			Size:  nfs3.SetSize3{SetIt: true, Size: 5000},
			Atime: nfs3.SetAtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Atime: nfs3.Nfstime3{Seconds: 11, Nseconds: 12}},
			Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: nfs3.Nfstime3{Seconds: 13, Nseconds: 14}},
		}
		res := &nfs3.SETATTR3res{}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_SETATTR, args, res))
		a := res.Resok.ObjWcc.After.Attributes
		if a.Mode != 0o640 || a.Uid != 7 || a.Gid != 8 || a.Size != 5000 || a.Atime != (nfs3.Nfstime3{Seconds: 11, Nseconds: 12}) || a.Mtime != (nfs3.Nfstime3{Seconds: 13, Nseconds: 14}) {
			t.Errorf("%+v", a)
		}
		if b := res.Resok.ObjWcc.Before; !b.AttributesFollow || b.Attributes.Size != 0 {
			t.Errorf("before: %+v", b)
		}
		data, _, err := t.Read(t.ctx, f, 0, 6000, false)
		t.ok(err)
		if !bytes.Equal(data, make([]byte, 5000)) {
			t.Error("a file that grew does not read as zeros")
		}
		// The guard.
		guarded := &nfs3.SETATTR3args{Object: fh(f), Guard: nfs3.Sattrguard3{Check: true, ObjCtime: nfs3.Nfstime3{Seconds: 1}}}
		guarded.NewAttributes.Mode = nfs3.SetMode3{SetIt: true, Mode: 0o600}
		res = &nfs3.SETATTR3res{}
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_SETATTR, guarded, res), nfs3.NFS3ERR_NOT_SYNC)
		if w := res.Resfail.ObjWcc; w.Before.AttributesFollow || !w.After.AttributesFollow {
			t.Errorf("wcc of a failure: %+v", w)
		}
		guarded.Guard.ObjCtime = res.Resfail.ObjWcc.After.Attributes.Ctime
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_SETATTR, guarded, res))
		// Others may not.
		other := nfstest.New3(t.doer, 1000, 1000)
		guarded.Guard.Check = false
		t.want(other.Do(t.ctx, nfs3.NFSPROC3_SETATTR, guarded, res), nfs3.NFS3ERR_PERM)
		t.want(other.Do(t.ctx, nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{
			Object: fh(f), NewAttributes: nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true}},
		}, res), nfs3.NFS3ERR_ACCES)
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{
			Object: fh(t.root), NewAttributes: nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true}},
		}, res), nfs3.NFS3ERR_ISDIR)
	})
}

func TestLookup(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		d, err := t.Mkdir(t.ctx, t.root, "d", 0o755)
		t.ok(err)
		f, _, err := t.Create(t.ctx, d, "f", 0o644)
		t.ok(err)
		got, res, err := t.Lookup(t.ctx, d, "f")
		t.ok(err)
		if !bytes.Equal(got, f) || !res.Resok.ObjAttributes.AttributesFollow || !res.Resok.DirAttributes.AttributesFollow {
			t.Errorf("%+v", res)
		}
		for name, want := range map[string][]byte{".": d, "..": t.root} {
			if got, _, err := t.Lookup(t.ctx, d, name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%q: %x, %v", name, got, err)
			}
		}
		if got, _, err := t.Lookup(t.ctx, t.root, ".."); err != nil || !bytes.Equal(got, t.root) {
			t.Errorf("the root's parent: %x, %v", got, err)
		}
		for _, c := range []struct {
			dir  []byte
			name string
			want nfs3.Nfsstat3
		}{
			{d, "g", nfs3.NFS3ERR_NOENT},
			{f, "g", nfs3.NFS3ERR_NOTDIR},
			{f, "..", nfs3.NFS3ERR_NOTDIR},
			{d, "", nfs3.NFS3ERR_INVAL},
			{d, "a/b", nfs3.NFS3ERR_INVAL},
			{d, "a\x00b", nfs3.NFS3ERR_INVAL},
			{d, strings.Repeat("x", 256), nfs3.NFS3ERR_NAMETOOLONG},
			{d[:5], "f", nfs3.NFS3ERR_BADHANDLE},
		} {
			_, _, err := t.Lookup(t.ctx, c.dir, c.name)
			t.want(err, c.want)
		}
		if _, _, err := t.Create(t.ctx, d, strings.Repeat("\xff", 255), 0o644); err != nil {
			t.Errorf("255 bytes that are no text: %v", err)
		}
	})
}

func TestAccess(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		f, _, err := t.Create(t.ctx, t.root, "f", 0o640)
		t.ok(err)
		d, err := t.Mkdir(t.ctx, t.root, "d", 0o711)
		t.ok(err)
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: fh(f), NewAttributes: nfs3.Sattr3{Gid: nfs3.SetGid3{SetIt: true, Gid: 50}}}, &nfs3.SETATTR3res{}))
		const all = 0x3f
		for _, c := range []struct {
			uid, gid uint32
			gids     []uint32
			fh       []byte
			want     uint32
		}{
			{0, 0, nil, f, nfs3.ACCESS3_READ | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND},
			{0, 0, nil, d, nfs3.ACCESS3_READ | nfs3.ACCESS3_LOOKUP | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND | nfs3.ACCESS3_DELETE},
			{5, 5, nil, f, 0},
			{5, 5, []uint32{1, 50}, f, nfs3.ACCESS3_READ},
			{5, 5, nil, d, nfs3.ACCESS3_LOOKUP},
		} {
			cl := nfstest.New3(t.doer, c.uid, c.gid, c.gids...)
			res := &nfs3.ACCESS3res{}
			t.ok(cl.Do(t.ctx, nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: fh(c.fh), Access: all | 1<<20}, res))
			if res.Resok.Access != c.want || !res.Resok.ObjAttributes.AttributesFollow {
				t.Errorf("%+v: got %#x", c, res.Resok.Access)
			}
		}
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{}, &nfs3.ACCESS3res{}), nfs3.NFS3ERR_BADHANDLE)
	})
}

func TestReadWrite(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		f, _, err := t.Create(t.ctx, t.root, "f", 0o600)
		t.ok(err)
		data := make([]byte, 1<<20)
		for i := range data {
			data[i] = byte(i * 7 >> 3)
		}
		w, err := t.Write(t.ctx, f, 0, data, nfs3.UNSTABLE)
		t.ok(err)
		if w.Resok.Count != 1<<20 || w.Resok.Committed != nfs3.UNSTABLE || w.Resok.FileWcc.Before.Attributes.Size != 0 || w.Resok.FileWcc.After.Attributes.Size != 1<<20 {
			t.Errorf("%+v", w.Resok)
		}
		w2, err := t.Write(t.ctx, f, 1<<20+3, []byte("tail"), nfs3.FILE_SYNC)
		t.ok(err)
		if w2.Resok.Committed != nfs3.FILE_SYNC || w2.Resok.Verf != w.Resok.Verf {
			t.Errorf("%+v", w2.Resok)
		}
		commit := &nfs3.COMMIT3res{}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: fh(f)}, commit))
		if commit.Resok.Verf != w.Resok.Verf || !commit.Resok.FileWcc.After.AttributesFollow {
			t.Errorf("%+v", commit.Resok)
		}
		whole := append(append(bytes.Clone(data), 0, 0, 0), "tail"...)
		for _, apart := range []bool{false, true} {
			for _, c := range []struct {
				offset uint64
				count  uint32
			}{
				{0, 1 << 20},
				{0, 4096},
				{100, 17},
				{1<<20 - 5, 64},
				{1 << 19, 1 << 20},
				{1 << 21, 10},
				{^uint64(0), 100},
				{5, 0},
				{0, 4 << 20},
			} {
				got, res, err := t.Read(t.ctx, f, c.offset, c.count, apart)
				if err != nil {
					t.Fatalf("apart %v, %+v: %v", apart, c, err)
				}
				start := min(c.offset, uint64(len(whole)))
				end := min(start+uint64(min(c.count, 1<<20)), uint64(len(whole)))
				if !bytes.Equal(got, whole[start:end]) || res.Resok.Count != uint32(len(got)) || res.Resok.Eof != (end == uint64(len(whole))) {
					t.Errorf("apart %v, %+v: %d bytes, count %d, eof %v", apart, c, len(got), res.Resok.Count, res.Resok.Eof)
				}
			}
		}
		// A write inline.
		res := &nfs3.WRITE3res{}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh(f), Count: 3, Data: xdr.Data{Length: 3, Inline: []byte("abc")}}, res))
		got, _, err := t.Read(t.ctx, f, 0, 5, false)
		t.ok(err)
		if string(got) != "abc"+string(data[3:5]) {
			t.Errorf("%q", got)
		}
		_, _, err = t.Read(t.ctx, t.root, 0, 5, false)
		t.want(err, nfs3.NFS3ERR_ISDIR)
		_, err = t.Write(t.ctx, t.root, 0, data[:5], nfs3.UNSTABLE)
		t.want(err, nfs3.NFS3ERR_ISDIR)
		_, err = t.Write(t.ctx, f, 1<<63-2, data[:5], nfs3.UNSTABLE)
		t.want(err, nfs3.NFS3ERR_FBIG)
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{}, commit), nfs3.NFS3ERR_BADHANDLE)
		other := nfstest.New3(t.doer, 1000, 1000)
		_, _, err = other.Read(t.ctx, f, 0, 5, false)
		t.want(err, nfs3.NFS3ERR_ACCES)
		_, err = other.Write(t.ctx, f, 0, data[:5], nfs3.UNSTABLE)
		t.want(err, nfs3.NFS3ERR_ACCES)
		// A count that is not the data's length.
		err = t.Do(t.ctx, nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh(f), Count: 4, Data: xdr.Data{Length: 3, Inline: []byte("abc")}}, res)
		if failed := new(nfstest.Failed); !errors.As(err, &failed) || failed.Reply.Status() != "GARBAGE_ARGS" {
			t.Errorf("got %v", err)
		}
	})
}

func TestCreate(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		create := func(name string, how nfs3.Createhow3) (*nfs3.CREATE3res, error) {
			res := &nfs3.CREATE3res{}
			return res, t.Do(t.ctx, nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: nfstest.Where(t.root, name), How: how}, res)
		}
		sized := nfs3.Createhow3{ObjAttributes: nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: 0}}}
		first, err := create("f", nfs3.Createhow3{})
		t.ok(err)
		if w := first.Resok.DirWcc; !w.Before.AttributesFollow || !w.After.AttributesFollow || w.Before.Attributes.Ctime == w.After.Attributes.Ctime {
			t.Errorf("wcc: %+v", w)
		}
		f := first.Resok.Obj.Handle.Data
		_, err = t.Write(t.ctx, f, 0, []byte("hello"), nfs3.FILE_SYNC)
		t.ok(err)
		again, err := create("f", nfs3.Createhow3{})
		t.ok(err)
		if !bytes.Equal(again.Resok.Obj.Handle.Data, f) || again.Resok.ObjAttributes.Attributes.Size != 5 {
			t.Errorf("UNCHECKED: %+v", again.Resok)
		}
		again, err = create("f", sized)
		t.ok(err)
		if again.Resok.ObjAttributes.Attributes.Size != 0 {
			t.Errorf("UNCHECKED with size 0: %+v", again.Resok)
		}
		_, err = create("f", nfs3.Createhow3{Mode: nfs3.GUARDED})
		t.want(err, nfs3.NFS3ERR_EXIST)
		verf := nfs3.Createhow3{Mode: nfs3.EXCLUSIVE, Verf: [8]byte{1, 2, 3}}
		x, err := create("x", verf)
		t.ok(err)
		y, err := create("x", verf)
		t.ok(err)
		if !bytes.Equal(x.Resok.Obj.Handle.Data, y.Resok.Obj.Handle.Data) {
			t.Error("EXCLUSIVE twice with one verifier: another file")
		}
		verf.Verf[0]++
		_, err = create("x", verf)
		t.want(err, nfs3.NFS3ERR_EXIST)
		_, err = create("f", verf)
		t.want(err, nfs3.NFS3ERR_EXIST)
		for name, want := range map[string]nfs3.Nfsstat3{".": nfs3.NFS3ERR_EXIST, "..": nfs3.NFS3ERR_EXIST, "": nfs3.NFS3ERR_INVAL} {
			res, err := create(name, nfs3.Createhow3{})
			t.want(err, want)
			if !res.Resfail.DirWcc.After.AttributesFollow {
				t.Errorf("%q: no attributes of the directory", name)
			}
		}
		_, _, err = t.Create(t.ctx, f, "g", 0)
		t.want(err, nfs3.NFS3ERR_NOTDIR)
	})
}

func TestMkdirSymlinkMknod(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		d, err := t.Mkdir(t.ctx, t.root, "d", 0o750)
		t.ok(err)
		a, err := t.Getattr(t.ctx, d)
		t.ok(err)
		if a.Type != nfs3.NF3DIR || a.Mode != 0o750 || a.Nlink != 2 {
			t.Errorf("%+v", a)
		}
		if a, _ := t.Getattr(t.ctx, t.root); a.Nlink != 3 {
			t.Errorf("links of the parent: %d", a.Nlink)
		}
		_, err = t.Mkdir(t.ctx, t.root, "d", 0o750)
		t.want(err, nfs3.NFS3ERR_EXIST)
		_, err = t.Mkdir(t.ctx, t.root, "..", 0o750)
		t.want(err, nfs3.NFS3ERR_EXIST)

		for _, text := range []string{"somewhere/else", "/", strings.Repeat("l", 3000)} {
			sym := &nfs3.SYMLINK3res{}
			args := &nfs3.SYMLINK3args{Where: nfstest.Where(d, "s"), Symlink: nfs3.Symlinkdata3{SymlinkData: xdr.Data{Length: uint32(len(text)), Inline: []byte(text)}}}
			t.ok(t.Do(t.ctx, nfs3.NFSPROC3_SYMLINK, args, sym))
			link := sym.Resok.Obj.Handle
			read := &nfs3.READLINK3res{}
			t.ok(t.Do(t.ctx, nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: link}, read))
			if string(read.Resok.Data.Inline) != text || read.Resok.SymlinkAttributes.Attributes.Size != uint64(len(text)) {
				t.Errorf("%q: %+v", text, read.Resok)
			}
			_, _, err = t.Lookup(t.ctx, link.Data, "x")
			t.want(err, nfs3.NFS3ERR_NOTDIR)
			_, _, err = t.Read(t.ctx, link.Data, 0, 1, false)
			t.want(err, nfs3.NFS3ERR_INVAL)
			t.ok(t.Do(t.ctx, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: nfstest.Where(d, "s")}, &nfs3.REMOVE3res{}))
		}
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: fh(d)}, &nfs3.READLINK3res{}), nfs3.NFS3ERR_INVAL)
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_SYMLINK, &nfs3.SYMLINK3args{Where: nfstest.Where(d, "s")}, &nfs3.SYMLINK3res{}), nfs3.NFS3ERR_INVAL)
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_SYMLINK, &nfs3.SYMLINK3args{
			Where: nfstest.Where(d, "s"), Symlink: nfs3.Symlinkdata3{SymlinkData: xdr.Data{Length: 5000, Inline: make([]byte, 5000)}},
		}, &nfs3.SYMLINK3res{}), nfs3.NFS3ERR_NAMETOOLONG)

		for i, c := range []struct {
			what nfs3.Mknoddata3
			want nfs3.Nfsstat3
		}{
			{nfs3.Mknoddata3{Type: nfs3.NF3CHR, Device: nfs3.Devicedata3{Spec: nfs3.Specdata3{Specdata1: 4, Specdata2: 7}}}, nfs3.NFS3_OK},
			{nfs3.Mknoddata3{Type: nfs3.NF3BLK, Device: nfs3.Devicedata3{Spec: nfs3.Specdata3{Specdata1: 8, Specdata2: 1}}}, nfs3.NFS3_OK},
			{nfs3.Mknoddata3{Type: nfs3.NF3SOCK}, nfs3.NFS3_OK},
			{nfs3.Mknoddata3{Type: nfs3.NF3FIFO, PipeAttributes: nfs3.Sattr3{Mode: nfs3.SetMode3{SetIt: true, Mode: 0o666}}}, nfs3.NFS3_OK},
			{nfs3.Mknoddata3{Type: nfs3.NF3REG}, nfs3.NFS3ERR_BADTYPE},
			{nfs3.Mknoddata3{Type: nfs3.NF3DIR}, nfs3.NFS3ERR_BADTYPE},
			{nfs3.Mknoddata3{Type: 99}, nfs3.NFS3ERR_BADTYPE},
		} {
			res := &nfs3.MKNOD3res{}
			err := t.Do(t.ctx, nfs3.NFSPROC3_MKNOD, &nfs3.MKNOD3args{Where: nfstest.Where(d, fmt.Sprint("n", i)), What: c.what}, res)
			t.want(err, c.want)
			if a := res.Resok.ObjAttributes.Attributes; err == nil && (a.Type != c.what.Type || a.Rdev != c.what.Device.Spec) {
				t.Errorf("%+v: %+v", c.what, a)
			}
		}
		other := nfstest.New3(t.doer, 1, 1)
		t.want(other.Do(t.ctx, nfs3.NFSPROC3_MKNOD, &nfs3.MKNOD3args{Where: nfstest.Where(t.root, "n"), What: nfs3.Mknoddata3{Type: nfs3.NF3CHR}}, &nfs3.MKNOD3res{}), nfs3.NFS3ERR_PERM)
	})
}

func TestRemoveRenameLink(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		remove := func(dir []byte, name string) error {
			return t.Do(t.ctx, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: nfstest.Where(dir, name)}, &nfs3.REMOVE3res{})
		}
		rmdir := func(dir []byte, name string) error {
			return t.Do(t.ctx, nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: nfstest.Where(dir, name)}, &nfs3.RMDIR3res{})
		}
		rename := func(a []byte, from string, b []byte, to string) error {
			return t.Do(t.ctx, nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: nfstest.Where(a, from), To: nfstest.Where(b, to)}, &nfs3.RENAME3res{})
		}
		link := func(f, dir []byte, name string) (*nfs3.LINK3res, error) {
			res := &nfs3.LINK3res{}
			return res, t.Do(t.ctx, nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: fh(f), Link: nfstest.Where(dir, name)}, res)
		}
		d, err := t.Mkdir(t.ctx, t.root, "d", 0o755)
		t.ok(err)
		f, _, err := t.Create(t.ctx, d, "f", 0o644)
		t.ok(err)
		res, err := link(f, t.root, "l")
		t.ok(err)
		if res.Resok.FileAttributes.Attributes.Nlink != 2 {
			t.Errorf("%+v", res.Resok)
		}
		_, err = link(f, t.root, "l")
		t.want(err, nfs3.NFS3ERR_EXIST)
		_, err = link(d, t.root, "l2")
		t.want(err, nfs3.NFS3ERR_INVAL)
		_, err = link(f, f, "l2")
		t.want(err, nfs3.NFS3ERR_NOTDIR)
		_, err = link(f[:3], t.root, "l2")
		t.want(err, nfs3.NFS3ERR_BADHANDLE)

		t.ok(rename(t.root, "l", d, "l"))
		t.ok(rename(d, "l", d, "f")) // the same object: nothing happens
		if got, _, err := t.Lookup(t.ctx, d, "l"); err != nil || !bytes.Equal(got, f) {
			t.Errorf("renamed to another name of it: %v", err)
		}
		t.want(rename(d, "nothing", d, "g"), nfs3.NFS3ERR_NOENT)
		t.want(rename(t.root, "d", d, "e"), nfs3.NFS3ERR_INVAL)
		t.want(rename(t.root, "d", t.root, ".."), nfs3.NFS3ERR_INVAL)
		t.want(rename(d, "f", t.root, "d"), nfs3.NFS3ERR_EXIST)
		t.want(rename(t.root, "d", d, "f"), nfs3.NFS3ERR_INVAL)
		e, err := t.Mkdir(t.ctx, t.root, "e", 0o755)
		t.ok(err)
		t.want(rename(t.root, "e", t.root, "d"), nfs3.NFS3ERR_NOTEMPTY)
		t.ok(rename(t.root, "d", t.root, "e")) // takes the empty one's place
		_, err = t.Getattr(t.ctx, e)
		t.want(err, nfs3.NFS3ERR_STALE)
		if a, _ := t.Getattr(t.ctx, t.root); a.Nlink != 3 {
			t.Errorf("%d links", a.Nlink)
		}

		t.want(remove(t.root, "e"), nfs3.NFS3ERR_ISDIR)
		t.want(rmdir(d, "f"), nfs3.NFS3ERR_NOTDIR)
		t.want(rmdir(t.root, "e"), nfs3.NFS3ERR_NOTEMPTY)
		t.want(rmdir(t.root, "."), nfs3.NFS3ERR_INVAL)
		t.want(rmdir(d, ".."), nfs3.NFS3ERR_EXIST)
		t.want(remove(d, "g"), nfs3.NFS3ERR_NOENT)
		t.want(remove(f, "g"), nfs3.NFS3ERR_NOTDIR)
		t.ok(remove(d, "f"))
		if a, err := t.Getattr(t.ctx, f); err != nil || a.Nlink != 1 {
			t.Errorf("%v, %+v", err, a)
		}
		t.ok(remove(d, "l"))
		_, err = t.Getattr(t.ctx, f)
		t.want(err, nfs3.NFS3ERR_STALE)
		t.ok(rmdir(t.root, "e"))
		_, err = t.Mkdir(t.ctx, d, "x", 0o755)
		t.want(err, nfs3.NFS3ERR_STALE)

		// The sticky bit of the root: one's own names only.
		alice, bob := nfstest.New3(t.doer, 1, 1), nfstest.New3(t.doer, 2, 2)
		_, _, err = alice.Create(t.ctx, t.root, "a", 0o666)
		t.ok(err)
		t.want(bob.Do(t.ctx, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: nfstest.Where(t.root, "a")}, &nfs3.REMOVE3res{}), nfs3.NFS3ERR_PERM)
		t.ok(alice.Do(t.ctx, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: nfstest.Where(t.root, "a")}, &nfs3.REMOVE3res{}))
	})
}

func TestReaddir(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		d, err := t.Mkdir(t.ctx, t.root, "d", 0o755)
		t.ok(err)
		want := map[string]bool{".": true, "..": true}
		for i := range 700 {
			name := fmt.Sprintf("%s-%d", strings.Repeat("n", i%40), i)
			_, _, err := t.Create(t.ctx, d, name, 0o644)
			t.ok(err)
			want[name] = true
		}
		for _, count := range []uint32{512, 4096, 1 << 20} {
			entries, err := t.Entries(t.ctx, d, count)
			t.ok(err)
			seen := map[string]bool{}
			for _, e := range entries {
				if seen[string(e.Name)] {
					t.Errorf("%q twice", e.Name)
				}
				seen[string(e.Name)] = true
				if !e.NameAttributes.AttributesFollow || !e.NameHandle.HandleFollows || e.NameAttributes.Attributes.Fileid != e.Fileid {
					t.Fatalf("%+v", e)
				}
			}
			if len(seen) != len(want) {
				t.Errorf("count %d: %d of %d entries", count, len(seen), len(want))
			}
		}
		// READDIR, with the size of the results within the count.
		for _, count := range []uint32{180, 333, 8192} {
			args := &nfs3.READDIR3args{Dir: fh(d), Count: count}
			names := map[string]bool{}
			for {
				res := &nfs3.READDIR3res{}
				t.ok(t.Do(t.ctx, nfs3.NFSPROC3_READDIR, args, res))
				if n := res.Resok.EncodedSize(); n > int(count) {
					t.Fatalf("%d bytes for a count of %d", n, count)
				}
				list := res.Resok.Reply
				for _, e := range list.Entries {
					names[string(e.Name)] = true
					args.Cookie = e.Cookie
				}
				args.Cookieverf = res.Resok.Cookieverf
				if list.Eof {
					break
				}
				if len(list.Entries) == 0 {
					t.Fatal("nothing, and not the end")
				}
			}
			if len(names) != len(want) {
				t.Errorf("count %d: %d of %d names", count, len(names), len(want))
			}
		}
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_READDIR, &nfs3.READDIR3args{Dir: fh(d), Count: 100}, &nfs3.READDIR3res{}), nfs3.NFS3ERR_TOOSMALL)
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_READDIRPLUS, &nfs3.READDIRPLUS3args{Dir: fh(d), Maxcount: 200}, &nfs3.READDIRPLUS3res{}), nfs3.NFS3ERR_TOOSMALL)
		f, _, _ := t.Lookup(t.ctx, d, "-0")
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_READDIR, &nfs3.READDIR3args{Dir: fh(f), Count: 1000}, &nfs3.READDIR3res{}), nfs3.NFS3ERR_NOTDIR)
		// A client that removes as it reads.
		args := &nfs3.READDIR3args{Dir: fh(d), Count: 1024}
		for {
			res := &nfs3.READDIR3res{}
			t.ok(t.Do(t.ctx, nfs3.NFSPROC3_READDIR, args, res))
			for _, e := range res.Resok.Reply.Entries {
				args.Cookie = e.Cookie
				if string(e.Name) != "." && string(e.Name) != ".." {
					t.ok(t.Do(t.ctx, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: nfstest.Where(d, string(e.Name))}, &nfs3.REMOVE3res{}))
				}
			}
			if res.Resok.Reply.Eof {
				break
			}
		}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: nfstest.Where(t.root, "d")}, &nfs3.RMDIR3res{}))
	})
}

func TestFileSystem(t *testing.T) {
	each(t, memory.Options{Size: 8 << 20, Files: 10}, func(t *fixture) {
		stat, info, path := &nfs3.FSSTAT3res{}, &nfs3.FSINFO3res{}, &nfs3.PATHCONF3res{}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_FSSTAT, &nfs3.FSSTAT3args{Fsroot: fh(t.root)}, stat))
		if s := stat.Resok; s.Tbytes != 8<<20 || s.Fbytes == 0 || s.Fbytes > 8<<20 || s.Tfiles != 10 || !s.ObjAttributes.AttributesFollow {
			t.Errorf("%+v", s)
		}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_FSINFO, &nfs3.FSINFO3args{Fsroot: fh(t.root)}, info))
		if i := info.Resok; i.Rtmax != 1<<20 || i.Wtpref != 1<<20 || i.Dtpref != 64<<10 || i.Properties != 0x1b || i.Maxfilesize != 1<<63-1 || i.TimeDelta.Nseconds != 1 {
			t.Errorf("%+v", i)
		}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_PATHCONF, &nfs3.PATHCONF3args{Object: fh(t.root)}, path))
		if p := path.Resok; p.NameMax != 255 || p.Linkmax == 0 || !p.NoTrunc || !p.ChownRestricted || p.CaseInsensitive || !p.CasePreserving {
			t.Errorf("%+v", p)
		}
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_FSSTAT, &nfs3.FSSTAT3args{}, stat), nfs3.NFS3ERR_BADHANDLE)
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_FSINFO, &nfs3.FSINFO3args{}, info), nfs3.NFS3ERR_BADHANDLE)
		t.want(t.Do(t.ctx, nfs3.NFSPROC3_PATHCONF, &nfs3.PATHCONF3args{}, path), nfs3.NFS3ERR_BADHANDLE)

		f, _, err := t.Create(t.ctx, t.root, "f", 0o644)
		t.ok(err)
		data := make([]byte, 1<<20)
		for i := uint64(0); err == nil; i++ {
			_, err = t.Write(t.ctx, f, i<<20, data, nfs3.UNSTABLE)
		}
		t.want(err, nfs3.NFS3ERR_NOSPC)
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: nfstest.Where(t.root, "f")}, &nfs3.REMOVE3res{}))
		for i := 0; err == nil || i == 0; i++ {
			_, _, err = t.Create(t.ctx, t.root, fmt.Sprint(i), 0o644)
		}
		t.want(err, nfs3.NFS3ERR_NOSPC)
	})
}

func TestMount(t *testing.T) {
	each(t, memory.Options{}, func(t *fixture) {
		d, err := t.Mkdir(t.ctx, t.root, "d", 0o700)
		t.ok(err)
		_, _, err = t.Create(t.ctx, d, "f", 0o644)
		t.ok(err)
		c := &nfstest.Client{Doer: t.doer, Program: mount.MOUNT_PROGRAM, Version: mount.MOUNT_V3, Cred: nfstest.Sys(0, 0)}
		mnt := func(path string) mount.Mountres3 {
			var res mount.Mountres3
			t.ok(c.Call(t.ctx, mount.MOUNTPROC3_MNT, &mount.DirpathMessage{Dirpath: []byte(path)}, &res, nil, nil))
			return res
		}
		for path, want := range map[string]mount.Mountstat3{
			"/export": mount.MNT3_OK, "/export/": mount.MNT3_OK, "//export/./d": mount.MNT3_OK,
			"/": mount.MNT3ERR_NOENT, "/exports": mount.MNT3ERR_NOENT, "/export/e": mount.MNT3ERR_NOENT,
			"/export/d/f": mount.MNT3ERR_NOTDIR, "/export/..": mount.MNT3ERR_INVAL,
		} {
			if res := mnt(path); res.FhsStatus != want {
				t.Errorf("%s: %v, want %v", path, res.FhsStatus, want)
			}
		}
		res := mnt("/export/d")
		if !bytes.Equal(res.Mountinfo.Fhandle, d) || len(res.Mountinfo.AuthFlavors) != 1 || res.Mountinfo.AuthFlavors[0] != 1 {
			t.Errorf("%+v", res)
		}
		list := func() (dirs []string) {
			var m mount.MountlistMessage
			t.ok(c.Call(t.ctx, mount.MOUNTPROC3_DUMP, xdr.Void{}, &m, nil, nil))
			for _, e := range m.Mountlist {
				dirs = append(dirs, string(e.MlDirectory))
			}
			return dirs
		}
		if got := list(); len(got) != 2 {
			t.Errorf("%q", got)
		}
		t.ok(c.Call(t.ctx, mount.MOUNTPROC3_UMNT, &mount.DirpathMessage{Dirpath: []byte("/export/d/")}, xdr.Void{}, nil, nil))
		if got := list(); len(got) != 1 || got[0] != "/export" {
			t.Errorf("%q", got)
		}
		t.ok(c.Call(t.ctx, mount.MOUNTPROC3_UMNTALL, xdr.Void{}, xdr.Void{}, nil, nil))
		if got := list(); len(got) != 0 {
			t.Errorf("%q", got)
		}
		var exports mount.ExportsMessage
		t.ok(c.Call(t.ctx, mount.MOUNTPROC3_EXPORT, xdr.Void{}, &exports, nil, nil))
		if len(exports.Exports) != 1 || string(exports.Exports[0].ExDir) != "/export" {
			t.Errorf("%+v", exports)
		}
		t.ok(c.Call(t.ctx, mount.MOUNTPROC3_NULL, xdr.Void{}, xdr.Void{}, nil, nil))
		t.ok(t.Call(t.ctx, nfs3.NFSPROC3_NULL, xdr.Void{}, xdr.Void{}, nil, nil))
	})
}
