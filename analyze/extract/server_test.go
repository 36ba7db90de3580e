package extract

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestServers: two servers that were cloned give one handle for two files.
func TestServers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	x, err := New(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var v rpc.View
	names := &rpc.Names{}
	for i, data := range []string{"of one server", "of the other one"} {
		s := step{nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{
			File: nfs3.NfsFh3{Data: []byte("f")}, Count: uint32(len(data)), Data: xdr.Data{Length: uint32(len(data)), Inline: []byte(data)},
		}, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: uint32(len(data))}}}
		tx := s.transaction(uint32(i), len(s.args.Append(nil)), len(s.results.Append(nil)))
		tx.Connection.Ends = [2]rdma.End{{Addr: netip.MustParseAddr("192.0.2.9")}, {Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)})}}
		v.Set(tx)
		if err := x.Add(&v); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := x.Close(names); n != 2 || err != nil {
		t.Fatalf("%d files, %v", n, err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(manifest)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"server":"192.0.2.1"`) || !strings.Contains(lines[1], `"server":"192.0.2.2"`) {
		t.Errorf("%s", manifest)
	}
	for name, want := range map[string]string{"66": "of one server", "66-1": "of the other one"} {
		if b, err := os.ReadFile(filepath.Join(dir, byHandle, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
