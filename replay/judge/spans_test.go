package judge

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestSpans checks the tree against a search through the list.
func TestSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		s, p := &spans{}, &parts{}
		for range rng.IntN(400) {
			from := rng.Uint64N(10000)
			s.list = append(s.list, span{from, from + rng.Uint64N(20), rng.Int64N(50)})
			p.add(s.list[len(s.list)-1])
		}
		s.index()
		for range 50 {
			from := rng.Uint64N(10010)
			to, now := from+rng.Uint64N(10), rng.Int64N(60)
			want := false
			for _, x := range s.list {
				want = want || from < to && x.from < to && from < x.to && x.at <= now
			}
			if got := s.overlap(from, to, now); got != want {
				t.Fatalf("[%d, %d) at %d in %+v: %v", from, to, now, s.list, got)
			}
			if got := p.overlap(from, to, now); got != want {
				t.Fatalf("[%d, %d) at %d in parts of %+v: %v", from, to, now, s.list, got)
			}
		}
	}
	var none *spans
	var no *parts
	if none.overlap(0, 10, 0) || no.overlap(0, 10, 0) {
		t.Error("something in nothing")
	}
}

// BenchmarkCut judges as many replies as there are cut calls, each of which differs, and then
// twice as many of both. The ratio of the shortest times is about 2 if the time for each does not
// grow with their number.
func BenchmarkCut(b *testing.B) {
	w1, r1 := manyCuts(5000)
	w2, r2 := manyCuts(10000)
	shortest := [2]time.Duration{time.Hour, time.Hour}
	judge := func(i int, w *workload.Workload, replies []Reply) {
		start := time.Now()
		j := New(w, Options{})
		v := verdict.Of(verdict.Different, verdict.Reason{Code: verdict.FieldDiffers, At: verdict.Place{Path: "resok.mode", Field: "mode"}})
		for k := range replies {
			if _, ok := cutBefore(j, &replies[k], &v); ok {
				b.Fatal("explained")
			}
		}
		shortest[i] = min(shortest[i], time.Since(start))
	}
	for b.Loop() {
		judge(0, w1, r1)
		judge(1, w2, r2)
	}
	b.ReportMetric(float64(shortest[1])/float64(shortest[0]), "ratio")
}

// manyCuts is a workload of which n calls were cut, on names and ranges, and n replies about
// other objects.
func manyCuts(n int) (*workload.Workload, []Reply) {
	w := &workload.Workload{}
	w.Tables.Objects = []plan.Object{{ID: 1, Type: "dir", Base: true}}
	var replies []Reply
	for i := range n {
		id := len(w.Tables.Objects) + 1
		w.Tables.Objects = append(w.Tables.Objects, plan.Object{ID: id, Type: "file", Parent: 1, Name: fmt.Sprint("f", i)},
			plan.Object{ID: id + 1, Type: "file", Parent: 1, Name: fmt.Sprint("g", i)})
		w.Skips = append(w.Skips, &plan.Skip{Time: int64(i), Class: plan.Impossible, Code: plan.SkipCut,
			Touches: []plan.Touch{{Object: 1, Named: true, Name: fmt.Sprint("f", i)}, {Object: id, Ranged: true, Offset: uint64(i), Length: 10}}})
		replies = append(replies, Reply{Op: &plan.Op{ID: i + 1, Time: int64(n + i), Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_GETATTR,
			Args: []plan.Field{{Kind: plan.FieldHandle, Ref: id + 1}}, Expect: &plan.Expect{}}})
	}
	return w, replies
}

// TestWrittenUnexplained: nothing explains differences in bytes that this run wrote: no
// strangers, no failed call, no note of the plan and no cut call.
func TestWrittenUnexplained(t *testing.T) {
	w := &workload.Workload{}
	w.Tables.Objects = []plan.Object{{ID: 1, Type: "dir", Base: true}, {ID: 2, Type: "file", Parent: 1, Name: "f", Notes: []plan.Note{{Kind: plan.NoteChanged}}}}
	w.Skips = []*plan.Skip{{Class: plan.Impossible, Code: plan.SkipCut}}
	o := &plan.Op{ID: 1, Time: 10, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_READ, Class: plan.Inferred, Reasons: []string{"why"},
		Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 2}}, Expect: &plan.Expect{}}
	for code := range verdict.Codes() {
		j := New(w, Options{})
		j.history(0).unhappened[2] = &verdict.Call{ID: 7}
		v := verdict.Of(verdict.Different, verdict.Reason{Code: code})
		j.explain(&v, &Reply{Op: o}, true)
		if code.Written() && v.Verdict != verdict.Different {
			t.Errorf("%s is explained: %+v", code, v)
		}
		if code == verdict.FieldDiffers && v.Verdict != verdict.Explained {
			t.Errorf("%s is not explained: nothing is tested", code)
		}
	}
}
