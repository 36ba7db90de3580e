package arch

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// rule says what the packages that match a pattern may import. A pattern is
// the folder of a package, "" for the module's root; "x/..." stands for x and
// all below it. The first rule that matches a package decides.
type rule struct {
	packages string
	own      []string // patterns of packages of this module
	foreign  []string // modules of others, by path or its beginning; "*" allows all but ui
	cgo      bool
}

// ui are the modules that draw for people. Only commands have one in front of
// them.
var ui = []string{
	"github.com/spf13/cobra",
	"github.com/spf13/pflag",
	"github.com/olekukonko/tablewriter",
	"github.com/schollz/progressbar",
	"github.com/charmbracelet",
	"github.com/muesli/termenv",
	"golang.org/x/term",
}

var rules = []rule{
	// What all may use, and what stands on nothing: how files are written, which
	// characters may be shown.
	{packages: "internal/outfile", foreign: []string{"golang.org/x/sys"}},
	{packages: "internal/printable"},

	// Packets. Whatever reads or writes captures needs no protocol.
	{packages: "capture/...", own: []string{"capture/...", "internal/outfile"}, foreign: []string{"github.com/klauspost/compress", "golang.org/x/sys", "golang.org/x/net/bpf"}},

	// Vocabulary and tools that all of decode shares.
	{packages: "decode/memory"},
	{packages: "decode/rdma"},
	{packages: "decode/xdr"},
	{packages: "decode/link", own: []string{"capture"}},
	{packages: "decode/tcp", own: []string{"decode/rdma"}},

	// Fabrics: packets to operations. They know no RPC.
	{packages: "decode/ibcm", own: []string{"decode/rdma"}},
	{packages: "decode/roce", own: []string{"decode/ibcm", "decode/link", "decode/memory", "decode/rdma"}},
	{packages: "decode/iwarp", own: []string{"decode/link", "decode/rdma", "decode/tcp"}},

	// Messages. They know no fabric; oncrpc finds records in TCP streams.
	{packages: "decode/rpcrdma", own: []string{"decode/xdr"}},
	{packages: "decode/oncrpc", own: []string{"decode/link", "decode/rdma", "decode/tcp", "decode/xdr"}},
	// What is known of operations stands on their codecs.
	{packages: "decode/nfs/ops", own: []string{
		"decode/nfs/mount", "decode/nfs/nfs2", "decode/nfs/nfs3", "decode/nfs/nfs4", "decode/nfs/nfsacl", "decode/nfs/nlm", "decode/nfs/nsm",
		"decode/nfs/rpcbind", "decode/xdr",
	}},
	{packages: "decode/nfs/...", own: []string{"decode/nfs/...", "decode/xdr"}},

	// Operations to transactions, and what these say.
	{packages: "decode/transaction", own: []string{"decode/memory", "decode/rdma", "decode/rpcrdma"}},
	{packages: "decode/rpc", own: []string{
		"decode/nfs/...", "decode/oncrpc", "decode/rdma", "decode/rpcrdma", "decode/transaction", "decode/xdr",
	}},

	// Kerberos, apart from rpc, which knows it by an interface: programs that do
	// not need it do not contain it.
	{packages: "decode/krb5", own: []string{"decode/oncrpc", "decode/rdma", "decode/rpc", "decode/transaction", "decode/xdr"}, foreign: []string{
		"github.com/jcmturner/gokrb5/v8/crypto", "github.com/jcmturner/gokrb5/v8/keytab", "golang.org/x/crypto",
	}},

	// For users of gopacket.
	{packages: "decode/layers", own: []string{"decode/..."}, foreign: []string{"github.com/google/gopacket"}},

	// The pipeline. It decodes no NFS: consumers do, if they want to.
	{packages: "decode", own: []string{
		"capture", "decode/ibcm", "decode/iwarp", "decode/link", "decode/memory", "decode/oncrpc", "decode/rdma", "decode/roce",
		"decode/rpcrdma", "decode/tcp", "decode/transaction",
	}},
	{packages: "decode/...", own: []string{"capture", "decode/..."}},

	// What the kernel wrote. The truth reads it with these, so they stand on
	// nothing.
	{packages: "analyze/kernel/ftrace"},
	{packages: "analyze/kernel/mountstats"},
	{packages: "analyze/kernel/nfsproc"},

	// Charts know nothing of what they show.
	{packages: "analyze/plot"},

	// What RDMA itself does, whatever the layer above: of the others it takes
	// histograms and forms of output. Only its tests know transactions, which the
	// linter sees to.
	{packages: "analyze/fabric", own: []string{"analyze/latency", "analyze/ndjson", "analyze/text", "decode/..."}},

	// Consumers of transactions.
	{packages: "analyze/...", own: []string{"capture", "decode/...", "analyze/...", "internal/outfile", "internal/printable"}, foreign: []string{"*"}},

	// What may be sent is decided by its bytes: the guard knows no plan.
	{packages: "replay/guard", own: []string{"decode/nfs/...", "decode/oncrpc", "decode/xdr", "replay/transport"}},

	// The C libraries of RDMA stay behind one interface.
	{packages: "replay/verbs/...", own: []string{"capture", "decode/...", "replay/..."}, foreign: []string{"*"}, cgo: true},
	// What defends servers against floods knows no transport and no protocol.
	{packages: "replay/internal/unguessable"},
	{packages: "replay/internal/halfopen"},
	{packages: "replay/transport/budget", own: []string{"replay/internal/halfopen"}},
	{packages: "replay/...", own: []string{"capture", "decode/...", "analyze/...", "replay/...", "internal/outfile", "internal/printable"}, foreign: []string{"*"}},

	// What keeps a program from doing harm knows nothing of what it does.
	{packages: "cmd/internal/sandbox", foreign: []string{
		"github.com/landlock-lsm/go-landlock", "github.com/seccomp/libseccomp-golang", "kernel.org/pub/linux/libs/security/libcap/cap",
		"golang.org/x/sys", "github.com/spf13/pflag",
	}},
	// Helpers of the commands' tests.
	{packages: "cmd/internal/clitest", own: []string{"capture", "internal/wrap"}, foreign: append([]string{"*"}, ui...)},
	{packages: "cmd/...", own: []string{"capture/...", "decode/...", "analyze/...", "replay/...", "cmd/...", "internal/outfile", "internal/printable"}, foreign: append([]string{"*"}, ui...)},

	// The generator writes what decode is made of, so it stands on nothing.
	{packages: "internal/xdrgen"},
	{packages: "internal/xdrgen/...", own: []string{"decode/xdr"}},
	// The truth must not share a mistake with what it is compared with.
	{packages: "internal/truth/...", own: []string{"internal/truth/...", "analyze/kernel/ftrace", "analyze/kernel/mountstats", "analyze/kernel/nfsproc"}, foreign: []string{"github.com/klauspost/compress"}},
	{packages: "internal/arch"},
	{packages: "internal/floods", own: []string{"capture", "decode/...", "internal/rocetest"}},
	{packages: "internal/notices"},
	{packages: "internal/wrap/...", own: []string{"capture", "decode/link", "internal/wrap"}},
	// Mutations: of bytes; of captures; what must hold of what is decoded of them.
	{packages: "internal/mutate"},
	{packages: "internal/mutate/...", own: []string{"internal/mutate/...", "capture", "decode/..."}},
	// Hostile captures are packets and messages; it must not know who reads them.
	{packages: "internal/hostile", own: []string{"capture", "decode/..."}},
	{packages: "internal/hostile/...", own: []string{"internal/hostile"}},
	{packages: "internal/...", own: []string{"capture", "decode/...", "analyze/..."}},
	{packages: "examples/...", own: []string{"capture", "decode/...", "analyze/..."}, foreign: []string{"*"}},
	{packages: "test/...", own: []string{"..."}, foreign: append([]string{"*"}, ui...)},
}

