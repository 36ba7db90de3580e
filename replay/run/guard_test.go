package run_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// scenery is a server that holds the base, /replay, and a canary beside it.
type scenery struct {
	fs             client.FS
	root, base     []byte
	opt            run.Options
	canary, inside []byte
}

func canaries(t *testing.T, fabric, version string) *scenery {
	t.Helper()
	o, _ := rig(t, providers.Options{Name: fabric}, version)
	o.Timing, o.Reuse, o.Layout = run.Fast, true, fabric == "iwarp"
	s := &scenery{fs: look(t, o), opt: o}
	ctx := within(t)
	check := func(h []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	s.root = check(s.fs.Root(ctx, "/"))
	s.base = check(s.fs.Mkdir(ctx, s.root, "replay", client.Mode(0o755)))
	file := func(dir []byte, name, text string) []byte {
		t.Helper()
		f, err := s.fs.Create(ctx, dir, name, client.Mode(0o644), true)
		if err != nil {
			t.Fatal(err)
		}
		h := f.Handle
		buf, err := s.fs.Alloc(len(text))
		check(nil, err)
		copy(buf, text)
		_, err = s.fs.Write(ctx, f, 0, buf, true)
		check(nil, err)
		check(nil, s.fs.Close(ctx, f))
		s.fs.Free(buf)
		return h
	}
	s.canary = file(s.root, "canary", "still alive")
	beside := check(s.fs.Mkdir(ctx, s.root, "beside", client.Mode(0o755)))
	file(beside, "canary2", "so am I")
	s.inside = file(s.base, "inside", "within the base")
	return s
}

// outside describes everything that is not below the base.
func (s *scenery) outside(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	s.describe(t, &out, s.root, "")
	return out.String()
}

func (s *scenery) describe(t *testing.T, out *strings.Builder, dir []byte, path string) {
	t.Helper()
	ctx := within(t)
	var names []string
	if err := s.fs.Readdir(ctx, dir, func(e client.Entry) bool { names = append(names, e.Name); return true }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, n := range names {
		h, a, err := s.fs.Lookup(ctx, dir, n)
		if err != nil {
			t.Fatal(err)
		}
		if path == "" && n == "replay" {
			continue
		}
		fmt.Fprintf(out, "%s/%s %+v %x\n", path, n, a, h)
		if a.Type == client.Directory {
			s.describe(t, out, h, path+"/"+n)
		}
	}
}

func fieldRaw(b ...[]byte) plan.Field {
	return plan.Field{N: "raw", Kind: plan.FieldRaw, Bytes: slices.Concat(b...)}
}

func word(n uint32) []byte    { return xdr.AppendUint32(nil, n) }
func opaque(b []byte) []byte  { return xdr.AppendOpaque(nil, b) }
func encoded(o ...any) []byte { return compoundOf(0, o...).Append(nil) }
func removes(n string) []byte { return slices.Concat(word(uint32(nfs4.OP_REMOVE)), opaque([]byte(n))) }
func bitmap() []byte          { return slices.Concat(word(1), word(2)) }
func rawOp(p, v, n uint32, args ...plan.Field) *plan.Op {
	return &plan.Op{ID: 1, XID: 7, Connection: 1, Credential: 1, Program: p, Version: v, Procedure: n, What: "attack", Role: plan.Workload,
		Class: plan.Exact, Latency: 1, Service: -1, Args: args, Expect: &plan.Expect{}}
}

func rawCompound(ops ...plan.CompoundOp) *plan.Op {
	o := rawOp(nfs4.NFS4_PROGRAM, nfs4.NFS_V4, nfs4.NFSPROC4_COMPOUND)
	o.Compound = &plan.Compound{Ops: ops}
	return o
}

func operation(n nfs4.NfsOpnum4, args ...plan.Field) plan.CompoundOp {
	return plan.CompoundOp{Op: uint32(n), Name: n.String(), Args: args}
}

// compoundOf makes a COMPOUND of numbers and their arguments.
func compoundOf(minor uint32, list ...any) *nfs4.CompoundArgs {
	c := &nfs4.CompoundArgs{Minorversion: minor}
	for _, x := range list {
		switch x := x.(type) {
		case nfs4.NfsOpnum4:
			c.Ops = append(c.Ops, nfs4.Op{Number: uint32(x), Body: xdr.Void{}})
		case xdr.Message:
			c.Ops[len(c.Ops)-1].Body = x
		}
	}
	return c
}

// TestAttacks runs malicious plans, with and without permission to write, over RDMA and TCP.
// Without a guard the same calls kill the canary, wherever the server supports the protocol.
func TestAttacks(t *testing.T) {
	in := func(h []byte, name string) nfs3.Diropargs3 {
		return nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: h}, Name: []byte(name)}
	}
	cases := []struct {
		name   string
		op     func(s *scenery) *plan.Op
		lethal bool // without a guard
	}{
		{"NFSv2 REMOVE", func(s *scenery) *plan.Op {
			m := nfs2.Diropargs{Name: []byte("canary")}
			copy(m.Dir[:], s.root)
			return rawOp(nfs2.NFS_PROGRAM, nfs2.NFS_VERSION, nfs2.NFSPROC_REMOVE, fieldRaw(m.Append(nil)))
		}, false},
		{"NFSv2 WRITE", func(s *scenery) *plan.Op {
			m := nfs2.Writeargs{Data: xdr.Data{Length: 4, Inline: []byte("dead")}}
			copy(m.File[:], s.canary)
			return rawOp(nfs2.NFS_PROGRAM, nfs2.NFS_VERSION, nfs2.NFSPROC_WRITE, fieldRaw(m.Append(nil)))
		}, false},
		{"NLM LOCK", func(s *scenery) *plan.Op {
			m := nlm.Nlm4Lockargs{Exclusive: true, Alock: nlm.Nlm4Lock{Fh: s.canary}}
			return rawOp(nlm.NLM_PROG, nlm.NLM4_VERS, nlm.NLMPROC4_LOCK, fieldRaw(m.Append(nil)))
		}, false},
		{"no known program", func(*scenery) *plan.Op { return rawOp(100005+7, 3, 1) }, false},
		{"no known procedure", func(*scenery) *plan.Op { return rawOp(100003, 3, 99) }, false},
		{"operation 200", func(*scenery) *plan.Op {
			return rawCompound(operation(nfs4.OP_PUTROOTFH), operation(200, fieldRaw(opaque([]byte("canary")))))
		}, false},
		{"OP_ILLEGAL", func(*scenery) *plan.Op { return rawCompound(operation(nfs4.OP_PUTROOTFH), operation(nfs4.OP_ILLEGAL)) }, false},
		{"a whole COMPOUND in one field", func(*scenery) *plan.Op {
			return rawOp(nfs4.NFS4_PROGRAM, 4, 1, fieldRaw(encoded(nfs4.OP_PUTROOTFH, nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte("canary")})))
		}, true},
		{"NFSv3 REMOVE, raw", func(s *scenery) *plan.Op {
			return rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_REMOVE, fieldRaw((&nfs3.REMOVE3args{Object: in(s.root, "canary")}).Append(nil)))
		}, true},
		{"NFSv3 REMOVE, handle as a text", func(s *scenery) *plan.Op {
			return rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_REMOVE, plan.Field{Kind: plan.FieldText, Bytes: s.root}, plan.Field{Kind: plan.FieldText, Text: "canary"})
		}, true},
		{"NFSv3 REMOVE of the base's parent's entry", func(s *scenery) *plan.Op {
			return rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_RMDIR, fieldRaw((&nfs3.RMDIR3args{Object: in(s.base, "..")}).Append(nil)))
		}, false},
		{"NFSv3 WRITE, raw", func(s *scenery) *plan.Op {
			m := nfs3.WRITE3args{File: nfs3.NfsFh3{Data: s.canary}, Count: 4, Data: xdr.Data{Length: 4, Inline: []byte("dead")}}
			return rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_WRITE, fieldRaw(m.Append(nil)))
		}, true},
		{"NFSv3 RENAME into the base", func(s *scenery) *plan.Op {
			return rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_RENAME, fieldRaw((&nfs3.RENAME3args{From: in(s.root, "canary"), To: in(s.base, "x")}).Append(nil)))
		}, true},
		{"NFSv3 RENAME over the canary", func(s *scenery) *plan.Op {
			return rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_RENAME, fieldRaw((&nfs3.RENAME3args{From: in(s.base, "inside"), To: in(s.root, "canary")}).Append(nil)))
		}, true},
		{"NFSv3 LINK into the base", func(s *scenery) *plan.Op {
			return rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_LINK, fieldRaw((&nfs3.LINK3args{File: nfs3.NfsFh3{Data: s.canary}, Link: in(s.base, "x")}).Append(nil)))
		}, true},
		{"behind the bitmap of GETATTR", func(*scenery) *plan.Op {
			return rawCompound(operation(nfs4.OP_PUTROOTFH), operation(nfs4.OP_GETATTR, fieldRaw(bitmap(), removes("canary"))), operation(nfs4.OP_GETFH))
		}, true},
		{"in the place of GETATTR", func(s *scenery) *plan.Op {
			return rawCompound(operation(nfs4.OP_PUTFH, fieldRaw(opaque(s.root), removes("canary"))), operation(nfs4.OP_GETFH))
		}, true},
		{"by LOOKUPP", func(s *scenery) *plan.Op {
			return rawCompound(operation(nfs4.OP_PUTFH, fieldRaw(opaque(s.base))), operation(nfs4.OP_LOOKUPP), operation(nfs4.OP_REMOVE, fieldRaw(opaque([]byte("canary")))))
		}, true},
		{"by RESTOREFH", func(s *scenery) *plan.Op {
			return rawCompound(operation(nfs4.OP_PUTFH, fieldRaw(opaque(s.root))), operation(nfs4.OP_SAVEFH), operation(nfs4.OP_PUTFH, fieldRaw(opaque(s.base))),
				operation(nfs4.OP_RESTOREFH), operation(nfs4.OP_REMOVE, fieldRaw(opaque([]byte("canary")))))
		}, true},
		{"SETATTR, raw", func(s *scenery) *plan.Op {
			size := uint64(0)
			a := nfs4.Attrs{Size: size}
			a.Mask = a.Mask.With(nfs4.FATTR4_SIZE)
			m := nfs4.SETATTR4args{ObjAttributes: a.Fattr4()}
			return rawCompound(operation(nfs4.OP_PUTFH, fieldRaw(opaque(s.canary))), operation(nfs4.OP_SETATTR, fieldRaw(m.Append(nil))))
		}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, fabric := range []string{"tcp", "iwarp"} {
				for _, write := range []bool{false, true} {
					s := canaries(t, fabric, "4.0")
					before := s.outside(t)
					w := steady(0, 0)
					w.Ops = []*plan.Op{c.op(s)}
					s.opt.Write = write
					r, err := run.Run(within(t), w, s.opt)
					if err != nil {
						t.Fatal(err)
					}
					if after := s.outside(t); after != before {
						t.Errorf("%s, write %v: what is outside has changed:\n%s\nbefore:\n%s", fabric, write, after, before)
					}
					if r.Totals[verdict.NotSent.String()] != 1 || r.Sent != 0 {
						t.Errorf("%s, write %v: %d sent, %v, %v", fabric, write, r.Sent, r.Totals, r.Reasons)
					}
				}
			}
			if c.lethal {
				s := canaries(t, "tcp", "4.0")
				before := s.outside(t)
				unguarded(t, s.opt, c.op(s))
				if s.outside(t) == before {
					t.Error("harmless even without a guard: this tests nothing")
				}
			}
		})
	}
}

