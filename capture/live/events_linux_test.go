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
	r := &eventReader{opt: &Options{SysRoot: sys}}
	list, err := r.find(sys)
	if err != nil || len(list) != 1 || list[0].id != 7 || r.formats[7] == nil {
		t.Fatalf("%v, %v", list, err)
	}
	unread, absent := 0, 0
	for _, n := range r.notes {
		if strings.Contains(n, "format of event rpc_stats_latency cannot be read: the procedure and the times") {
			unread++
		} else if strings.HasPrefix(n, "this kernel has no event ") {
			absent++
		}
	}
	others := 0 // events of modules that are not loaded
	for _, k := range ftrace.Events {
		if k.System != "rpcrdma" && k.System != "sunrpc" {
			others++
		}
	}
	if unread != 1 || absent != len(ftrace.Events)-2-others || strings.Join(r.absent, " ") != "nfsd nfs nfsv4" {
		t.Errorf("%q, %q", r.notes, r.absent)
	}
	// A lower level, and a filter, need less.
	r = &eventReader{opt: &Options{SysRoot: sys, EventLevel: ftrace.Calls}}
	if list, err := r.find(sys); err == nil {
		t.Errorf("calls: %v", list)
	}
	// A module that is loaded later is noticed, once.
	r.absent = []string{"nfsd", "nfs"}
	if err := os.MkdirAll(filepath.Join(sys, "module/nfsd"), 0o700); err != nil {
		t.Fatal(err)
	}
	put("nfsd", "nfsd_compound_status", "name: nfsd_compound_status\nID: 70000\n")
	r.opt.EventLevel = ftrace.Operations
	for n := range int64(3) {
		r.survey((n + 1) * surveyEvery)
	}
	if len(r.absent) != 1 || r.absent[0] != "nfs" || !strings.Contains(r.notes[len(r.notes)-1], "nfsd_compound_status") {
		t.Errorf("%q, %q", r.absent, r.notes)
	}
	// So is a transport.
	transport := filepath.Join(sys, "kernel/sunrpc/xprt-switches/switch-0/xprt-3-rdma")
	if err := os.MkdirAll(transport, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(transport, "dstaddr"), []byte("192.0.2.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.lookUp(3)
	r.survey(10 * surveyEvery)
	if len(r.pending) != 1 || r.pending[0].Transport != 3 || string(r.pending[0].Program) != "rdma" || r.pending[0].Peer.Addr().String() != "192.0.2.1" {
		t.Errorf("%+v", r.pending)
	}
	// Once it has gone, its number may be that of another one.
	if err := os.RemoveAll(transport); err != nil {
		t.Fatal(err)
	}
	r.known[3] = link{r.known[3].name, monotonic() - 3*surveyEvery}
	if r.transports(); len(r.pending) != 2 || r.pending[1].Transport != 3 || len(r.pending[1].Program) != 0 || r.chooser.servers[3].IsValid() {
		t.Errorf("%+v", r.pending)
	}
	// Calls over one that nobody knows are left out at level calls, and that is told once.
	r.opt.EventLevel = ftrace.Calls
	for range 3 {
		r.lookUp(4)
	}
	if list, n := r.problems.get(); n != 1 || !strings.Contains(list[0].Text, "calls over transport 4 are left out") {
		t.Errorf("%d problems: %v", n, list)
	}
}
