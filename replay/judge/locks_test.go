package judge

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// lockScene makes calls about the locks of one file. Owners 1 and 2 are of NLM, 3 and 4 of two clients of NFSv4.
type lockScene struct {
	load workload.Workload
}

func newLockScene() *lockScene {
	s := &lockScene{}
	s.load.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}, {ID: 2, Type: "file"}}
	s.load.Tables.Owners = []plan.Owner{{ID: 1, Kind: plan.OwnerNLM}, {ID: 2, Kind: plan.OwnerNLM},
		{ID: 3, Kind: "lock", Client: 1, Bytes: []byte("three")}, {ID: 4, Kind: "lock", Client: 2, Bytes: []byte("four")}}
	s.load.Tables.Clients = []plan.Client{{ID: 1}, {ID: 2}}
	s.load.Tables.States = []plan.State{{ID: 1, Kind: plan.OpenState, Object: 1, Client: 1}, {ID: 2, Kind: plan.OpenState, Object: 1, Client: 2},
		{ID: 3, Kind: plan.LockState, Object: 1, Client: 1, Owner: 3}, {ID: 4, Kind: plan.LockState, Object: 1, Client: 2, Owner: 4}}
	return s
}

const (
	ok      = 0
	denied  = uint32(nlm.NLM4_DENIED)
	blocked = uint32(nlm.NLM4_BLOCKED)
	denied4 = uint32(nfs4.NFS4ERR_DENIED)
)

// op is a call of an owner that was in flight from one time to another, with its captured status. Procedures of NLM
// and operations of NFSv4 have the same words: "LOCK", "SHARED" (a LOCK that others may have, too), "TEST", "UNLOCK",
// "CANCEL" (NLM) and "CLOSE" (NFSv4).
func (s *lockScene) op(owner int, what string, offset, length uint64, from, to int64, status uint32) *plan.Op {
	o := &plan.Op{ID: len(s.load.Ops) + 1, What: what, Time: from, Latency: to - from, Expect: &plan.Expect{Status: status}}
	s.load.Ops = append(s.load.Ops, o)
	flag := func(is bool) plan.Field {
		f := plan.Field{Kind: plan.FieldU32}
		if is {
			f.Value = 1
		}
		return f
	}
	raw := func(n int) plan.Field { return plan.Field{Kind: plan.FieldRaw, Bytes: make([]byte, n)} }
	u64 := func(v uint64) plan.Field { return plan.Field{Kind: plan.FieldU64, Value: v} }
	if owner <= 2 {
		o.Program, o.Version = nlm.NLM_PROG, nlm.NLM4_VERS
		args := []plan.Field{raw(4)}
		end := []plan.Field(nil)
		switch what {
		case "LOCK", "SHARED":
			o.Procedure = nlm.NLMPROC4_LOCK
			args = append(args, flag(true), flag(what == "LOCK"))
			end = []plan.Field{flag(false), flag(false)}
		case "TEST":
			o.Procedure = nlm.NLMPROC4_TEST
			args = append(args, flag(true))
		case "CANCEL":
			o.Procedure = nlm.NLMPROC4_CANCEL
			args = append(args, flag(true), flag(true))
		case "UNLOCK":
			o.Procedure = nlm.NLMPROC4_UNLOCK
		}
		args = append(args, plan.Field{Kind: plan.FieldLockHost, Ref: owner}, plan.Field{Kind: plan.FieldHandle, Ref: 1},
			plan.Field{Kind: plan.FieldLockOwner, Ref: owner}, plan.Field{Kind: plan.FieldSvid, Ref: owner}, u64(offset), u64(length))
		o.Args = append(args, end...)
		return o
	}
	if length == 0 {
		length = math.MaxUint64
	}
	client := owner - 2
	state := func(ref int) plan.Field { return plan.Field{Kind: plan.FieldState, Ref: ref} }
	mode := func(m nfs4.NfsLockType4) plan.Field { return plan.Field{Kind: plan.FieldU32, Value: uint64(m)} }
	name := plan.Field{Kind: plan.FieldText, Text: string(s.load.Tables.Owners[owner-1].Bytes)}
	c := plan.CompoundOp{}
	switch what {
	case "LOCK":
		c = plan.CompoundOp{Op: uint32(nfs4.OP_LOCK), Args: []plan.Field{mode(nfs4.WRITE_LT), flag(false), u64(offset), u64(length), flag(true),
			raw(4), state(client), raw(4), {Kind: plan.FieldClient, Ref: client}, name}}
	case "SHARED":
		c = plan.CompoundOp{Op: uint32(nfs4.OP_LOCK), Args: []plan.Field{mode(nfs4.READ_LT), flag(false), u64(offset), u64(length), flag(false), state(owner), raw(4)}}
	case "TEST":
		c = plan.CompoundOp{Op: uint32(nfs4.OP_LOCKT), Args: []plan.Field{mode(nfs4.WRITE_LT), u64(offset), u64(length), {Kind: plan.FieldClient, Ref: client}, name}}
	case "UNLOCK":
		c = plan.CompoundOp{Op: uint32(nfs4.OP_LOCKU), Args: []plan.Field{mode(nfs4.WRITE_LT), raw(4), state(owner), u64(offset), u64(length)}}
	case "CLOSE":
		c = plan.CompoundOp{Op: uint32(nfs4.OP_CLOSE), Args: []plan.Field{raw(4), state(client)}}
	}
	o.Program, o.Version, o.Procedure = 100003, 4, 1
	o.Compound = &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}, c}}
	o.Expect.Ops = []uint32{0, status}
	return o
}

