package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/rpcrdma/toolkit/internal/testtools/truth"
)

// capture is one file of a folder with its truth.
type capture struct {
	path  string
	name  string // file name without its suffix
	truth string // directory or compact JSON
	taps  int
}

// suffixes of captures; compressed ones have another after them.
var suffixes = []string{".pcap", ".pcapng"}

// findCaptures lists the captures of dir that have a truth: NAME.pcap,
// NAME.client.pcap (the same run captured at the other end) and
// NAME.both.pcapng (both captures merged) beside NAME.truth or
// NAME.truth.json.
func findCaptures(dir string) ([]capture, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []capture
	for _, e := range entries {
		name := e.Name()
		for _, z := range []string{".gz", ".zst"} {
			name = strings.TrimSuffix(name, z)
		}
		for _, s := range suffixes {
			base, ok := strings.CutSuffix(name, s)
			if !ok {
				continue
			}
			c := capture{path: filepath.Join(dir, e.Name()), name: base, taps: 1}
			run := strings.TrimSuffix(base, ".client")
			if r, ok := strings.CutSuffix(run, ".both"); ok {
				run, c.taps = r, 2
			}
			for _, t := range []string{run + ".truth", run + ".truth.json"} {
				if _, err := os.Stat(filepath.Join(dir, t)); err == nil {
					c.truth = filepath.Join(dir, t)
					list = append(list, c)
					break
				}
			}
		}
	}
	return list, nil
}

func folder(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("folder", flag.ContinueOnError)
	dump := fs.String("dump", "", "")
	only := fs.String("only", "", "")
	noExtract := fs.Bool("no-extract", false, "")
	verbose := fs.Bool("v", false, "")
	rest, err := parse(fs, args, stderr)
	if err != nil {
		return err
	}
	if len(rest) != 1 || *dump == "" {
		return usageError{errors.New("folder needs a directory and --dump")}
	}
	list, err := findCaptures(rest[0])
	if err != nil {
		return err
	}
	table := new(bytes.Buffer)
	w := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "capture\tRPCs\tmatched\ttransactions\tvalues\tfiles\texplained\tmismatches")
	bad, done := false, 0
	for _, c := range list {
		if !strings.Contains(c.name, *only) {
			continue
		}
		done++
		rep, err := check(*dump, c, !*noExtract, stderr)
		if err != nil {
			bad = true
			fmt.Fprintf(stdout, "%s: %v\n", c.name, err)
			fmt.Fprintf(w, "%s\t\t\t\t\t\t\tfailed\n", c.name)
			continue
		}
		rep.Name = c.name
		if len(rep.Mismatches)+len(rep.Notes) > 0 || *verbose {
			rep.Print(stdout, *verbose)
		}
		bad = bad || len(rep.Mismatches) > 0
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", c.name, rep.RPCs, rep.Matched, rep.Transactions,
			rep.Checks, rep.Files, len(rep.Explained), rep.Summary())
	}
	if done == 0 {
		return fmt.Errorf("%s: no capture with a truth", rest[0])
	}
	w.Flush()
	if _, err := table.WriteTo(stdout); err != nil {
		return err
	}
	if bad {
		return errMismatch
	}
	return nil
}

// check decodes one capture and compares it.
func check(dump string, c capture, extract bool, stderr io.Writer) (*truth.Report, error) {
	t, err := truth.Load(c.truth)
	if err != nil {
		return nil, err
	}
	if err := t.MarkOutside(c.path); err != nil {
		return nil, err
	}
	out, err := decode(dump, stderr, "-T", "ndjson", c.path)
	if err != nil {
		return nil, err
	}
	txs, err := truth.ReadTransactions(bytes.NewReader(out))
	if err != nil {
		return nil, err
	}
	rep := truth.Compare(t, txs, truth.Options{Taps: c.taps})
	if !extract {
		return rep, nil
	}
	dir, err := os.MkdirTemp("", "truthcheck-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := decode(dump, stderr, "--extract-data", dir, c.path); err != nil {
		return nil, err
	}
	return rep, truth.CompareExtract(t, dir, rep)
}

// exitTruncated is the exit status of rpcrdma-dump for input that was cut or
// damaged, after printing what could be decoded.
const exitTruncated = 3

func decode(dump string, stderr io.Writer, args ...string) ([]byte, error) {
	var out, complaints bytes.Buffer
	cmd := exec.Command(dump, args...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitTruncated {
		err = nil
	}
	if err != nil {
		text := complaints.Bytes()
		stderr.Write(text[:min(len(text), 4096)])
		return nil, fmt.Errorf("%s %s: %w", dump, strings.Join(args, " "), err)
	}
	return out.Bytes(), nil
}
