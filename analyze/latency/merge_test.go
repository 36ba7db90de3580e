package latency

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// TestPartitions: whatever taps the connections of several captures are divided among, and in whatever order and
// groups the states are merged, saved and read, some of them several times, the report is the same, byte for byte.
// Only the notes and what was captured at each tap say how many taps there are.
func TestPartitions(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	opt := Options{Top: 2, Inline: []uint32{1024}}
	var pieces, rest []*piece // of one connection; what concerns all of a capture
	var options terms
	for _, name := range []string{"rocev2-nfs3-snaplen256.pcap.zst", "rocev2-nfs3-longcall.pcap", "iwarp-nfs41-recall.pcap"} {
		s, err := read(unit(t, filepath.Join(samples, name), opt))
		if err != nil {
			t.Fatal(err)
		}
		n := len(s.tap.pieces) - 1
		pieces, rest, options = append(pieces, s.tap.pieces[:n]...), append(rest, s.tap.pieces[n]), s.terms
	}
	if len(pieces) < 15 {
		t.Fatalf("only %d pieces", len(pieces))
	}
	slices.SortFunc(pieces, func(a, b *piece) int { return cmp.Compare(b.all, a.all) })
	random := rand.New(rand.NewPCG(1, 2))
	var want []byte
	for round := range rounds {
		// Two taps at least: with one, connections keep their numbers.
		taps := make([]*tap, 2+random.IntN(len(pieces)))
		for i := range taps {
			taps[i] = &tap{inputs: []string{"a"}, packets: uint64(i)}
		}
		taps[0].pieces = append(taps[0].pieces, rest...)
		for p := range pieces {
			x := taps[random.IntN(len(taps))]
			if p == 0 {
				x = taps[0] // which is not without transactions
			}
			x.pieces = append(x.pieces, pieces[p])
		}
		files := make([]*state.File, len(taps))
		for i, x := range taps {
			files[i] = &state.File{}
			files[i].Add(state.NewUnit((&State{terms: options, tap: x}).Section()))
		}
		for len(files) > 1 {
			i, j := random.IntN(len(files)), random.IntN(len(files))
			if i == j {
				continue
			}
			files[i].Merge(files[j])
			if random.IntN(4) == 0 { // as another process would
				f, err := state.Decode(files[i].Append(nil), 1<<30)
				if err != nil {
					t.Fatal(err)
				}
				files[i] = f
			}
			if random.IntN(4) > 0 { // otherwise delivered twice
				files[j] = files[len(files)-1]
				files = files[:len(files)-1]
			}
		}
		m := NewMerger()
		for _, i := range random.Perm(len(files[0].Units())) { // the order of the first pass makes no difference
			if err := m.Survey(files[0].Units()[i]); err != nil {
				t.Fatal(err)
			}
		}
		if left := m.Decide(); left != nil || m.Taps() != len(taps) {
			t.Fatalf("%d taps of %d, %v", m.Taps(), len(taps), left)
		}
		rep, err := m.Report(files[0])
		if err != nil {
			t.Fatal(err)
		}
		rep.Notes, rep.Inputs, rep.Packets = nil, nil, 0
		got, err := json.Marshal(rep)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			differ(t, "partition", bytes.ReplaceAll(got, []byte(","), []byte("\n")), bytes.ReplaceAll(want, []byte(","), []byte("\n")))
			t.Fatalf("round %d: %d taps", round, len(taps))
		}
	}
}