// result is a result with a status.
func result(o *plan.Op, status uint32) xdr.Message {
	if o.Compound == nil {
		if o.Procedure == nlm.NLMPROC4_TEST {
			return &nlm.Nlm4Testres{Stat: nlm.Nlm4Testrply{Stat: nlm.Nlm4Stats(status)}}
		}
		return &nlm.Nlm4Res{Stat: nlm.Nlm4Stat{Stat: nlm.Nlm4Stats(status)}}
	}
	op := o.Compound.Ops[1].Op
	body := map[nfs4.NfsOpnum4]xdr.Message{
		nfs4.OP_LOCK: &nfs4.LOCK4res{Status: nfs4.Nfsstat4(status)}, nfs4.OP_LOCKT: &nfs4.LOCKT4res{Status: nfs4.Nfsstat4(status)},
		nfs4.OP_LOCKU: &nfs4.LOCKU4res{Status: nfs4.Nfsstat4(status)}, nfs4.OP_CLOSE: &nfs4.CLOSE4res{Status: nfs4.Nfsstat4(status)},
	}[nfs4.NfsOpnum4(op)]
	res := &nfs4.CompoundRes{Status: nfs4.Nfsstat4(status)}
	res.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.Status4res{}}, {Number: op, Body: body}}
	return res
}

// here is what this server answers to an op, in the order of the replies.
type here struct {
	op   *plan.Op
	sent int64 // and answered one later, in seconds
	code uint32
	want verdict.Verdict
	why  verdict.Code
}

