package onepass

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestEnded: captures follow one another. After each, what has ended is taken out, and another Pass goes on. All of it together has
// the bytes of one Pass that kept everything, and what a Pass keeps does not grow.
func TestEnded(t *testing.T) {
	const hours, apart = 6, 20 * time.Minute
	for _, name := range sampled.Captures(t, "*") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			var all []capture.Packet
			for p, err := range capture.Packets(open(t, name)) {
				if err != nil {
					t.Fatal(err)
				}
				x := *p
				x.Data = bytes.Clone(p.Data)
				all = append(all, x)
			}
			begin := func() *Pass {
				return New(Options{
					Check: check.Options{Rules: check.All()}, Report: latency.Options{Top: 10},
					Decode: decode.Options{RoCE: roce.Limits{Linger: 10 * time.Minute}},
				})
			}
			whole, now := begin(), begin()
			var ended []*state.Unit
			var sizes []int
			for range hours {
				for _, p := range []*Pass{whole, now} {
					if err := p.Feed(&list{all}); err != nil {
						t.Fatal(err)
					}
				}
				for i := range all {
					all[i].Time += int64(apart)
				}
				if x := now.Ended(); x != nil {
					ended = append(ended, reread(t, state.NewUnit(x...)))
				}
				var b bytes.Buffer
				if err := now.Decoder().SaveState(&b, decode.StateOptions{Parts: now.Parts()}); err != nil {
					t.Fatal(err)
				}
				sizes = append(sizes, b.Len())
				now = begin()
				if _, err := now.Decoder().LoadState(b.Bytes(), decode.StateOptions{Parts: now.Parts()}); err != nil {
					t.Fatal(err)
				}
			}
			end := func(p *Pass) *state.Unit {
				if err := p.Flush(); err != nil {
					t.Fatal(err)
				}
				x, err := p.Sections(nil)
				if err != nil {
					t.Fatal(err)
				}
				return state.NewUnit(x...)
			}
			want := end(whole)
			got, err := Join(reread(t, end(now)), ended)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range want.Sections() {
				if x := got.Section(s.Kind); x == nil || !bytes.Equal(x.Body, s.Body) {
					t.Errorf("section %s differs", s.Kind)
				}
			}
			if whole.Findings() != now.Findings() {
				t.Errorf("%d findings, want %d", now.Findings(), whole.Findings())
			}
			t.Log(sizes)
		})
	}
}

// reread is a unit as it comes out of a file.
func reread(t *testing.T, u *state.Unit) *state.Unit {
	t.Helper()
	var f state.File
	f.Add(u)
	x, err := state.Read(bytes.NewReader(f.Append(nil)), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return x.Units()[0]
}
