package latency

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// oneTap is what one tap of a capture saw: with its own packet numbers and clock, from a packet on.
type oneTap struct {
	capture.Reader
	tap     uint16
	clock   int64
	skip, n int
}

func (r *oneTap) Read(b *capture.Batch) error {
	for {
		if err := r.Reader.Read(b); err != nil {
			return err
		}
		kept := b.Packets[:0]
		for _, p := range b.Packets {
			if p.Tap != r.tap {
				continue
			}
			if r.n++; r.n <= r.skip {
				continue
			}
			p.Number, p.Time, p.Tap = uint64(r.n-r.skip), p.Time+r.clock, 0
			kept = append(kept, p)
		}
		if b.Packets = kept; len(kept) > 0 {
			return nil
		}
	}
}

// atTap is the state of what one tap of both ends saw.
func atTap(t *testing.T, name string, tap uint16, clock int64, skip int) *State {
	t.Helper()
	in, err := capture.Open([]string{filepath.Join(samples, "rocev2-nfs3-loss.both.pcapng.zst")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	c := NewCollector(Options{Top: 5, Inline: DefaultInline})
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Observers: []decode.Observer{c.Observer()}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		c.Add(&v)
		v.Learn()
	})
	if err := d.Run(&oneTap{Reader: in, tap: tap, clock: clock, skip: skip}); err != nil {
		t.Fatal(err)
	}
	st := d.Stats()
	return c.State(Source{Inputs: []string{name}, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last})
}

// TestTwoTaps: of connections captured at both ends, the server's view counts, whatever the clocks say, and whichever
// capture began first. The truth is the server's own report, as long as it saw all connections.
func TestTwoTaps(t *testing.T) {
	const second = int64(1e9)
	for _, x := range []struct {
		name        string
		client      int64 // clock
		clientSkips int
		serverSkips int
		count       uint64 // transactions, if not those of the server
	}{
		{name: "same clock"},
		{name: "client ahead", client: 90 * second},
		{name: "client behind", client: -90 * second},
		{name: "client began late", clientSkips: 700},
		// Three transactions belong to connections that only the client saw.
		{name: "server began late", serverSkips: 300, count: 95 + 3},
		// Of the connection with most transactions the client's view counts: it saw four times as many.
		{name: "server saw the end only", serverSkips: 1500, count: 117},
	} {
		t.Run(x.name, func(t *testing.T) {
			client := func() *State { return atTap(t, "client", 1, x.client, x.clientSkips) }
			server := func() *State { return atTap(t, "server", 0, 0, x.serverSkips) }
			want, least := server().Report(), client().Report()
			var f state.File
			f.Add(state.NewUnit(client().Section()), state.NewUnit(server().Section()))
			got := merged(t, f.Units()...)
			if want.All.Count == 0 || least.All.Count == 0 {
				t.Fatalf("%d and %d transactions: the capture shows nothing", want.All.Count, least.All.Count)
			}
			if n := want.Packets + least.Packets; got.Packets != n {
				t.Errorf("%d packets, want %d", got.Packets, n)
			}
			told := false
			for _, n := range got.Notes {
				told = told || strings.Contains(n, "are not counted")
			}
			if !told {
				t.Errorf("nothing is said of what is not counted: %q", got.Notes)
			}
			if x.count != 0 {
				if n := got.All.Count; n != x.count {
					t.Errorf("%d transactions, want %d", n, x.count)
				}
				return
			}
			// What concerns the captures is different; rates depend on it.
			for _, r := range []*Report{got, want} {
				r.Inputs, r.Packets, r.Bytes, r.Notes, r.Series = nil, 0, 0, nil, Series{}
				r.Start, r.End, r.Span = Moment{}, Moment{}, 0
				for _, g := range append(r.Groups, r.All) {
					g.Rate, g.ByteRate = 0, 0
				}
			}
			if a, b := reportJSON(t, got), reportJSON(t, want); string(a) != string(b) {
				differ(t, "merged", a, b)
			}
		})
	}
}
