// Package docs_test checks the documentation: programs print the output that it shows, and
// links lead to something that exists.
package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/rpcrdma/toolkit/internal/testtools/programs"
)

const root = "../.."

// documented are programs whose output the documents show. Those of examples are written "go run ./examples/NAME".
var (
	documented = []string{"rpcrdma-dump", "rpcrdma-replay", "rpcrdma-top"}
	examples   = []string{"congest"}
	// filters are what the output of a program may be piped into: every system has them, and
	// they give the same output in the C locale.
	filters = []string{"grep", "head", "sort", "tail", "uniq", "wc"}
)

// documents whose console blocks are run.
var documents = []string{
	"README.md", "docs/check.md", "docs/cookbook.md", "docs/fabric.md", "docs/founding-documents.md", "docs/kerberos.md", "docs/kernel.md",
	"docs/plan.md", "docs/report.md", "docs/rpcrdma-dump.md", "docs/sessions.md", "docs/find-the-cause.md", "test/field/README.md",
}

// TestOutput runs the commands in the console blocks of the README and of
// the guides in docs:
//
//	$ rpcrdma-dump ARGUMENTS (or another of documented)
//	output
//	…
//	output
//	$ echo $?
//	1
//
// A line of "…" stands for any number of lines that were left out; in the output of a command
// that reads no sample, "…" in a line stands for any text, since times and addresses differ
// from run to run. The exit status is 0 unless "echo $?" follows and says otherwise.
//
// The commands of a document run one after the other in a folder of its own, which has
// everything that the root of the module has. So a command finds the files that the ones before
// it have written.
func TestOutput(t *testing.T) {
	if left(t) {
		return
	}
	bin := build(t)
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := scratch(t)
			blocks := consoleBlocks(t, name)
			if len(blocks) == 0 {
				t.Error("shows no output")
			}
			for i, b := range blocks {
				command, want := b[0], b[1:]
				if command == "echo $?" {
					continue // with the command before it
				}
				status := "0"
				if i+1 < len(blocks) && blocks[i+1][0] == "echo $?" {
					status = strings.Join(blocks[i+1][1:], "\n")
				}
				out, ended, err := run(bin, dir, command)
				if err != nil {
					t.Errorf("%s: %v", command, err)
					continue
				}
				if ended != status {
					t.Errorf("%s: exit status %s, not %s", command, ended, status)
				}
				var have []string
				if out = strings.TrimRight(out, "\n"); out != "" {
					have = strings.Split(out, "\n")
				}
				match(t, command, want, have)
			}
		})
	}
}

// TestCookbook makes sure that each recipe of the cookbook is one command that TestOutput runs.
func TestCookbook(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "docs/cookbook.md"), "\n## ")
	recipes := strings.Count(text, "\n**")
	if n := len(consoleBlocks(t, "docs/cookbook.md")); n != recipes || n < 25 {
		t.Errorf("%d recipes, %d commands; want 25 or more, one command each", recipes, n)
	}
}

// scratch returns a folder with links to all that is in the root of the module.
func scratch(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	from, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs a pipe of commands. It returns what the last writes, and the first exit status that is
// not 0.
func run(bin, dir, command string) (out, status string, err error) {
	pipe, err := arguments(command)
	if err != nil {
		return "", "", err
	}
	status = "0"
	var input []byte
	for _, args := range pipe {
		program := args[0]
		if !slices.Contains(filters, program) {
			program = filepath.Join(bin, program)
		}
		var both *bytes.Buffer
		if args[len(args)-1] == "2>&1" {
			args, both = args[:len(args)-1], new(bytes.Buffer)
		}
		cmd := exec.Command(program, args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "NO_COLOR=1", "COLUMNS=", "LC_ALL=C.UTF-8")
		cmd.Stdin = bytes.NewReader(input)
		if both == nil {
			input, err = cmd.Output()
		} else {
			cmd.Stdout, cmd.Stderr = both, both
			err = cmd.Run()
			input = both.Bytes()
		}
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.ExitCode() > 0:
			if status == "0" {
				status = strconv.Itoa(exit.ExitCode())
			}
		case err != nil:
			return "", "", err
		}
	}
	return string(input), status, nil
}