// unguarded sends an op of literal fields past the guard.
func unguarded(t *testing.T, o run.Options, op *plan.Op) {
	t.Helper()
	a, err := o.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: op.Program, Version: op.Version, Procedure: op.Procedure, Cred: client.Sys("m", 0, 0)}
	stream, items, err := op.AppendArgs(h.Append(nil), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.NFS.Do(t.Context(), &transport.Call{Message: transport.Message{Stream: stream, Items: items}, MaxReply: 4096}); err != nil {
		t.Fatal(err)
	}
}

// TestSampleWithARemove: a plan of a real capture whose first GETATTR was replaced, or has extra
// bytes after its bitmap.
func TestSampleWithARemove(t *testing.T) {
	for name, ops := range map[string]func(s *scenery) []plan.CompoundOp{
		// PUTROOTFH is sent as a PUTFH of the handle that the base stands for; its arguments do
		// not come from the plan.
		"in one field": func(*scenery) []plan.CompoundOp {
			return []plan.CompoundOp{operation(nfs4.OP_PUTROOTFH, fieldRaw(removes("canary"))), operation(nfs4.OP_GETATTR, fieldRaw(bitmap()))}
		},
		"in one field, with a handle": func(s *scenery) []plan.CompoundOp {
			return []plan.CompoundOp{operation(nfs4.OP_PUTFH, fieldRaw(opaque(s.root), removes("canary"))), operation(nfs4.OP_GETATTR, fieldRaw(bitmap()))}
		},
		"behind the bitmap": func(*scenery) []plan.CompoundOp {
			return []plan.CompoundOp{operation(nfs4.OP_PUTROOTFH), operation(nfs4.OP_GETATTR, fieldRaw(bitmap(), removes("canary"))), operation(nfs4.OP_GETFH)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := load(t, "../../samples/iwarp-nfs40-basic.pcap.zst", planner.Options{})
			s := canaries(t, "iwarp", "4.0")
			ops := ops(s)
			var changed *plan.Op
			for _, o := range w.Ops {
				if changed == nil && o.Compound != nil && slices.ContainsFunc(o.Compound.Ops, func(c plan.CompoundOp) bool { return c.Op == uint32(nfs4.OP_GETATTR) }) {
					o.Compound.Ops, o.Modifies, o.Binds, changed = ops, false, nil, o
				}
			}
			s.opt.Write, s.opt.CallbackWait = false, time.Millisecond
			refused := ""
			s.opt.Observe = func(x *report.Outcome) {
				if x.Op == changed {
					refused = x.Verdict.String()
				}
			}
			before := s.outside(t)
			r, err := run.Run(within(t), w, s.opt)
			if err != nil {
				t.Fatal(err)
			}
			if after := s.outside(t); after != before {
				t.Errorf("what is outside has changed:\n%s\nbefore:\n%s", after, before)
			}
			if name != "in one field" && refused != verdict.NotSent.String() {
				t.Errorf("%q: %v %v", refused, r.Totals, r.Reasons)
			}
			unguarded(t, s.opt, rawCompound(ops...))
			if s.outside(t) == before {
				t.Error("harmless even without a guard")
			}
		})
	}
}

