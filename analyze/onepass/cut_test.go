package onepass

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// list is a Reader of packets in memory.
type list struct{ packets []capture.Packet }

func (l *list) Read(b *capture.Batch) error {
	b.Reset()
	if len(l.packets) == 0 {
		return io.EOF
	}
	for _, p := range l.packets {
		b.Append(p)
	}
	l.packets = nil
	return nil
}

func (*list) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (*list) Close() error                        { return nil }

// TestCut saves a Pass after any packet, goes on with another one, and compares what they find with what one finds that
// was not interrupted.
func TestCut(t *testing.T) {
	names := sampled.Captures(t, "*")
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(5, uint64(len(name))))
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
				return New(Options{Check: check.Options{Rules: check.All()}, Report: latency.Options{Top: 10}})
			}
			feed := func(p *Pass, packets []capture.Packet) {
				t.Helper()
				if err := p.Feed(&list{packets}); err != nil {
					t.Fatal(err)
				}
			}
			end := func(p *Pass) []state.Section {
				t.Helper()
				if err := p.Flush(); err != nil {
					t.Fatal(err)
				}
				x, err := p.Sections(nil)
				if err != nil {
					t.Fatal(err)
				}
				return x
			}
			whole := begin()
			feed(whole, all)
			want := end(whole)
			// Setups are at the beginning. Large captures are cut less often.
			cuts := []int{1 + rng.IntN(min(12, len(all)-1)), rng.IntN(len(all))}
			if st, err := os.Stat(name); err == nil && st.Size() < 256<<10 && !testing.Short() {
				for range 10 {
					cuts = append(cuts, 1+rng.IntN(min(20, len(all)-1)), rng.IntN(len(all)))
				}
			}
			for _, at := range cuts {
				first, second := begin(), begin()
				feed(first, all[:at])
				var b bytes.Buffer
				if err := first.Decoder().SaveState(&b, decode.StateOptions{Parts: first.Parts()}); err != nil {
					t.Fatal(err)
				}
				if _, err := second.Decoder().LoadState(b.Bytes(), decode.StateOptions{Parts: second.Parts()}); err != nil {
					t.Fatal(err)
				}
				feed(second, all[at:])
				got := end(second)
				for i := range want {
					if !bytes.Equal(got[i].Body, want[i].Body) {
						t.Errorf("cut after packet %d of %d: section %s differs", at, len(all), want[i].Kind)
					}
				}
			}
		})
	}
}
