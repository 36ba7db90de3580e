//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// selfExe stands for this program.
const selfExe = "self"

// program is a way to capture, or nobody who does. FILE in an argument is a file to write, and BUFFER the size of the ring.
type program struct {
	name string
	exe  string
	args []string // IFACE is added
	goal float64  // packets a second without drops; 0 for none
}

var all = []program{
	{"nobody", "", nil, 0},
	{"empty", selfExe, []string{emptyCommand}, 0},
	{"capture-null", "rpcrdma-dump", []string{"capture", "-w", "/dev/null", "-B", "BUFFER"}, 1e6},
	{"capture", "rpcrdma-dump", []string{"capture", "-w", "FILE", "-B", "BUFFER"}, 1e6},
	{"summary", "rpcrdma-dump", []string{"-q"}, 500e3},
	{"listing", "rpcrdma-dump", nil, 0},
	{"top", "rpcrdma-top", []string{"--batch", "0"}, 300e3},
}

// choose finds programs by their names, separated by commas.
func choose(names string) ([]program, error) {
	if names == "" {
		return all, nil
	}
	var list []program
	for s := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(p program) bool { return p.name == s })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no program %q", s)
		}
		list = append(list, all[i])
	}
	return list, nil
}

var (
	capturedText = regexp.MustCompile(`: (\d+) packets? captured, (\d+) dropped for lack of room`)
	droppedText  = regexp.MustCompile(`: (\d+) packets? dropped for lack of room`)
)

// counted is what a program has said of its packets. captured is -1 if it does not say.
func counted(diagnosis string) (captured, dropped int64, err error) {
	sum := func(list [][]string, group int) (n int64) {
		for _, m := range list {
			v, e := strconv.ParseInt(m[group], 10, 64)
			if e != nil {
				err = e
			}
			n += v
		}
		return n
	}
	if m := capturedText.FindAllStringSubmatch(diagnosis, -1); m != nil {
		return sum(m, 1), sum(m, 2), err
	}
	if m := droppedText.FindAllStringSubmatch(diagnosis, -1); m != nil {
		return -1, sum(m, 1), err
	}
	return 0, 0, fmt.Errorf("the program does not say what it captured: %s", diagnosis)
}
