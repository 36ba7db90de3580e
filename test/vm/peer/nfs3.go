package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

type three struct {
	*caller
	ctx context.Context
}

// call makes a call; want is the expected status.
func (t *three) call(procedure uint32, args, res xdr.Message, want nfs3.Nfsstat3) error {
	r := t.prepare(nfs3.NFS_PROGRAM, 3, procedure, args, nil, nil)
	if a, ok := args.(*nfs3.READDIRPLUS3args); ok {
		r.MaxReply = int(a.Maxcount) + 1000
	}
	return t.check(procedure, r, res, want)
}

func (t *three) check(procedure uint32, r *rpc, res xdr.Message, want nfs3.Nfsstat3) error {
	if err := r.do(t.ctx, res); err != nil {
		return fmt.Errorf("procedure %d: %w", procedure, err)
	}
	if s, ok := res.(xdr.Status); ok {
		if code, name := s.StatusCode(); code != uint32(want) {
			return fmt.Errorf("procedure %d: %s, want %v", procedure, name, want)
		}
	}
	return nil
}

func handle(b []byte) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: b} }

func where(dir []byte, name string) nfs3.Diropargs3 {
	return nfs3.Diropargs3{Dir: handle(dir), Name: []byte(name)}
}

// nfs3Root asks MOUNT for the handle of the export.
func nfs3Root(ctx context.Context, o *options) ([]byte, error) {
	m, err := tcprpc.Dial(ctx, o.mount, tcprpc.Options{})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var res mount.Mountres3
	c := &caller{Requester: m}
	if err := c.prepare(mount.MOUNT_PROGRAM, mount.MOUNT_V3, mount.MOUNTPROC3_MNT, &mount.DirpathMessage{Dirpath: []byte(o.path)}, nil, nil).do(ctx, &res); err != nil {
		return nil, err
	}
	if res.FhsStatus != mount.MNT3_OK {
		return nil, fmt.Errorf("MOUNT: %v", res.FhsStatus)
	}
	return bytes.Clone(res.Mountinfo.Fhandle), nil
}