// TestLockOrder: who of two gets a lock that were asked for at the same time is not the server's fault, nor is what follows
// from it. That both get it is.
func TestLockOrder(t *testing.T) {
	for _, nfs := range []int{0, 2} { // the same scenes of NLM and of NFSv4
		no := denied
		if nfs > 0 {
			no = denied4
		}
		a, b := 1+nfs, 2+nfs
		for _, c := range []struct {
			name  string
			scene func(s *lockScene) []here
		}{
			{"the other way round, and what follows", func(s *lockScene) []here {
				x, y := s.op(a, "LOCK", 0, 10, 0, 10, ok), s.op(b, "LOCK", 5, 10, 5, 15, no)
				tx := s.op(b, "TEST", 0, 10, 20, 21, no)
				z := s.op(b, "LOCK", 5, 10, 30, 31, no)
				ux := s.op(a, "UNLOCK", 0, 10, 40, 41, ok)
				w := s.op(b, "LOCK", 5, 10, 50, 51, ok)
				uw := s.op(b, "UNLOCK", 5, 10, 60, 61, ok)
				v := s.op(a, "LOCK", 0, 10, 70, 71, ok)
				return []here{
					{y, 0, ok, verdict.Explained, verdict.LocksTogether},
					{x, 0, no, verdict.Explained, verdict.OnlyHere},
					{tx, 2, ok, verdict.Explained, verdict.OnlyHere},
					{z, 3, ok, verdict.Explained, verdict.OnlyHere},
					{ux, 4, ok, verdict.Same, 0},
					{w, 5, ok, verdict.Same, 0},
					{uw, 6, ok, verdict.Same, 0},
					{v, 7, no, verdict.Worse, 0}, // nobody has it any more
				}
			}},
			{"an unlock came late", func(s *lockScene) []here {
				x := s.op(a, "LOCK", 0, 0, 0, 1, ok)
				u := s.op(a, "UNLOCK", 0, 0, 12, 15, ok)
				y := s.op(b, "LOCK", 100, 1, 10, 16, ok)
				return []here{{x, 0, ok, verdict.Same, 0}, {y, 2, no, verdict.Explained, verdict.LocksTogether}, {u, 2, ok, verdict.Same, 0}}
			}},
			{"one after the other", func(s *lockScene) []here {
				x, y := s.op(a, "LOCK", 0, 10, 0, 10, ok), s.op(b, "LOCK", 0, 10, 20, 25, no)
				return []here{{x, 0, ok, verdict.Same, 0}, {y, 2, ok, verdict.Different, verdict.LockedTwice}}
			}},
			{"both", func(s *lockScene) []here {
				x, y := s.op(a, "LOCK", 0, 10, 0, 10, ok), s.op(b, "LOCK", 0, 10, 5, 15, no)
				return []here{{x, 0, ok, verdict.Same, 0}, {y, 0, ok, verdict.Different, verdict.LockedTwice}}
			}},
			{"both, as in the capture", func(s *lockScene) []here {
				x, y := s.op(a, "LOCK", 0, 10, 0, 10, ok), s.op(b, "LOCK", 0, 10, 5, 15, ok)
				return []here{{x, 0, ok, verdict.Same, 0}, {y, 0, ok, verdict.Different, verdict.LockedTwice}}
			}},
			{"other bytes", func(s *lockScene) []here {
				x, y := s.op(a, "LOCK", 0, 10, 0, 10, ok), s.op(b, "LOCK", 10, 10, 5, 15, ok)
				return []here{{y, 0, no, verdict.Worse, verdict.Fails}, {x, 0, ok, verdict.Same, 0}}
			}},
			{"the same owner", func(s *lockScene) []here {
				x, y := s.op(a, "LOCK", 0, 10, 0, 10, ok), s.op(a, "LOCK", 5, 10, 5, 15, ok)
				return []here{{y, 0, ok, verdict.Same, 0}, {x, 0, no, verdict.Worse, verdict.Fails}}
			}},
			{"both refused, because of somebody else", func(s *lockScene) []here {
				x, y := s.op(a, "LOCK", 0, 10, 0, 10, no), s.op(b, "LOCK", 5, 10, 5, 15, no)
				return []here{{x, 0, ok, verdict.Different, verdict.SucceedsWrongly}, {y, 2, no, verdict.Same, 0}}
			}},
			{"refused, and tested by somebody else", func(s *lockScene) []here {
				x, y := s.op(a, "LOCK", 0, 10, 0, 10, no), s.op(b, "TEST", 5, 10, 5, 15, no)
				return []here{{x, 0, ok, verdict.Different, verdict.SucceedsWrongly}, {y, 2, no, verdict.Same, 0}}
			}},
			{"given up here in time", func(s *lockScene) []here {
				x := s.op(a, "LOCK", 0, 10, 0, 10, ok)
				u, y := s.op(a, "UNLOCK", 2, 3, 20, 30, ok), s.op(b, "LOCK", 2, 3, 20, 30, no)
				z := s.op(b, "TEST", 5, 1, 40, 41, no)
				return []here{{x, 0, ok, verdict.Same, 0}, {u, 1, ok, verdict.Same, 0}, {y, 1, ok, verdict.Explained, verdict.LocksTogether}, {z, 2, ok, verdict.Different, verdict.SucceedsWrongly}}
			}},
		} {
			s := newLockScene()
			s.check(t, c.name, c.scene(s))
		}
	}
}

// TestLockWaits: of those that wait for a lock, a server grants it to whom it likes, and may call at any time.
func TestLockWaits(t *testing.T) {
	s := newLockScene()
	x := s.op(1, "LOCK", 0, 0, 0, 1, ok)
	y := s.op(2, "LOCK", 10, 0, 10, 11, blocked)
	u := s.op(1, "UNLOCK", 0, 0, 20, 21, ok)
	z := s.op(1, "SHARED", 5, 10, 30, 31, ok)
	other := s.op(1, "SHARED", 0, 3, 32, 33, ok)
	c := s.op(2, "CANCEL", 10, 0, 40, 41, ok)
	w := s.op(1, "SHARED", 5, 10, 50, 51, ok)
	s.check(t, "waits", []here{
		{x, 0, ok, verdict.Same, 0}, {y, 1, blocked, verdict.Same, 0}, {u, 2, ok, verdict.Same, 0},
		{z, 3, blocked, verdict.Explained, verdict.LockWaits}, // y has it
		{other, 4, denied, verdict.Worse, 0},                  // other bytes
		{c, 5, ok, verdict.Same, 0}, {w, 6, denied, verdict.Explained, verdict.Unhappened},
	})
}

