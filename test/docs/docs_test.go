// Package docs_test keeps the documentation true: what it shows as output is
// what the program prints, and what it links to exists.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// programs whose output the documents show.
var programs = []string{"rpcrdma-dump", "rpcrdma-replay"}

// TestOutput runs the commands in the console blocks of the README and of
// the guides in docs:
//
//	$ rpcrdma-dump ARGUMENTS (or rpcrdma-replay)
//	output
//	…
//	output
//
// A line of "…" stands for any number of lines that were left out.
func TestOutput(t *testing.T) {
	bin := build(t)
	n := 0
	var blocks [][]string
	for _, name := range []string{"README.md", "docs/fabric.md", "docs/kerberos.md", "docs/kernel.md", "docs/plan.md", "docs/report.md", "docs/rpcrdma-dump.md"} {
		blocks = append(blocks, consoleBlocks(t, name)...)
	}
	for _, b := range blocks {
		command, want := b[0], b[1:]
		n++
		program, args, err := arguments(command)
		if err != nil {
			t.Error(err)
			continue
		}
		cmd := exec.Command(filepath.Join(bin, program), args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "NO_COLOR=1", "COLUMNS=")
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		match(t, command, want, strings.Split(strings.TrimRight(string(out), "\n"), "\n"))
	}
	if n == 0 {
		t.Error("the README shows no output")
	}
}

var (
	word  = regexp.MustCompile(`'[^']*'|[^\s']+`)
	plain = regexp.MustCompile(`^[-\w./=,:%+@]+$`)
)

// arguments splits a command as a shell would: at blanks, but for what stands
// in single quotes. Anything else that a shell would look at is an error.
func arguments(command string) (program string, args []string, err error) {
	words := word.FindAllString(command, -1)
	for i, w := range words {
		switch {
		case len(w) >= 2 && w[0] == '\'':
			words[i] = w[1 : len(w)-1]
		case !plain.MatchString(w):
			return "", nil, fmt.Errorf("%s: %q is not for a test: use single quotes, and nothing else of a shell", command, w)
		}
	}
	if len(words) == 0 || !slices.Contains(programs, words[0]) {
		return "", nil, fmt.Errorf("%s: not one of %v", command, programs)
	}
	return words[0], words[1:], nil
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

// build makes the programs in a folder, once. It looks at every source file first: that is
// how go test learns that a cached result of this test depends on them.
func build(t *testing.T) string {
	t.Helper()
	if built {
		return bin
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") {
			_, err = os.Stat(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-buildvcs=false", "-o", bin + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
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
	at, gap := 0, false
	for _, w := range want {
		if w == "…" {
			gap = true
			continue
		}
		for gap && at < len(have) && strings.TrimRight(have[at], " ") != w {
			at++
		}
		if at >= len(have) || strings.TrimRight(have[at], " ") != w {
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

var (
	link    = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?)[ #]*$`)
	inLink  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	named   = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
)

// anchors are the places in a document that links may name: headings, in the form that GitHub gives them, and
// those of HTML.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			found[m[1]] = true
		}
		m := heading.FindStringSubmatch(line)
		if fenced || m == nil {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, inLink.ReplaceAllString(m[1], "$1"))
		name := slug
		for n := 1; found[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		found[name] = true
	}
	return found
}

// links are the links of a document that are not in a block of code.
func links(text string) (list [][]string) {
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced {
			list = append(list, link.FindAllStringSubmatch(line, -1)...)
		}
	}
	return list
}

// brokenLinks checks the links of a document to files and to their headings. Those to other hosts are not
// followed.
func brokenLinks(name, text string) (broken []string, checked int) {
	for _, m := range links(text) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		checked++
		target := filepath.Join(filepath.Dir(name), m[1])
		there := text
		if m[1] != "" {
			info, err := os.Stat(target)
			if err != nil {
				broken = append(broken, m[0]+": there is no such file")
				continue
			}
			if m[2] == "" {
				continue
			}
			if info.IsDir() {
				target = filepath.Join(target, "README.md")
			}
			b, err := os.ReadFile(target)
			if err != nil {
				broken = append(broken, m[0]+": there is no such file")
				continue
			}
			there = string(b)
		}
		if m[2] != "" && !anchors(there)[m[2][1:]] {
			broken = append(broken, m[0]+": there is no such heading")
		}
	}
	return broken, checked
}

// TestLinks follows the links between the documents, and to headings in them.
func TestLinks(t *testing.T) {
	seen := 0
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
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		broken, n := brokenLinks(name, string(text))
		seen += n
		for _, b := range broken {
			t.Errorf("%s links to %s", name, b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("only %d links found", seen)
	}
}

// TestBrokenLinks wants mistakes in links to be found.
func TestBrokenLinks(t *testing.T) {
	const text = "# A title: `code` & more\n## Twice\n## Twice\n```\n# not one\n[x](#not-followed)\n```\n"
	for link, want := range map[string]int{
		"[x](#a-title-code--more)": 0, "[x](#twice-1)": 0, "[x](schema.md#lost_ns)": 0, "[x](schema.md)": 0, "[x](design/)": 0, "[x](https://example.org/nowhere#x)": 0,
		"[x](#twice-2)": 1, "[x](#not-one)": 1, "[x](schemas.md)": 1, "[x](schema.md#nowhere)": 1, "[x](#Twice)": 1,
	} {
		if broken, _ := brokenLinks(filepath.Join(root, "docs", "x.md"), text+link+"\n"); len(broken) != want {
			t.Errorf("%s: %v", link, broken)
		}
	}
}

// TestSamplesListed makes sure that samples/README.md tells of every sample.
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