func nfs3Run(ctx context.Context, o *options, c *caller) error {
	root, err := nfs3Root(ctx, o)
	if err != nil {
		return err
	}
	t := &three{c, ctx}
	if err := t.call(nfs3.NFSPROC3_NULL, xdr.Void{}, xdr.Void{}, 0); err != nil {
		return err
	}
	var mk nfs3.MKDIR3res
	args := &nfs3.MKDIR3args{Where: where(root, fmt.Sprintf("peer3-%s-%d", o.provider, o.seed))}
	args.Attributes.Mode = nfs3.SetMode3{SetIt: true, Mode: 0o755}
	if err := t.call(nfs3.NFSPROC3_MKDIR, args, &mk, 0); err != nil {
		return err
	}
	dir := bytes.Clone(mk.Resok.Obj.Handle.Data)
	for _, f := range []func(*options, []byte, string) error{t.files, t.parallel, t.names, t.directory, t.refusals} {
		if err := f(o, dir, string(args.Where.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (t *three) create(dir []byte, name string) ([]byte, error) {
	var res nfs3.CREATE3res
	args := &nfs3.CREATE3args{Where: where(dir, name)}
	args.How.ObjAttributes.Mode = nfs3.SetMode3{SetIt: true, Mode: 0o644}
	if err := t.call(nfs3.NFSPROC3_CREATE, args, &res, 0); err != nil {
		return nil, err
	}
	return bytes.Clone(res.Resok.Obj.Handle.Data), nil
}

func writeArgs(fh []byte, offset uint64, n int, how nfs3.StableHow) *nfs3.WRITE3args {
	return &nfs3.WRITE3args{File: handle(fh), Offset: offset, Count: uint32(n), Stable: how, Data: xdr.Data{Length: uint32(n), Chunk: 1}}
}

// files writes and reads each size, stable and not.
func (t *three) files(o *options, dir []byte, at string) error {
	for i, n := range sizes {
		name := fmt.Sprintf("f%d", n)
		fh, err := t.create(dir, name)
		if err != nil {
			return err
		}
		out, in := t.buffer(max(n, 1))[:n], t.buffer(n+100)
		pattern(out, o.seed, name)
		how := []nfs3.StableHow{nfs3.UNSTABLE, nfs3.FILE_SYNC}[i%2]
		if n > 0 {
			var w nfs3.WRITE3res
			if err := t.check(nfs3.NFSPROC3_WRITE, t.prepare(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_WRITE, writeArgs(fh, 0, n, how), out, nil), &w, 0); err != nil {
				return err
			}
			if int(w.Resok.Count) != n {
				return fmt.Errorf("wrote %d of %d bytes", w.Resok.Count, n)
			}
		}
		if how == nfs3.UNSTABLE {
			if err := t.call(nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: handle(fh)}, &nfs3.COMMIT3res{}, 0); err != nil {
				return err
			}
		}
		if err := t.read(fh, 0, in, out, true); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if n > 100 { // a part, at an odd place
			if err := t.read(fh, 33, in[:n/2], out[33:33+n/2], false); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		fmt.Printf("md5 %s  %s/%s\n", sum(out), at, name)
		t.Free(out[:0:max(n, 1)])
		t.Free(in)
	}
	return nil
}

// read reads into memory and compares.
func (t *three) read(fh []byte, offset uint64, in, want []byte, eof bool) error {
	var res nfs3.READ3res
	r := t.prepare(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_READ, &nfs3.READ3args{File: handle(fh), Offset: offset, Count: uint32(len(in))}, nil, in)
	if err := t.check(nfs3.NFSPROC3_READ, r, &res, 0); err != nil {
		return err
	}
	got := r.Reply.Bytes(res.Resok.Data)
	if !bytes.Equal(got, want) {
		return fmt.Errorf("READ of %d bytes at %d gave %d with %s, want %d with %s", len(in), offset, len(got), sum(got), len(want), sum(want))
	}
	if res.Resok.Eof != eof {
		return fmt.Errorf("READ: eof %v, want %v", res.Resok.Eof, eof)
	}
	return nil
}

// parallel keeps many calls in flight.
func (t *three) parallel(o *options, dir []byte, at string) error {
	const size, count = 32 << 10, 48
	fh, err := t.create(dir, "parallel")
	if err != nil {
		return err
	}
	all := t.buffer(size * count)
	in := t.buffer(size * count)
	pattern(all, o.seed, "parallel")
	run := func(prepare func(i int) *rpc, check func(i int, r *rpc) error) error {
		var wg sync.WaitGroup
		errs := make([]error, count)
		for i := range count {
			wg.Add(1)
			r := prepare(i)
			r.Done = func(*transport.Call) {
				errs[i] = check(i, r)
				wg.Done()
			}
			t.Start(&r.Call.Call)
		}
		wg.Wait()
		for i, err := range errs {
			if err != nil {
				return fmt.Errorf("call %d of %d at once: %w", i, count, err)
			}
		}
		return nil
	}
	err = run(func(i int) *rpc {
		return t.prepare(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_WRITE, writeArgs(fh, uint64(i*size), size, nfs3.UNSTABLE), all[i*size:(i+1)*size], nil)
	}, func(_ int, r *rpc) error {
		var res nfs3.WRITE3res
		if err := r.parse(&res); err != nil {
			return err
		}
		if res.Status != 0 || res.Resok.Count != size {
			return fmt.Errorf("WRITE: %v, %d bytes", res.Status, res.Resok.Count)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := t.call(nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: handle(fh)}, &nfs3.COMMIT3res{}, 0); err != nil {
		return err
	}
	err = run(func(i int) *rpc {
		return t.prepare(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_READ, &nfs3.READ3args{File: handle(fh), Offset: uint64(i * size), Count: size}, nil, in[i*size:(i+1)*size])
	}, func(i int, r *rpc) error {
		var res nfs3.READ3res
		if err := r.parse(&res); err != nil {
			return err
		}
		if got := r.Reply.Bytes(res.Resok.Data); !bytes.Equal(got, all[i*size:(i+1)*size]) {
			return fmt.Errorf("READ: %v, %d bytes, wrong", res.Status, len(got))
		}
		return nil
	})
	fmt.Printf("md5 %s  %s/parallel\n", sum(all), at)
	return err
}

// names has long calls (a symbolic link of 4000 bytes does not fit inline) and
// long replies.
func (t *three) names(o *options, dir []byte, _ string) error {
	for _, n := range []int{10, 1023, 4000} {
		target := bytes.Repeat([]byte("x"), n)
		args := &nfs3.SYMLINK3args{Where: where(dir, fmt.Sprintf("link%d", n))}
		args.Symlink.SymlinkAttributes.Mode = nfs3.SetMode3{SetIt: true, Mode: 0o777}
		args.Symlink.SymlinkData = xdr.Data{Length: uint32(n), Inline: target}
		var res nfs3.SYMLINK3res
		if err := t.call(nfs3.NFSPROC3_SYMLINK, args, &res, 0); err != nil {
			return err
		}
		room := t.buffer(4096)
		r := t.prepare(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: res.Resok.Obj.Handle}, nil, room)
		var link nfs3.READLINK3res
		if err := t.check(nfs3.NFSPROC3_READLINK, r, &link, 0); err != nil {
			return err
		}
		if got := r.Reply.Bytes(link.Resok.Data); !bytes.Equal(got, target) {
			return fmt.Errorf("READLINK gave %d bytes, want %d", len(got), n)
		}
	}
	if _, err := t.create(dir, "before"); err != nil {
		return err
	}
	if err := t.call(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: where(dir, "before"), To: where(dir, "after")}, &nfs3.RENAME3res{}, 0); err != nil {
		return err
	}
	return t.call(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: where(dir, "after")}, &nfs3.REMOVE3res{}, 0)
}

// directory reads many names in one Reply chunk, and in pieces.
func (t *three) directory(_ *options, dir []byte, _ string) error {
	want := len(sizes) + 1 + 3 + 100 + 2
	for i := range 100 {
		if _, err := t.create(dir, fmt.Sprintf("entry-%03d-%0*d", i, i%50+1, 0)); err != nil {
			return err
		}
	}
	for _, size := range []uint32{4096, 65536} {
		names := make(map[string]bool)
		args := &nfs3.READDIRPLUS3args{Dir: handle(dir), Dircount: size, Maxcount: size}
		for eof := false; !eof; {
			var res nfs3.READDIRPLUS3res
			if err := t.call(nfs3.NFSPROC3_READDIRPLUS, args, &res, 0); err != nil {
				return err
			}
			l := &res.Resok.Reply
			for i := range l.Entries {
				names[string(l.Entries[i].Name)] = true
				args.Cookie = l.Entries[i].Cookie
			}
			args.Cookieverf = res.Resok.Cookieverf
			if eof = l.Eof; !eof && len(l.Entries) == 0 {
				return fmt.Errorf("READDIRPLUS: no entries and no end")
			}
		}
		if len(names) != want {
			return fmt.Errorf("READDIRPLUS found %d names, want %d", len(names), want)
		}
	}
	return nil
}

// refusals asks for objects that do not exist.
func (t *three) refusals(_ *options, dir []byte, _ string) error {
	if err := t.call(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: where(dir, "nothing")}, &nfs3.LOOKUP3res{}, nfs3.NFS3ERR_NOENT); err != nil {
		return err
	}
	// Room for data, but an error is returned.
	room := t.buffer(65536)
	r := t.prepare(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_READ, &nfs3.READ3args{File: handle(dir), Count: 65536}, nil, room)
	var res nfs3.READ3res
	if err := r.do(t.ctx, &res); err != nil {
		return err
	}
	if res.Status == 0 {
		return fmt.Errorf("READ of a directory succeeded")
	}
	return nil
}
