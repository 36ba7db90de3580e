// Command fleetgen writes captures of many taps, made of a few captures: see package fleetgen.
//
//	fleetgen -taps 8 -slices 10 -o caps samples/*.pcap*
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/rpcrdma/toolkit/internal/testtools/fleetgen"
)

func main() {
	var opt fleetgen.Options
	flag.IntVar(&opt.Taps, "taps", 8, "how many taps")
	flag.IntVar(&opt.Slices, "slices", 10, "files of each tap")
	flag.IntVar(&opt.Repeat, "repeat", 1, "how often the captures follow one another at a tap, of other hosts each time")
	flag.Uint64Var(&opt.Seed, "seed", 1, "of the order of the captures")
	flag.DurationVar(&opt.Gap, "gap", 0, "time between one capture and the next at a tap (default 1s)")
	flag.BoolVar(&opt.Plain, "plain", false, "pcapng only, not compressed")
	out := flag.String("o", "", "folder to write to")
	flag.Parse()
	if flag.NArg() == 0 || *out == "" {
		fmt.Fprintln(os.Stderr, "usage: fleetgen [-taps N] [-slices N] [-repeat N] [-seed N] [-gap TIME] [-plain] -o FOLDER CAPTURE...")
		os.Exit(2)
	}
	if err := fleetgen.Write(*out, flag.Args(), opt); err != nil {
		fmt.Fprintln(os.Stderr, "fleetgen:", err)
		os.Exit(1)
	}
}
