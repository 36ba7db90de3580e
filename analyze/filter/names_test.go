package filter

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// The names in the sources' calls of a Visitor must all have been found by
// driving them. Some cannot be: they belong to what has no name in a path, or
// to bodies that are wrapped.
func TestAllNamesAreFound(t *testing.T) {
	known := map[string]bool{
		"rpc": true, "rpcrdma": true, // the headers themselves
		"gss": true, "seq_window": true, "checksum": true, "databody_priv": true, // wrapping, context creation
		"gss_major": true, "gss_minor": true, "gss_token": true,
		"useconds":       true, // of a time, which is shown whole
		"trailing bytes": true, "malformed ": true, "unknown attribute ": true,
	}
	for _, p := range protocols().programs {
		for _, n := range p.allNames() {
			known[n] = true
		}
	}
	symbols := map[string]bool{}
	for _, s := range protocols().sets {
		for _, n := range s {
			symbols[n] = true
		}
	}
	var files []string
	for _, dir := range []string{"nfs/*", "oncrpc", "rpcrdma"} {
		all, err := filepath.Glob(filepath.Join("..", "..", "decode", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, all...)
	}
	visits := regexp.MustCompile(`\bv\.(?:Begin|Uint|Int|Bool|Enum|Flags|Bytes|String|Data|Time)\("([^"]+)"|\.WalkField\(v, "([^"]+)"`)
	returns := regexp.MustCompile(`case ([A-Z]\w+):\n\t\treturn "([A-Z]\w+)"`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range visits.FindAllStringSubmatch(string(text), -1) {
			found++
			if name := m[1] + m[2]; !known[name] {
				t.Errorf("%s shows %q, which names.txt lacks", file, name)
			}
		}
		for _, m := range returns.FindAllStringSubmatch(string(text), -1) {
			found++
			// Operations are shown by their names, GSS triples by nothing.
			op := strings.HasPrefix(m[2], "OP_") && known[strings.TrimPrefix(m[2], "OP_")]
			if !symbols[m[2]] && !op && !strings.HasPrefix(m[2], "RPC_GSS_") {
				t.Errorf("%s has the symbol %s, which names.txt lacks", file, m[2])
			}
		}
	}
	if found < 1500 {
		t.Errorf("only %d names found in the sources: do they look different now?", found)
	}
}

// A group that holds a single opaque named "data" may be left out of a path;
// visitor goes by the names alone.
func TestOpaqueGroups(t *testing.T) {
	seen := map[*group]bool{}
	var visit func(path string, g *group)
	visit = func(path string, g *group) {
		if g == nil || seen[g] {
			return
		}
		seen[g] = true
		for _, k := range g.kids {
			if k.name == opaqueName && k.kinds&kBytes != 0 && !g.opaque() {
				t.Errorf("%s holds data and more", path)
			}
			visit(path+"."+k.name, k.below)
		}
	}
	for _, p := range protocols().programs {
		for i := range p.procs {
			visit(p.name, p.procs[i].groups[0])
			visit(p.name, p.procs[i].groups[1])
		}
	}
}

// All statuses that results can have are symbols of "status".
func TestStatusSymbols(t *testing.T) {
	x := &explorer{covers: map[reflect.Type][]reflect.Value{}}
	all := statusSymbols()
	n := 0
	for _, p := range protocols().programs {
		for _, q := range p.procs {
			if p.header() {
				continue
			}
			def := lookupProgram(p.name, q.version)
			if def == nil {
				t.Fatalf("%s %d is not known", p.name, q.version)
			}
			for _, m := range x.messageCover(def.Procedure(q.number).NewResult()) {
				s, ok := m.(xdr.Status)
				if !ok {
					continue
				}
				if _, symbol := s.StatusCode(); symbol != "" {
					n++
					if _, ok := slices.BinarySearch(all, symbol); !ok {
						t.Errorf("%s %s: status %s is not in the list", p.name, q.name, symbol)
					}
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("only %d statuses", n)
	}
}

func lookupProgram(name string, version uint32) *xdr.Program {
	for _, number := range []uint32{100000, 100003, 100005, 100021, 100024, 100227, 0x40000000} {
		if p := nfs.Lookup(number, version); p != nil && p.Name == name {
			return p
		}
	}
	return nil
}

func TestFieldsResolve(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Fields() {
		if seen[f.Name] {
			t.Errorf("%s is listed twice", f.Name)
		}
		seen[f.Name] = true
		if f.Type == "" || f.Description == "" {
			t.Errorf("%s: %+v", f.Name, f)
		}
		r, err := Field(f.Name)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if got := r.Info(); !strings.Contains("|"+got.Type+"|", "|"+strings.Split(f.Type, "|")[0]+"|") {
			t.Errorf("%s is a %s, but listed as %s", f.Name, got.Type, f.Type)
		}
		if _, err := Compile(strings.ToUpper(f.Name)); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if len(seen) < 800 {
		t.Errorf("%d fields", len(seen))
	}
}

// Every path of the table resolves, in full and by its last component, and
// says where it occurs.
func TestPathsResolve(t *testing.T) {
	paths := 0
	for _, p := range protocols().programs {
		if p.name == "nfs" {
			continue // thousands of paths; TestPaths has samples
		}
		for _, q := range p.procs {
			for d, dir := range []string{"args", "res"} {
				var visit func(path string, g *group, depth int)
				visit = func(path string, g *group, depth int) {
					if g == nil || depth > 8 {
						return
					}
					for _, k := range g.kids {
						full := path + "." + k.name
						paths++
						f, err := lookup(full, 0, full)
						if err != nil {
							t.Errorf("%s: %v", full, err)
							continue
						}
						if f.kinds&k.kinds != k.kinds {
							t.Errorf("%s: kinds %s, want %s", full, f.kinds, k.kinds)
						}
						visit(full, k.below, depth+1)
					}
				}
				root := p.name + "." + dir
				if !p.header() {
					root += "." + q.name
				}
				visit(root, q.groups[d], 0)
			}
		}
	}
	if paths < 300 {
		t.Errorf("only %d paths", paths)
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ path, kinds, desc string }{
		{"nfs.READ.offset", "number", "arguments of READ"},
		{"nfs.read.OFFSET", "number", "arguments of READ"},
		{"nfs.args.READ.offset", "number", "arguments of READ"},
		{"nfs.READ.args.offset", "number", "arguments of READ"},
		{"nfs.COMPOUND.READ.offset", "number", "arguments of READ"},
		{"nfs.COMPOUND.tag", "text", "arguments of COMPOUND; results of COMPOUND"},
		{"nfs.res.tag", "text", "results of COMPOUND"},
		{"nfs.READ.res.eof", "boolean", "results of READ"},
		{"nfs.OPEN.claim.file", "text", "arguments of OPEN"},
		{"nfs.OPEN.attrset", "flags", "results of OPEN"},
		{"nfs.READ.file", "bytes|group", "arguments of READ"},
		{"nfs.READ.file.data", "bytes", "arguments of READ"},
		{"nfs.WRITE.data", "bytes", "arguments of WRITE"},
		{"nfs.WRITE.data.length", "number", "arguments of WRITE"},
		{"nfs.WRITE.file.data", "bytes", "arguments of WRITE"},
		{"nfs.LOOKUP.object.data", "bytes", "results of LOOKUP"},
		{"nfs.READLINK.data.length", "number", "results of READLINK"},
		{"nfs.READDIRPLUS.name_attributes.size", "number", "results of READDIRPLUS"},
		{"nfs.GETATTR.obj_attributes.time_modify", "time", "results of GETATTR"},
		{"nfs.GETATTR.acl.who", "text", "results of GETATTR"},
		{"nfs.SETATTR.size", "number|group", "arguments of SETATTR; results of SETATTR"},
		{"nfs.LAYOUTGET.loc_body.nfl_util", "flags", "results of LAYOUTGET"},
		{"nfs.loc_body", "bytes|group", "results of LAYOUTGET"},
		{"nfs.READ", "group", "arguments of READ; results of READ"},
		{"nfs.obj_attributes", "group", "arguments of CREATE, NVERIFY, SETATTR, VERIFY; results of GETATTR, LOOKUP, ACCESS, CREATE, MKDIR, SYMLINK and 4 more"},
		{"nfs.stateid.seqid", "number", ""},
		{"nfs_cb.CB_RECALL.truncate", "boolean", "arguments of CB_RECALL"},
		{"nfs_cb.csa_sequenceid", "number", ""},
		{"nlm.alock.l_offset", "number", ""},
		{"mount.dirpath", "text", "arguments of MNT, UMNT, PATHCONF"},
		{"mount.auth_flavors", "symbol", "results of MNT"},
		{"rpc.cred.flavor", "symbol", "header of calls"},
		{"rpc.verf.flavor", "symbol", "header of calls; header of replies"},
		{"rpc.res.verf.flavor", "symbol", "header of replies"},
		{"rpc.gids", "number", "header of calls"},
		{"rpcrdma.rdma_reads.position", "number", "header of calls; header of replies"},
		{"rpcrdma.args.rdma_proc", "symbol", "header of calls"},
	} {
		r, err := Field(c.path)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		i := r.Info()
		if i.Type != c.kinds || c.desc != "" && i.Description != c.desc {
			t.Errorf("%s: %s, %q; want %s, %q", c.path, i.Type, i.Description, c.kinds, c.desc)
		}
	}
}

func TestLoadNames(t *testing.T) {
	for _, text := range []string{
		"nonsense", "set 1", "group x y{9}", "group 1 a{1", "group 1 a:uint{2}", "group 1 a:strange", "group 1 a:enum=7", "group 1 a:enum=x{0}",
		"procedure nfs 3 READ 6 0", "procedure nfs x READ 6 0 0", "procedure nfs 3 READ 6 0 1", "procedure nfs 3 READ -1 0 0",
	} {
		if _, err := loadNames("# comment\n" + text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
