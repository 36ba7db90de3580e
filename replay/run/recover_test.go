package run_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	proto "github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// kept is a store that outlives its servers.
type kept struct{ store.Store }

func (kept) Close() error { return nil }

// restarting replays against a server that is stopped and started again with the same files, each
// time after the given number of outcomes.
func restarting(t *testing.T, fabric string, w *workload.Workload, grace time.Duration, after ...int) *report.Report {
	t.Helper()
	return restartingWith(t, fabric, w, grace, false, after...)
}

// restartingWith is restarting; with resume the run is interrupted before each restart, and resumed after
// it.
func restartingWith(t *testing.T, fabric string, w *workload.Workload, grace time.Duration, resume bool, after ...int) *report.Report {
	t.Helper()
	ctx := within(t)
	o := providers.Options{Name: fabric, Endpoint: endpoint.Options{Reconnect: true, BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond}, TCP: tcprpc.Options{Reconnect: true, BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond}}
	clients, err := providers.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	files := emptyStore()
	t.Cleanup(func() { _ = files.Close() })
	at := netip.MustParseAddrPort("127.0.0.1:0")
	stop := func() {}
	serve := func(grace time.Duration) {
		f, err := providers.Open(o)
		if err != nil {
			t.Error(err)
			return
		}
		s := providers.NewServer(kept{files}, providers.ServerOptions{V4: nfs4.Options{Grace: grace}})
		var l providers.Listener
		for l == nil && ctx.Err() == nil { // the port may be taken for a moment
			l, err = f.Listen(ctx, at, s)
		}
		if l == nil {
			t.Error(err)
			return
		}
		at = l.Addr()
		stop = sync.OnceFunc(func() { _ = errors.Join(f.Close(), s.Close()) })
	}
	serve(0)
	dial := func(ctx context.Context) (transport.Requester, error) { return clients.Dial(ctx, at, nil) }
	n := 0
	interrupt := func() {}
	opt := run.Options{Directory: "/replay", Write: true, Prepare: true, Timing: run.Fast, Timeout: time.Minute, CallbackWait: time.Millisecond,
		Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) { return dial(ctx) },
		Access: func(ctx context.Context) (*run.Access, error) {
			r, err := dial(ctx)
			return &run.Access{NFS: r, Version: w.Version(), Cred: client.Sys("replay", 0, 0)}, err
		},
		Observe: func(*report.Outcome) {
			n++
			for _, x := range after {
				switch {
				case n != x:
				case resume:
					interrupt()
				default:
					stop()
					serve(grace)
				}
			}
		}}
	var r *report.Report
	for again := true; again; {
		again = false
		part, cancel := context.WithCancel(ctx)
		interrupt = cancel
		if resume {
			opt.Keep = func(s *run.Snapshot) error { opt.Resume, again = s, true; return nil }
		}
		r, err = run.Run(part, w, opt)
		cancel()
		if again {
			stop()
			serve(grace)
		}
	}
	stop()
	_ = clients.Close()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestResumeForgotten: when a run goes on, the server has forgotten its clients, as after their lease.
func TestResumeForgotten(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-mixed-load", "iwarp-nfs40-basic"} {
		t.Run(name, func(t *testing.T) {
			w := open(t, planOf(t, sample(t, name), planner.Options{}))
			for _, grace := range []time.Duration{50 * time.Millisecond, 0} {
				r := restartingWith(t, "tcp", w, grace, true, w.Planned()/5, w.Planned()/2)
				if !r.Explained() || len(r.Recoveries) != 1 || r.Recoveries[0].Failed != "" {
					var text strings.Builder
					_ = r.Text(&text)
					t.Errorf("grace %s: %v\n%s", grace, r.Totals, text.String())
				}
			}
		})
	}
}

// TestRecovery: the server restarts in the middle of a run. Clients, sessions, opens and locks
// are recovered, and all replies are as captured.
func TestRecovery(t *testing.T) {
	list := []string{"rocev2-nfs41-mixed-load.pcap.zst", "iwarp-nfs40-basic.pcap.zst", "rocev2-nfs41-restart.pcap.zst", "rocev2-nfs42-basic.pcap.zst"}
	if testing.Short() {
		list = list[:2]
	}
	for i, name := range list {
		fabric := []string{"iwarp", "tcp"}[min(i, 1)]
		t.Run(name, func(t *testing.T) {
			w := load(t, "../../samples/"+name, planner.Options{})
			reclaimed := 0
			for _, grace := range []time.Duration{50 * time.Millisecond, 0} {
				r := restarting(t, fabric, w, grace, len(w.Ops)/5, len(w.Ops)/2, len(w.Ops)*4/5)
				var text strings.Builder
				_ = r.Text(&text)
				opens := 0
				for _, x := range r.Recoveries {
					opens += x.Opens + x.Reopened
				}
				if !r.Explained() || len(r.Recoveries) != 3 || r.Recoveries[0].Failed != "" {
					t.Errorf("grace %s: %v\n%s", grace, r.Totals, text.String())
				}
				if !strings.Contains(text.String(), "Clients that the server had forgotten") {
					t.Error("the report does not tell")
				}
				reclaimed += opens
			}
			if reclaimed == 0 && name != "iwarp-nfs40-basic.pcap.zst" {
				t.Error("nothing was reclaimed")
			}
		})
	}
}