var (
	word  = regexp.MustCompile(`'[^']*'|[^\s']+`)
	plain = regexp.MustCompile(`^[-\w./=,:%+@]+$`)
)

// arguments splits a line as a shell would: at pipes, and at blanks outside of single quotes. Any
// other character with a meaning to a shell is an error.
func arguments(line string) (pipe [][]string, err error) {
	pipe = [][]string{nil}
	for _, w := range word.FindAllString(line, -1) {
		switch {
		case len(w) >= 2 && w[0] == '\'':
			w = w[1 : len(w)-1]
		case w == "|":
			pipe = append(pipe, nil)
			continue
		case w != "2>&1" && !plain.MatchString(w):
			return nil, fmt.Errorf("%q is not for a test: use single quotes and pipes, and nothing else of a shell", w)
		}
		pipe[len(pipe)-1] = append(pipe[len(pipe)-1], w)
	}
	for i, args := range pipe {
		if i == 0 && len(args) > 2 && args[0] == "go" && args[1] == "run" && slices.Contains(examples, strings.TrimPrefix(args[2], "./examples/")) {
			args = append([]string{strings.TrimPrefix(args[2], "./examples/")}, args[3:]...)
			pipe[0] = args
			continue
		}
		if len(args) == 0 || !slices.Contains(documented, args[0]) && (i == 0 || !slices.Contains(filters, args[0])) {
			return nil, fmt.Errorf("part %d of the pipe is not one of %v, %v", i+1, documented, filters)
		}
	}
	return pipe, nil
}

// TestArguments tests the reader of commands on what it takes and on what it refuses.
func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		"rpcrdma-dump -Y 'latency > 1ms' a.pcap": `[["rpcrdma-dump" "-Y" "latency > 1ms" "a.pcap"]]`,
		"rpcrdma-top a.pcap | sort | uniq -c":    `[["rpcrdma-top" "a.pcap"] ["sort"] ["uniq" "-c"]]`,
		"go run ./examples/congest a.pcap | wc":  `[["congest" "a.pcap"] ["wc"]]`,
		"go run ./examples/gopacket a.pcap":      "",
		"sort a.pcap":                            "",
		"rpcrdma-dump a.pcap | rm":               "",
		"rpcrdma-dump a.pcap |":                  "",
		"rpcrdma-dump $HOME":                     "",
		"rpcrdma-dump a.pcap > b":                "",
		"rpcrdma-dump -Y 'latency > 1ms' *.pcap": "",
		"rpcrdma-dump a.pcap; rpcrdma-dump b":    "",
		"rpcrdma-dump `cat list`":                "",
		"":                                       "",
	} {
		pipe, err := arguments(line)
		switch {
		case err == nil && want == "":
			t.Errorf("%s: no error", line)
		case want != "" && (err != nil || fmt.Sprintf("%q", pipe) != want):
			t.Errorf("%s: %q (%v), not %s", line, pipe, err, want)
		}
	}
}

// bin is where the programs are, if they are built.
var (
	bin   string
	built bool
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// left says that a test is left to CI's lane of documents: with -short, what runs the programs.
func left(t *testing.T) bool {
	t.Helper()
	if testing.Short() {
		t.Log("not with -short: go test ./test/docs, CI's lane of documents")
	}
	return testing.Short()
}

// build makes the programs in a folder, once.
func build(t *testing.T) string {
	t.Helper()
	if built {
		return bin
	}
	var packages []string
	for _, p := range documented {
		packages = append(packages, "./cmd/"+p)
	}
	for _, p := range examples {
		packages = append(packages, "./examples/"+p)
	}
	if err := programs.Build(bin, packages...); err != nil {
		t.Fatal(err)
	}
	built = true
	return bin
}

// consoleBlocks returns, for each command in the console blocks of a file, the
// command and the lines below it.
func consoleBlocks(t *testing.T, name string) (blocks [][]string) {
	t.Helper()
	inside := false
	for line := range strings.Lines(read(t, name)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside:
		case strings.HasPrefix(line, "$ "):
			blocks = append(blocks, []string{line[2:]})
		case len(blocks) > 0:
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], line)
		}
	}
	return blocks
}

