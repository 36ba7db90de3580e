package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestHostileText checks every output for dangerous characters, and the plan for the original
// names.
func TestHostileText(t *testing.T) {
	for _, sample := range []string{samples + "/rocev2-nfs3-meta.pcap.zst", samples + "/rocev2-nfs41-recall.pcap"} {
		dir := t.TempDir()
		in := clitest.Hostile(t, dir, sample)
		name := filepath.Join(dir, "x\u202e\x1b.json")
		report := filepath.Join(dir, "report.json")
		look := func(shows bool, args ...string) {
			t.Helper()
			var out, problems bytes.Buffer
			code := execute(args, &cli.Streams{Out: &out, Err: &problems})
			for _, s := range []string{out.String(), problems.String()} {
				if raw := clitest.Raw(s); raw != "" {
					t.Errorf("%q: %q", args, raw)
				}
			}
			if shows && !clitest.Shown(out.String()) {
				t.Errorf("%q: exit status %d: nothing of the hostile text is there: %.300q, %.300q", args, code, out.String(), problems.String())
			}
		}
		look(false, "plan", "--no-icrc", "-o", name, in)
		look(false, "plan", "-T", "json", name)
		look(true, "plan", "--dot", "-", name)
		look(false, "run", name, "builtin")
		look(false, "run", name, "builtin", "--yes", "--write", "--timing", "fast", "--provider", "iwarp", "-q", "--report", report)
		look(false, "run", name, "builtin", "--yes", "--write", "--timing", "fast", "--provider", "iwarp", "-q", "-T", "json")
		look(false, "plan", dir+"/none\x1b\u202e")
		look(false, "run", in+"x", "\u202e\x1b")
		look(false, "serve", "--playback", in+"x")
		look(false, "plan", "--payload", "\u202e\x1b", in)
		for _, file := range []string{name, report} {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if raw := clitest.Raw(string(b)); raw != "" {
				t.Errorf("%s: %q", filepath.Base(file), raw)
			}
		}
		hostileNames(t, name, sample)
	}
}

// hostileNames compares the names in the plan with those in a plan of the unchanged capture:
// their number must be equal, and they hold the hostile bytes, not their escapes.
func hostileNames(t *testing.T, name, sample string) {
	t.Helper()
	kind := func(name string) (names map[string]bool, raw int) {
		r, err := plan.Open(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		ops, err := r.All()
		if err != nil {
			t.Fatal(err)
		}
		names = map[string]bool{}
		fields := func(list []plan.Field) {
			for i := range list {
				if f := &list[i]; f.Kind == plan.FieldName {
					s := string(f.Opaque())
					if !names[s] && clitest.Raw(s) != "" {
						raw++
					}
					if strings.Contains(s, `\u`) || strings.Contains(s, `\x`) {
						t.Errorf("an escape in the name %q", s)
					}
					names[s] = true
				}
			}
		}
		for _, o := range ops {
			fields(o.Args)
			if o.Compound != nil {
				for i := range o.Compound.Ops {
					fields(o.Compound.Ops[i].Args)
				}
			}
		}
		return names, raw
	}
	plain := filepath.Join(t.TempDir(), "plain.plan")
	if _, problems, code := command(t, nil, "plan", "-o", plain, sample); code != 0 {
		t.Fatal(problems)
	}
	want, _ := kind(plain)
	got, raw := kind(name)
	if len(got) < len(want)/2 || raw == 0 {
		t.Errorf("%d names of %d, %d of them hostile", len(got), len(want), raw)
	}
}
