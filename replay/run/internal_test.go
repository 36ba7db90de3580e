package run

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestBefore holds the captured order against its definition: every call that
// had its reply before another one began is, directly or through others, before
// it; and no other is.
func TestBefore(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		n := 2 + rnd.IntN(40)
		w := &Workload{}
		at := int64(0)
		for i := range n {
			at += rnd.Int64N(10)
			latency := rnd.Int64N(30)
			if rnd.IntN(10) == 0 {
				latency = -1
			}
			w.Ops = append(w.Ops, &plan.Op{ID: i + 1, Time: at, Latency: latency})
		}
		e := &engine{load: w}
		edges := map[int][]int{}
		e.before(edges)
		reach := make([]map[int]bool, n+1)
		for id := 1; id <= n; id++ {
			reach[id] = map[int]bool{}
			for _, d := range edges[id] {
				reach[id][d] = true
				for x := range reach[d] {
					reach[id][x] = true
				}
			}
			for d := 1; d < id; d++ {
				a, b := w.Ops[d-1], w.Ops[id-1]
				want := a.Latency >= 0 && a.Time+max(a.Latency, 1) <= b.Time
				if reach[id][d] != want {
					t.Fatalf("op %d [%d,+%d] before op %d [%d,+%d]: %v, want %v", d, a.Time, a.Latency, id, b.Time, b.Latency, reach[id][d], want)
				}
			}
		}
	}
}

func TestOverlay(t *testing.T) {
	s := time.Second
	out := overlay([]span{{0, 20 * s}, {10 * s, 20 * s}}, []span{{0, 40 * s}}, 40*s)
	if len(out) != overlayBins {
		t.Fatal(len(out))
	}
	for i, b := range out {
		want := 0.0
		switch {
		case i < overlayBins/4:
			want = 1
		case i < overlayBins/2:
			want = 2
		}
		if b.Original != want || b.Replay != 1 {
			t.Errorf("bin %d: %+v, want %g", i, b, want)
		}
	}
	if overlay(nil, nil, 0) != nil {
		t.Error("an overlay of nothing")
	}
}

func TestSamplesQuantiles(t *testing.T) {
	var s samples
	for i := range 1000 {
		s.add(time.Duration(1000 - i))
	}
	got := s.spread()
	want := Spread{Count: 1000, Min: 1, Mean: 500, P50: 500, P90: 900, P99: 990, Max: 1000}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for range 3 * maxSamples {
		s.add(7)
	}
	if len(s.values) > maxSamples || s.spread().P50 != 7 || s.spread().Max != 1000 {
		t.Errorf("%d values, %+v", len(s.values), s.spread())
	}
}

// attr is a reply to GETATTR.
func attr(change func(*nfs3.Fattr3)) *nfs3.GETATTR3res {
	r := &nfs3.GETATTR3res{}
	a := &r.Resok.ObjAttributes
	*a = nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o644, Nlink: 1, Size: 10, Used: 4096, Fileid: 7}
	if change != nil {
		change(a)
	}
	return r
}

func TestCompare(t *testing.T) {
	cases := map[string]struct {
		have       *nfs3.GETATTR3res
		equivalent []string
		different  int
	}{
		"same":       {attr(nil), nil, 0},
		"its own":    {attr(func(a *nfs3.Fattr3) { a.Fileid, a.Used, a.Ctime.Seconds = 9, 0, 5 }), nil, 0},
		"size":       {attr(func(a *nfs3.Fattr3) { a.Size = 11 }), nil, 1},
		"two fields": {attr(func(a *nfs3.Fattr3) { a.Size, a.Mode = 11, 0 }), nil, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var x comparison
			x.reset()
			x.want.fill(attr(nil))
			x.have.fill(c.have)
			x.run()
			if len(x.different) != c.different || len(x.equivalent) != len(c.equivalent) {
				t.Errorf("%q, %v", x.different, x.equivalent)
			}
		})
	}
	t.Run("directory", func(t *testing.T) {
		dir := func(size uint64) *nfs3.GETATTR3res {
			return attr(func(a *nfs3.Fattr3) { a.Type, a.Size = nfs3.NF3DIR, size })
		}
		var x comparison
		x.reset()
		x.want.fill(dir(4096))
		x.have.fill(dir(80))
		x.run()
		if len(x.different) != 0 || !x.equivalent[reasonDirSize] {
			t.Errorf("%q, %v", x.different, x.equivalent)
		}
	})
	t.Run("ignored", func(t *testing.T) {
		x := comparison{ignore: map[string]bool{"size": true}}
		x.reset()
		x.want.fill(attr(nil))
		x.have.fill(attr(func(a *nfs3.Fattr3) { a.Size = 5 }))
		x.run()
		if len(x.different) != 0 {
			t.Errorf("%q", x.different)
		}
	})
}

func TestEntriesInAnyOrder(t *testing.T) {
	list := func(names ...string) *nfs3.READDIR3res {
		r := &nfs3.READDIR3res{}
		for i, n := range names {
			r.Resok.Reply.Entries = append(r.Resok.Reply.Entries, nfs3.Entry3{Fileid: uint64(i), Name: []byte(n), Cookie: uint64(i)})
		}
		return r
	}
	var x comparison
	x.reset()
	x.want.fill(list(".", "..", "a", "b", "c"))
	x.have.fill(list("c", "a", "d"))
	x.run()
	if !slices.Equal(x.missing, []string{"b"}) || !slices.Equal(x.extra, []string{"d"}) || len(x.different) != 0 {
		t.Errorf("missing %q, extra %q, different %q", x.missing, x.extra, x.different)
	}
}

func TestSameUser(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0", "root", true}, {"root@local", "0", true}, {"1000", "1000", true}, {"u@x", "u@y", true},
		{"u@x", "1000", true}, {"1000", "0", false}, {"0", "u@x", false}, {"a@x", "b@x", false},
	} {
		if sameUser(c.a, c.b) != c.want || sameUser(c.b, c.a) != c.want {
			t.Errorf("%q and %q: want %v", c.a, c.b, c.want)
		}
	}
}

func TestMadeUp(t *testing.T) {
	v := &verifier{load: &Workload{}}
	v.load.Tables.Header.Payload = plan.Pattern
	b := make([]byte, 1000)
	plan.FillPattern(b, 3, 12345)
	if at := v.madeUp(b, 3, 12345); at >= 0 {
		t.Errorf("the pattern differs at %d", at)
	}
	clear(b[100:200]) // a hole
	if at := v.madeUp(b, 3, 12345); at >= 0 {
		t.Errorf("with a hole it differs at %d", at)
	}
	b[555] ^= 0x5a
	if at := v.madeUp(b, 3, 12345); at != 555 {
		t.Errorf("differs at %d, want 555", at)
	}
	v.load.Tables.Header.Payload = plan.Sparse
	clear(b)
	b[999] = 1
	if at := v.madeUp(b, 3, 0); at != 999 {
		t.Errorf("differs at %d, want 999", at)
	}
}
