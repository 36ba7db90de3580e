// Package why_test judges rpcrdma-dump why: it runs the situations of a simulator, whose truth is known, and compares.
package why_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/programs"
	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

var (
	program = flag.String("program", "", "the rpcrdma-dump to be judged; empty: that of this checkout")
	seed    = flag.Uint64("seed", 1, "first seed of the runs; 0: any")
	seeds   = flag.Int("seeds", 1, "runs of each situation")
	only    = flag.String("only", "", "situations, a regular expression")
	keep    = flag.String("keep", "", "folder in which captures with a finding are kept")
	update  = flag.Bool("update", false, "write docs/reference/why.md")
)

// view is what a capture has of a run.
type view struct {
	name  string
	truth simulate.Truth
	point simulate.Point
	files map[string]func(io.Writer) error
	size  int // packets
}

// views are the captures of a run: at each point, from both ends at once, as two files or merged, and one that begins late and ends early.
func views(r *simulate.Told, draw *rand.Rand, merged bool) []view {
	file := func(r *simulate.Result, p simulate.Point) func(io.Writer) error {
		return func(w io.Writer) error { return r.WritePcap(w, p) }
	}
	var list []view
	for p := range simulate.Point(simulate.Points) {
		t := r.Truth(p, 0, math.MaxInt64)
		list = append(list, view{p.String(), t, p, map[string]func(io.Writer) error{p.String(): file(r.Result, p)}, r.Packets(p)})
	}
	off := r.Shift(simulate.AtServer, draw.Int64N(2_000_000)-1_000_000, 40*draw.Float64()-20)
	both := view{
		"client and server", r.Truth(simulate.AtServer, 0, math.MaxInt64), simulate.AtServer,
		map[string]func(io.Writer) error{"client": file(r.Result, simulate.AtClient), "server": file(off, simulate.AtServer)},
		r.Packets(simulate.AtClient) + r.Packets(simulate.AtServer),
	}
	if merged {
		both.name = "merged"
		both.files = map[string]func(io.Writer) error{"merged": func(w io.Writer) error { return r.WriteMerged(w, simulate.AtClient, off, simulate.AtServer) }}
	}
	list = append(list, both)
	if r.Config.Outage != nil || r.Config.AskedToWait != nil {
		return list
	}
	p := simulate.Point(draw.IntN(simulate.Points))
	wall := float64(r.Sums.Wall)
	from := r.Config.Start + int64(wall*0.3*draw.Float64())
	to := r.Config.Start + int64(wall*(0.8+0.2*draw.Float64()))
	c := r.Cut(from, to)
	return append(list, view{p.String() + ", cut", r.Truth(p, from, to), p, map[string]func(io.Writer) error{"cut": file(c, p)}, c.Packets(p)})
}

// outcome is what came of a situation.
type outcome struct {
	runs, caused, right, missing, timed int
	claims, wrong                       map[string]int
	findings                            []string
}

func (o *outcome) add(name string, v *verdict) {
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	o.runs++
	count(&o.caused, v.caused)
	count(&o.right, v.right)
	count(&o.missing, v.missing)
	count(&o.timed, v.timed)
	for _, c := range certainties {
		o.claims[c] += v.claims[c]
		o.wrong[c] += v.wrong[c]
	}
	for _, n := range v.notes {
		o.findings = append(o.findings, name+": "+n)
	}
}

// Shares that a table may have at most.
const (
	mostWrongCertain = 0
	mostWrongLikely  = 0.02
	mostNotFirst     = 0.15
	mostWrongTimes   = 0.10
)

func newOutcome() *outcome { return &outcome{claims: map[string]int{}, wrong: map[string]int{}} }

func built(t *testing.T) string {
	t.Helper()
	if *program != "" {
		return *program
	}
	dir := t.TempDir()
	if err := programs.Build(dir, "./cmd/rpcrdma-dump"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "rpcrdma-dump")
}

