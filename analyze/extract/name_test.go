package extract

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/printable"
)

func TestClean(t *testing.T) {
	long := strings.Repeat("é", 200)
	for in, want := range map[string]string{
		"":                             "",
		"a/b":                          "a/b",
		"../../etc/passwd":             "%2E%2E/%2E%2E/etc/passwd",
		"/etc/passwd":                  "_/etc/passwd",
		"a/./b//c/":                    "a/%2E/b/_/c/_",
		"-rf":                          "%2Drf",
		"a/-x/b-":                      "a/%2Dx/b-",
		"\x1b[2J\u202e":                "%1B[2J%E2%80%AE",
		"a\nb\tc\x00":                  "a%0Ab%09c%00",
		"\xff\xfe":                     "%FF%FE",
		`C:\x`:                         "C:%5Cx",
		"100%":                         "100%",
		"%41":                          "%2541",
		"nul":                          "%6Eul",
		"CON.txt":                      "%43ON.txt",
		"com1":                         "%63om1",
		"console":                      "console",
		".bashrc":                      ".bashrc",
		"ファイル":                         "ファイル",
		strings.Repeat("a/", 80) + "b": "",
		strings.Repeat(strings.Repeat("n", 250)+"/", 20) + "b": "",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := clean(long); len(got) > maxComponent || clean(long+"x") == got {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzClean(f *testing.F) {
	f.Add("../a", "b")
	f.Add("%2E", ".")
	f.Add(strings.Repeat("\xff", 300), "-")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := clean(a), clean(b)
		for _, p := range []string{x, y} {
			if p == "" {
				continue
			}
			if !filepath.IsLocal(p) || filepath.Clean(p) != p || len(p) > maxPath {
				t.Fatalf("%q", p)
			}
			for _, c := range strings.Split(p, "/") {
				if c == "" || c == "." || c == ".." || c[0] == '-' || len(c) > maxComponent || printable.Text(c) != c || strings.ContainsAny(c, "\n\t\\") {
					t.Fatalf("%q", p)
				}
			}
		}
		if a != b && x == y && x != "" && strings.Trim(a, "/_") != strings.Trim(b, "/_") && !strings.Contains(a+b, "//") && !strings.Contains(a+b, "_") {
			t.Fatalf("%q and %q are both %q", a, b, x)
		}
	})
}

// TestDirectory: what a directory must be to take names that a peer has chosen.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	put("home/.bashrc", "x")
	if _, err := New(filepath.Join(dir, "home"), Options{}); !errors.Is(err, ErrForeign) {
		t.Errorf("a directory with files: %v", err)
	}
	// Nothing is left of an extraction that was given up.
	fresh := filepath.Join(dir, "fresh")
	x, err := New(fresh, Options{})
	if err != nil {
		t.Fatal(err)
	}
	x.Discard()
	x.Discard()
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Error(err)
	}
	// One that was killed does not keep the next one from its directory.
	put("killed/.partial-1/0", "x")
	if x, err = New(filepath.Join(dir, "killed"), Options{}); err != nil {
		t.Error(err)
	} else {
		x.Discard()
	}
}

// TestPlace: files of an earlier extraction are replaced; inputs, directories and
// what lies outside are not.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	outside := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(dir+"/manifest.ndjson", "{}\n")
	write(dir+"/old", "old")
	write(dir+"/input.pcap", "packets")
	write(outside+"/secret", "secret")
	for _, err := range []error{os.Mkdir(dir+"/d", 0o755), os.Symlink(outside, dir+"/out"), os.Symlink(outside+"/secret", dir+"/link")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files := &outfile.Files{}
	files.Reads(dir + "/input.pcap")
	x, err := New(dir, Options{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Discard()
	taken := map[string]bool{}
	paths := map[string]string{}
	for i, path := range []string{"old", "input.pcap", "d", "out/secret", "link", "old/below", "new/a", "by-handle/00"} {
		f := x.of([]byte{byte(i)}, true)
		if _, err := x.write(&f.store, 0, []byte("new")); err != nil {
			t.Fatal(err)
		}
		f.known.add(0, 3)
		f.carried = 3
		if err := x.closeStores(); err != nil {
			t.Fatal(err)
		}
		e, err := x.place(f, i, path, taken)
		if err != nil {
			t.Fatal(err)
		}
		paths[path] = e.Path
	}
	for path, want := range map[string]string{"old": "old", "input.pcap": "by-handle/01", "d": "by-handle/02", "out/secret": "by-handle/03", "link": "link", "old/below": "by-handle/05", "new/a": "new/a", "by-handle/00": "by-handle/00"} {
		if paths[path] != want {
			t.Errorf("%s is at %s, not %s", path, paths[path], want)
		}
	}
	for name, want := range map[string]string{dir + "/input.pcap": "packets", outside + "/secret": "secret", dir + "/old": "new", dir + "/link": "new"} {
		if b, err := os.ReadFile(name); string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