// TestHandlesFromAbove: a handle that the plan binds to a reply may not be changed for that
// reason alone.
func TestHandlesFromAbove(t *testing.T) {
	handle := func(ref int) plan.Field { return plan.Field{N: "dir", Kind: plan.FieldHandle, Ref: ref} }
	name := func(n string) plan.Field { return plan.Field{N: "name", Kind: plan.FieldName, Text: n} }
	remove3 := func() *plan.Op { return rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_REMOVE, handle(2), name("canary")) }
	for title, c := range map[string]struct {
		version string
		get     *plan.Op
		bind    plan.Bind
	}{
		"LOOKUP of ..":      {"3", rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_LOOKUP, handle(1), name("..")), plan.Bind{Kind: plan.FieldHandle, Ref: 2}},
		"LOOKUP of .. (v4)": {"4.0", rawCompound(operation(nfs4.OP_PUTFH, handle(1)), operation(nfs4.OP_LOOKUPP), operation(nfs4.OP_GETFH)), plan.Bind{Kind: plan.FieldHandle, At: 2, Ref: 2}},
		"READDIRPLUS": {"3", rawOp(nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_READDIRPLUS, handle(1), fieldRaw(make([]byte, 16), word(4096), word(8192))),
			plan.Bind{Kind: plan.FieldHandle, Ref: 2, Name: ".."}},
		"root, in one raw": {"4.0", rawOp(nfs4.NFS4_PROGRAM, 4, 1, fieldRaw(encoded(nfs4.OP_PUTROOTFH, nfs4.OP_GETFH))), plan.Bind{Kind: plan.FieldHandle, At: 1, Ref: 2}},
	} {
		t.Run(title, func(t *testing.T) {
			s := canaries(t, "tcp", c.version)
			before := s.outside(t)
			w := steady(0, 0)
			w.Tables.Objects = append(w.Tables.Objects, plan.Object{ID: 2, Server: 1, Type: "dir", Origin: plan.Created})
			c.get.Binds = []plan.Bind{c.bind}
			kill := remove3()
			kill.ID, kill.Deps, kill.Modifies = 2, []plan.Dep{{Op: 1, Kind: plan.DepCreate}}, true
			w.Ops = []*plan.Op{c.get, kill}
			r, err := run.Run(within(t), w, s.opt)
			if err != nil {
				t.Fatal(err)
			}
			if after := s.outside(t); after != before {
				t.Errorf("what is outside has changed:\n%s\nbefore:\n%s", after, before)
			}
			if r.Sent != 1 || r.Totals[verdict.Same.String()]+r.Totals[verdict.Equivalent.String()]+r.Totals[verdict.Different.String()] != 1 {
				t.Errorf("%d sent, %v %v", r.Sent, r.Totals, r.Reasons)
			}
		})
	}
}

