package judge

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestConsequence: what follows from a call that was not sent is explained, and nothing else.
func TestConsequence(t *testing.T) {
	const dir, sub, file = 1, 2, 3
	op := func(procedure uint32, args ...plan.Field) *plan.Op {
		modifies := procedure != nfs3.NFSPROC3_LOOKUP && procedure != nfs3.NFSPROC3_READ
		return &plan.Op{Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: procedure, Modifies: modifies, Class: plan.Exact, Args: args, Expect: &plan.Expect{}}
	}
	handle := func(id int) plan.Field { return plan.Field{Kind: plan.FieldHandle, Ref: id} }
	name := func(s string, id int) plan.Field { return plan.Field{Kind: plan.FieldName, Text: s, Ref: id} }
	sattr := func(mode, size bool) plan.Field {
		var a nfs3.Sattr3
		a.Mode.SetIt, a.Size.SetIt = mode, size
		return plan.Field{Kind: plan.FieldRaw, Bytes: a.Append(nil)}
	}
	lookup := func(in int, s string, id int) *plan.Op { return op(nfs3.NFSPROC3_LOOKUP, handle(in), name(s, id)) }
	mkdir := func(s string) *plan.Op {
		return op(nfs3.NFSPROC3_MKDIR, handle(dir), name(s, 0), sattr(false, false))
	}
	remove := func(in int, s string, id int) *plan.Op { return op(nfs3.NFSPROC3_REMOVE, handle(in), name(s, id)) }
	rename := func(from, to string) *plan.Op {
		return op(nfs3.NFSPROC3_RENAME, handle(dir), name(from, 0), handle(sub), name(to, 0))
	}
	setattr := func(mode, size bool) *plan.Op {
		return op(nfs3.NFSPROC3_SETATTR, handle(file), sattr(mode, size), plan.Field{Kind: plan.FieldU32})
	}
	read := op(nfs3.NFSPROC3_READ, handle(file), plan.Field{Kind: plan.FieldU64}, plan.Field{Kind: plan.FieldU32})
	fails := func(st nfs3.Nfsstat3) xdr.Message { return &nfs3.LOOKUP3res{Status: st} }
	for n, c := range map[string]struct {
		unsent, done, then *plan.Op
		status             nfs3.Nfsstat3
		want               verdict.Verdict
	}{
		"the name was not given":             {mkdir("d"), nil, lookup(dir, "d", 0), nfs3.NFS3ERR_NOENT, verdict.Explained},
		"another name":                       {mkdir("d"), nil, lookup(dir, "e", 0), nfs3.NFS3ERR_NOENT, verdict.Worse},
		"another directory":                  {mkdir("d"), nil, lookup(sub, "d", 0), nfs3.NFS3ERR_NOENT, verdict.Worse},
		"another error":                      {mkdir("d"), nil, lookup(dir, "d", 0), nfs3.NFS3ERR_IO, verdict.Worse},
		"it was given later":                 {mkdir("d"), mkdir("d"), lookup(dir, "d", 0), nfs3.NFS3ERR_NOENT, verdict.Worse},
		"it was there before":                {mkdir("kept"), nil, lookup(dir, "kept", 0), nfs3.NFS3ERR_NOENT, verdict.Worse},
		"the name was not taken":             {remove(dir, "kept", 0), nil, mkdir("kept"), nfs3.NFS3ERR_EXIST, verdict.Explained},
		"it was taken later":                 {remove(dir, "kept", 0), remove(dir, "kept", 0), mkdir("kept"), nfs3.NFS3ERR_EXIST, verdict.Worse},
		"not moved away":                     {rename("kept", "x"), nil, mkdir("kept"), nfs3.NFS3ERR_EXIST, verdict.Explained},
		"not moved here":                     {rename("kept", "x"), nil, lookup(sub, "x", 0), nfs3.NFS3ERR_NOENT, verdict.Explained},
		"nothing was moved":                  {nil, nil, lookup(sub, "x", 0), nfs3.NFS3ERR_NOENT, verdict.Worse},
		"what was in it was not removed":     {remove(sub, "f", file), nil, op(nfs3.NFSPROC3_RMDIR, handle(dir), name("sub", sub)), nfs3.NFS3ERR_NOTEMPTY, verdict.Explained},
		"nothing was in it":                  {remove(dir, "g", 0), nil, op(nfs3.NFSPROC3_RMDIR, handle(dir), name("sub", sub)), nfs3.NFS3ERR_NOTEMPTY, verdict.Worse},
		"its mode was not set":               {setattr(true, false), nil, read, nfs3.NFS3ERR_ACCES, verdict.Explained},
		"its size was not set":               {setattr(false, true), nil, read, nfs3.NFS3ERR_ACCES, verdict.Worse},
		"its mode was set later":             {setattr(true, false), setattr(true, false), read, nfs3.NFS3ERR_ACCES, verdict.Worse},
		"found in a directory that was made": {nil, nil, lookup(4, "b", 0), nfs3.NFS3ERR_NOENT, verdict.Explained},
		"found in another one":               {nil, nil, lookup(dir, "b", 0), nfs3.NFS3ERR_NOENT, verdict.Worse},
	} {
		load := &workload.Workload{}
		load.Tables.Objects = []plan.Object{{ID: dir, Type: "dir", Origin: plan.Before, Base: true}, {ID: sub, Type: "dir", Origin: plan.Before, Parent: dir, Name: "sub"},
			{ID: file, Type: "file", Origin: plan.Before, Parent: sub, Name: "f"}, {ID: 4, Type: "dir", Origin: plan.Created, CreatedBy: 1, Parent: dir, Name: "made"},
			{ID: 5, Type: "file", Origin: plan.Before, Parent: dir, Name: "unnamed-1", Notes: []plan.Note{{Kind: plan.NoteElsewhere, Name: "b"}}}}
		j := New(load, Options{})
		j.Expected(0).Link(expected.Name{Dir: dir, Name: "kept"}, 0)
		for i, o := range []*plan.Op{c.unsent, c.done, c.then} {
			if o != nil {
				o.ID, load.Ops = i+1, append(load.Ops, o)
			}
		}
		if c.unsent != nil {
			j.Unsent(0, c.unsent, verdict.NotSent)
		}
		if c.done != nil {
			results := map[uint32]xdr.Message{nfs3.NFSPROC3_MKDIR: &nfs3.MKDIR3res{}, nfs3.NFSPROC3_REMOVE: &nfs3.REMOVE3res{}, nfs3.NFSPROC3_SETATTR: &nfs3.SETATTR3res{}}
			j.Judge(&Reply{Op: c.done, Result: results[c.done.Procedure], Issued: time.Unix(100, 0), Replied: time.Unix(101, 0)})
		}
		// The rest may be judged by a run that goes on later.
		b, err := json.Marshal(j.Snapshot(nil))
		if err != nil {
			t.Fatal(err)
		}
		var saved Snapshot
		if err := json.Unmarshal(b, &saved); err != nil {
			t.Fatal(err)
		}
		j = New(load, Options{})
		j.Restore(&saved)
		v := j.Judge(&Reply{Op: c.then, Result: fails(c.status), Issued: time.Unix(200, 0), Replied: time.Unix(201, 0)})
		if v.Verdict != c.want {
			t.Errorf("%s: %s %+v", n, v.Verdict, v.Reasons)
		}
	}
}

