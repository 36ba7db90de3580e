package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rpcrdma/toolkit/decode/transaction"

	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

const schemaSuffix = "-1.schema.json"

// schemas are the files of docs/schemas by name: "transaction" is rpcrdma.transaction/1.
type schemas struct {
	source map[string]map[string]any
	plain  map[string]*jsonschema.Schema
	strict map[string]*jsonschema.Schema // refuse keys that the file does not name
}

func loadSchemas(t *testing.T) *schemas {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "schemas", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas (%v)", err)
	}
	s := &schemas{source: make(map[string]map[string]any)}
	compile := func(change func(any)) map[string]*jsonschema.Schema {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			name, ok := strings.CutSuffix(filepath.Base(file), schemaSuffix)
			if !ok {
				t.Fatalf("%s is not named NAME%s", file, schemaSuffix)
			}
			change(doc)
			s.source[name] = doc.(map[string]any)
			if err := c.AddResource("file:///"+name+schemaSuffix, doc); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		compiled := make(map[string]*jsonschema.Schema)
		for name := range s.source {
			if compiled[name], err = c.Compile("file:///" + name + schemaSuffix); err != nil {
				t.Fatal(err)
			}
		}
		return compiled
	}
	s.strict = compile(closeObjects)
	s.plain = compile(func(any) {})
	return s
}

// closeObjects makes a schema refuse keys that it does not name.
func closeObjects(doc any) {
	visit(doc, func(m map[string]any) {
		_, named := m["properties"]
		_, open := m["additionalProperties"]
		if named && !open && m["type"] == "object" {
			m["additionalProperties"] = false
		}
	})
}

// visit calls a function for every object in a JSON value.
func visit(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			visit(x, f)
		}
	case map[string]any:
		f(v)
		for _, x := range v {
			visit(x, f)
		}
	}
}

// TestSchemasDescribe wants the schemas to explain what they name.
func TestSchemasDescribe(t *testing.T) {
	for name, doc := range loadSchemas(t).source {
		for _, key := range []string{"$schema", "title", "description"} {
			if s, _ := doc[key].(string); s == "" {
				t.Errorf("%s has no %s", name, key)
			}
		}
		visit(doc, func(m map[string]any) {
			properties, _ := m["properties"].(map[string]any)
			if m["type"] != "object" || properties == nil {
				return
			}
			for key, p := range properties {
				p := p.(map[string]any)
				if _, ref := p["$ref"]; p["description"] == nil && !ref && p["anyOf"] == nil && p["items"] == nil {
					t.Errorf("%s: %s has no description", name, key)
				}
			}
			required, _ := m["required"].([]any)
			for _, key := range required {
				if properties[key.(string)] == nil {
					t.Errorf("%s: %s is required, and unknown", name, key)
				}
			}
		})
	}
}

// outputs runs the programs over all samples and calls validate for each JSON value of the output, with the
// schema that it names.
func outputs(t *testing.T, files []string, validate func(schema, command string, v map[string]any)) {
	t.Helper()
	bin, tmp := build(t), t.TempDir()
	dump, replay := filepath.Join(bin, "rpcrdma-dump"), filepath.Join(bin, "rpcrdma-replay")
	run := func(program string, args ...string) []byte {
		cmd := exec.Command(program, args...)
		cmd.Dir = root
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		// 1: rules are broken, replies differ. 3: the input is incomplete.
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 2 || len(out) == 0 && exit.ExitCode() == 1) {
			t.Errorf("%v: %v\n%s", args, err, stderr.Bytes())
		}
		return out
	}
	read := func(command string, out []byte) (list []map[string]any) {
		d := json.NewDecoder(bytes.NewReader(out))
		d.UseNumber()
		for {
			var v map[string]any
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", command, err)
				break
			}
			name, _ := v["schema"].(string)
			if other, ok := v["otherData"].(map[string]any); ok {
				name, _ = other["schema"].(string)
			}
			if name == "" && len(v) == 1 && strings.HasPrefix(command, "plan") {
				name = "rpcrdma.plan/1"
			}
			name, ok := strings.CutPrefix(name, "rpcrdma.")
			name, version := strings.CutSuffix(name, "/1")
			if !ok || !version {
				t.Errorf("%s: an object of the schema %q", command, v["schema"])
				continue
			}
			validate(name, command, v)
			list = append(list, v)
		}
		if len(list) == 0 {
			t.Errorf("%s prints nothing", command)
		}
		return list
	}
	dumped := func(args ...string) []map[string]any { return read(strings.Join(args, " "), run(dump, args...)) }

	dumped("check", "--list-rules", "-T", "ndjson")
	for i, file := range files {
		file, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		var key []string
		if k := strings.TrimSuffix(file, ".pcap.zst") + ".keytab"; exists(k) {
			key = []string{"--keytab", k}
			run(dump, "-c", "1", file) // and without
		}
		var show []string
		seen := make(map[string]bool)
		if out := run(dump, append(key, "-T", "ndjson", file)...); len(out) > 0 {
			for _, v := range read("transactions of "+file, out) {
				if xid := v["xid"].(json.Number).String(); !seen[xid] && len(show) < 50 {
					seen[xid] = true
					show = append(show, "0x"+hexadecimal(v["xid"].(json.Number)))
				}
			}
			dumped(append(append([]string{"show", "-T", "json"}, show...), file)...)
		} else if !strings.Contains(file, "rping") {
			t.Errorf("%s has no transactions", file)
		}
		dumped("connections", "-T", "ndjson", file)
		dumped("operations", "-T", "ndjson", file)
		dumped("packets", "-T", "ndjson", file)
		dumped("report", "-T", "json", "-Y", "frame > 0 || xid >= 0", file)
		dumped("report", "--view", "fabric", "-T", "json", file)
		dumped("why", "-T", "json", file)
		dumped("sessions", "-T", "json", file)
		if out := run(dump, "sessions", "-T", "ndjson", file); len(out) > 0 {
			read("sessions of "+file, out)
		}
		dumped("check", "-T", "ndjson", file)
		trace := filepath.Join(tmp, fmt.Sprint(i, ".json"))
		run(dump, "export", "trace", file, "-w", trace)
		read("trace of "+file, readFile(t, trace))
		plan := filepath.Join(tmp, fmt.Sprint(i, ".json"))
		run(replay, append(key, "plan", file, "-o", plan)...)
		read("plan of "+file, readFile(t, plan))
		if strings.Contains(file, "recall") || strings.Contains(file, "longcall") {
			read("run of "+file, run(replay, "run", plan, "builtin", "--yes", "--write", "--timing", "fast", "-T", "json"))
		}
	}
	dumped("diff", "-T", "json", "samples/rocev2-nfs3-loss.both.pcapng.zst", "samples/iwarp-nfs3-loss.pcap.zst")
	dumped("diff", "-T", "json", "samples/rocev2-nfs41-recall.pcap", "samples/rocev2-rping.pcap")
	for _, name := range []string{"rocev2-nfs3-longcall", "rocev2-nfs41-recall"} {
		base := "samples/" + name
		args := []string{"--ftrace", base + ".trace.client", "--ftrace", base + ".trace.server", "--mountstats", base + ".mountstats", "-T", "json", base + ".pcap"}
		dumped(append([]string{"kernel"}, args...)...)
		dumped(append([]string{"report"}, args...)...)
	}
}

