package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// TestHostileText looks at every output of every command for characters that bite.
func TestHostileText(t *testing.T) {
	dir := t.TempDir()
	meta, recall := samples+"/rocev2-nfs3-meta.pcap.zst", samples+"/rocev2-nfs41-recall.pcap"
	in := clitest.Hostile(t, dir, meta)
	dir41 := t.TempDir()
	in41 := clitest.Hostile(t, dir41, recall)
	var fields []string
	for _, f := range filter.Fields() {
		fields = append(fields, "-e", f.Name)
	}
	with := func(args ...string) []string { return append(args, "--no-icrc") }
	type output struct {
		args  []string
		json  bool // each line is JSON
		shows bool // there is text of the capture in it
	}
	files := []string{in, in41}
	if testing.Short() {
		files = files[1:]
	}
	for _, file := range files {
		for _, o := range []output{
			{args: with(), shows: true},
			{args: with("--width", "-1"), shows: true},
			{args: with("-v"), shows: true},
			{args: with("-vv", "-x"), shows: true},
			{args: with("-T", "ndjson"), json: true, shows: true},
			{args: with("-T", "json"), shows: true},
			{args: with(append([]string{"-T", "fields"}, fields...)...), shows: true},
			{args: with("-T", "fields", "-e", "file.path", "-E", "quote=d"), shows: true},
			{args: with("-q")},
			{args: with("packets")},
			{args: with("connections")},
			{args: with("connections", "-T", "json")},
			{args: with("operations")},
			{args: with("operations", "-T", "ndjson"), json: true},
			{args: with("packets", "-T", "ndjson", "-a"), json: true},
			{args: with("operations", "--decode-as", "\x1b[2J\u202e=nvme")},
			{args: with("report", "--view", "fabric")},
			{args: with("report", "--view", "fabric", "-T", "json")},
			{args: with("connections", "-T", "ndjson")},
			{args: with("connections", "-v")},
			{args: with("show", "-v", "XID"), shows: true},
			{args: with("show", "-T", "json", "XID"), shows: true},
			{args: with("report"), shows: true},
			{args: with("report", "-v", "--by", "file"), shows: true},
			{args: with("report", "-T", "json", "--by", "file"), shows: true},
			{args: with("report", "--html", "-", "--by", "file"), shows: true},
			{args: with("report", "--html", "-")},
			{args: append(with("diff", "--html", "-", "--by", "file"), file), shows: true},
			{args: with("check")},
			{args: with("check", "-T", "json")},
			{args: with("check", "-T", "ndjson")},
			{args: with("export", "trace", "-w", "-"), shows: true},
			{args: with("capture", "-r", file+"x", "-w", "-")},
			{args: with(file + "/none")},
			{args: with("-Y", file)},
			{args: with("--color", file)},
			{args: with("-T", "\x1b[2J\u202e")},
			{args: with("export", "trace", "-w", dir+"/none\u202e/x")},
			{args: with("--no\u202e")},
			{args: with("kernel", "--ftrace", file)},
		} {
			args := append(o.args, file)
			if len(o.args) > 1 && o.args[0] == "capture" {
				args = o.args[:len(o.args)-1]
			}
			if i := slices.Index(args, "XID"); i >= 0 {
				args = slices.Concat(args[:i], xids(t, file), args[i+1:])
			}
			var out, problems bytes.Buffer
			code := run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems})
			what := strings.Join(args[:len(args)-1], " ")
			if len(what) > 60 {
				what = what[:60]
			}
			if raw := clitest.Raw(out.String()); raw != "" {
				t.Errorf("%q shows %q", what, raw)
			}
			if raw := clitest.Raw(problems.String()); raw != "" {
				t.Errorf("%q says %q", what, raw)
			}
			if o.shows && (code != 0 && code != 3 || !clitest.Shown(out.String())) {
				t.Errorf("%q: exit status %d: nothing of the hostile text is there: %.200q, %.300q", what, code, out.String(), problems.String())
			}
			if o.json {
				for line := range strings.Lines(out.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("%q: not JSON: %.200q", what, line)
						break
					}
				}
			}
		}
		var out, problems bytes.Buffer
		if code := run([]string{"diff", "--no-icrc", "--by", "file", file, file}, &cli.Streams{Out: &out, Err: &problems}); code != 0 && code != 3 || clitest.Raw(out.String()+problems.String()) != "" || !clitest.Shown(out.String()) {
			t.Errorf("diff: %d, %q, %.100q", code, clitest.Raw(out.String()+problems.String()), out.String())
		}
		out.Reset()
		if run([]string{"diff", "-T", "json", "--no-icrc", "--by", "file", file, file}, &cli.Streams{Out: &out, Err: &problems}); clitest.Raw(out.String()) != "" || !clitest.Shown(out.String()) {
			t.Errorf("diff -T json: %q", clitest.Raw(out.String()))
		}
	}
	t.Run("annotate", func(t *testing.T) { hostileComments(t, in) })
	t.Run("extract", func(t *testing.T) { hostileFiles(t, in, in41) })
}

// xids returns the XIDs of a capture's calls that have a file.
func xids(t *testing.T, file string) []string {
	t.Helper()
	var out, problems bytes.Buffer
	if code := run([]string{"--no-icrc", "-Y", "file.path", "-T", "fields", "-e", "xid", "-c", "30", file}, &cli.Streams{Out: &out, Err: &problems}); code != 0 {
		t.Fatal(problems.String())
	}
	return strings.Fields(out.String())
}

// hostileComments reads the comments of annotate from the file: after the packet, as options with code 1.
func hostileComments(t *testing.T, in string) {
	out := filepath.Join(t.TempDir(), "out.pcapng")
	var problems bytes.Buffer
	if code := run([]string{"annotate", "--no-icrc", "-w", out, in}, &cli.Streams{Out: &bytes.Buffer{}, Err: &problems}); code != 0 && code != 3 {
		t.Fatal(problems.String())
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	le := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24 }
	for len(b) > 12 {
		length := le(b[4:])
		block := b[:length]
		if le(block) == 6 {
			options := block[28+(le(block[20:])+3)&^3 : length-4]
			for len(options) >= 4 {
				code, l := int(options[0])|int(options[1])<<8, int(options[2])|int(options[3])<<8
				if code == 1 {
					n++
					if raw := clitest.Raw(string(options[4 : 4+l])); raw != "" {
						t.Errorf("comment %q", raw)
					}
				}
				options = options[4+(l+3)&^3:]
			}
		}
		b = b[length:]
	}
	if n < 10 {
		t.Errorf("%d comments", n)
	}
}

// hostileFiles extracts files whose names a peer has chosen.
func hostileFiles(t *testing.T, inputs ...string) {
	total := 0
	for _, in := range inputs {
		dir := filepath.Join(t.TempDir(), "files")
		var problems bytes.Buffer
		if code := run([]string{"-q", "--no-icrc", "--extract-data", dir, in}, &cli.Streams{Out: &bytes.Buffer{}, Err: &problems}); code != 0 && code != 3 {
			t.Fatal(problems.String())
		}
		if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || name == dir {
				return err
			}
			total++
			if base := d.Name(); clitest.Raw(base) != "" || strings.ContainsAny(base, "\n\t\\") || strings.HasPrefix(base, "-") || base == "%" {
				t.Errorf("%q", base)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "manifest.ndjson"))
		if err != nil || clitest.Raw(string(b)) != "" {
			t.Errorf("manifest: %q, %v", clitest.Raw(string(b)), err)
		}
	}
	if total < 5 {
		t.Errorf("%d files", total)
	}
}
