package text

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// The golden files hold the tree of the first transaction of each kind and
// outcome in a sample.
func TestGoldenTrees(t *testing.T) {
	for _, c := range []struct {
		sample string
		level  int
	}{
		{"rocev2-nfs3-basic.pcap.zst", 1},
		{"rocev2-nfs3-longcall.pcap", 2},
		{"iwarp-nfs40-basic.pcap.zst", 1},
		{"rocev2-nfs42-basic.pcap.zst", 1},
		{"rocev2-nfs41-recall.pcap", 2},
	} {
		name, _, _ := strings.Cut(c.sample, ".")
		t.Run(name, func(t *testing.T) {
			list, tree := Lister{}, Tree{Level: c.level}
			var out []byte
			seen := make(map[string]bool)
			each(t, c.sample, func(v *rpc.View) {
				line := list.Append(nil, v)
				kind := string(Program(nil, v)) + string(Operations(nil, v)) + ShortStatus(v)
				if seen[kind] {
					return
				}
				seen[kind] = true
				out = append(append(out, line...), '\n')
				out = append(tree.Append(out, v), '\n')
			})
			golden := filepath.Join("testdata", "golden", name+".tree")
			if *update {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, out, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v (go test -update writes it)", err)
			}
			got, exp := bytes.Split(out, []byte("\n")), bytes.Split(want, []byte("\n"))
			for i := range min(len(got), len(exp)) {
				if !bytes.Equal(got[i], exp[i]) {
					t.Fatalf("%s, line %d:\n got %s\nwant %s\n(go test -update, if this is right)", golden, i+1, got[i], exp[i])
				}
			}
			if len(got) != len(exp) {
				t.Fatalf("%s: %d lines, want %d", golden, len(got), len(exp))
			}
		})
	}
}
