// Truthcheck compares the decoder's transactions with what the Linux kernel
// recorded about the same run. See package truth.
//
//	truthcheck compare --ndjson FILE --truth DIR|JSON [--extract DIR] [--capture FILE] [--taps N] [-v]
//	truthcheck folder CAPTURES_DIR --dump PATH [--only SUBSTRING] [--no-extract] [-v]
//	truthcheck compact [--capture FILE] DIR > NAME.truth.json
//
// It exits with 1 if there is a mismatch and with 2 if it is called wrongly.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/rpcrdma/toolkit/internal/testtools/truth"
)

const usage = `usage:
  truthcheck compare --ndjson FILE --truth DIR|JSON [--extract DIR] [--capture FILE] [--taps N] [-v]
  truthcheck folder CAPTURES_DIR --dump PATH_TO_RPCRDMA_DUMP [--only SUBSTRING] [--no-extract] [-v]
  truthcheck compact [--capture FILE] DIR > NAME.truth.json
`

// errMismatch is the result of a comparison that found something.
var errMismatch = errors.New("mismatches")

// usageError is a mistake in the command line.
type usageError struct{ error }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	err := error(usageError{errors.New("no command given")})
	if len(args) > 0 {
		switch args[0] {
		case "compare":
			err = compare(args[1:], stdout, stderr)
		case "folder":
			err = folder(args[1:], stdout, stderr)
		case "compact":
			err = compact(args[1:], stdout, stderr)
		default:
			err = usageError{fmt.Errorf("unknown command %q", args[0])}
		}
	}
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errMismatch):
		return 1
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "truthcheck: %v\n%s", err, usage)
		return 2
	}
	fmt.Fprintf(stderr, "truthcheck: %v\n", err)
	return 1
}

// parse allows options before and after the arguments.
func parse(fs *flag.FlagSet, args []string, stderr io.Writer) ([]string, error) {
	fs.SetOutput(stderr)
	fs.Usage = func() {}
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, usageError{err}
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

func compare(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	ndjson := fs.String("ndjson", "", "")
	truthPath := fs.String("truth", "", "")
	extract := fs.String("extract", "", "")
	capture := fs.String("capture", "", "")
	taps := fs.Int("taps", 1, "")
	verbose := fs.Bool("v", false, "")
	rest, err := parse(fs, args, stderr)
	if err != nil {
		return err
	}
	if len(rest) > 0 || *ndjson == "" || *truthPath == "" {
		return usageError{errors.New("compare needs --ndjson and --truth")}
	}
	t, err := truth.Load(*truthPath)
	if err != nil {
		return err
	}
	if *capture != "" {
		if err := t.MarkOutside(*capture); err != nil {
			return err
		}
	}
	var in io.Reader = os.Stdin
	if *ndjson != "-" {
		f, err := os.Open(*ndjson)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	txs, err := truth.ReadTransactions(in)
	if err != nil {
		return err
	}
	rep := truth.Compare(t, txs, truth.Options{Taps: *taps})
	if *extract != "" {
		if err := truth.CompareExtract(t, *extract, rep); err != nil {
			return err
		}
	}
	rep.Print(stdout, *verbose)
	if len(rep.Mismatches) > 0 {
		return errMismatch
	}
	return nil
}

func compact(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("compact", flag.ContinueOnError)
	capture := fs.String("capture", "", "")
	rest, err := parse(fs, args, stderr)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return usageError{errors.New("compact needs one directory")}
	}
	t, err := truth.LoadDir(rest[0])
	if err != nil {
		return err
	}
	if *capture != "" {
		if err := t.MarkOutside(*capture); err != nil {
			return err
		}
	}
	t.Trim()
	_, err = t.WriteTo(stdout)
	return err
}
