package ftrace

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented: docs/kernel-events.md names all events, and no others. `_write` behind `xprtrdma_chunk_read` stands for xprtrdma_chunk_write.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/kernel-events.md")
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		last := ""
		for _, m := range regexp.MustCompile("`([a-z0-9_]+)(?:…)?`").FindAllStringSubmatch(line, -1) {
			name := m[1]
			switch {
			case strings.HasPrefix(name, "_"):
				for at := len(last); at >= 0; at = strings.LastIndexByte(last[:at], '_') {
					if x := last[:at] + name; kinds[x] != Other {
						name = x
						break
					}
				}
			case kinds[name] != Other:
				last = name
			}
			named[name] = true
			for _, prefix := range []string{"xprtrdma_", "svcrdma_", "rpc_", "svc_", "xprt_", "nfsd_", "nfs_xdr", "nfs4_xdr"} {
				if strings.HasPrefix(name, prefix) && kinds[name] == Other && name != "xprtrdma_chunk_" {
					t.Errorf("%s is no event that is read", name)
				}
			}
		}
	}
	for _, k := range Events {
		if !named[k.Name] {
			t.Errorf("%s is not documented", k.Name)
		}
		if k.Level < Calls || k.Level > Operations {
			t.Errorf("%s has no level", k.Name)
		}
	}
}
