package judge

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestUnprepared: what the capture does not show of objects from before the start could not be made as captured. What
// it shows, and what a call has set, must be right.
func TestUnprepared(t *testing.T) {
	n := func(v uint32) *uint32 { return &v }
	known := plan.Object{Type: "file", Origin: plan.Before, Mode: n(0o644), UID: n(1), GID: n(1), SizeClass: plan.Exact}
	with := func(f func(*plan.Object)) plan.Object { o := known; f(&o); return o }
	field := func(name, was, now string) verdict.Reason {
		return verdict.Reason{Code: verdict.FieldDiffers, Was: was, Now: now, At: verdict.Place{Path: "GETATTR[1].resok4.obj_attributes." + name, Field: name}}
	}
	mode, owner, group, access := field("mode", "a", "b"), field("owner", `"1"`, `"0"`), field("owner_group", `"1"`, `"0"`), field("access", "a", "b")
	size, nlink := field("size", "9", "5"), field("numlinks", "3", "2")
	noMode := with(func(o *plan.Object) { o.Mode = nil })
	base := with(func(o *plan.Object) { o.Type, o.Base = "dir", true })
	byName := with(func(o *plan.Object) { o.UID, o.GID, o.Owner, o.Group = nil, nil, "root@example.org", "7" })
	guessed := with(func(o *plan.Object) { o.SizeClass = plan.Inferred })
	linked := with(func(o *plan.Object) { o.Nlink, o.Links = 3, []plan.Link{{Parent: 2, Name: "x"}} })
	set := func(a nfs3.Sattr3) *nfs3.Sattr3 { return &a }
	for _, c := range []struct {
		name   string
		o      plan.Object
		set    *nfs3.Sattr3 // by a call before
		differ []verdict.Reason
		want   bool
	}{
		{"all is known", known, nil, []verdict.Reason{mode}, false},
		{"all is known, access", known, nil, []verdict.Reason{access}, false},
		{"no mode", noMode, nil, []verdict.Reason{mode}, true},
		{"no mode, access", noMode, nil, []verdict.Reason{access}, true},
		{"no mode, the owner", noMode, nil, []verdict.Reason{owner}, false},
		{"no mode, and the owner too", noMode, nil, []verdict.Reason{mode, owner}, false},
		{"no mode, and something else", noMode, nil, []verdict.Reason{mode, {Code: verdict.NamesAdded}}, false},
		{"no mode, and what does not matter", noMode, nil, []verdict.Reason{{Code: verdict.ServerLimits}, mode}, true},
		{"no mode, which was set", noMode, set(nfs3.Sattr3{Mode: nfs3.SetMode3{SetIt: true}}), []verdict.Reason{mode}, false},
		{"no mode, of which the owner was set", noMode, set(nfs3.Sattr3{Uid: nfs3.SetUid3{SetIt: true}}), []verdict.Reason{mode}, true},
		{"a name, not a number", byName, nil, []verdict.Reason{owner}, true},
		{"a number as text", byName, nil, []verdict.Reason{group}, false},
		{"a name, and the owner was set", byName, set(nfs3.Sattr3{Uid: nfs3.SetUid3{SetIt: true}}), []verdict.Reason{owner}, false},
		{"the base", base, nil, []verdict.Reason{mode, owner, group, access}, true},
		{"the base, after a change", base, set(nfs3.Sattr3{Mode: nfs3.SetMode3{SetIt: true}}), []verdict.Reason{mode}, false},
		{"made by the workload", with(func(o *plan.Object) { o.Mode, o.Origin = nil, plan.Created }), nil, []verdict.Reason{mode}, false},
		{"a size that was shown", known, nil, []verdict.Reason{size}, false},
		{"a size that was concluded", guessed, nil, []verdict.Reason{size}, true},
		{"a size that was concluded, longer here", guessed, nil, []verdict.Reason{field("size", "5", "9")}, false},
		{"a size that was concluded, and set", guessed, set(nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true}}), []verdict.Reason{size}, false},
		{"one name of three is missing", linked, nil, []verdict.Reason{nlink}, true},
		{"two names are missing", linked, nil, []verdict.Reason{field("numlinks", "3", "1")}, false},
		{"after another link", linked, nil, []verdict.Reason{field("numlinks", "4", "3")}, true},
		{"renamed by somebody else", with(func(o *plan.Object) { o.Nlink, o.Links = 1, []plan.Link{{Parent: 2, Name: "x"}} }), nil, []verdict.Reason{field("numlinks", "1", "2")}, true},
		{"a name too many", linked, nil, []verdict.Reason{field("numlinks", "2", "3")}, false},
		{"all names are shown", known, nil, []verdict.Reason{nlink}, false},
		{"another field", noMode, nil, []verdict.Reason{field("fileid", "1", "2")}, false},
		{"nothing", noMode, nil, nil, false},
	} {
		c.o.ID, c.o.Parent, c.o.Name = 1, 2, "f"
		load := &workload.Workload{}
		load.Tables.Objects = []plan.Object{c.o, {ID: 2, Type: "dir", Origin: plan.Before}}
		v := New(load, Options{})
		if c.set != nil {
			op := &plan.Op{ID: 1, Modifies: true, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_SETATTR,
				Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}
			op.Args = append(op.Args, plan.Field{N: "new_attributes", Kind: plan.FieldRaw, Bytes: c.set.Append(nil)}, plan.Field{N: "guard", Kind: plan.FieldU32})
			v.executed(&Reply{Op: op, Result: &nfs3.SETATTR3res{}})
			if v.history(0).expected.Asked(1) == (expected.Asked{}) {
				t.Fatal("the call was not understood")
			}
		}
		get := &plan.Op{ID: 9, Compound: &plan.Compound{Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}, {Op: uint32(nfs4.OP_GETATTR)}}}}
		if _, ok := unprepared(v, &Reply{Op: get}, &verdict.Judgement{Reasons: c.differ}); ok != c.want {
			t.Errorf("%s: %v", c.name, ok)
		}
	}
}

