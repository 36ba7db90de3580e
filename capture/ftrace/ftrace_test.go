package ftrace

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line, name string
		time       int64
		thread     uint32
		rest       string
	}{
		{"    kworker/u4:1-29      [000] .N...    23.640612: rpc_stats_latency: task:1@1 xid=0x9957550c", "rpc_stats_latency", 23640612000, 29, " task:1@1 xid=0x9957550c"},
		{"            nfsd-225   [000]    24.048435: svcrdma_decode_rqst:  cq.id=2 cid=143", "svcrdma_decode_rqst", 24048435000, 225, "  cq.id=2 cid=143"},
		{"nfsd   225 [001]   24.048435123: rpcrdma:svcrdma_decode_rqst: cq.id=2 cid=143", "svcrdma_decode_rqst", 24048435123, 225, " cq.id=2 cid=143"},
		{" a [b] c: [1] -9 [012] ..... 1.5: x: ", "x", 1500000000, 9, " "},
		{" short [000] .....", "", 0, 0, ""},
		{" [000] ..... time: x: y", "", 0, 0, ""},
		{" [abc] ..... 1.0: x: y", "", 0, 0, ""},
		{" [0] ..... 99999999999999999999.0: x: y", "", 0, 0, ""},
		{" [0] ..... 9999999999.0: x: y", "", 0, 0, ""},
		{" [0] ..... 1.0: : y", "", 0, 0, ""},
		{" [0] ..... 1.1234567890: x: y", "", 0, 0, ""},
		{"", "", 0, 0, ""},
	} {
		var e Event
		if ok := e.Parse([]byte(c.line)); ok != (c.name != "") || ok && (string(e.Name) != c.name || string(e.Rest) != c.rest || e.Time != c.time || e.Thread != c.thread) {
			t.Errorf("%q: %v %+v", c.line, ok, e)
		}
	}
}

// Lines of Linux 6.12 and 7.3.
func TestFields(t *testing.T) {
	addr := netip.MustParseAddrPort
	for _, c := range []struct {
		text string
		want Event
	}{
		{"xprtrdma_inline_thresh: 192.0.2.2:36825 -> 192.0.2.1:20049 neg send/recv=4096/4096, calc send/recv=3780/3884", Event{Kind: Threshold, Local: addr("192.0.2.2:36825"), Peer: addr("192.0.2.1:20049")}},
		{"xprtrdma_inline_thresh: [fd00::2]:36825 -> [fd00::1]:20049 neg send/recv=4096/4096", Event{Kind: Threshold, Local: addr("[fd00::2]:36825"), Peer: addr("[fd00::1]:20049")}},
		{"xprtrdma_chunk_read: task:00000028@00000003 pos=176 131072@0xd126803108b00000:0x00000a08 (more)", Event{Kind: ChunkRead, Seen: Task | Memory, Task: 0x28, Client: 3, Position: 176, Length: 131072, Offset: 0xd126803108b00000, Handle: 0xa08, More: true}},
		{"xprtrdma_chunk_reply: task:0000002e@00000003 7184@0xd726803106198000:0x00000a09 (last)", Event{Kind: ChunkReply, Seen: Task | Memory, Task: 0x2e, Client: 3, Length: 7184, Offset: 0xd726803106198000, Handle: 0xa09}},
		{"xprtrdma_marshal: task:00000030@00000003 xid=0xd9268031 hdr=76 xdr=176/262144/16 read list/inline", Event{Kind: Marshal, Seen: XID | Task | Header | Message, XID: 0xd9268031, Task: 0x30, Client: 3, Header: 76, Head: 176, Pages: 262144, Tail: 16, ReadList: []byte("read list")}},
		{"xprtrdma_reply: task:0000002e@00000003 xid=0xd7268031 credits=64", Event{Kind: Reply, Seen: XID | Task | Credits, XID: 0xd7268031, Task: 0x2e, Client: 3, Credits: 64}},
		{"rpc_stats_latency: task:0000002e@00000003 xid=0xd7268031 nfsaclv3 GETACL backlog=301 rtt=9547 execute=10256 xprt_id=1", Event{Kind: Latency, Seen: XID | Task | Times | Connected, Transport: 1, XID: 0xd7268031, Task: 0x2e, Client: 3, Program: []byte("nfsacl"), Version: 3, Procedure: []byte("GETACL"), Backlog: 301, RoundTrip: 9547, Execute: 10256}},
		{"rpc_stats_latency: xid=0xd7268031 nfsv4 READ rtt=9547 execute=10256", Event{Kind: Latency, Seen: XID, XID: 0xd7268031, Program: []byte("nfs"), Version: 4, Procedure: []byte("READ"), Backlog: maxMicros, RoundTrip: 9547, Execute: 10256}},
		{"xprtrdma_cb_call: peer=[192.0.2.1]:20049 xid=0x537095f9", Event{Kind: CallbackCall, Seen: XID, XID: 0x537095f9, Peer: addr("192.0.2.1:20049")}},
		{"svcrdma_decode_rqst: cq.id=2 cid=143 xid=0xa1f3f213 vers=1 credits=128 proc=RDMA_NOMSG hdrlen=28", Event{Kind: Request, Seen: XID | Credits | Header | Completion, Queue: 2, Completion: 143, XID: 0xa1f3f213, Version: 1, Credits: 128, Procedure: []byte("RDMA_NOMSG"), Header: 28}},
		{"svcrdma_decode_rseg: cq.id=4 cid=143 segno=1 position=0 4264@0x756617bc0835b000:0x000017a7", Event{Kind: ReadSegment, Seen: Completion | Number | Memory, Queue: 4, Completion: 143, Segment: 1, Length: 4264, Offset: 0x756617bc0835b000, Handle: 0x17a7}},
		{"svc_process: addr=fd00::2 xid=0xa1f3f213 service=nfsd vers=4 proc=COMPOUND", Event{Kind: Process, Seen: XID, XID: 0xa1f3f213, Peer: addr("[fd00::2]:0"), Program: []byte("nfsd"), Version: 4, Procedure: []byte("COMPOUND")}},
		{"svc_stats_latency: xid=0xa1f3f213 server=[fd00::1]:20049 client=[fd00::2]:0 proc=NULL execute-us=1499", Event{Kind: Served, Seen: XID | Execution, XID: 0xa1f3f213, Local: addr("[fd00::1]:20049"), Peer: addr("[fd00::2]:0"), Procedure: []byte("NULL"), Executed: 1499}},
		{"svc_xprt_dequeue: server=192.0.2.1:20049 client=192.0.2.2:0 flags=BUSY|DATA wakeup-us=24", Event{Kind: Dequeued, Seen: Waited, Local: addr("192.0.2.1:20049"), Peer: addr("192.0.2.2:0"), Wakeup: 24}},
		{"xprt_get_cong: task:0000002e@00000003 snd_task:ffffffff cong=63 cwnd=64", Event{Kind: Granted, Seen: Task, Task: 0x2e, Client: 3}},
		{"xprt_lookup_rqst: peer=[192.0.2.1]:20049 xid=0xd7268031 status=0", Event{Kind: Found, Seen: XID, XID: 0xd7268031, Peer: addr("192.0.2.1:20049")}},
		{"xprtrdma_reply: task:0000002@ xid=0x1ffffffff credits=-1", Event{Kind: Reply, Task: 2}},
		{"sched_switch: prev_comm=nfsd xid=0x1", Event{}},
	} {
		var e Event
		if !e.Parse([]byte("nfsd-7 [000] ..... 1.5: " + c.text)) {
			t.Fatal(c.text)
		}
		e.Time, e.Thread, e.Name, e.Rest = 0, 0, nil, nil
		if got, want := format(&e), format(&c.want); got != want {
			t.Errorf("%s:\n%s\n%s", c.text, got, want)
		}
	}
}

