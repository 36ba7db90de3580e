package v3_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/dir"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
)

// TestDirectory serves a directory of the machine, over TCP with workers.
func TestDirectory(t *testing.T) {
	path := t.TempDir()
	st, err := dir.Open(path, dir.Options{Writable: true})
	if err != nil {
		t.Fatal(err)
	}
	s := nfsserver.New(nfsserver.Options{Workers: 4})
	s.Register(v3.New(st, v3.Options{}))
	s.Register(mountd.New(st, mountd.Options{Path: "/export"}))
	l, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", s, tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := tcprpc.Dial(t.Context(), l.Addr().String(), tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		l.Close()
		s.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	run(t, d, func(t *fixture) {
		t.Cred = nfstest.Sys(uint32(os.Getuid()), uint32(os.Getgid()))
		sub, err := t.Mkdir(t.ctx, t.root, "sub", 0o755)
		t.ok(err)
		f, _, err := t.Create(t.ctx, sub, "f", 0o640)
		t.ok(err)
		data := bytes.Repeat([]byte("0123456789"), 200_000)
		w, err := t.Write(t.ctx, f, 0, data[:1<<20], nfs3.UNSTABLE)
		t.ok(err)
		_, err = t.Write(t.ctx, f, 1<<20, data[1<<20:], nfs3.UNSTABLE)
		t.ok(err)
		commit := &nfs3.COMMIT3res{}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: fh(f)}, commit))
		if commit.Resok.Verf != w.Resok.Verf {
			t.Error("another verifier")
		}
		if got, err := os.ReadFile(filepath.Join(path, "sub", "f")); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes in the directory, %v", len(got), err)
		}
		if got, _, err := t.Read(t.ctx, f, 1<<20-7, 5000, false); err != nil || !bytes.Equal(got, data[1<<20-7:][:5000]) {
			t.Errorf("%d bytes read, %v", len(got), err)
		}
		t.ok(os.Symlink("f", filepath.Join(path, "sub", "link")))
		entries, err := t.Entries(t.ctx, sub, 4096)
		t.ok(err)
		if len(entries) != 4 {
			t.Errorf("%d entries", len(entries))
		}
		rename := &nfs3.RENAME3args{From: nfstest.Where(sub, "f"), To: nfstest.Where(t.root, "g")}
		t.ok(t.Do(t.ctx, nfs3.NFSPROC3_RENAME, rename, &nfs3.RENAME3res{}))
		if a, err := t.Getattr(t.ctx, f); err != nil || a.Size != uint64(len(data)) || a.Mode != 0o640 {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