// TestDescribes: the object of a field, where results describe two, or are a listing.
func TestDescribes(t *testing.T) {
	load := &workload.Workload{}
	load.Tables.Objects = make([]plan.Object, 4)
	v := New(load, Options{})
	v.history(0).expected.Link(expected.Name{Dir: 1, Name: "b"}, 3)
	handle := func(id int) plan.Field { return plan.Field{Kind: plan.FieldHandle, Ref: id} }
	name := func(id int) plan.Field { return plan.Field{Kind: plan.FieldName, Ref: id} }
	bound := []plan.Bind{{Kind: plan.FieldHandle, Ref: 4}}
	two := &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{handle(1)}}, {Op: uint32(nfs4.OP_GETATTR)},
		{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{handle(2)}}, {Op: uint32(nfs4.OP_GETATTR)}}}
	for _, c := range []struct {
		name string
		op   *plan.Op
		at   verdict.Place
		want int
	}{
		{"GETATTR", &plan.Op{Args: []plan.Field{handle(1)}}, verdict.Place{Path: "resok.obj_attributes.mode"}, 1},
		{"LOOKUP", &plan.Op{Args: []plan.Field{handle(1), name(2)}}, verdict.Place{Path: "resok.obj_attributes.attributes.mode"}, 2},
		{"LOOKUP of a new one", &plan.Op{Args: []plan.Field{handle(1), name(0)}, Binds: bound}, verdict.Place{Path: "resok.obj_attributes.attributes.mode"}, 4},
		{"LOOKUP, the directory", &plan.Op{Args: []plan.Field{handle(1), name(2)}}, verdict.Place{Path: "resok.dir_attributes.attributes.mode"}, 1},
		{"LOOKUP that failed", &plan.Op{Args: []plan.Field{handle(1), name(0)}}, verdict.Place{Path: "resfail.dir_attributes.attributes.mode"}, 1},
		{"REMOVE", &plan.Op{Args: []plan.Field{handle(1), name(2)}}, verdict.Place{Path: "resok.dir_wcc.after.attributes.mode"}, 1},
		{"RENAME", &plan.Op{Args: []plan.Field{handle(1), name(2), handle(1), name(3)}}, verdict.Place{Path: "resok.todir_wcc.after.attributes.mode"}, 0},
		{"READDIRPLUS", &plan.Op{Args: []plan.Field{handle(1)}}, verdict.Place{Path: `resok.reply."b".name_attributes.mode`, Entry: "b", Listed: true}, 3},
		{"READDIRPLUS, another name", &plan.Op{Args: []plan.Field{handle(1)}}, verdict.Place{Path: `resok.reply."c".name_attributes.mode`, Entry: "c", Listed: true}, 0},
		{"first GETATTR", &plan.Op{Compound: two}, verdict.Place{Path: "GETATTR[1].resok4.obj_attributes.mode"}, 1},
		{"second GETATTR", &plan.Op{Compound: two}, verdict.Place{Path: "GETATTR[3].resok4.obj_attributes.mode"}, 2},
		{"beyond", &plan.Op{Compound: two}, verdict.Place{Path: "GETATTR[4].resok4.obj_attributes.mode"}, 0},
		{"none", &plan.Op{Compound: two}, verdict.Place{Path: "status"}, 0},
	} {
		if got := v.describes(&Reply{Op: c.op}, &c.at); got != c.want {
			t.Errorf("%s: object %d, want %d", c.name, got, c.want)
		}
	}
}
