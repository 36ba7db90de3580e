package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/world"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// TestResumeLocks: a run that was interrupted holds its locks of NFSv3, and one that goes on takes them
// over: also those that the server has forgotten, unless somebody else has them.
func TestResumeLocks(t *testing.T) {
	w := captured(t, lockScene)
	plain := func(h transport.Handler) transport.Handler { return h }
	for _, c := range []struct {
		name    string
		between func(t *testing.T, o *run.Options, s *run.Snapshot)
		first   int // the first op after which the run is interrupted
		same    bool
		note    string
	}{
		{"at once", func(*testing.T, *run.Options, *run.Snapshot) {}, 1, true, ""},
		{"the server has forgotten them", forgetLocks, 1, true, ""},
		// no lock waits from there on: it would be asked for until somebody gives it up
		{"and another client has them", func(t *testing.T, o *run.Options, s *run.Snapshot) {
			forgetLocks(t, o, s)
			for _, l := range s.Locks {
				for _, r := range l.Ranges {
					a := nlm.Nlm4Lockargs{Exclusive: true, Alock: nlm.Nlm4Lock{CallerName: []byte("thief"), Fh: s.Worlds[0].Objects[l.Object].Handle, Oh: []byte("thief"), Svid: 9, LOffset: r.Offset, LLen: r.Length}}
					callLocks(t, o, nlm.NLMPROC4_LOCK, &a)
				}
			}
		}, w.Planned() - 2, false, "a lock of NFSv3 is lost, owner 1 of a in "},
	} {
		for at := c.first; at < w.Planned(); at++ {
			t.Run(fmt.Sprintf("%s/after %d", c.name, at), func(t *testing.T) {
				o, s := lockRig(t, plain)
				o.Slots, o.MaxOps = 1, at
				var kept *run.Snapshot
				o.Keep = func(s *run.Snapshot) error {
					b, err := json.Marshal(s)
					kept = &run.Snapshot{}
					if err == nil {
						err = json.Unmarshal(b, kept)
					}
					return err
				}
				if _, err := run.Run(t.Context(), w, o); err != nil || kept == nil {
					t.Fatal(err)
				}
				held := s.Locks()
				c.between(t, &o, kept)
				o.Resume, o.Keep, o.MaxOps = kept, nil, 0
				lost := false
				r, err := run.Run(t.Context(), w, o)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range r.Notes {
					lost = lost || c.note != "" && strings.HasPrefix(n, c.note)
				}
				var text strings.Builder
				if err := r.Text(&text); err != nil {
					t.Fatal(err)
				}
				if c.same && (verdicts(r)["same"] != 12 || !r.Explained()) {
					t.Errorf("%v, %d locks held between\n%s", verdicts(r), held.Owners, &text)
				}
				a := false // A had a lock
				for _, l := range kept.Locks {
					a = a || w.Tables.Owners[l.Owner-1].Host == "a" && !l.Ranges[0].Waits
				}
				if c.note != "" && a && !lost {
					t.Errorf("nothing is said about a lock that is lost: %+v\n%s", kept.Locks, &text)
				}
				if n := s.Locks(); c.same && (n.Owners != 0 || n.Waiters != 0) {
					t.Errorf("left: %+v\n%s", n, &text)
				}
			})
		}
	}
}

// forgetLocks makes the server forget the locks of the run.
func forgetLocks(t *testing.T, o *run.Options, s *run.Snapshot) {
	t.Helper()
	for _, host := range []string{"a", "b"} {
		callLocks(t, o, nlm.NLMPROC4_FREE_ALL, &nlm.Nlm4Notify{Name: fmt.Appendf(nil, "%s0.%s", world.LockPrefix(s.Tag), host)})
	}
}

func callLocks(t *testing.T, o *run.Options, procedure uint32, args xdr.Message) {
	t.Helper()
	a, err := o.Access(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer a.NFS.Close()
	h := oncrpc.Call{RPCVersion: 2, Program: nlm.NLM_PROG, Version: nlm.NLM4_VERS, Procedure: procedure, Cred: client.Sys("x", 0, 0)}
	c := &transport.Call{MaxReply: 4096}
	c.Stream = args.Append(h.Append(nil))
	if err := a.NFS.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}
