package judge

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestMomentsForget: of a plan in a file, the judge holds the calls that may have been in flight
// together with a later one, and not more than there is room for, whatever the plan says.
func TestMomentsForget(t *testing.T) {
	name := filepath.Join(t.TempDir(), "plan")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := plan.NewFileWriter(f, name)
	if err != nil {
		t.Fatal(err)
	}
	tables := &plan.Tables{Header: plan.Header{Format: plan.Format}, Servers: []plan.Server{{ID: 1}}, Objects: []plan.Object{{ID: 1, Server: 1}}}
	if err := out.Tables(tables); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := workload.Open(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	op := func(id int, latency int64) *plan.Op {
		return &plan.Op{ID: id, Time: int64(id), Latency: latency, Modifies: true, Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}
	}
	held := func(j *Judge) int { return len(j.moments.changes[changeable{object: 1}].list) }

	j := New(w, Options{})
	for id := 1; id <= 1000; id++ {
		j.Read(op(id, 10), 100)
		j.Forget(int64(id - 5))
	}
	if n := held(j); n > 20 || len(j.moments.held) != n || j.moments.text != 100*n {
		t.Errorf("%d calls are held, %d bytes", n, j.moments.text)
	}
	if why := j.moments.reason(op(1000, 10), false); why.Code != verdict.Together || why.Call.ID != 1000 {
		t.Errorf("%+v", why)
	}
	if why := j.moments.reason(op(2000, 10), false); why.Code != verdict.None {
		t.Errorf("%+v", why)
	}
	if why := j.moments.reason(op(2000, 10), true); why.Code != verdict.SentAgain {
		t.Errorf("what was forgotten has not happened: %+v", why)
	}
	if n, _ := j.Short(); n != 0 {
		t.Errorf("no room for %d", n)
	}

	// A call that was sent before keeps those of that time, until it is over.
	j = New(w, Options{})
	for id := 1; id <= 10; id++ {
		j.Read(op(id, 0), 100)
	}
	late := op(1000, 10)
	late.Before = 995
	j.Read(late, 100)
	if j.Forget(900); held(j) != 7 {
		t.Errorf("%d calls are held for one that was sent before", held(j))
	}
	if why := j.moments.reason(late, false); why.Code != verdict.Together || why.Call.ID != 10 {
		t.Errorf("%+v", why)
	}
	if j.Forget(1011); held(j) != 0 {
		t.Errorf("%d calls are held when it is over", held(j))
	}

	j = New(w, Options{})
	for id := 1; id <= 3*maxSilent; id++ {
		j.Read(op(id, -1), 100)
	}
	if n, _ := j.Short(); n != 2*maxSilent || held(j) != maxSilent {
		t.Errorf("%d calls without a reply are held, no room for %d", held(j), n)
	}
	j = New(w, Options{})
	for id := 1; id <= 100; id++ {
		j.Read(op(id, 1<<62), maxHeldText/10)
	}
	if n, _ := j.Short(); n != 90 || held(j) != 10 {
		t.Errorf("%d large calls are held, no room for %d", held(j), n)
	}
}
