package run_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// watching notes what a server receives that is in neither list: these are written by hand, apart from the table
// that the guard decides by.
type watching struct {
	transport.Handler
	mu    sync.Mutex
	on    bool
	calls int
	other []string
}

var (
	reads3 = []uint32{nfs3.NFSPROC3_NULL, nfs3.NFSPROC3_GETATTR, nfs3.NFSPROC3_LOOKUP, nfs3.NFSPROC3_ACCESS, nfs3.NFSPROC3_READLINK, nfs3.NFSPROC3_READ,
		nfs3.NFSPROC3_READDIR, nfs3.NFSPROC3_READDIRPLUS, nfs3.NFSPROC3_FSSTAT, nfs3.NFSPROC3_FSINFO, nfs3.NFSPROC3_PATHCONF, nfs3.NFSPROC3_COMMIT}
	reads4 = []nfs4.NfsOpnum4{nfs4.OP_ACCESS, nfs4.OP_CLOSE, nfs4.OP_COMMIT, nfs4.OP_DELEGRETURN, nfs4.OP_GETATTR, nfs4.OP_GETFH, nfs4.OP_LOCK, nfs4.OP_LOCKT, nfs4.OP_LOCKU,
		nfs4.OP_LOOKUP, nfs4.OP_LOOKUPP, nfs4.OP_NVERIFY, nfs4.OP_OPEN_CONFIRM, nfs4.OP_OPEN_DOWNGRADE, nfs4.OP_PUTFH, nfs4.OP_PUTROOTFH, nfs4.OP_READ, nfs4.OP_READDIR,
		nfs4.OP_READLINK, nfs4.OP_RENEW, nfs4.OP_RESTOREFH, nfs4.OP_SAVEFH, nfs4.OP_SECINFO, nfs4.OP_SETCLIENTID, nfs4.OP_SETCLIENTID_CONFIRM, nfs4.OP_VERIFY,
		nfs4.OP_RELEASE_LOCKOWNER, nfs4.OP_BIND_CONN_TO_SESSION, nfs4.OP_EXCHANGE_ID, nfs4.OP_CREATE_SESSION, nfs4.OP_DESTROY_SESSION, nfs4.OP_FREE_STATEID,
		nfs4.OP_SECINFO_NO_NAME, nfs4.OP_SEQUENCE, nfs4.OP_TEST_STATEID, nfs4.OP_DESTROY_CLIENTID, nfs4.OP_RECLAIM_COMPLETE, nfs4.OP_SEEK, nfs4.OP_READ_PLUS,
		nfs4.OP_GETXATTR, nfs4.OP_LISTXATTRS}
)

func (h *watching) ServeRPC(x transport.Exchange) {
	h.mu.Lock()
	if h.on {
		h.calls++
		h.other = append(h.other, changing(x)...)
	}
	h.mu.Unlock()
	h.Handler.ServeRPC(x)
}

// changing names what a call may change something with.
func changing(x transport.Exchange) (list []string) {
	s := x.Call().Stream
	var c oncrpc.Call
	if err := c.Decode(s, len(s)); err != nil {
		return []string{err.Error()}
	}
	switch {
	case c.Procedure == 0:
	case c.Program == nfs3.NFS_PROGRAM && c.Version == 3 && slices.Contains(reads3, c.Procedure):
	case c.Program == nfsacl.NFS_ACL_PROGRAM && c.Version == 3 && c.Procedure == nfsacl.ACLPROC3_GETACL:
	case c.Program == 100005 && c.Procedure == 1: // MNT
	case c.Program == nfs4.NFS4_PROGRAM && c.Version == 4:
		args := compoundArgs(x)
		if args.Incomplete || len(args.Ops) == 0 {
			return []string{"a COMPOUND that cannot be read"}
		}
		for i := range args.Ops {
			if o, ok := args.Ops[i].Body.(*nfs4.OPEN4args); ok && o.Openhow.Opentype == nfs4.OPEN4_NOCREATE {
				continue
			}
			if !slices.Contains(reads4, nfs4.NfsOpnum4(args.Ops[i].Number)) {
				list = append(list, nfs4.OpName(args.Ops[i].Number))
			}
		}
	default:
		list = append(list, fmt.Sprintf("procedure %d of %d, version %d", c.Procedure, c.Program, c.Version))
	}
	return list
}

// TestReadOnly: without permission to write, no call that changes something reaches the server, although the plan says of each that
// it does not.
func TestReadOnly(t *testing.T) {
	for _, c := range []struct{ sample, version string }{
		{"rocev2-nfs3-basic", "3"}, {"rocev2-nfs3-meta", "3"}, {"iwarp-nfs40-basic", "4.0"}, {"rocev2-nfs41-mixed-load", "4.1"}, {"rocev2-nfs42-basic", "4.2"},
	} {
		t.Run(c.sample, func(t *testing.T) {
			w := load(t, sample(t, c.sample), planner.Options{})
			for _, o := range w.Ops {
				o.Modifies = false
			}
			var h watching
			o, _ := rigOf(t, providers.Options{Name: "tcp"}, c.version, func(to transport.Handler) transport.Handler {
				h.Handler = to
				return &h
			})
			o.Timing, o.PrepareOnly = run.Fast, true
			if _, err := run.Run(t.Context(), w, o); err != nil {
				t.Fatal(err)
			}
			o.PrepareOnly, o.Write, o.Prepare, h.on = false, false, false, true
			r, err := run.Run(t.Context(), w, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(h.other) > 0 || h.calls < 10 || r.Totals[verdict.NotSent.String()] == 0 {
				t.Errorf("%d calls, of them %v; %v", h.calls, h.other, r.Totals)
			}
		})
	}
}