func TestScan(t *testing.T) {
	text := "# tracer: nop\n# entries-in-buffer/entries-written: 18/19   #P:1\n\r\n" +
		"x-1 [000] ..... 1.0: y: a=1\nnonsense\n" + strings.Repeat("z", 3*MaxLine) + "\nCPU:0 [LOST 17 EVENTS]\nx-1 [000] ..... 2.0: y: a=2\nx-1 [000] ..... 3.0: y: a=3"
	n := 0
	s, err := Scan(strings.NewReader(text), func(*Event) { n++ })
	if err != nil || n != 2 || s != (Stats{Events: 2, Other: 2, Long: 1, Lost: 18}) {
		t.Errorf("%d events, %+v, %v", n, s, err)
	}
}

func TestBegins(t *testing.T) {
	for _, c := range []struct {
		head      string
		yes, more bool
	}{
		{"# tracer: nop\n", true, false},
		{"cpus=2\n nfsd-7 [000] 1.5: x: y\n", true, false},
		{"\n nfsd-7 [000] 1.5: x: y\n", true, false},
		{"CPU:0 [LOST 17 EVENTS]\n", true, false},
		{" nfsd-7 [000] 1.5: x: y", false, true},
		{"# a comment\n", false, true},
		{"a letter\nand more", false, false},
	} {
		if yes, more := Begins([]byte(c.head)); yes != c.yes || more != c.more {
			t.Errorf("%q: %v %v", c.head, yes, more)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	line := []byte("kworker/0:1H-44 [000] ..... 31.859195: xprtrdma_reply: task:00000003@00000000 xid=0xa3f3f213 credits=64")
	var e Event
	if n := testing.AllocsPerRun(100, func() { e.Parse(line) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzScan(f *testing.F) {
	for _, name := range []string{"../../samples/rocev2-nfs41-recall.trace.client", "../../samples/rocev2-nfs3-longcall.trace.server"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b[:4096]))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n uint64
		s, err := Scan(strings.NewReader(text), func(e *Event) {
			n++
			if len(e.Name) == 0 || e.Time < 0 || e.Has(Times) && (e.Backlog >= maxMicros || e.RoundTrip >= maxMicros || e.Execute >= maxMicros) {
				t.Errorf("event %+v", e)
			}
		})
		if err != nil || n != s.Events {
			t.Errorf("%d events, %+v, %v", n, s, err)
		}
	})
}

func format(e *Event) string { return fmt.Sprintf("%+v", *e) }