// TestRawInside: raw fields are allowed if their bytes are the handle of the base.
func TestRawInside(t *testing.T) {
	s := canaries(t, "tcp", "4.0")
	before := s.outside(t)
	w := steady(0, 0)
	w.Ops = []*plan.Op{rawOp(nfs4.NFS4_PROGRAM, 4, 1, fieldRaw(encoded(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: s.base}, nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte("inside")})))}
	r, err := run.Run(within(t), w, s.opt)
	if err != nil || r.Sent != 1 {
		t.Fatalf("%v, %+v", err, r)
	}
	if _, _, err := s.fs.Lookup(context.Background(), s.base, "inside"); !client.IsStatus(err, uint32(nfs4.NFS4ERR_NOENT)) {
		t.Errorf("inside is there: %v", err)
	}
	if s.outside(t) != before {
		t.Error("what is outside has changed")
	}
}

// TestPreviewSaysTheSame: a dry run refuses the calls that a run refuses.
func TestPreviewSaysTheSame(t *testing.T) {
	w := steady(1, 0)
	w.Ops = append(w.Ops, rawOp(nfs4.NFS4_PROGRAM, 4, 1, fieldRaw(encoded(nfs4.OP_PUTROOTFH, nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte("canary")}))))
	for write, want := range map[bool]string{false: "it would change something, which was not allowed", true: "REMOVE would change something that is not known to be below the base"} {
		var out strings.Builder
		if err := run.Preview(&out, w, run.Options{Directory: "/x", Write: write}, "nobody", true); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "send 1 call") || !strings.Contains(out.String(), want) {
			t.Errorf("write %v: %s", write, out.String())
		}
	}
}

