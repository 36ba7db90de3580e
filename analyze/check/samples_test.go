package check

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

var update = flag.Bool("update", false, "write the golden file instead of comparing with it")

const samples = "../../samples"

// load reads a capture.
func load(tb testing.TB, file string) []capture.Packet {
	tb.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	var out []capture.Packet
	for {
		var b capture.Batch
		err := r.Read(&b)
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			out = append(out, p)
		}
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func sampleFiles(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(samples, "*.pcap*"))
	if err != nil || len(files) == 0 {
		tb.Fatal("there are no samples", err)
	}
	return files
}

// The samples are traffic of Linux. What is found in each of them is written
// down, rule by rule, with what could not be judged; nothing of it is an error.
func TestSamples(t *testing.T) {
	var out bytes.Buffer
	for _, file := range sampleFiles(t) {
		packets := load(t, file)
		name, _, _ := strings.Cut(filepath.Base(file), ".pcap")
		for p := range Profiles {
			r := run(Options{Profile: Profile(p), Rules: All()}, packets)
			fmt.Fprintf(&out, "%s %v:", name, Profile(p))
			for s := Error; s >= Note; s-- {
				fmt.Fprintf(&out, " %d %v", r.check.Totals()[s], s)
			}
			fmt.Fprintln(&out)
			for _, f := range r.findings {
				switch {
				case f.Severity == Error:
					t.Errorf("%s, %v:\n%s", name, Profile(p), describeFinding(f))
				case f.Severity == Warning && Profile(p) == Linux && f.Known != "":
					t.Errorf("%s: known deviation is a warning:\n%s", name, describeFinding(f))
				}
			}
			if Profile(p) != RFC8166 {
				continue
			}
			sameDecoded(t, name, r, runBy(Options{Profile: Profile(p), Rules: All()}, packets, true))
			for _, rule := range Rules() {
				n := r.check.Count(rule)
				if n.Found == 0 && n.Skipped() == 0 {
					continue
				}
				fmt.Fprintf(&out, "  %-6s %-26s found %d (%d known), judged %d", rule.Number, rule.ID, n.Found, n.Known, n.Judged)
				if n.Found > 0 {
					fmt.Fprintf(&out, ", first in frame %d", n.First.Number)
				}
				for why, k := range n.NotJudged {
					if k > 0 {
						fmt.Fprintf(&out, ", not judged %d: %v", k, Reason(why))
					}
				}
				fmt.Fprintln(&out)
			}
		}
	}
	golden := filepath.Join("testdata", "samples.txt")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	g, w := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("%s, line %d differs (go test -update, if this is right):\n%s", golden, i+1, strings.Join(g[i:min(i+1, len(g))], ""))
		}
	}
}

// sameDecoded compares what is found by Observer.Headers with what is found in decoded packets.
func sameDecoded(t *testing.T, name string, r, full result) {
	t.Helper()
	if !slices.EqualFunc(r.findings, full.findings, func(a, b *Finding) bool { return *a == *b }) {
		t.Errorf("%s: %d findings, %d in decoded packets, or others", name, len(r.findings), len(full.findings))
	}
	for _, rule := range Rules() {
		if a, b := r.check.Count(rule), full.check.Count(rule); *a != *b {
			t.Errorf("%s: %s: %+v, of decoded packets %+v", name, rule.ID, *a, *b)
		}
	}
}

// A capture of Linux that lacks packets has no errors either, and no warnings
// but those of the whole capture.
func TestSamplesWithLoss(t *testing.T) {
	for i, file := range sampled.Captures(t, "*") {
		packets := load(t, file)
		if len(packets) > 3500 {
			continue // long ones add time, not kinds
		}
		whole := run(Options{Rules: All()}, packets)
		allowed := make(map[string]bool)
		for _, f := range whole.findings {
			allowed[f.Rule.ID] = true
		}
		for seed := range uint64(6) {
			if testing.Short() && seed%3 != uint64(i%3) {
				continue
			}
			rng := rand.New(rand.NewPCG(seed, 7))
			p := []float64{0.001, 0.01, 0.1}[seed%3]
			lossy := slices.DeleteFunc(slices.Clone(packets), func(capture.Packet) bool { return rng.Float64() < p })
			if seed == 5 {
				lossy = packets[rng.IntN(len(packets)):]
			}
			for _, f := range run(Options{Rules: All()}, lossy).findings {
				if f.Severity == Error || f.Severity == Warning && !allowed[f.Rule.ID] {
					t.Errorf("%s, seed %d, %g lost:\n%s", filepath.Base(file), seed, p, describeFinding(f))
				}
			}
		}
	}
}

// TestSamplesCut cuts the packets of the samples, as a snapshot length does: that makes no error of what is none.
func TestSamplesCut(t *testing.T) {
	for i, file := range sampled.Captures(t, "*") {
		whole := load(t, file)
		if len(whole) > 6000 {
			continue
		}
		for k, n := range []int{64, 84, 100, 110, 128, 150, 170, 200, 256, 400} {
			if testing.Short() && k%5 != i%5 {
				continue
			}
			packets := slices.Clone(whole)
			for i := range packets {
				p := &packets[i]
				p.Data = p.Data[:min(n, len(p.Data))]
			}
			for _, f := range run(Options{Rules: All()}, packets).findings {
				if f.Severity == Error {
					t.Errorf("%s, cut to %d bytes:\n%s", filepath.Base(file), n, describeFinding(f))
					break
				}
			}
		}
	}
}
