package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// writers are functions that make, replace or remove files, by package.
var writers = map[string][]string{
	"os": {"Create", "CreateTemp", "OpenFile", "WriteFile", "Mkdir", "MkdirAll", "MkdirTemp", "Rename", "Remove", "RemoveAll",
		"Symlink", "Link", "Truncate", "OpenRoot", "OpenInRoot", "CopyFS"},
	"golang.org/x/sys/unix":      {"Open", "Openat", "Openat2", "Creat", "Rename", "Renameat", "Renameat2", "Unlink", "Unlinkat", "Truncate", "Link", "Symlink"},
	"syscall":                    {"Open", "Creat", "Rename", "Unlink", "Truncate", "Link", "Symlink"},
	"io/ioutil":                  {"WriteFile", "TempFile", "TempDir"},
	"github.com/spf13/cobra/doc": {"GenManTree", "GenManTreeFromOpts", "GenMarkdownTree", "GenReSTTree", "GenYamlTree"},
	"encoding/json":              {"NewEncoder", "Marshal", "MarshalIndent"},
}

// mayWrite are the packages and files that may call them, with the reason.
var mayWrite = map[string]string{
	"internal/outfile":                      "makes the files that commands write",
	"internal/printable":                    "writes the JSON that all commands write",
	"analyze/extract/place.go":              "the directory of an extraction, through an os.Root; its files are made in a temporary one",
	"analyze/parquet/tree.go":               "MkdirAll of partitions; files are package outfile's",
	"cmd/internal/cli/man.go":               "MkdirAll of the directory that the user names for manual pages",
	"replay/nfsserver/stable":               "what a server keeps for its next start, in a directory of its own; files are synced and renamed",
	"replay/nfsserver/store/dir":            "the directory that the NFS server exports is what clients change",
	"analyze/index":                         "JSON inside an index, which only the package itself reads",
	"cmd/internal/cli/secret.go":            "the user's keys for files that have to be their own, which are linked into place",
	"cmd/rpcrdma-replay/resume.go":          "the file of an interrupted run that goes on is removed",
	"replay/run/resume.go":                  "JSON that is hashed and not written",
	"internal/testtools":                    "what tests and developers use",
	"cmd/internal/sandbox/sandbox_linux.go": "MkdirAll of the directories that a sandboxed command writes to; files are package outfile's",
	"analyze/connections/list.go":           "a temporary file without a name, for what memory does not hold",
	"analyze/state/chooser.go":              "a temporary file without a name, for what memory does not hold",
	"cmd/rpcrdma-top/config.go":             "MkdirAll of the directory of the configuration file, which package outfile makes",
	"analyze/diagnosis/state.go":            "JSON inside a saved state, which only the package itself reads",
	"analyze/session/state.go":              "JSON inside a saved state, which only the package itself reads",
	"analyze/state/coder.go":                "JSON inside a saved state, which only packages of analyze read",
	"cmd/rpcrdma-dump/resume.go":            "removes the state of a series that has ended, if it is still the file that was read",
	"internal/notices":                      "a tool for developers",
	"internal/xdrgen":                       "the generator of the codecs",
	"test":                                  "tools of the tests",
}

// TestWrites compares each call that makes, replaces or removes files with the
// list: an output that is made elsewhere might be an input, or half of a file
// after a full disk. It does the same for JSON, whose strings need the escapes of
// package printable.
func TestWrites(t *testing.T) {
	used := map[string]bool{}
	checked := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "testdata" || name != root && (strings.HasPrefix(base, ".") || otherModule(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		calls, err := writesOf(name)
		if err != nil {
			return err
		}
		checked++
		for _, call := range calls {
			allowed := false
			for p := range mayWrite {
				if rel == p || strings.HasPrefix(rel, p+"/") {
					allowed, used[p] = true, true
				}
			}
			if !allowed {
				t.Errorf("%s: %s: files are made by internal/outfile and JSON by internal/printable; if this is another thing, add it to the list of this test with the reason", rel, call)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 300 {
		t.Errorf("only %d files found", checked)
	}
	for p := range mayWrite {
		if !used[p] {
			t.Errorf("%s is allowed to write and does not", p)
		}
	}
}

// writesOf are the calls of writers in a file. One that opens a file for reading
// does not count.
func writesOf(name string) (out []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	imported := map[string]string{}
	for _, s := range f.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			return nil, err
		}
		local := p[strings.LastIndexByte(p, '/')+1:]
		if s.Name != nil {
			local = s.Name.Name
		}
		imported[local] = p
	}
	ast.Inspect(f, func(n ast.Node) bool {
		x, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := x.X.(*ast.Ident)
		if ok && slices.Contains(writers[imported[pkg.Name]], x.Sel.Name) {
			out = append(out, pkg.Name+"."+x.Sel.Name)
		}
		return true
	})
	return out, nil
}

// TestWritesOf makes sure that the calls are found.
func TestWritesOf(t *testing.T) {
	calls, err := writesOf("../outfile/file.go")
	if err != nil || !slices.Contains(calls, "os.OpenFile") || !slices.Contains(calls, "os.Rename") {
		t.Errorf("%q, %v", calls, err)
	}
	if calls, err = writesOf("../../analyze/ndjson/quote.go"); err != nil || len(calls) > 0 {
		t.Errorf("%q, %v", calls, err)
	}
}