// TestForgetful: a server that keeps saying that it does not know the client is not believed
// forever.
func TestForgetful(t *testing.T) {
	w := load(t, "../../samples/iwarp-nfs40-basic.pcap.zst", planner.Options{})
	o, _ := rigOf(t, providers.Options{Name: "tcp"}, "4.0", func(h transport.Handler) transport.Handler { return h })
	dial := o.Dial
	o.Dial = func(ctx context.Context, n int, c *plan.Connection) (transport.Requester, error) {
		r, err := dial(ctx, n, c)
		return forgetful{r}, err
	}
	o.Timing, o.CallbackWait = run.Fast, time.Millisecond
	r, err := run.Run(within(t), w, o)
	if err != nil || r.Explained() || len(r.Recoveries) == 0 || r.Totals["worse"] == 0 {
		t.Errorf("%v: %+v", err, r)
	}
}

// forgetful answers each WRITE as if it came from before a restart.
type forgetful struct{ transport.Requester }

func (f forgetful) Start(c *transport.Call) {
	done := c.Done
	c.Done = func(c *transport.Call) {
		if c.Err == nil && len(c.Items) > 0 && len(c.Reply.Stream) > 24 {
			c.Reply = transport.Message{Stream: slices.Concat(c.Reply.Stream[:24], binary.BigEndian.AppendUint32(nil, 10023), make([]byte, 8))}
		}
		done(c)
	}
	f.Requester.Start(c)
}

// TestLocksReclaimed: after a restart the server holds the byte ranges that the client held,
// and no others.
func TestLocksReclaimed(t *testing.T) {
	w := steady(0, 0)
	w.Tables.Objects = append(w.Tables.Objects, plan.Object{ID: 2, Server: 1, Type: "file", Origin: plan.Before, Parent: 1, Name: "f", Path: "f", Size: 10})
	w.Tables.Clients = []plan.Client{{ID: 1, Server: 1, Minor: 1}}
	w.Tables.Sessions = []plan.Session{{ID: 1, Client: 1, Slots: 2}}
	w.Tables.Owners = []plan.Owner{{ID: 1, Client: 1, Kind: "open", Bytes: []byte("o")}, {ID: 2, Client: 1, Kind: "lock", Bytes: []byte("l")}}
	w.Tables.States = []plan.State{{ID: 1, Kind: plan.OpenState, Client: 1, Object: 2, Owner: 1, Access: 3}, {ID: 2, Kind: plan.LockState, Client: 1, Object: 2, Owner: 2, DefinedBy: 1}}
	u32 := func(v uint64) plan.Field { return plan.Field{Kind: plan.FieldU32, Value: v} }
	u64 := func(v uint64) plan.Field { return plan.Field{Kind: plan.FieldU64, Value: v} }
	state := func(ref int) plan.Field { return plan.Field{Kind: plan.FieldState, Ref: ref} }
	client := plan.Field{Kind: plan.FieldClient, Ref: 1}
	add := func(number proto.NfsOpnum4, status proto.Nfsstat4, bind bool, args ...plan.Field) {
		o := rawCompound(
			plan.CompoundOp{Op: uint32(proto.OP_SEQUENCE), Args: []plan.Field{{Kind: plan.FieldSession, Ref: 1}, {Kind: plan.FieldSequence, Ref: 1}, {Kind: plan.FieldSlot, Ref: 1},
				{Kind: plan.FieldHighest, Ref: 1}, u32(0)}},
			plan.CompoundOp{Op: uint32(proto.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 2}}},
			plan.CompoundOp{Op: uint32(number), Args: args})
		o.ID, o.Compound.Minor = len(w.Ops)+1, 1
		if len(w.Ops) > 0 {
			o.Deps = []plan.Dep{{Op: o.ID - 1, Kind: plan.DepState}}
		}
		if bind {
			o.Binds = []plan.Bind{{At: 2, Kind: plan.FieldState, Ref: 2, State: plan.LockState}}
		}
		o.Expect = &plan.Expect{Status: uint32(status), StatusName: status.Symbol()}
		w.Ops = append(w.Ops, o)
	}
	lock := func(offset, length uint64, more ...plan.Field) {
		add(proto.OP_LOCK, proto.NFS4_OK, true, append([]plan.Field{u32(uint64(proto.WRITEW_LT)), u32(0), u64(offset), u64(length)}, more...)...)
	}
	lock(0, 100, u32(1), u32(0), state(1), u32(0), client, plan.Field{Kind: plan.FieldText, Bytes: []byte("l")})
	lock(1000, 1<<64-1, u32(0), state(2), u32(0))
	add(proto.OP_LOCKU, proto.NFS4_OK, false, u32(uint64(proto.WRITE_LT)), u32(0), state(2), u64(40), u64(20))
	for offset, status := range map[uint64]proto.Nfsstat4{0: proto.NFS4ERR_DENIED, 39: proto.NFS4ERR_DENIED, 40: proto.NFS4_OK, 59: proto.NFS4_OK, 60: proto.NFS4ERR_DENIED, 99: proto.NFS4ERR_DENIED,
		100: proto.NFS4_OK, 999: proto.NFS4_OK, 1000: proto.NFS4ERR_DENIED, 1 << 62: proto.NFS4ERR_DENIED} {
		add(proto.OP_LOCKT, status, false, u32(uint64(proto.WRITE_LT)), u64(offset), u64(1), client, plan.Field{Kind: plan.FieldText, Bytes: []byte("somebody else")})
	}
	add(proto.OP_LOCKU, proto.NFS4_OK, false, u32(uint64(proto.WRITE_LT)), u32(0), state(2), u64(0), u64(1<<64-1))
	r := restarting(t, "tcp", w, 1500*time.Millisecond, 3)
	if len(r.Recoveries) != 1 || r.Recoveries[0].Opens != 1 || r.Recoveries[0].Locks != 3 || r.Recoveries[0].Lost != 0 || !r.Explained() {
		var text strings.Builder
		_ = r.Text(&text)
		t.Error(text.String())
	}
}