// TestOtherOne: attributes of a file that was prepared elsewhere may be another one's. Those of others are not explained.
func TestOtherOne(t *testing.T) {
	size := func(n uint64) *nfs3.GETATTR3res {
		r := &nfs3.GETATTR3res{}
		r.Resok.ObjAttributes = nfs3.Fattr3{Type: nfs3.NF3REG, Size: n}
		return r
	}
	for object, want := range map[int]verdict.Verdict{1: verdict.Different, 2: verdict.Explained, 3: verdict.Different} {
		o := &plan.Op{ID: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_GETATTR, Class: plan.Exact,
			Args: []plan.Field{{Kind: plan.FieldHandle, Ref: object}}, Expect: &plan.Expect{Results: size(4).Append(nil)}}
		load := &workload.Workload{Ops: []*plan.Op{o}}
		note := []plan.Note{{Kind: plan.NoteElsewhere, Name: "f"}}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}, {ID: 2, Type: "file", Notes: note}, {ID: 3, Type: "dir", Notes: note}}
		if v := New(load, Options{}).Judge(&Reply{Op: o, Result: size(0)}); v.Verdict != want {
			t.Errorf("object %d: %s %+v", object, v.Verdict, v.Reasons)
		}
	}
}

// TestMention: the names in the arguments of an operation, and their directories.
func TestMention(t *testing.T) {
	put := func(id int) plan.CompoundOp {
		return plan.CompoundOp{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: id}}}
	}
	o := &plan.Op{Compound: &plan.Compound{Ops: []plan.CompoundOp{put(1), {Op: uint32(nfs4.OP_SAVEFH)}, put(2),
		{Op: uint32(nfs4.OP_RENAME), Args: []plan.Field{{Kind: plan.FieldName, Text: "from"}, {Kind: plan.FieldName, Text: "to", Ref: 7}}}}}}
	var got []expected.Name
	eachMention(o, 3, func(n expected.Name, object int) {
		if got = append(got, n); (object == 7) != (n.Name == "to") {
			t.Errorf("%+v is object %d", n, object)
		}
	})
	if len(got) != 2 || got[0] != (expected.Name{Dir: 1, Name: "from"}) || got[1] != (expected.Name{Dir: 2, Name: "to"}) {
		t.Errorf("%+v", got)
	}
}
