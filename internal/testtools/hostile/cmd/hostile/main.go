// Command hostile writes the captures that the project's limits are measured
// with.
//
//	hostile                      lists them
//	hostile NAME [N] >FILE       writes one, with N units
//	hostile -all DIR             writes all into a directory, as NAME.pcap
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rpcrdma/toolkit/internal/testtools/hostile"
)

func main() {
	all := flag.String("all", "", "write all into this `directory`")
	percent := flag.Int("percent", 100, "how much of the documented size, with -all")
	flag.Parse()
	if err := run(*all, *percent, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(dir string, percent int, args []string) error {
	switch {
	case dir != "":
		for _, k := range hostile.Kinds() {
			f, err := os.Create(filepath.Join(dir, k.Name+".pcap"))
			if err != nil {
				return err
			}
			err = k.Write(f, max(1, k.Table*percent/100))
			if e := f.Close(); err == nil {
				err = e
			}
			if err != nil {
				return err
			}
		}
		return nil
	case len(args) == 0:
		for _, k := range hostile.Kinds() {
			fmt.Printf("%-16s %9d %s\n", k.Name, k.Table, k.Unit)
		}
		return nil
	}
	k, err := hostile.Find(args[0])
	if err != nil {
		return err
	}
	n := k.Table
	if len(args) > 1 {
		if n, err = strconv.Atoi(args[1]); err != nil {
			return err
		}
	}
	return write(os.Stdout, k, n)
}

func write(f io.Writer, k hostile.Kind, n int) error {
	w := bufio.NewWriter(f)
	if err := k.Write(w, n); err != nil {
		return err
	}
	return w.Flush()
}
