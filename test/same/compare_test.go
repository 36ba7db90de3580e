package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after result
		declared      string
		want          string // of the findings, or nothing
	}{
		{name: "the same", before: result{"stdout": []byte("a\n")}, after: result{"stdout": []byte("a\n")}},
		{name: "a line", before: result{"stdout": []byte("a\nb\nc\n")}, after: result{"stdout": []byte("a\nB\nc\n")}, want: "stdout: line 2: 1 lines, now 1\n  - b\n  + B\n"},
		{name: "a line more", before: result{"stdout": []byte("a\nc\n")}, after: result{"stdout": []byte("a\nb\nc\n")}, want: "stdout: line 2: 0 lines, now 1\n  - \n  + b\n"},
		{name: "declared", before: result{"stdout": []byte("{\"a\":1}\n")}, after: result{"stdout": []byte("{\"a\":1,\"b\":2}\n")}, declared: "^ndjson \t,\"b\":\\d+\tb is new"},
		{name: "declared for others", before: result{"stdout": []byte("1\n")}, after: result{"stdout": []byte("2\n")}, declared: "^json \t\\d\tdigits", want: "stdout: line 1: 1 lines, now 1\n  - 1\n  + 2\n"},
		{name: "status is never declared", before: result{"status": []byte("exit status 1")}, after: result{"status": []byte("exit status 2")}, declared: "\t.*\tall", want: "status: line 1: 1 lines, now 1\n  - exit status 1\n  + exit status 2\n"},
		{name: "a file is missing", before: result{"file x": nil}, after: result{}, want: "file x: is missing"},
		{name: "a new file", before: result{}, after: result{"file x": nil}, want: "file x: there was no such file"},
		{name: "bytes", before: result{"file x": {1, 0, 2}}, after: result{"file x": {1, 0, 3, 4}}, want: "file x: 3 bytes, now 4; the first difference is at 2\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "differences")
			if err := os.WriteFile(file, []byte("# comment\n\n"+test.declared+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			declared, err := readDifferences(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, f := range compare("ndjson x.pcap", test.before, test.after, declared) {
				got.WriteString(f.stream + ": " + f.text)
			}
			if got.String() != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got.String(), test.want)
			}
		})
	}
}

// TestDifferences: what is declared can be read, and each has a reason.
func TestDifferences(t *testing.T) {
	if _, err := readDifferences("differences"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"a\tb", "a\tb\t ", "(\tb\tc", "a\t(\tc"} {
		file := filepath.Join(t.TempDir(), "differences")
		if err := os.WriteFile(file, []byte(bad+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := readDifferences(file); err == nil || !strings.Contains(err.Error(), ":1: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
