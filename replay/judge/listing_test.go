package judge

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestListings: names may come in another order and in other replies, but at the end none may be
// left over.
func TestListings(t *testing.T) {
	type reply struct {
		names string // a letter each
		end   bool
	}
	directory := func(r reply) nfs4.Op {
		m := &nfs4.READDIR4res{}
		m.Resok4.Reply.Eof = r.end
		for i := range r.names {
			m.Resok4.Reply.Entries = append(m.Resok4.Reply.Entries, nfs4.Entry4{Cookie: uint64(i + 3), Name: []byte(r.names[i : i+1])})
		}
		return nfs4.Op{Number: uint32(nfs4.OP_READDIR), Body: m}
	}
	attributes := func(r reply) nfs4.Op {
		m := &nfs4.LISTXATTRS4res{LxrValue: nfs4.LISTXATTRS4resok{LxrEof: r.end}}
		for i := range r.names {
			m.LxrValue.LxrNames = append(m.LxrValue.LxrNames, []byte(r.names[i:i+1]))
		}
		return nfs4.Op{Number: uint32(nfs4.OP_LISTXATTRS), Body: m}
	}
	of := func(o nfs4.Op) *nfs4.CompoundRes {
		r := &nfs4.CompoundRes{}
		r.Ops = append(r.Ops, o)
		return r
	}
	// Each call continues the one named by from; 0 starts a new listing.
	type call struct {
		from       int
		want, have reply
		verdict    verdict.Verdict
	}
	same, other, wrong := verdict.Same, verdict.Equivalent, verdict.Different
	for name, calls := range map[string][]call{
		"the same":             {{0, reply{"ab", true}, reply{"ab", true}, same}},
		"another order":        {{0, reply{"ab", true}, reply{"ba", true}, same}},
		"another split":        {{0, reply{"ab", false}, reply{"b", false}, other}, {1, reply{"c", true}, reply{"ac", true}, other}},
		"later":                {{0, reply{"ab", false}, reply{"", false}, other}, {1, reply{"", true}, reply{"ab", true}, other}},
		"a lost name":          {{0, reply{"ab", false}, reply{"a", false}, other}, {1, reply{"c", true}, reply{"c", true}, wrong}},
		"a new name":           {{0, reply{"a", false}, reply{"ab", false}, other}, {1, reply{"c", true}, reply{"c", true}, wrong}},
		"a new name only":      {{0, reply{"", true}, reply{"a", true}, wrong}},
		"one that is given up": {{0, reply{"ab", false}, reply{"a", false}, other}, {0, reply{"ab", true}, reply{"ab", true}, same}},
		"two at a time": {{0, reply{"ab", false}, reply{"a", false}, other}, {0, reply{"ab", false}, reply{"b", false}, other},
			{2, reply{"c", true}, reply{"ac", true}, other}, {1, reply{"c", true}, reply{"c", true}, wrong}},
	} {
		for kind, make := range map[string]func(reply) nfs4.Op{"directory": directory, "attributes": attributes} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				load := &workload.Workload{}
				var live []*nfs4.CompoundRes
				for i, c := range calls {
					body := make(c.want)
					first := plan.Field{Kind: plan.FieldU64}
					if c.from > 0 {
						first = plan.Field{Kind: plan.FieldCookie, Op: c.from, Zero: true}
					}
					load.Ops = append(load.Ops, &plan.Op{ID: i + 1, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1,
						Compound: &plan.Compound{Minor: 2, Ops: []plan.CompoundOp{{Op: body.Number, Args: []plan.Field{first}}}},
						Expect:   &plan.Expect{Ops: []uint32{0}, Results: of(body).Append(nil)}})
					live = append(live, of(make(c.have)))
				}
				j := New(load, Options{})
				for i, c := range calls {
					v := j.Judge(&Reply{Op: load.Ops[i], Result: live[i], Data: noData{}})
					if v.Verdict != c.verdict {
						t.Errorf("call %d is %s, want %s: %+v", i+1, v.Verdict, c.verdict, v.Reasons)
					}
				}
			})
		}
	}
}

