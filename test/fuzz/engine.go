package main

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// progress is what Go's fuzzing engine reports in its output.
type progress struct {
	seeds       uint64        // inputs that were run before fuzzing
	execs       uint64        // the seeds included
	elapsed     time.Duration // the seeds included
	seeding     time.Duration // until all seeds were run; 0 if they were not
	interesting int           // new ones of this run
	total       int           // size of the corpus
	fuzzing     bool
	failing     string // path of an input that failed, in the package's folder
	deadline    bool   // the engine ran out of time
	blind       bool   // no coverage is counted
	text        []string
}

// maxLine is how much of a line is shown, in bytes.
const maxLine = 2000

var (
	baselineLine = regexp.MustCompile(`^fuzz: elapsed: \S+, gathering baseline coverage: (\d+)/\d+ completed, now fuzzing`)
	statusLine   = regexp.MustCompile(`^fuzz: elapsed: (\S+), execs: (\d+) \(\d+/sec\)(?:, new interesting: (\d+) \(total: (\d+)\))?`)
	failureLine  = regexp.MustCompile(`^\s*Failing input written to (\S+)`)
)

// scan reads the engine's output. started is called when the seeds have been
// run.
func (p *progress) scan(r io.Reader, started func()) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		line := in.Text()
		if m := baselineLine.FindStringSubmatch(line); m != nil {
			p.seeds, _ = strconv.ParseUint(m[1], 10, 64)
			p.fuzzing = true
			started()
			continue
		}
		if m := statusLine.FindStringSubmatch(line); m != nil {
			p.elapsed, _ = time.ParseDuration(m[1])
			p.execs, _ = strconv.ParseUint(m[2], 10, 64)
			if m[3] != "" {
				p.interesting, _ = strconv.Atoi(m[3])
				p.total, _ = strconv.Atoi(m[4])
			}
			continue
		}
		if m := failureLine.FindStringSubmatch(line); m != nil {
			p.failing = m[1]
		}
		if strings.TrimSpace(line) == "context deadline exceeded" {
			p.deadline = true
		}
		if strings.HasPrefix(line, "warning: the test binary was not built with coverage instrumentation") {
			p.blind = true
		}
		if len(line) > maxLine {
			line = line[:maxLine] + "…"
		}
		if len(p.text) < 200 && !strings.HasPrefix(line, "fuzz: elapsed") {
			p.text = append(p.text, line)
		}
	}
	return in.Err()
}

// fuzzed counts the executions of inputs that the engine made.
func (p *progress) fuzzed() uint64 {
	if !p.fuzzing || p.execs < p.seeds {
		return 0
	}
	return p.execs - p.seeds
}
