package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestStill: a time that comes back after a change is an error, unless the server's clock may not
// have advanced, a client has set the time, or the change may have come before.
func TestStill(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	write := &plan.Op{ID: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_WRITE, Modifies: true, Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1},
		{Kind: plan.FieldU64}, {Kind: plan.FieldU32, Value: 4}, {Kind: plan.FieldU32}, {Kind: plan.FieldData, Data: &plan.Payload{Length: 4, Source: plan.Pattern, Object: 1}}}}
	get := &plan.Op{ID: 2, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_GETATTR, Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}
	attr := func(ns uint32) nfs3.Fattr3 {
		return nfs3.Fattr3{Mtime: nfs3.Nfstime3{Seconds: 5, Nseconds: ns}, Ctime: nfs3.Nfstime3{Seconds: 5, Nseconds: ns}}
	}
	type step struct {
		o             *plan.Op
		sent, replied int // ms
		ns            uint32
	}
	for name, c := range map[string]struct {
		tick  time.Duration
		steps []step
		want  bool
	}{
		"moves on":           {0, []step{{get, 0, 1, 1}, {write, 2, 3, 2}, {get, 4, 5, 2}}, false},
		"stands still":       {0, []step{{get, 0, 1, 1}, {write, 2, 3, 1}}, true},
		"stands still later": {0, []step{{get, 0, 1, 1}, {write, 2, 3, 2}, {get, 4, 5, 2}, {write, 6, 7, 2}}, true},
		"within a tick":      {20 * time.Millisecond, []step{{get, 0, 1, 1}, {write, 2, 3, 1}}, false},
		"after a tick":       {20 * time.Millisecond, []step{{get, 0, 1, 1}, {write, 30, 31, 1}}, true},
		"sent before":        {0, []step{{get, 0, 1, 1}, {get, 2, 9, 1}, {write, 3, 4, 2}}, false},
		"overtaken":          {0, []step{{get, 0, 1, 1}, {write, 3, 4, 2}, {get, 2, 9, 1}}, false},
		"whole milliseconds": {0, []step{{get, 0, 1, 3e6}, {write, 2, 3, 3e6}}, false},
		"whole, much later":  {0, []step{{get, 0, 1, 3e6}, {write, 5000, 5001, 3e6}}, true},
	} {
		w := &workload.Workload{}
		w.Tables.Header.Payload = plan.Pattern
		w.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}}
		j := New(w, Options{Tick: c.tick})
		found := false
		for _, s := range c.steps {
			var res xdr.Message
			if s.o == write {
				m := &nfs3.WRITE3res{}
				m.Resok.Count = 4
				m.Resok.Committed = nfs3.FILE_SYNC
				m.Resok.FileWcc.After = nfs3.PostOpAttr{AttributesFollow: true, Attributes: attr(s.ns)}
				res = m
			} else {
				m := &nfs3.GETATTR3res{}
				m.Resok.ObjAttributes = attr(s.ns)
				res = m
			}
			v := j.Judge(&Reply{Op: s.o, Result: res, Issued: at(s.sent), Replied: at(s.replied)})
			for _, r := range v.Reasons {
				found = found || r.Code == verdict.StoodStill
			}
		}
		if found != c.want {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// TestPlayedBack: two concurrent WRITEs are executed in the other order than captured. A server must then show the other change time last;
// captured replies that are played back cannot.
func TestPlayedBack(t *testing.T) {
	start := time.Unix(1000, 0)
	reply := func(ctime uint32) *nfs3.WRITE3res {
		m := &nfs3.WRITE3res{}
		m.Resok.Count, m.Resok.Committed = 4, nfs3.FILE_SYNC
		a := nfs3.Fattr3{Size: 8, Mtime: nfs3.Nfstime3{Seconds: ctime}, Ctime: nfs3.Nfstime3{Seconds: ctime}}
		m.Resok.FileWcc.After = nfs3.PostOpAttr{AttributesFollow: true, Attributes: a}
		return m
	}
	for name, c := range map[string]struct {
		live [2]uint32 // change times
		want []verdict.Code
	}{
		"played back":    {[2]uint32{5, 6}, nil},
		"another server": {[2]uint32{55, 56}, []verdict.Code{verdict.Invariant}},
		"in order":       {[2]uint32{56, 55}, nil},
	} {
		w := &workload.Workload{}
		w.Tables.Header.Payload = plan.Pattern
		w.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}}
		var list [2]*plan.Op
		for i := range list {
			list[i] = &plan.Op{ID: i + 1, Time: int64(i), Latency: 10, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_WRITE, Modifies: true,
				Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}, {Kind: plan.FieldU64, Value: uint64(4 * i)}, {Kind: plan.FieldU32, Value: 4}, {Kind: plan.FieldU32},
					{Kind: plan.FieldData, Data: &plan.Payload{Length: 4, Source: plan.Pattern, Object: 1}}},
				Expect: &plan.Expect{Results: reply(uint32(5 + i)).Append(nil)}}
		}
		w.Ops = list[:]
		j := New(w, Options{})
		var got []verdict.Code
		for n, i := range []int{1, 0} {
			at := start.Add(time.Duration(n) * time.Minute)
			args := &nfs3.WRITE3args{File: nfs3.NfsFh3{Data: []byte("file")}, Offset: uint64(4 * i), Count: 4}
			v := j.Judge(&Reply{Op: list[i], Args: args, Result: reply(c.live[i]), Issued: at, Replied: at.Add(time.Second)})
			for _, r := range v.Reasons {
				got = append(got, r.Code)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHandles: a handle belongs to one file; a file may have several handles.
func TestHandles(t *testing.T) {
	h := handles{}
	for i, c := range []struct {
		handle string
		file   uint64
		want   bool
	}{{"a", 1, true}, {"b", 1, true}, {"a", 1, true}, {"a", 2, false}, {"", 1, true}, {"", 2, true}} {
		if got := h.is([]byte(c.handle), c.file); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// TestReplyOverSession: a reply may be as long as the session allows.
func TestReplyOverSession(t *testing.T) {
	w := &workload.Workload{}
	create := &plan.Op{ID: 1, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: nfs4.NFSPROC4_COMPOUND}
	get := &plan.Op{ID: 2, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: nfs4.NFSPROC4_COMPOUND}
	w.Ops = []*plan.Op{create, get}
	one := func(number nfs4.NfsOpnum4, args, result xdr.Message) (*nfs4.CompoundArgs, *nfs4.CompoundRes) {
		operation := func(body xdr.Message) nfs4.Operations {
			return nfs4.Operations{Ops: []nfs4.Op{{Number: uint32(number), Body: body}}}
		}
		return &nfs4.CompoundArgs{Minorversion: 1, Operations: operation(args)}, &nfs4.CompoundRes{Operations: operation(result)}
	}
	for _, bytes := range []int{0, 2000, 2001} {
		j := New(w, Options{})
		session := &nfs4.CREATE_SESSION4res{}
		session.CsrResok4.CsrSessionid, session.CsrResok4.CsrForeChanAttrs.CaMaxresponsesize = [16]byte{1}, 2000
		a, r := one(nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{}, session)
		j.Judge(&Reply{Op: create, Args: a, Result: r})
		sequence := &nfs4.SEQUENCE4res{}
		sequence.SrResok4.SrSessionid = [16]byte{1}
		a, r = one(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: [16]byte{1}}, sequence)
		v := j.Judge(&Reply{Op: get, Args: a, Result: r, Bytes: bytes})
		found := slices.ContainsFunc(v.Reasons, func(r verdict.Reason) bool { return r.Code == verdict.Invariant })
		if found != (bytes > 2000) {
			t.Errorf("%d bytes: %v", bytes, v.Reasons)
		}
	}
}
