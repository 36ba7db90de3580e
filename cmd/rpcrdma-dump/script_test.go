package main

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// cutFile writes the first bytes of a file: cut FROM TO BYTES. A negative
// number leaves so many bytes off.
func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cut FROM TO BYTES")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	if n < 0 {
		n += len(b)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b[:min(n, len(b))], 0o644))
}

// gzipFile compresses a file: gzip FROM TO.
func gzipFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gzip FROM TO")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err = z.Write(b)
	ts.Check(errors.Join(err, z.Close()))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o644))
}

// exitCodeIs runs the command and demands an exit code: code N ARGS...
func exitCodeIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: code N ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("rpcrdma-dump", args[1:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// replaceBytes changes the first place of a file that has certain bytes:
// replace FROM TO HEX HEX.
func replaceBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: replace FROM TO HEX HEX")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	old, err := hex.DecodeString(args[2])
	ts.Check(err)
	with, err := hex.DecodeString(args[3])
	ts.Check(err)
	if !bytes.Contains(b, old) {
		ts.Fatalf("%s has no %s", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), bytes.Replace(b, old, with, 1), 0o644))
}