// TestImports holds every Go file of the module, of all platforms, against
// the rules. Test files may also import what lies in the same top folder,
// package capture, the helpers below internal and any module of others, since
// none of that reaches a program. What lies above stays out of their reach.
func TestImports(t *testing.T) {
	module := modulePath(t)
	checked := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "testdata" || name != root && strings.HasPrefix(base, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		pkg := clean(filepath.ToSlash(dir))
		i := find(pkg)
		if i < 0 {
			t.Errorf("%s: no rule for this package; add one to the table of this test", pkg)
			return fs.SkipDir
		}
		checked++
		imports, err := importsOf(name)
		if err != nil {
			return err
		}
		for _, p := range imports {
			if why := rules[i].refuses(pkg, module, p, strings.HasSuffix(name, "_test.go")); why != "" {
				t.Errorf("%s/%s imports %q: %s", pkg, d.Name(), p, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 100 {
		t.Errorf("only %d files found", checked)
	}
}

// TestRules makes sure that the rules refuse what they are there to refuse.
func TestRules(t *testing.T) {
	const module = "example.org/m"
	cases := []struct {
		pkg, path string
		test      bool
		want      bool // allowed
	}{
		{"capture", "io", false, true},
		{"capture", module + "/decode/link", false, false},
		{"capture", "github.com/klauspost/compress/zstd", false, true},
		{"capture", "github.com/google/gopacket/pcapgo", false, false},
		{"capture", "github.com/google/gopacket/pcapgo", true, true},
		{"decode", module + "/analyze/text", false, false},
		{"decode", module + "/analyze/text", true, false},
		{"decode", module + "/capture", false, true},
		{"decode", module + "/decode/rpc", false, false},
		{"decode", module + "/decode/rpc", true, true},
		{"decode", module + "/decode/nfs/nfs4", false, false},
		{"decode/nfs/nfs4", module + "/decode/xdr", false, true},
		{"decode/nfs/nfs4", module + "/internal/xdrgen/xdrtest", true, true},
		{"decode/nfs/nfs4", module + "/internal/xdrgen/xdrtest", false, false},
		{"decode/rpcrdma", module + "/decode/roce", false, false},
		{"decode/roce", module + "/decode/rpcrdma", false, false},
		{"decode/oncrpc", module + "/decode/iwarp", false, false},
		{"decode/new", module + "/decode/xdr", false, true},
		{"decode/new", "C", false, false},
		{"decode/new", "github.com/charmbracelet/lipgloss", false, false},
		{"analyze/text", "github.com/mattn/go-runewidth", false, true},
		{"analyze/text", "github.com/spf13/cobra", false, false},
		{"analyze/text", "golang.org/x/term", false, false},
		{"analyze/text", module + "/cmd/rpcrdma-dump", false, false},
		{"cmd/rpcrdma-dump", "github.com/spf13/cobra", false, true},
		{"cmd/rpcrdma-dump", "C", false, false},
		{"cmd/internal/sandbox", module + "/capture", false, false},
		{"cmd/internal/sandbox", "kernel.org/pub/linux/libs/security/libcap/cap", false, true},
		{"analyze/plot", module + "/analyze/latency", false, false},
		{"cmd/rpcrdma-dump", module + "/internal/truth", false, false},
		{"internal/truth", module + "/decode/rpcrdma", false, false},
		{"replay/verbs/rdmacore", "C", false, true},
		{"replay", "C", false, false},
		{"replay/guard", module + "/decode/nfs/ops", false, true},
		{"replay/guard", module + "/replay/plan", false, false},
		{"replay/guard", module + "/replay/run", false, false},
		{"decode/nfs/ops", module + "/decode/nfs", false, false},
		{"test/truth", module + "/internal/truth", true, true},
	}
	for _, c := range cases {
		i := find(c.pkg)
		if i < 0 {
			t.Errorf("%s: no rule", c.pkg)
			continue
		}
		if why := rules[i].refuses(c.pkg, module, c.path, c.test); (why == "") != c.want {
			t.Errorf("%s imports %s (test file: %v): allowed %v, want %v", c.pkg, c.path, c.test, why == "", c.want)
		}
	}
	if find("stray") >= 0 {
		t.Error("a package outside the layout has a rule")
	}
}

// refuses tells why a package may not import a path; empty if it may.
func (r *rule) refuses(pkg, module, imported string, test bool) string {
	if imported == "C" {
		if r.cgo {
			return ""
		}
		return "no cgo here"
	}
	if rest, ok := strings.CutPrefix(imported, module+"/"); ok {
		for _, p := range r.own {
			if matches(p, rest) {
				return ""
			}
		}
		if test && (top(rest) == top(pkg) || top(rest) == "internal" || rest == "capture") {
			return ""
		}
		return fmt.Sprintf("against the direction of dependencies: %s may import %s", r.packages, list(r.own))
	}
	if standard(imported) || test {
		return ""
	}
	isUI := within(ui, imported)
	for _, p := range r.foreign {
		if p == "*" && !isUI || p != "*" && within([]string{p}, imported) {
			return ""
		}
	}
	if isUI {
		return "user interface, which belongs to cmd"
	}
	return fmt.Sprintf("%s may import of others' modules: %s", r.packages, list(r.foreign))
}

// top is the first folder of a package's path.
func top(pkg string) string {
	first, _, _ := strings.Cut(pkg, "/")
	return first
}

func list(s []string) string {
	if len(s) == 0 {
		return "nothing"
	}
	return strings.Join(s, ", ")
}

// standard reports whether an import path is of the standard library: only
// there the first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// within reports whether an import path is one of modules or below it.
func within(modules []string, imported string) bool {
	for _, m := range modules {
		if imported == m || strings.HasPrefix(imported, m+"/") {
			return true
		}
	}
	return false
}

func matches(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if p, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == p || strings.HasPrefix(pkg, p+"/")
	}
	return pkg == pattern
}

func find(pkg string) int {
	for i := range rules {
		if matches(rules[i].packages, pkg) {
			return i
		}
	}
	return -1
}

// clean is the folder of a package, "" for the module's root.
func clean(dir string) string {
	if dir = path.Clean(dir); dir == "." {
		return ""
	}
	return dir
}

func importsOf(name string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

func modulePath(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatal("go.mod names no module")
	return ""
}
