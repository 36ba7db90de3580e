package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// An event whose format cannot be read, or that a kernel lacks, is told once, and the others are used.
func TestEventsFound(t *testing.T) {
	sys := t.TempDir()
	put := func(system, name, text string) {
		dir := filepath.Join(sys, "kernel/tracing/events", system, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "format"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("sunrpc", "rpc_stats_latency", "name: rpc_stats_latency\nID: 70000\n")
	put("rpcrdma", "xprtrdma_reply", "name: xprtrdma_reply\nID: 7\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n")
	r := new(eventReader)
	ids, err := r.find(sys)
	if err != nil || len(ids) != 1 || ids[0] != 7 || r.formats[7] == nil {
		t.Fatalf("%v, %v", ids, err)
	}
	unread, absent := 0, 0
	for _, n := range r.notes {
		if strings.Contains(n, "format of event rpc_stats_latency cannot be read: the procedure and the times") {
			unread++
		} else if strings.HasPrefix(n, "this kernel has no event ") {
			absent++
		}
	}
	if unread != 1 || absent != len(ftrace.Events)-2 {
		t.Errorf("%q", r.notes)
	}
}
