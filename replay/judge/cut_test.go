package judge

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestTouched: a cut call explains what it could have touched, by object, name and range, and
// never bytes that this run has written.
func TestTouched(t *testing.T) {
	load := &workload.Workload{}
	load.Tables.Header.Payload = plan.Captured
	load.Tables.Objects = []plan.Object{{ID: 1, Type: "dir", Base: true}, {ID: 2, Type: "file", Parent: 1, Name: "f"}, {ID: 3, Type: "file", Parent: 1, Name: "g"}}
	on := func(proc uint32, object int, more ...plan.Field) *plan.Op {
		return &plan.Op{Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: proc, Time: 100, Args: append([]plan.Field{{Kind: plan.FieldHandle, Ref: object}}, more...),
			Expect: &plan.Expect{Data: []plan.Result{{Offset: 1000, Length: 100}}}}
	}
	read := func(object int) *plan.Op { return on(nfs3.NFSPROC3_READ, object) }
	list := on(nfs3.NFSPROC3_READDIRPLUS, 1)
	lookup := on(nfs3.NFSPROC3_LOOKUP, 1, plan.Field{Kind: plan.FieldName, Text: "f"})
	field := func(name string) verdict.Reason {
		return verdict.Reason{Code: verdict.FieldDiffers, At: verdict.Place{Path: "resok." + name, Field: name}}
	}
	entry := func(name string) verdict.Reason {
		return verdict.Reason{Code: verdict.FieldDiffers, At: verdict.Place{Path: "x", Field: "size", Listed: true, Entry: name}}
	}
	data := verdict.Reason{Code: verdict.DataDiffer, M: 1000, N: 100}
	fails := verdict.Reason{Code: verdict.Fails}
	write := plan.Touch{Object: 2, Ranged: true, Offset: 1050, Length: 10}
	beside := plan.Touch{Object: 2, Ranged: true, Offset: 5000, Length: 10}
	all, name := plan.Touch{Object: 2}, plan.Touch{Object: 1, Named: true, Name: "f"}
	for what, c := range map[string]struct {
		touches []plan.Touch // of a cut call
		reads   bool
		names   []string
		op      *plan.Op
		reason  verdict.Reason
		want    bool
	}{
		"anything, data":                    {op: read(2), reason: data, want: true},
		"anything, data written":            {op: read(2), reason: verdict.Reason{Code: verdict.WrittenDiffers}},
		"anything, file cut":                {op: read(2), reason: verdict.Reason{Code: verdict.FileShort}},
		"anything, made-up data":            {op: read(2), reason: verdict.Reason{Code: verdict.PatternDiffers}},
		"anything, lost":                    {op: read(2), reason: verdict.Reason{Code: verdict.WrittenLost}},
		"anything, a field":                 {op: read(2), reason: field("mode"), want: true},
		"nothing, a field":                  {reads: true, op: read(2), reason: field("mode")},
		"the range":                         {touches: []plan.Touch{write}, op: read(2), reason: data, want: true},
		"another range":                     {touches: []plan.Touch{beside}, op: read(2), reason: data},
		"another file":                      {touches: []plan.Touch{write}, op: read(3), reason: data},
		"all of the file":                   {touches: []plan.Touch{all}, op: read(2), reason: data, want: true},
		"a range, size":                     {touches: []plan.Touch{write}, op: read(2), reason: field("size"), want: true},
		"a range, mode":                     {touches: []plan.Touch{write}, op: read(2), reason: field("mode")},
		"the file, mode":                    {touches: []plan.Touch{all}, op: read(2), reason: field("mode"), want: true},
		"another file, mode":                {touches: []plan.Touch{all}, op: read(3), reason: field("mode")},
		"the name, not found":               {touches: []plan.Touch{name}, op: lookup, reason: fails, want: true},
		"another name, not found":           {touches: []plan.Touch{{Object: 1, Named: true, Name: "g"}}, op: lookup, reason: fails},
		"any name, not found":               {touches: []plan.Touch{{Object: 1, Named: true}}, op: lookup, reason: fails, want: true},
		"the name, its file":                {touches: []plan.Touch{name}, op: read(2), reason: fails, want: true},
		"the name, another file":            {touches: []plan.Touch{name}, op: read(3), reason: fails},
		"the file, its entry":               {touches: []plan.Touch{all}, op: list, reason: entry("f"), want: true},
		"the file, another entry":           {touches: []plan.Touch{all}, op: list, reason: entry("g")},
		"the name, missing":                 {touches: []plan.Touch{name}, op: list, names: []string{"f"}, reason: verdict.Reason{Code: verdict.NamesMissing}, want: true},
		"the name and another one, missing": {touches: []plan.Touch{name}, op: list, names: []string{"f", "g"}, reason: verdict.Reason{Code: verdict.NamesMissing}},
	} {
		load.Skips = []*plan.Skip{{Time: 50, Class: plan.Impossible, Code: plan.SkipCut, Touches: c.touches, Reads: c.reads}}
		j := New(load, Options{})
		j.names = c.names
		v := verdict.Of(verdict.Different, c.reason)
		if _, got := cutBefore(j, &Reply{Op: c.op}, &v); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