// ledger counts calls by their bytes, XIDs apart.
type ledger struct {
	mu    sync.Mutex
	calls map[string]int
}

func (l *ledger) count(m *transport.Message, n int) {
	b := m.AppendWhole(nil)
	copy(b, "XID ")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls[string(b)] += n; l.calls[string(b)] == 0 {
		delete(l.calls, string(b))
	}
}

// counted is a connection below the guard.
type counted struct {
	transport.Requester
	l *ledger
	n *atomic.Int64
}

func (c counted) Start(call *transport.Call) {
	c.l.count(&call.Message, 1)
	c.n.Add(1)
	c.Requester.Start(call)
}

func (c counted) Do(ctx context.Context, call *transport.Call) error {
	c.l.count(&call.Message, 1)
	c.n.Add(1)
	return c.Requester.Do(ctx, call)
}

// TestBytesArrive: the server receives exactly the bytes that the guard let pass, whatever the
// transport does.
func TestBytesArrive(t *testing.T) {
	for _, sample := range []string{"rocev2-nfs3-longcall.pcap", "rocev2-nfs42-basic.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		w := load(t, "../../samples/"+sample, planner.Options{})
		for i, fabric := range []string{"tcp", "iwarp", "rocev2"} {
			for _, captured := range []bool{false, true} {
				if testing.Short() && captured != (i == 1) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%v", sample, fabric, captured), func(t *testing.T) {
					l := &ledger{calls: map[string]int{}}
					var n atomic.Int64
					o, hangUp := rigOf(t, providers.Options{Name: fabric}, w.Version(), func(h transport.Handler) transport.Handler {
						return transport.HandlerFunc(func(x transport.Exchange) {
							l.count(x.Call(), -1)
							h.ServeRPC(x)
						})
					})
					dial, access := o.Dial, o.Access
					o.Dial = func(ctx context.Context, clone int, c *plan.Connection) (transport.Requester, error) {
						r, err := dial(ctx, clone, c)
						return counted{r, l, &n}, err
					}
					o.Access = func(ctx context.Context) (*run.Access, error) {
						a, err := access(ctx)
						if err == nil {
							a.NFS = counted{a.NFS, l, &n}
						}
						return a, err
					}
					o.Timing, o.Layout, o.CallbackWait = run.Fast, captured, time.Millisecond
					r, err := run.Run(within(t), w, o)
					if err != nil || !r.Explained() {
						t.Fatal(err, r)
					}
					hangUp()
					if n.Load() < int64(len(w.Ops)/2) {
						t.Errorf("only %d calls sent", n.Load())
					}
					for b, k := range l.calls {
						// A call that did not fit into the captured chunks is handed over twice.
						if k < 0 || !captured {
							t.Errorf("%+d calls %x", k, b[:min(len(b), 200)])
						}
					}
				})
			}
		}
	}
}
