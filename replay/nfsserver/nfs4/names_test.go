package nfs4

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// TestNames finds users by name, if the server knows names.
func TestNames(t *testing.T) {
	names := func(name string, group bool) (uint32, bool) {
		if group {
			return 100, name == "users"
		}
		return 1000, name == "alice"
	}
	for _, c := range []struct {
		text  string
		group bool
		want  uint32
		with  status // with names
		bare  status // without
	}{
		{"alice@example.org", false, 1000, ok, nfs4.NFS4ERR_BADOWNER}, {"users@example.org", true, 100, ok, nfs4.NFS4ERR_BADOWNER},
		{"users@example.org", false, 0, nfs4.NFS4ERR_BADOWNER, nfs4.NFS4ERR_BADOWNER}, {"alice", false, 0, nfs4.NFS4ERR_BADOWNER, nfs4.NFS4ERR_BADOWNER},
		{"1000", false, 1000, ok, ok}, {"root@example.org", false, 0, ok, ok}, {"", false, 0, nfs4.NFS4ERR_INVAL, nfs4.NFS4ERR_INVAL},
		{"alice@" + strings.Repeat("x", 600), false, 0, nfs4.NFS4ERR_BADOWNER, nfs4.NFS4ERR_BADOWNER},
	} {
		for _, known := range []bool{true, false} {
			x, want := &attrReader{request: &request{s: &Server{}}}, c.bare
			if known {
				x.s.opt.Names, want = names, c.with
			}
			if id, st := x.id([]byte(c.text), c.group); st != want || st == ok && id != c.want {
				t.Errorf("%.30q, names %v: %d, %v; want %v", c.text, known, id, st, want)
			}
		}
	}
}
