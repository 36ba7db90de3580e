package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// checkOf is what check says of a sample.
func checkOf(t *testing.T, sample string, flags ...string) string {
	t.Helper()
	var out, diag bytes.Buffer
	args := append(append([]string{"check"}, flags...), filepath.Join(samples, sample))
	if code := run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &diag}); code != cli.ExitOK {
		t.Fatalf("%q: exit code %d\n%s", args, code, &diag)
	}
	return out.String()
}

// TestCheckCounts: of findings that are not shown the same is counted as of those that are.
func TestCheckCounts(t *testing.T) {
	shown := regexp.MustCompile(`(?m)^(?:note|warning|error) +([a-z0-9-]+)  \S+ frame `)
	known := regexp.MustCompile(`(?m)^(?:note|warning|error) +([a-z0-9-]+)  \S+, known, (\d+) times?:`)
	more := regexp.MustCompile(`(?m)^([a-z0-9-]+): (\d+) findings? more not shown`)
	hidden := regexp.MustCompile(`(\d+) notes? \((\d+) not shown`)
	for _, sample := range []string{"rocev2-nfs3-meta.pcap.zst", "rocev2-nfs41-recall.pcap", "iwarp-nfs3-loss.pcap.zst"} {
		for _, severity := range []string{"note", "warning"} {
			for _, profile := range []string{"rfc8166", "linux"} {
				flags := []string{"--severity", severity, "--profile", profile}
				want := map[string]int{}
				for _, m := range shown.FindAllStringSubmatch(checkOf(t, sample, append(flags, "--max", "0")...), -1) {
					want[m[1]]++
				}
				table := checkOf(t, sample, append(flags, "-q")...)
				for _, most := range []int{1, 2, 1000000} {
					out := checkOf(t, sample, append(flags, "--max", strconv.Itoa(most))...)
					if !strings.HasSuffix(out, table) {
						t.Errorf("%s %q --max %d: other counts than\n%s\nin\n%s", sample, flags, most, table, out)
					}
					have := map[string]int{}
					for _, m := range shown.FindAllStringSubmatch(out, -1) {
						if have[m[1]]++; have[m[1]] > most {
							t.Errorf("%s %q --max %d: %d of %s", sample, flags, most, have[m[1]], m[1])
						}
					}
					for _, m := range append(more.FindAllStringSubmatch(out, -1), known.FindAllStringSubmatch(out, -1)...) {
						n, _ := strconv.Atoi(m[2])
						have[m[1]] += n
					}
					if fmt.Sprint(have) != fmt.Sprint(want) {
						t.Errorf("%s %q --max %d: %v, want %v", sample, flags, most, have, want)
					}
				}
				if m := hidden.FindStringSubmatch(table); severity == "warning" && (m == nil || m[1] != m[2]) {
					t.Errorf("%s %q: notes that are hidden: %q", sample, flags, m)
				}
			}
		}
	}
}

// TestCheckNames: whatever is asked for, files of recalls have names if they are shown.
func TestCheckNames(t *testing.T) {
	const sample = "rocev2-nfs41-recall.pcap"
	named := regexp.MustCompile(`recall of stateid [^\n]*\([^)\n]*/[^)\n]*\)`)
	want := named.FindAllString(checkOf(t, sample, "--severity", "note", "--max", "0"), -1)
	if len(want) == 0 {
		t.Fatal("no recall with a name")
	}
	if got := named.FindAllString(checkOf(t, sample, "--severity", "note", "--max", "1"), -1); len(got) != 1 || got[0] != want[0] {
		t.Errorf("%q, want %q", got, want[0])
	}
	state := filepath.Join(t.TempDir(), "state")
	checkOf(t, sample, "--save-state", state)
	var out, diag bytes.Buffer
	if code := run([]string{"check", "--severity", "note", state}, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &diag}); code != cli.ExitOK {
		t.Fatal(code, &diag)
	}
	if got := named.FindAllString(out.String(), -1); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("saved: %q, want %q", got, want)
	}
}
