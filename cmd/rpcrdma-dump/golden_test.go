package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// The golden files hold what the command prints for each sample, one file for
// each of these command lines: testdata/golden/SAMPLE.MODE.
var modes = []struct {
	name string
	args []string
}{
	{"list", nil},
	{"tree", []string{"-v", "-c", "4"}},
	{"full", []string{"-vv", "-x", "-c", "3"}},
	{"packets", []string{"packets", "-c", "60"}},
	{"connections", []string{"connections"}},
	{"connections-detail", []string{"connections", "-v"}},
	{"summary", []string{"-q"}},
	{"report", []string{"report", "--top", "3"}},
	{"check", []string{"check", "--severity", "note", "--max", "3"}},
	{"why", []string{"why"}},
}

func TestGolden(t *testing.T) {
	files := sampleFiles(t)
	used := make(map[string]bool)
	for _, file := range files {
		sample, _, _ := strings.Cut(filepath.Base(file), ".pcap")
		for _, m := range modes {
			name := sample + "." + m.name
			used[name] = true
			t.Run(name, func(t *testing.T) {
				var out, diag bytes.Buffer
				args := append(append([]string(nil), m.args...), file)
				if code := run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &diag}); code != cli.ExitOK {
					t.Fatalf("exit code %d\n%s", code, &diag)
				}
				compare(t, filepath.Join("testdata", "golden", name), out.Bytes())
			})
		}
	}
	// With the keytab beside a capture; and without it nothing is decrypted.
	for _, sample := range []string{"rocev2-nfs41-krb5p", "rocev2-nfs3-krb5i"} {
		file := filepath.Join(samples, "kerberos", sample+".pcap.zst")
		for _, m := range modes {
			switch m.name {
			case "packets", "connections", "connections-detail":
				continue // nothing of them is encrypted
			case "summary", "report", "why":
				continue // see testdata/script/kerberos.txtar
			}
			for _, key := range []string{"", ".keytab"} {
				name := sample + key + "." + m.name
				used[name] = true
				t.Run(name, func(t *testing.T) {
					t.Setenv("KRB5_KTNAME", "")
					var out, diag bytes.Buffer
					args := append(append([]string(nil), m.args...), file)
					if key != "" {
						args = append(args, "--keytab", filepath.Join(samples, "kerberos", sample+key))
					}
					want := cli.ExitOK
					if name == "rocev2-nfs41-krb5p.keytab.check" {
						want = cli.ExitFailure // the server answers a GETATTR behind 70001 bytes of a WRITE with OP_ILLEGAL
					}
					if code := run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &diag}); code != want {
						t.Fatalf("exit code %d, want %d\n%s", code, want, &diag)
					}
					compare(t, filepath.Join("testdata", "golden", name), out.Bytes())
				})
			}
		}
	}
	// What is left over belongs to samples that are gone.
	golden, err := filepath.Glob(filepath.Join("testdata", "golden", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range golden {
		if !used[filepath.Base(g)] {
			if *update {
				os.Remove(g)
				continue
			}
			t.Errorf("%s belongs to no sample", g)
		}
	}
}

// sampleFiles are the captures among the samples.
func sampleFiles(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(samples, "*.pcap*"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) == 0 {
		tb.Fatal("there are no samples")
	}
	return files
}

func compare(t *testing.T, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if bytes.Equal(got, want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Fatalf("%s, line %d:\n got %s\nwant %s\n(go test -update, if this is right)", golden, i+1, a, b)
		}
	}
}