type noData struct{}

func (noData) Bytes(xdr.Data) []byte        { return nil }
func (noData) Hash(xdr.Data, []byte) string { return "" }

// TestUnlisted: a listing lacks what a call did not make here, and has what it did not remove. Other names are not explained.
func TestUnlisted(t *testing.T) {
	listing := func(names ...string) *nfs4.CompoundRes {
		m := &nfs4.READDIR4res{}
		m.Resok4.Reply.Eof = true
		for i, n := range names {
			m.Resok4.Reply.Entries = append(m.Resok4.Reply.Entries, nfs4.Entry4{Cookie: uint64(i + 3), Name: []byte(n)})
		}
		r := &nfs4.CompoundRes{}
		r.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.Status4res{}}, {Number: uint32(nfs4.OP_READDIR), Body: m}}
		return r
	}
	compound := func(dir int, op nfs4.NfsOpnum4, args ...plan.Field) *plan.Op {
		return &plan.Op{Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1, Expect: &plan.Expect{}, Compound: &plan.Compound{Minor: 1, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: dir}}}, {Op: uint32(op), Args: args}}}}
	}
	raw := func(b []byte) plan.Field { return plan.Field{Kind: plan.FieldRaw, Bytes: b} }
	for name, c := range map[string]struct {
		dir  int
		have []string
		want verdict.Verdict
	}{
		"not made":             {1, []string{"old"}, verdict.Explained},
		"made":                 {1, []string{"old", "new"}, verdict.Same},
		"another is missing":   {1, nil, verdict.Different},
		"another directory":    {2, []string{"old"}, verdict.Different},
		"not removed":          {1, []string{"old", "new", "gone"}, verdict.Explained},
		"another one is there": {1, []string{"old", "new", "gone", "more"}, verdict.Different},
	} {
		open := compound(1, nfs4.OP_OPEN, raw(make([]byte, 4)), raw(make([]byte, 8)), plan.Field{Kind: plan.FieldClient}, raw(make([]byte, 4)),
			raw((&nfs4.Openflag4{Opentype: nfs4.OPEN4_CREATE}).Append(nil)), raw(make([]byte, 4)), plan.Field{Kind: plan.FieldName, Text: "new"})
		remove := compound(1, nfs4.OP_REMOVE, plan.Field{Kind: plan.FieldName, Text: "gone"})
		list := compound(c.dir, nfs4.OP_READDIR, raw(make([]byte, 28)))
		list.Expect = &plan.Expect{Ops: []uint32{0, 0}, Results: listing("old", "new").Append(nil)}
		open.Modifies, remove.Modifies = true, true
		load := &workload.Workload{}
		load.Tables.Objects, load.Tables.Clients = []plan.Object{{ID: 1, Type: "dir"}, {ID: 2, Type: "dir"}}, []plan.Client{{ID: 1}}
		for i, o := range []*plan.Op{open, remove, list} {
			o.ID, load.Ops = i+1, append(load.Ops, o)
		}
		j := New(load, Options{})
		j.Unsent(0, open, verdict.NotSent)
		j.Unsent(0, remove, verdict.NotSent)
		if v := j.Judge(&Reply{Op: list, Result: listing(c.have...), Data: noData{}}); v.Verdict != c.want {
			t.Errorf("%s: %s %+v, lacking %v", name, v.Verdict, v.Reasons, j.history(0).lacking.names)
		}
	}
}

