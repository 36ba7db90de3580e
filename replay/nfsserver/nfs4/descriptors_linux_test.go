package nfs4

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/dir"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
)

// A server with 600 descriptors serves a directory. A client that has 1,000 files
// open does not keep others from connecting, nor from working.
func TestDescriptors(t *testing.T) {
	const env = "NFS4_TEST_DESCRIPTORS"
	base := os.Getenv(env)
	if base == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", `ulimit -n 600 && exec "$0" -test.run='^TestDescriptors$' -test.v`, exe)
		cmd.Env = append(os.Environ(), env+"="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestDescriptors")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	st, err := dir.Open(base, dir.Options{Writable: true})
	if err != nil {
		t.Fatal(err)
	}
	srv := New(st, Options{})
	rpc := nfsserver.New(nfsserver.Options{Workers: 16})
	rpc.Register(srv.Program())
	l, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", rpc, tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = l.Close()
		rpc.Close()
		srv.Close()
		_ = st.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	connect := func(name string) *wire {
		t.Helper()
		r, err := tcprpc.Dial(ctx, l.Addr().String(), tcprpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		w := &wire{r: r, uid: uint32(os.Getuid())}
		res, err := w.do(ctx, exchangeID(name, 1, 0))
		if err != nil {
			t.Fatal(err)
		}
		id := body[nfs4.EXCHANGE_ID4res](t, res).EirResok4
		if res, err = w.do(ctx, createSession(id.EirClientid, id.EirSequenceid)); err != nil {
			t.Fatal(err)
		}
		w.id = body[nfs4.CREATE_SESSION4res](t, res).CsrResok4.CsrSessionid
		if _, err = w.do(ctx, o(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})); err != nil {
			t.Fatal(err)
		}
		return w
	}
	greedy := connect("greedy")
	for i := range 1000 {
		if _, err := greedy.do(ctx, putroot, o(nfs4.OP_OPEN, openArgs("o", fmt.Sprint(i), 3, 0, createHow(nfs4.UNCHECKED4)))); err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
	}
	if n := srv.State().Opens; n != 1000 {
		t.Errorf("%d opens", n)
	}
	// Both ends of a connection are in this process.
	for i := range 80 {
		w := connect(fmt.Sprint("newcomer", i))
		if _, err := w.do(ctx, putroot, lookup(fmt.Sprint(i)), getattr(nfs4.FATTR4_SIZE)); err != nil {
			t.Fatalf("newcomer %d: %v", i, err)
		}
	}
}