func match(t *testing.T, command string, want, have []string) {
	t.Helper()
	varies := !strings.Contains(command, "samples/")
	at, gap := 0, false
	for _, w := range want {
		if w == "…" {
			gap = true
			continue
		}
		for gap && at < len(have) && !same(w, have[at], varies) {
			at++
		}
		if at >= len(have) || !same(w, have[at], varies) {
			now := "the end"
			if at < len(have) {
				now = have[at]
			}
			t.Errorf("%s\nis said to print\n%s\nbut prints\n%s", command, w, now)
			return
		}
		at, gap = at+1, false
	}
	if !gap && at < len(have) {
		t.Errorf("%s\nprints more than is shown, from\n%s", command, have[at])
	}
}

// same compares a line of a document with one that was printed. If parts of it vary, "…"
// stands for any text, and a run of blanks for any other.
func same(want, have string, varies bool) bool {
	have = strings.TrimRight(have, " ")
	if want == have || !varies || !strings.Contains(want, "…") {
		return want == have
	}
	var pattern []string
	for part := range strings.SplitSeq(want, "…") {
		pattern = append(pattern, blanks.ReplaceAllString(regexp.QuoteMeta(part), " +"))
	}
	return regexp.MustCompile("^" + strings.Join(pattern, ".*") + "$").MatchString(have)
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		want, have   string
		varies, same bool
	}{
		{"a b", "a b  ", false, true},
		{"a b", "a  b", true, false},
		{"took … of 5", "took 17ms of 5", true, true},
		{"took … of 5", "took 17ms of 5", false, false},
		{"took … of 5", "took 17ms of 6", true, false},
		{"1   2 …", "1 2 3", true, true},
		{"a.c …", "abc d", true, false},
		{"4732677 … -", "4732677 … -", false, true},
	} {
		if same(c.want, c.have, c.varies) != c.same {
			t.Errorf("same(%q, %q, %v) is not %v", c.want, c.have, c.varies, c.same)
		}
	}
}

var blanks = regexp.MustCompile(" +")

// headings returns the anchors of a document, made as GitHub makes them: small letters, blanks
// become hyphens, other punctuation goes.
func headings(text string) map[string]bool {
	found := map[string]bool{}
	inside := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		}
		name, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if inside || !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(name))] = true
	}
	return found
}

var link = regexp.MustCompile(`\]\(([^)\s#]+)(#[^)\s]*)?\)`)

// TestLinks follows the links between the documents.
func TestLinks(t *testing.T) {
	seen := 0
	cache := map[string]map[string]bool{}
	anchors := func(name string) map[string]bool {
		if cache[name] == nil {
			cache[name] = headings(read(t, name))
		}
		return cache[name]
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || name != root && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".md") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(read(t, rel), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			to := filepath.Join(filepath.Dir(rel), m[1])
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", rel, m[1])
			} else if m[2] != "" && strings.HasSuffix(to, ".md") && !anchors(to)[m[2][1:]] {
				t.Errorf("%s links to %s%s, a heading that does not exist", rel, m[1], m[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 10 {
		t.Errorf("only %d links found", seen)
	}
}

// TestLifeOfAPacket finds each function that the page names in the file beside it.
func TestLifeOfAPacket(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| \d+ \| .(\w+). \| \[([^]]+)\]`).FindAllStringSubmatch(read(t, "docs/life-of-a-packet.md"), -1)
	if len(rows) != 10 {
		t.Errorf("%d rows, want 10", len(rows))
	}
	for _, row := range rows {
		if !regexp.MustCompile(`(?m)^func \([^)]*\) ` + row[1] + `\(`).MatchString(read(t, row[2])) {
			t.Errorf("%s has no method %s", row[2], row[1])
		}
	}
}

// TestSamplesListed makes sure that samples/README.md describes every sample.
func TestSamplesListed(t *testing.T) {
	text := read(t, "samples/README.md")
	files, err := filepath.Glob(filepath.Join(root, "samples", "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples (%v)", err)
	}
	for _, f := range files {
		base := filepath.Base(f)
		if !strings.Contains(text, "`"+base+"`") {
			t.Errorf("samples/README.md does not mention %s", base)
		}
		name, _, _ := strings.Cut(base, ".")
		if _, err := os.Stat(filepath.Join(root, "samples", name+".truth.json")); err != nil {
			t.Errorf("%s has no truth: %v", base, err)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
