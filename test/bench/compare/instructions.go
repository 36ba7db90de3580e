package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// instructions counts what programs execute for captures, by program and capture.
func instructions(ctx context.Context, programs []*program, inputs []*input) ([][]uint64, error) {
	if inputs[0].packets == inputs[1].packets {
		return nil, fmt.Errorf("%s and %s have as many packets: make one longer (internal/testtools/repeat -n)", inputs[0].path, inputs[1].path)
	}
	all := make([][]uint64, len(programs))
	for i, p := range programs {
		for _, in := range inputs {
			n, err := count(ctx, p, in)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], n)
			fmt.Fprintf(os.Stderr, "%s %s: %d instructions\n", filepath.Base(in.path), p.name, n)
		}
	}
	return all, nil
}

// count counts what a program executes for a capture. Valgrind counts exactly, however busy the machine is, and knows neither the
// kernel nor AVX-512, nor everywhere RDTSCP. One processor, no collection of garbage and no preemption: what is left of chance are
// some 30 instructions a packet.
func count(ctx context.Context, p *program, in *input) (uint64, error) {
	cmd := exec.CommandContext(ctx, "valgrind", append([]string{"--tool=callgrind", "--callgrind-out-file=/dev/null"}, p.args(in)...)...)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off", "GOGC=off", "GOMAXPROCS=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if p.finds && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1 {
		err = nil
	}
	var n uint64
	if err == nil {
		n, err = collected(stderr.Bytes())
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd, err, stderr.Bytes())
	}
	return n, nil
}

var collectedLine = regexp.MustCompile(`(?m)^==\d+== Collected : (\d+)$`)

// collected is the number of instructions in what valgrind prints.
func collected(log []byte) (uint64, error) {
	m := collectedLine.FindSubmatch(log)
	if m == nil {
		return 0, errors.New("valgrind counted nothing")
	}
	return strconv.ParseUint(string(m[1]), 10, 64)
}

// instructionTable writes what each packet takes: the difference of the two captures, so that the start of the program, and what
// is made once, do not count.
func instructionTable(w io.Writer, inputs []*input, programs []*program, counted [][]uint64) {
	short, long := inputs[0], inputs[1]
	if short.packets > long.packets {
		short, long = long, short
	}
	fmt.Fprintf(w, "\n### %s less %s\n\n%s packets\n\n", filepath.Base(long.path), filepath.Base(short.path), thousands(long.packets-short.packets))
	fmt.Fprintln(w, "| consumer | instructions a packet | × -q |")
	fmt.Fprintln(w, "|-|-:|-:|")
	each := func(n []uint64) float64 {
		return (float64(n[1]) - float64(n[0])) / (float64(inputs[1].packets) - float64(inputs[0].packets))
	}
	base := each(counted[0])
	for i, p := range programs {
		n := each(counted[i])
		fmt.Fprintf(w, "| %s | %.0f | %.2f |\n", p.name, n, n/base)
	}
}