// TestLocksClosed: CLOSE gives up what was locked through the open.
func TestLocksClosed(t *testing.T) {
	s := newLockScene()
	x := s.op(3, "LOCK", 0, 10, 0, 1, ok)
	y := s.op(4, "LOCK", 0, 10, 20, 30, ok)
	cl := s.op(3, "CLOSE", 0, 0, 25, 26, ok)
	z := s.op(4, "SHARED", 0, 10, 40, 41, ok)
	u := s.op(4, "UNLOCK", 0, 10, 50, 51, ok)
	w := s.op(3, "LOCK", 0, 10, 60, 61, ok)
	s.check(t, "close", []here{
		{x, 0, ok, verdict.Same, 0}, {y, 1, denied4, verdict.Explained, verdict.LocksTogether}, {cl, 1, ok, verdict.Same, 0},
		{z, 3, uint32(nfs4.NFS4ERR_BAD_STATEID), verdict.Explained, verdict.Unhappened},
		{u, 4, ok, verdict.Same, 0}, {w, 5, ok, verdict.Same, 0},
	})
}

// TestLocksSaved: a run that goes on in another process knows whose locks are not those of the capture.
func TestLocksSaved(t *testing.T) {
	s := newLockScene()
	x, y := s.op(1, "LOCK", 0, 10, 0, 10, ok), s.op(2, "LOCK", 5, 10, 5, 15, denied)
	waits := s.op(2, "LOCK", 100, 1, 20, 21, blocked)
	z, w := s.op(1, "TEST", 5, 1, 40, 41, ok), s.op(1, "TEST", 100, 1, 50, 51, ok)
	j := New(&s.load, Options{})
	for _, h := range []here{{op: y, code: ok}, {op: x, code: denied}, {op: waits, code: blocked}} {
		j.Judge(&Reply{Op: h.op, Result: result(h.op, h.code)})
	}
	b, err := json.Marshal(j.Snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	var saved Snapshot
	if err := json.Unmarshal(b, &saved); err != nil {
		t.Fatal(err)
	}
	j = New(&s.load, Options{})
	j.Restore(&saved)
	for _, o := range []*plan.Op{z, w} {
		if v := j.Judge(&Reply{Op: o, Result: result(o, denied)}); v.Verdict != verdict.Explained {
			t.Errorf("op %d: %v, %+v", o.ID, v.Verdict, v.Reasons)
		}
	}
}

// TestManyLocks: what is noted of locks is bounded, and takes linear time.
func TestManyLocks(t *testing.T) {
	s := newLockScene()
	for i := range int64(3 * maxLocks) {
		s.op(3, "LOCK", uint64(20*i), 10, i, i, ok)
	}
	j := New(&s.load, Options{})
	for _, o := range s.load.Ops {
		j.Judge(&Reply{Op: o, Result: result(o, ok)})
	}
	l := &j.history(0).locks
	if n := len(l.files[1].held); n != maxLocks || l.kept != n {
		t.Errorf("%d locks are noted, %d counted", n, l.kept)
	}
	u := s.op(3, "UNLOCK", 5, 20*maxLocks, 1<<30, 1<<30, ok)
	j.Judge(&Reply{Op: u, Result: result(u, ok)})
	if n := l.files[1].held; len(n) != 1 || n[0].from != 0 || n[0].to != 4 || l.kept != 1 {
		t.Errorf("left: %+v, %d counted", n, l.kept)
	}
	c := s.op(3, "CLOSE", 0, 0, 1<<30, 1<<30, ok)
	if j.Judge(&Reply{Op: c, Result: result(c, ok)}); len(l.files) != 0 || l.kept != 0 {
		t.Errorf("left: %+v, %d counted", l.files, l.kept)
	}
}

// check judges replies. A call is sent before the replies that come after it.
func (s *lockScene) check(t *testing.T, name string, replies []here) {
	t.Helper()
	j := New(&s.load, Options{})
	at := func(n int64) time.Time { return time.Unix(n, 0) }
	for i, h := range replies {
		for _, later := range replies[i:] {
			if later.sent < h.sent+1 {
				j.Issued(0, later.op)
			}
		}
		v := j.Judge(&Reply{Op: h.op, Result: result(h.op, h.code), Issued: at(h.sent), Replied: at(h.sent + 1)})
		found := h.why == 0
		for _, r := range v.Reasons {
			found = found || r.Code == h.why
		}
		if v.Verdict != h.want || !found {
			t.Errorf("%s, program %d, %s (op %d): %v, %+v", name, h.op.Program, h.op.What, h.op.ID, v.Verdict, v.Reasons)
		}
	}
}
