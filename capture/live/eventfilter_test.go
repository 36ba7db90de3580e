package live

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture/ftrace"
)

func TestEventFilter(t *testing.T) {
	for expr, want := range map[string][3]string{ // of Latency, Process, Served
		"":             {"", "", ""},
		"slower 10ms":  {"execute >= 10000", "-", "execute >= 10000"},
		"program nfs":  {`progname == "nfs"`, `(service == "nfs" || service == "nfsd")`, ""},
		"host fd00::1": {"", `addr == "fd00::1"`, ""},
		"procedure READ,WRITE and slower 1500us and program nfs": {
			`progname == "nfs" && (procname == "READ" || procname == "WRITE") && execute >= 1500`,
			`(service == "nfs" || service == "nfsd") && (procedure == "READ" || procedure == "WRITE")`,
			`(procedure == "READ" || procedure == "WRITE") && execute >= 1500`,
		},
	} {
		f, err := ParseEventFilter(expr)
		if err != nil || (f == nil) != (expr == "") {
			t.Errorf("%q: %v, %v", expr, f, err)
			continue
		}
		for i, k := range []ftrace.Kind{ftrace.Latency, ftrace.Process, ftrace.Served} {
			got, taken := f.kernel(k)
			if !taken {
				got = "-"
			}
			if got != want[i] {
				t.Errorf("%q: %s, want %s", expr, got, want[i])
			}
		}
	}
	for _, bad := range []string{"latency 10ms", "slower", "slower -", "slower -5ms", "slower 0s", "slower 10ms,5ms", "host nfs4.example.com", `procedure READ"`, "host 192.0.2", "program nfs and", "host 192.0.2.1,"} {
		if f, err := ParseEventFilter(bad); err == nil {
			t.Errorf("%q: %+v", bad, f)
		}
	}
}

// What the kernel cannot compare, the program does: a reply has no program, and the end of a client's call no address.
func TestEventsChosen(t *testing.T) {
	peer, other := netip.MustParseAddrPort("192.0.2.2:0"), netip.MustParseAddrPort("192.0.2.3:0")
	f, err := ParseEventFilter("program nfs and host 192.0.2.2")
	if err != nil {
		t.Fatal(err)
	}
	c := chooser{EventFilter: f, servers: map[uint32]netip.Addr{1: peer.Addr(), 2: other.Addr()}}
	for i, x := range []struct {
		e    ftrace.Event
		want bool
	}{
		{ftrace.Event{Kind: ftrace.Latency, Transport: 1}, true},
		{ftrace.Event{Kind: ftrace.Latency, Transport: 2}, false},
		{ftrace.Event{Kind: ftrace.Latency, Transport: 3}, false},
		{ftrace.Event{Kind: ftrace.Served, Thread: 5, XID: 7, Peer: peer}, false}, // its begin was dropped
		{ftrace.Event{Kind: ftrace.Process, Thread: 5, XID: 7, Peer: peer}, true},
		{ftrace.Event{Kind: ftrace.Served, Thread: 5, XID: 8, Peer: peer}, false},
		{ftrace.Event{Kind: ftrace.Process, Thread: 5, XID: 9, Peer: peer}, true},
		{ftrace.Event{Kind: ftrace.Served, Thread: 5, XID: 9, Peer: peer}, true},
		{ftrace.Event{Kind: ftrace.Process, Thread: 5, XID: 10, Peer: other}, true},
		{ftrace.Event{Kind: ftrace.Served, Thread: 5, XID: 10, Peer: other}, false},
	} {
		if c.takes(&x.e) != x.want {
			t.Errorf("%d: %+v", i, x.e)
		}
	}
}
