package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// count counts what a program executes for a capture. Valgrind counts exactly, however busy the machine is, and knows neither the
// kernel nor AVX-512, nor everywhere RDTSCP. One processor, no collection of garbage and no preemption: what is left of chance are
// some 30 instructions a packet. finds says that the program may find something, and then exits with 1.
func count(ctx context.Context, finds bool, args ...string) (uint64, error) {
	cmd := exec.CommandContext(ctx, "valgrind", append([]string{"--tool=callgrind", "--callgrind-out-file=/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off", "GOGC=off", "GOMAXPROCS=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if finds && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1 {
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
