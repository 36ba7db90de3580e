package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
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
					a := nlm.Nlm4Lockargs{Exclusive: true, Alock: nlm.Nlm4Lock{CallerName: []byte("thief"), Fh: s.Clones[0].Objects[l.Object].Handle, Oh: []byte("thief"), Svid: 9, LOffset: r.Offset, LLen: r.Length}}
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
		callLocks(t, o, nlm.NLMPROC4_FREE_ALL, &nlm.Nlm4Notify{Name: fmt.Appendf(nil, "%s0.%s", bindings.LockPrefix(s.Tag), host)})
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

// TestAsynchronousLocks: calls that are answered by another call are replayed in the form that has a
// reply, so that later ones find the same locks; their answers are left out, and named.
func TestAsynchronousLocks(t *testing.T) {
	for _, replied := range []bool{false, true} {
		w := captured(t, func(w *wire) { asynchronousScene(w, replied) })
		reasons := map[string]int{}
		for _, s := range w.Skips {
			reasons[strings.SplitAfter(s.Reason, ":")[0]]++
		}
		if fmt.Sprint(reasons) != "map[NLM GRANTED_RES::1 NLM LOCK_RES::3 NLM TEST_RES::1 NLM UNLOCK_RES::1]" {
			t.Errorf("left out: %v", reasons)
		}
		o, s := lockRig(t, func(h transport.Handler) transport.Handler { return h })
		r, err := run.Run(t.Context(), w, o)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := r.Text(&text); err != nil {
			t.Fatal(err)
		}
		// two LOCKs with replies, and GRANTED; of five calls there is nothing to compare
		if n := verdicts(r); n["same"] != 3 || n["equivalent"] != 7 || w.Planned() != 10 {
			t.Errorf("%v of %d\n%s", n, w.Planned(), &text)
		}
		if n := s.Locks(); n.Owners != 0 || n.Waiters != 0 {
			t.Errorf("left: %+v", n)
		}
	}
}

func asynchronousScene(w *wire, replied bool) {
	const v = nlm.NLM4_VERS
	root, file := []byte("handle of the root, 32 bytes too"), alock("a", 1, 0, 0).Fh
	attr := nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o666, Nlink: 1, Size: 4, Fileid: 7}
	for _, from := range []string{nfsA, nfsB} {
		w.call(from, nfsServer, nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: root}, Name: []byte("file")}},
			&nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: file}, ObjAttributes: nfs3.PostOpAttr{AttributesFollow: true, Attributes: attr}}})
	}
	send := func(from, to string, procedure uint32, args xdr.Message) {
		if replied {
			w.call(from, to, nlm.NLM_PROG, v, procedure, args, xdr.Void{})
			return
		}
		w.xid++
		h := oncrpc.Call{XID: w.xid, RPCVersion: 2, Program: nlm.NLM_PROG, Version: v, Procedure: procedure, Cred: client.Sys("client", 0, 0)}
		w.udp++
		w.Packet(w.now, tap.AppendUDP(nil, netip.MustParseAddrPort(from), netip.MustParseAddrPort(to), w.udp, true, args.Append(h.Append(nil))))
	}
	lock := func(from string, l nlm.Nlm4Lock, s nlm.Nlm4Stats) {
		send(from, nlmUDP, nlm.NLMPROC4_LOCK_MSG, &nlm.Nlm4Lockargs{Cookie: []byte{1}, Block: true, Exclusive: true, Alock: l, State: 3})
		send(serverCaller, nlmOfB, nlm.NLMPROC4_LOCK_RES, stat(s))
	}
	lock(nlmA, alock("a", 1, 0, 100), nlm.NLM4_GRANTED)
	lock(nlmB, alock("b", 1, 0, 10), nlm.NLM4_BLOCKED)
	send(nlmB, nlmUDP, nlm.NLMPROC4_TEST_MSG, &nlm.Nlm4Testargs{Cookie: []byte{1}, Alock: alock("b", 1, 50, 1)})
	send(serverCaller, nlmOfB, nlm.NLMPROC4_TEST_RES, &nlm.Nlm4Testres{Stat: nlm.Nlm4Testrply{Stat: nlm.NLM4_DENIED}})
	sync := func(l nlm.Nlm4Lock, s nlm.Nlm4Stats) {
		w.call(nlmB, nlmUDP, nlm.NLM_PROG, v, nlm.NLMPROC4_LOCK, &nlm.Nlm4Lockargs{Cookie: []byte{1, 2, 3, 4}, Exclusive: true, Alock: l, State: 3}, stat(s))
	}
	sync(alock("b", 2, 60, 1), nlm.NLM4_DENIED) // because of the asynchronous one
	send(nlmA, nlmUDP, nlm.NLMPROC4_UNLOCK_MSG, &nlm.Nlm4Unlockargs{Cookie: []byte{1}, Alock: alock("a", 1, 0, 100)})
	send(serverCaller, nlmOfB, nlm.NLMPROC4_UNLOCK_RES, stat(nlm.NLM4_GRANTED))
	w.call(serverCaller, nlmOfB, nlm.NLM_PROG, v, nlm.NLMPROC4_GRANTED_MSG, &nlm.Nlm4Testargs{Cookie: []byte{9}, Exclusive: true, Alock: alock("b", 1, 0, 10)}, xdr.Void{})
	w.call(nlmB, nlmUDP, nlm.NLM_PROG, v, nlm.NLMPROC4_GRANTED_RES, &nlm.Nlm4Res{Cookie: []byte{9}}, xdr.Void{})
	sync(alock("b", 2, 60, 1), nlm.NLM4_GRANTED)
	lock(nlmA, alock("a", 3, 500, 1), nlm.NLM4_GRANTED)
}
