package client_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
)

// each runs f with a client of each version on a server of its own.
func each(t *testing.T, f func(t *testing.T, ctx context.Context, fs client.FS)) {
	for _, version := range []string{"3", "4.0", "4.1", "4.2"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			st := memory.New(memory.Options{})
			n4 := nfs4.New(st, nfs4.Options{})
			s := nfsserver.New(nfsserver.Options{})
			s.Register(v3.New(st, v3.Options{}))
			s.Register(mountd.New(st, mountd.Options{}))
			s.Register(n4.Program())
			l, err := tcprpc.Listen(ctx, "127.0.0.1:0", s, tcprpc.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := tcprpc.Dial(ctx, l.Addr().String(), tcprpc.Options{})
			if err != nil {
				t.Fatal(err)
			}
			rpc := client.RPC{Requester: r, Cred: client.Sys("test", 0, 0)}
			var fs client.FS = client.NewV3(rpc)
			if version != "3" {
				if fs, err = client.NewV4(ctx, rpc, client.V4Options{Minor: uint32(version[2] - '0'), Owner: []byte("test " + version)}); err != nil {
					t.Fatal(err)
				}
			}
			if fs.Version() != version {
				t.Errorf("version %s", fs.Version())
			}
			f(t, ctx, fs)
			if err := fs.Shutdown(ctx); err != nil {
				t.Errorf("shutdown: %v", err)
			}
			r.Close()
			l.Close()
			s.Close()
			n4.Close()
			_ = st.Close()
		})
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNamespace(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, fs client.FS) {
		handle := must[[]byte](t)
		root := handle(fs.Root(ctx, "/"))
		d := handle(fs.Mkdir(ctx, root, "d", client.Mode(0o755)))
		if again := handle(fs.Root(ctx, "/d")); !bytes.Equal(again, d) {
			t.Errorf("/d is %x, made as %x", again, d)
		}
		ln := handle(fs.Symlink(ctx, d, "ln", "../somewhere/else", client.SetAttr{}))
		if s := must[string](t)(fs.Readlink(ctx, ln)); s != "../somewhere/else" {
			t.Errorf("link to %q", s)
		}
		handle(fs.Mknod(ctx, d, "fifo", client.Fifo, 0, 0, client.Mode(0o600)))
		f := must[*client.File](t)(fs.Create(ctx, d, "f", client.Mode(0o640), true))
		if _, err := fs.Create(ctx, d, "f", client.Mode(0o640), true); !client.IsStatus(err, uint32(nfs3.NFS3ERR_EXIST)) {
			t.Errorf("made twice: %v", err)
		}
		ok(t, fs.Close(ctx, f))
		ok(t, fs.Link(ctx, f.Handle, d, "g"))
		uid := uint32(12)
		ok(t, fs.Setattr(ctx, f.Handle, client.SetAttr{UID: &uid}))
		a := must[client.Attr](t)(fs.Getattr(ctx, f.Handle))
		if a.Type != client.Regular || a.Mode != 0o640 || a.Links != 2 {
			t.Errorf("attributes %+v", a)
		}
		ok(t, fs.Rename(ctx, d, "g", root, "h"))
		var names []string
		ok(t, fs.Readdir(ctx, d, func(e client.Entry) bool { names = append(names, e.Name); return true }))
		slices.Sort(names)
		if want := []string{"f", "fifo", "ln"}; !slices.Equal(names, want) {
			t.Errorf("entries %q, want %q", names, want)
		}
		if _, _, err := fs.Lookup(ctx, d, "none"); !client.IsStatus(err, uint32(nfs3.NFS3ERR_NOENT)) {
			t.Errorf("what is not there: %v", err)
		}
		if m := must[uint32](t)(fs.Access(ctx, d, 0x3f)); m&1 == 0 {
			t.Errorf("access %#x", m)
		}
		if err := fs.Rmdir(ctx, root, "d"); err == nil {
			t.Error("removed a directory that is not empty")
		}
		for _, n := range []string{"f", "fifo", "ln"} {
			ok(t, fs.Remove(ctx, d, n))
		}
		ok(t, fs.Rmdir(ctx, root, "d"))
	})
}

func TestLargeDirectory(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, fs client.FS) {
		root := must[[]byte](t)(fs.Root(ctx, "/"))
		const n = 1500
		for i := range n {
			must[[]byte](t)(fs.Symlink(ctx, root, fmt.Sprintf("name-that-is-not-short-%d", i), "x", client.SetAttr{}))
		}
		seen := map[string]bool{}
		ok(t, fs.Readdir(ctx, root, func(e client.Entry) bool { seen[e.Name] = true; return true }))
		if len(seen) != n {
			t.Errorf("%d names, want %d", len(seen), n)
		}
		first := 0
		ok(t, fs.Readdir(ctx, root, func(client.Entry) bool { first++; return false }))
		if first != 1 {
			t.Errorf("went on after false: %d", first)
		}
	})
}

func TestData(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, fs client.FS) {
		root := must[[]byte](t)(fs.Root(ctx, "/"))
		f := must[*client.File](t)(fs.Create(ctx, root, "data", client.Mode(0o644), false))
		const size = 100_001
		p := must[[]byte](t)(fs.Alloc(size))
		for i := range p {
			p[i] = byte(i * 7)
		}
		for at := 0; at < size; {
			n := must[int](t)(fs.Write(ctx, f, uint64(at), p[at:], false))
			if n == 0 {
				t.Fatal("nothing written")
			}
			at += n
		}
		ok(t, fs.Commit(ctx, f))
		ok(t, fs.Close(ctx, f))
		f = must[*client.File](t)(fs.Open(ctx, root, "data", false))
		var wg sync.WaitGroup
		for k := range 20 {
			wg.Go(func() {
				b, err := fs.Alloc(4096)
				if err != nil {
					t.Error(err)
					return
				}
				defer fs.Free(b)
				off := k * 5000
				n, eof, err := fs.Read(ctx, f, uint64(off), b)
				if err != nil || n != min(4096, size-off) || eof != (off+n == size) || !bytes.Equal(b[:n], p[off:off+n]) {
					t.Errorf("at %d: %d bytes, eof %v, %v", off, n, eof, err)
				}
			})
		}
		wg.Wait()
		ok(t, fs.Close(ctx, f))
		fs.Free(p)
	})
}

func TestLocks(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, fs client.FS) {
		v, is := fs.(*client.V4)
		if !is {
			return // version 3 locks with another protocol
		}
		root := must[[]byte](t)(fs.Root(ctx, "/"))
		f := must[*client.File](t)(fs.Create(ctx, root, "l", client.Mode(0o644), false))
		l := must[*client.Lock](t)(v.Lock(ctx, f, []byte("a"), true, 10, 20))
		if _, err := v.Lock(ctx, f, []byte("b"), true, 15, 1); err == nil {
			t.Error("locked twice")
		}
		ok(t, v.Unlock(ctx, l))
		l = must[*client.Lock](t)(v.Lock(ctx, f, []byte("c"), true, 15, 1))
		ok(t, v.Unlock(ctx, l))
		ok(t, v.Renew(ctx))
		ok(t, fs.Close(ctx, f))
	})
}