// TestMadeUpNames: names that the plan has made up are in no captured listing. They explain nothing else.
func TestMadeUpNames(t *testing.T) {
	listing := func(names ...string) *nfs3.READDIR3res {
		m := &nfs3.READDIR3res{}
		m.Resok.Reply.Eof = true
		for i, n := range names {
			m.Resok.Reply.Entries = append(m.Resok.Reply.Entries, nfs3.Entry3{Cookie: uint64(i + 1), Name: []byte(n)})
		}
		return m
	}
	for name, c := range map[string]struct {
		dir  int
		have []string
		want verdict.Verdict
	}{
		"nothing made up":         {1, []string{"a"}, verdict.Same},
		"made up":                 {1, []string{"a", "unnamed-1"}, verdict.Explained},
		"and one that is not":     {1, []string{"a", "b", "unnamed-1"}, verdict.Different},
		"and one that is missing": {1, []string{"unnamed-1"}, verdict.Different},
		"in another directory":    {2, []string{"a", "unnamed-1"}, verdict.Different},
	} {
		op := &plan.Op{ID: 1, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_READDIR,
			Args: []plan.Field{{Kind: plan.FieldHandle, Ref: c.dir}, {Kind: plan.FieldU64}}, Expect: &plan.Expect{Results: listing("a").Append(nil)}}
		load := &workload.Workload{Ops: []*plan.Op{op}}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "dir"}, {ID: 2, Type: "dir"}, {ID: 3, Type: "file", Parent: 1, Name: "unnamed-1", NameClass: plan.Synthesised}}
		if v := New(load, Options{}).Judge(&Reply{Op: op, Result: listing(c.have...), Data: noData{}}); v.Verdict != c.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestListingAgain: a client that begins in the middle of an earlier reply gets what this server has behind it. A name that nobody knows
// is wrong wherever it comes.
func TestListingAgain(t *testing.T) {
	listing := func(end bool, names string) *nfs3.READDIR3res {
		m := &nfs3.READDIR3res{}
		m.Resok.Reply.Eof = end
		for i := range names {
			m.Resok.Reply.Entries = append(m.Resok.Reply.Entries, nfs3.Entry3{Cookie: uint64(i + 1), Name: []byte(names[i : i+1])})
		}
		return m
	}
	op := func(id int, cookie plan.Field, end bool, names string) *plan.Op {
		return &plan.Op{ID: id, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_READDIR,
			Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}, cookie}, Expect: &plan.Expect{Results: listing(end, names).Append(nil)}}
	}
	for name, c := range map[string]struct {
		cookie      plan.Field
		first, have string
		end         bool
		want        [2]verdict.Verdict
	}{
		"the server's order":       {plan.Field{Kind: plan.FieldCookie, Op: 1, Value: 1}, "dcba", "ba", true, [2]verdict.Verdict{verdict.Same, verdict.Equivalent}},
		"the end of the directory": {plan.Field{Kind: plan.FieldCookie, Op: 1, Value: 3, Zero: true}, "dcba", "ba", true, [2]verdict.Verdict{verdict.Same, verdict.Different}},
		"invented":                 {plan.Field{Kind: plan.FieldCookie, Op: 1, Value: 1}, "dcba", "x", true, [2]verdict.Verdict{verdict.Same, verdict.Different}},
		"invented without an end":  {plan.Field{Kind: plan.FieldU64}, "wxyz", "uv", false, [2]verdict.Verdict{verdict.Different, verdict.Different}},
	} {
		load := &workload.Workload{Ops: []*plan.Op{op(1, plan.Field{Kind: plan.FieldU64}, true, "abcd"), op(2, c.cookie, true, "cd")}}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "dir"}}
		j := New(load, Options{Follow: true})
		for _, n := range []string{"a", "b", "c", "d"} {
			j.Expected(0).Link(expected.Name{Dir: 1, Name: n}, 0)
		}
		j.Expected(0).Whole(1)
		for i, m := range []*nfs3.READDIR3res{listing(c.end, c.first), listing(c.end, c.have)} {
			if v := j.Judge(&Reply{Op: load.Ops[i], Result: m, Data: noData{}}); v.Verdict != c.want[i] {
				t.Errorf("%s: call %d: %s %+v, want %s", name, i+1, v.Verdict, v.Reasons, c.want[i])
			}
		}
	}
}