func TestWhy(t *testing.T) {
	dump := built(t)
	first := *seed
	if first == 0 {
		first = rand.Uint64()>>1 + 1
	}
	t.Logf("seed %d", first)
	match := regexp.MustCompile(*only)
	situations := simulate.Situations()
	outcomes := make([]*outcome, len(situations))
	var mu sync.Mutex
	var wait sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range situations {
		outcomes[i] = newOutcome()
		if !match.MatchString(situations[i].Name) {
			continue
		}
		if testing.Short() && (uint64(i)+first)%6 != 0 {
			continue
		}
		for k := range *seeds {
			limit <- struct{}{}
			wait.Go(func() {
				defer func() { <-limit }()
				judgeRun(t, dump, &situations[i], first+uint64(k), i, func(name string, v *verdict) {
					mu.Lock()
					defer mu.Unlock()
					outcomes[i].add(name, v)
				})
			})
		}
	}
	wait.Wait()
	all := newOutcome()
	var table, page strings.Builder
	line := func(name string, o *outcome) {
		fmt.Fprintf(&page, "| %s | %d | %d | %d | %d | %d | %d of %d | %d of %d |\n", name, o.runs, o.caused, o.right, o.timed, o.missing,
			o.wrong["certain"], o.claims["certain"], o.wrong["likely"], o.claims["likely"])
		fmt.Fprintf(&table, "%-42s %4d %5d %5d %5d %5d   %d/%d  %d/%d  %d/%d\n", name, o.runs, o.caused, o.right, o.missing, o.timed,
			o.wrong["certain"], o.claims["certain"], o.wrong["likely"], o.claims["likely"], o.wrong["possible"], o.claims["possible"])
	}
	for i, o := range outcomes {
		if o.runs == 0 {
			continue
		}
		line(situations[i].Name, o)
		all.runs += o.runs
		all.caused += o.caused
		all.right += o.right
		all.missing += o.missing
		all.timed += o.timed
		for _, c := range certainties {
			all.claims[c] += o.claims[c]
			all.wrong[c] += o.wrong[c]
		}
		slices.Sort(o.findings)
		all.findings = append(all.findings, o.findings...)
	}
	line("all", all)
	t.Logf("\n%-42s %4s %5s %5s %5s %5s   %s\n%s", "situation", "runs", "cause", "right", "none", "time", "wrong of claims: certain, likely, possible", table.String())
	for _, f := range all.findings {
		t.Log(f)
	}
	if *update && *only == "" {
		fmt.Fprintf(&page, "\nSeeds %d to %d.\n", first, first+uint64(*seeds)-1)
		if err := os.WriteFile("../../docs/reference/why.md", []byte(pageHead+page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all.runs == 0 {
		t.Errorf("no situation matches %q", *only)
	}
	if *only == "" {
		for _, f := range all.failed() {
			t.Error(f)
		}
	}
}

// pageHead is the part of docs/reference/why.md above its table.
const pageHead = `# How often why is right

**How far can one trust an answer of [why](../why.md)?** A simulator that shares no code with the decoder makes captures of
these situations, at the client, at the server, at a switch between them, at both ends, and cut. Its truth is known to the nanosecond.

RUNS is how many captures, SLOW how many of them have a cause to be found, FIRST how many of those have it as the first answer, on the
right side. TIME is how many of these say its time within 20 %, or 35 % where queues mix. NOTHING is how many of SLOW got no answer that
is at least likely. The last two columns count wrong claims among all claims of that certainty. Situations with iWARP in their
name run over TCP, the others over RoCEv2.

` + "`go test ./test/why -update -seeds 2`" + ` writes this page.

| situation | RUNS | SLOW | FIRST | TIME | NOTHING | wrong of certain | wrong of likely |
|---|--:|--:|--:|--:|--:|--:|--:|
`

// failed says what is worse than it may be. A wrong claim is worse than one that is missing.
func (o *outcome) failed() []string {
	var list []string
	most := func(what string, n, of int, share float64) {
		limit := share * float64(of)
		if testing.Short() && share > 0 {
			limit += 2 * math.Sqrt(limit) // one run of each situation: chance decides more than in the whole table, which CI makes
		}
		if float64(n) > limit {
			list = append(list, fmt.Sprintf("%s: %d of %d, at most %.0f %%", what, n, of, 100*share))
		}
	}
	most("certain and wrong", o.wrong["certain"], o.claims["certain"], mostWrongCertain)
	most("likely and wrong", o.wrong["likely"], o.claims["likely"], mostWrongLikely)
	most("the main cause is not first", o.caused-o.right, o.caused, mostNotFirst)
	most("its time is wrong", o.right-o.timed, o.right, mostWrongTimes)
	return list
}

// said is what the program says.
func said(dump string, args []string) ([]byte, error) {
	var notes bytes.Buffer
	cmd := exec.Command(dump, args...)
	cmd.Stderr = &notes
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 3 {
		return nil, fmt.Errorf("%w\n%s", err, notes.Bytes())
	}
	return out, nil
}

// judgeRun makes the run of the n-th situation and judges what the program says of its captures; with -short, of one of them.
func judgeRun(t *testing.T, dump string, s *simulate.Situation, seed uint64, n int, each func(string, *verdict)) {
	c := s.Draw(seed)
	r := simulate.Tell(c)
	dir := *keep
	if dir == "" {
		dir = t.TempDir()
		defer os.RemoveAll(dir) // all runs together take gigabytes
	}
	list := views(r, rand.New(rand.NewPCG(seed, 0)), (seed+uint64(len(s.Name)))%2 == 0)
	if testing.Short() {
		list = list[n%len(list):][:1]
	}
	for _, w := range list {
		name := fmt.Sprintf("%s, seed %d, %s", s.Name, seed, w.name)
		args := []string{"why", "-T", "json"}
		for k, write := range w.files {
			path := filepath.Join(dir, fmt.Sprintf("%s.%d.%s.pcap", strings.NewReplacer(" ", "_", ",", "").Replace(s.Name), seed, strings.ReplaceAll(k, " ", "_")))
			f, err := os.Create(path)
			if err == nil {
				err = write(f)
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				t.Error(err)
				return
			}
			args = append(args, path)
		}
		slices.Sort(args[3:])
		out, err := said(dump, args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rep, err := read(out, w.size)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(w.files) > 1 && n%4 == 0 {
			slices.Reverse(args[3:])
			if other, err := said(dump, args); err != nil || !bytes.Equal(out, other) {
				t.Errorf("%s: another answer to the files in another order: %v\n%s", name, err, other)
			}
		}
		each(name, judge(rep, expect(s, &c, w.truth, w.point)))
	}
}