func hexadecimal(n json.Number) string {
	x, _ := n.Int64()
	return fmt.Sprintf("%08x", uint32(x))
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, name))
	return err == nil
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	return b
}

// TestSchemas validates the output of every command over all samples: no key may be missing that is always
// there, none may be there that the schema does not name. Then it damages one object of each kind in all ways
// that have to be noticed.
func TestSchemas(t *testing.T) {
	if left(t) {
		return
	}
	s := loadSchemas(t)
	count := make(map[string]int)
	examples := make(map[string]map[string]any)
	failures := 0
	files := append(sampled.Captures(t, "*"), sampled.Captures(t, "*/*")...)
	outputs(t, files, func(name, command string, v map[string]any) {
		x := s.strict[name]
		if x == nil {
			t.Errorf("%s: there is no schema of rpcrdma.%s/1", command, name)
			return
		}
		count[name]++
		if err := x.Validate(v); err != nil {
			if failures++; failures <= 20 {
				t.Errorf("%s: %.600v", command, err)
			}
			return
		}
		kind := name
		if name == "plan" { // of its lines the calls have the most
			kind = name + " " + slices.Collect(maps.Keys(v))[0]
		}
		if examples[kind] == nil || len(v) > len(examples[kind]) {
			examples[kind] = v
		}
	})
	if failures > 20 {
		t.Errorf("%d failures", failures)
	}
	for name := range s.source {
		if count[name] == 0 {
			t.Errorf("nothing is of the schema rpcrdma.%s/1", name)
		}
	}
	for kind, v := range examples {
		name, _, _ := strings.Cut(kind, " ")
		mutants(t, kind, s, name, v)
	}
	t.Log(count)
}

// shorten leaves two elements of each array.
func shorten(v map[string]any) {
	visit(v, func(m map[string]any) {
		for k, x := range m {
			if list, ok := x.([]any); ok && len(list) > 2 {
				m[k] = list[:2]
			}
		}
	})
}

// mutants damages a valid object.
func mutants(t *testing.T, kind string, s *schemas, name string, v map[string]any) {
	t.Helper()
	shorten(v)
	if err := s.strict[name].Validate(v); err != nil {
		t.Errorf("%s: with shorter arrays it is not valid: %v", kind, err)
		return
	}
	wrong := []any{[]any{[]any{[]any{"x"}}}} // of no key the value
	caught := func(strict bool) bool {
		x := s.plain[name]
		if strict {
			x = s.strict[name]
		}
		return x.Validate(v) != nil
	}
	required, _ := s.source[name]["required"].([]any)
	for _, k := range required {
		key := k.(string)
		old := v[key]
		delete(v, key)
		if !caught(false) {
			t.Errorf("%s: without %s it is valid", kind, key)
		}
		v[key] = old
	}
	n := 0
	visit(v, func(m map[string]any) {
		if n++; n > 100 {
			return
		}
		m["zz"] = wrong
		if !caught(true) {
			t.Errorf("%s: an unknown key is not noticed in %.200v", kind, m)
		}
		delete(m, "zz")
		for key, old := range m {
			m[key] = wrong
			if !caught(false) {
				t.Errorf("%s: %s may be anything", kind, key)
			}
			m[key] = old
		}
	})
	if required != nil { // a newer version of the program may add keys
		v["zz"] = 1
		if caught(false) {
			t.Errorf("%s: a key that a later version adds makes it invalid", kind)
		}
		delete(v, "zz")
	}
}

// TestNoteCodes wants docs/reference/notes.md to list the codes of notes.
func TestNoteCodes(t *testing.T) {
	text := read(t, "docs/reference/notes.md")
	n := 0
	for kind := range transaction.NoteKinds() {
		n++
		row := "\n| `" + kind.Code() + "` | "
		if !strings.Contains(text, row) {
			t.Errorf("docs/reference/notes.md does not list %s", kind.Code())
		}
	}
	if rows := strings.Count(text, "\n| `"); rows != n {
		t.Errorf("docs/reference/notes.md lists %d codes, there are %d", rows, n)
	}
}
