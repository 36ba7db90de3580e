package latency

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
)

// FuzzState makes reports of changed states, alone and together with a whole one. What can be read can be written, and
// is the same; its report is JSON.
func FuzzState(f *testing.F) {
	opt := Options{Top: 1, Inline: []uint32{1024}}
	whole := unit(f, filepath.Join(samples, "rocev2-nfs3-longcall.pcap"), opt)
	for _, name := range []string{"rocev2-nfs3-longcall.pcap", "rocev2-nfs41-recall.pcap", "rocev2-rping.pcap"} {
		f.Add(unit(f, filepath.Join(samples, name), opt).Section(SectionKind).Body)
	}
	var held holds.Memory
	f.Fuzz(func(t *testing.T, body []byte) {
		held.Start()
		fresh := memory{limit: DefaultMemory}
		defer held.End(t)
		u := state.NewUnit(state.Section{Kind: SectionKind, Version: SectionVersion, Body: body})
		s, err := read(u)
		if err != nil {
			return
		}
		for _, x := range s.tap.pieces {
			if x.part, err = x.load(&s.terms, &fresh); err != nil {
				t.Fatal(err)
			}
		}
		again := s.Section()
		back, err := read(state.NewUnit(again))
		if err != nil {
			t.Fatal(err)
		}
		if b := back.Section(); !bytes.Equal(b.Body, again.Body) {
			t.Fatal("it changes when it is written twice")
		}
		if _, err := json.Marshal(merged(t, u)); err != nil {
			t.Fatal(err)
		}
		m := NewMerger()
		if m.Survey(u) != nil || m.Survey(whole) != nil {
			t.Fatal("what was read is refused")
		}
		if m.Decide() != nil {
			return
		}
		var f state.File
		f.Add(u, whole)
		both, err := m.Report(&f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(both); err != nil {
			t.Fatal(err)
		}
	})
}
