package traced_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// call is what both a packet and a kernel say of a transaction.
type call struct {
	xid                    uint32
	backward               bool
	client, server         string
	program, version, proc uint32
	named                  bool
	asked, granted         uint32
	callType, replyType    string
	offered, written       string
	bytes                  uint64
	sent, came             int64
	kernel                 transaction.Kernel
	state                  transaction.State
	answered               bool
	fabric                 rdma.Fabric
}

func decoded(t *testing.T, name string) (all []call) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) { all = append(all, described(tx)) })
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	if list, n := r.Problems(); n > 0 {
		t.Errorf("%s: %v", name, list[0])
	}
	return all
}

func described(tx *transaction.Transaction) call {
	c := call{
		xid: tx.XID, backward: tx.Backward, client: tx.Client().Addr.String(), server: tx.Server().Addr.String(),
		program: tx.Program, version: tx.Version, proc: tx.Procedure, named: tx.Named,
		asked: tx.Call.Credits(), granted: tx.Reply.Credits(), callType: typeName(&tx.Call), replyType: typeName(&tx.Reply),
		offered: fmt.Sprint(tx.Call.Header.Reads, tx.Call.Header.Writes, tx.Call.Header.HasReply, tx.Call.Header.Reply),
		written: fmt.Sprint(tx.Reply.Header.Writes, tx.Reply.Header.HasReply, tx.Reply.Header.Reply),
		bytes:   tx.Call.Bytes, sent: tx.Call.First.Time, came: tx.Reply.Last.Time, state: tx.State, answered: tx.Reply.Seen(), fabric: tx.Connection.Fabric,
	}
	if tx.Kernel != nil {
		c.kernel = *tx.Kernel
	}
	return c
}

// TestSame compares what kernels recorded with the packets of the same runs, call by call.
func TestSame(t *testing.T) {
	for _, sample := range []string{"rocev2-nfs41-recall", "rocev2-nfs3-longcall"} {
		for _, side := range []string{"client", "server"} {
			same(t, filepath.Join("../../samples", sample+".pcap"), filepath.Join("../../samples", sample+".trace."+side), side)
		}
	}
}

// same compares. An XID that is on the wire again, on another connection, is another call for the server, and the same one for the client.
func same(t *testing.T, packets, trace, side string) {
	t.Helper()
	type key struct {
		xid      uint32
		backward bool
	}
	wire := make(map[key][]call)
	for _, c := range decoded(t, packets) {
		if c.fabric != rdma.TCP && c.fabric != rdma.UDP {
			wire[key{c.xid, c.backward}] = append(wire[key{c.xid, c.backward}], c)
		}
	}
	n, joined := 0, 0
	for _, c := range decoded(t, trace) {
		k := key{c.xid, c.backward}
		list := wire[k]
		if len(list) == 0 && strings.Contains(packets, "midstream") {
			continue
		}
		if len(list) == 0 {
			t.Errorf("%s: no packets of %08x", trace, c.xid)
			continue
		}
		w := list[len(list)-1]
		if side == "server" {
			w, wire[k] = list[0], list[1:]
		} else {
			delete(wire, k)
		}
		n++
		if c.kernel.Server != (side == "server") && !c.backward {
			t.Errorf("%s: %08x: of the other side", trace, c.xid)
		}
		if c.client != w.client || c.server != w.server {
			t.Errorf("%s: %08x: %s to %s, the packets say %s to %s", trace, c.xid, c.client, c.server, w.client, w.server)
		}
		if c.backward {
			continue
		}
		got, want := []any{c.callType, c.offered}, []any{w.callType, w.offered}
		if c.named { // else the server's security layer has answered it
			got, want = append(got, c.program, c.version, c.proc), append(want, w.program, w.version, w.proc)
		}
		if !w.named {
			t.Errorf("%s: %08x: the packets do not tell the program", trace, c.xid)
		}
		if c.kernel.CallCredits {
			got, want = append(got, "requested", c.asked), append(want, "requested", w.asked)
		}
		if c.kernel.ReplyCredits {
			got, want = append(got, "granted", c.granted), append(want, "granted", w.granted)
		}
		if c.kernel.CallBytes {
			got, want = append(got, "bytes", c.bytes), append(want, "bytes", w.bytes)
		}
		if c.kernel.ReplyType && w.answered {
			got, want = append(got, c.replyType), append(want, w.replyType)
		}
		if c.kernel.Written && w.answered {
			joined++
			got, want = append(got, c.written), append(want, w.written)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %08x:\n%v, the packets say\n%v", trace, c.xid, got, want)
		}
		// Clocks differ, but not how fast they run: the server's time lies within that on the wire, which lies within the client's.
		if inner, outer := c.came-c.sent, w.came-w.sent; c.answered && w.answered && len(list) == 1 {
			if side == "client" {
				inner, outer = outer, inner
			}
			if inner > outer+1e6 {
				t.Errorf("%s: %08x: %d ns within %d ns", trace, c.xid, inner, outer)
			}
		}
		if c.state != transaction.Complete && c.answered {
			t.Errorf("%s: %08x: %v", trace, c.xid, c.state)
		}
	}
	for k, list := range wire {
		for _, c := range list {
			if !k.backward && (side == "client" || c.answered) { // a server that ends leaves some calls alone
				t.Errorf("%s: the packets have %08x, too (%v)", trace, k.xid, c.state)
			}
		}
	}
	t.Logf("compared %d calls of the %s, %d with what was returned", n, side, joined)
	if n == 0 || side == "server" && joined == 0 {
		t.Errorf("%s: %d calls, %d with what was returned", trace, n, joined)
	}
}

// TestCallsOnly decodes recordings that have only the events of level calls. The transactions and their times must be the same as with all events.
func TestCallsOnly(t *testing.T) {
	level := make(map[string]ftrace.Level)
	for _, k := range ftrace.Events {
		level[k.Name] = k.Level
	}
	for _, side := range []string{"client", "server"} {
		name := filepath.Join("../../samples", "rocev2-nfs41-recall.trace."+side)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		link := ftrace.Event{Kind: ftrace.Transport, Seen: ftrace.Connected, Program: []byte("rdma"), Peer: netip.MustParseAddrPort("192.0.2.1:0")}
		got := make(map[uint32]call)
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) { got[tx.XID] = described(tx) })
		b := &capture.Batch{Packets: []capture.Packet{{Number: 1, Link: capture.LinkTrace, Data: link.Append(nil)}}}
		var e ftrace.Event
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSpace(line); e.Parse(line) && level[string(e.Name)] == ftrace.Calls {
				b.Packets = append(b.Packets, capture.Packet{Time: e.Time, Number: uint64(len(b.Packets) + 1), Link: capture.LinkTrace, Data: line})
			}
		}
		d.Batch(b)
		d.Flush()
		n := 0
		for _, want := range decoded(t, name) {
			c, ok := got[want.xid]
			if !ok {
				t.Errorf("%s: no %08x", side, want.xid)
				continue
			}
			n++
			if c.client != want.client || c.server != want.server || c.program != want.program || c.version != want.version || c.proc != want.proc ||
				c.kernel.Queued != want.kernel.Queued || c.kernel.RoundTrip != want.kernel.RoundTrip || c.kernel.Execution != want.kernel.Execution || c.state != want.state {
				t.Errorf("%s: %08x:\n%+v, not\n%+v", side, want.xid, c, want)
			}
			late := max(c.came-want.came, want.came-c.came)
			if side == "client" {
				late = max(late, c.sent-want.sent, want.sent-c.sent)
			}
			if late > 5e6 { // an emulated processor needs as long between two events
				t.Errorf("%s: %08x: from %d to %d, not %d to %d", side, want.xid, c.sent, c.came, want.sent, want.came)
			}
		}
		if n < 40 {
			t.Errorf("%s: %d calls", side, n)
		}
	}
}

// TestOnlyEnds: calls of which only the end was recorded, over a transport that is RDMA as far as is known. Its number was given to another one.
func TestOnlyEnds(t *testing.T) {
	var got []string
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		var v rpc.View
		v.Set(tx)
		got = append(got, fmt.Sprintf("%x %s %v %v", tx.XID, v.AppendOperation(nil), tx.Client().Addr, tx.Backward))
	})
	link := ftrace.Event{Kind: ftrace.Transport, Seen: ftrace.Connected, Program: []byte("rdma"), Peer: netip.MustParseAddrPort("192.0.2.1:0"), Local: netip.MustParseAddrPort("192.0.2.2:0"), Transport: 2}
	b := &capture.Batch{Packets: []capture.Packet{{Number: 1, Link: capture.LinkTrace, Data: link.Append(nil)}}}
	for i, s := range []string{
		"rpc_stats_latency: task:1@1 xid=0x00000001 mountv3 MOUNT backlog=1 rtt=2 execute=3 xprt_id=2",
		"xprt_lookup_rqst: peer=[192.0.2.1]:2049 xid=0x00000002 status=0",
		"rpc_stats_latency: task:1@1 xid=0x00000002 nfsv3 READ backlog=1 rtt=2 execute=3 xprt_id=2", // over TCP
		"rpc_stats_latency: task:1@1 xid=0x00000003 nfsv3 READ backlog=1 rtt=2 execute=3 xprt_id=2",
		"rpc_stats_latency: task:1@1 xid=0x00000004 nfs4_cbv1 CB_RECALL backlog=1 rtt=2 execute=3 xprt_id=2",
		"svcrdma_decode_rqst: cq.id=2 cid=1 xid=0x00000005 vers=1 credits=128 proc=RDMA_MSG hdrlen=28",
		"rpc_stats_latency: task:1@1 xid=0x00000005 nfs4_cbv1 CB_RECALL backlog=1 rtt=2 execute=3 xprt_id=2",
	} {
		line := fmt.Sprintf("x-7 [000] .... %d.0: %s", i+1, s)
		b.Packets = append(b.Packets, capture.Packet{Time: int64(i+1) * 1e9, Number: uint64(i + 2), Link: capture.LinkTrace, Data: []byte(line)})
	}
	d.Batch(b)
	d.Flush()
	want := []string{"3 READ 192.0.2.2 false", "4 CB_RECALL 192.0.2.2 true", "5 CB_RECALL 192.0.2.2 true"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, not\n%q", got, want)
	}
}

// TestWriteChunk: all segments of a client's Write chunk, where a kernel (7.3) calls each of them the last one.
func TestWriteChunk(t *testing.T) {
	var got []string
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) { got = append(got, described(tx).offered) })
	b := new(capture.Batch)
	for i, s := range []string{
		"xprtrdma_chunk_write: task:00000030@00000003 mr.id=1 nents=32 131072@0x0444f000:0x00000ac4 (last)",
		"xprtrdma_chunk_write: task:00000030@00000003 mr.id=2 nents=32 131072@0x0446f000:0x000007ba (last)",
		"xprtrdma_marshal: task:00000030@00000003 xid=0x00000007 hdr=68 xdr=172/0/0 pullup/write chunk",
		"rpc_stats_latency: task:00000030@00000003 xid=0x00000007 nfsv4 READ backlog=1 rtt=2 execute=3 xprt_id=1",
	} {
		line := fmt.Sprintf("x-7 [000] .... %d.0: %s", i+1, s)
		b.Packets = append(b.Packets, capture.Packet{Time: int64(i+1) * 1e9, Number: uint64(i + 1), Link: capture.LinkTrace, Data: []byte(line)})
	}
	d.Batch(b)
	d.Flush()
	if want := "[] [[{2756 131072 71626752} {1978 131072 71757824}]] false []"; len(got) != 1 || got[0] != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestOutcome: errors in replies to a client, and the operations that a server has executed.
func TestOutcome(t *testing.T) {
	var got []string
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		var v rpc.View
		v.Set(tx)
		got = append(got, fmt.Sprintf("%d %s %q %v", tx.XID, v.AppendOperation(nil), v.Status(), v.Failed()))
	})
	b := new(capture.Batch)
	for i, s := range []string{
		// A client: an error of NFSv3, one of NFSv4, none.
		"xprtrdma_marshal: task:00000001@00000002 xid=0x00000001 hdr=28 xdr=40/0/0 pullup/inline",
		"nfs_xdr_status: task:00000001@00000002 xid=0x00000001 nfsv3 LOOKUP error=-2 (NOENT)",
		"xprtrdma_reply: task:00000001@00000002 xid=0x00000001 credits=64",
		"rpc_stats_latency: task:00000001@00000002 xid=0x00000001 nfsv3 LOOKUP backlog=1 rtt=2 execute=3 xprt_id=0",
		"xprtrdma_marshal: task:00000001@00000002 xid=0x00000002 hdr=28 xdr=40/0/0 pullup/inline",
		"xprtrdma_reply: task:00000001@00000002 xid=0x00000002 credits=64",
		"nfs4_xdr_status: task:00000001@00000002 xid=0x00000002 error=-10008 (DELAY) operation=18",
		"rpc_stats_latency: task:00000001@00000002 xid=0x00000002 nfsv4 OPEN backlog=1 rtt=2 execute=3 xprt_id=0",
		// A server: all operations, a failure, one that is missing, another thread between.
		"svcrdma_decode_rqst: cq.id=2 cid=1 xid=0x00000003 vers=1 credits=128 proc=RDMA_MSG hdrlen=28",
		"svc_process: addr=192.0.2.2 xid=0x00000003 service=nfsd vers=4 proc=COMPOUND",
		"nfsd_compound_status: op=1/2 OP_PUTFH status=0",
		"8 svc_process: addr=192.0.2.2 xid=0x00000009 service=nfsd vers=4 proc=COMPOUND",
		"8 nfsd_compound_status: op=1/1 OP_PUTROOTFH status=0",
		"nfsd_compound_status: op=2/2 OP_GETATTR status=0",
		"svc_stats_latency: xid=0x00000003 server=192.0.2.1:20049 client=192.0.2.2:0 proc=COMPOUND execute-us=5",
		"svc_process: addr=192.0.2.2 xid=0x00000004 service=nfsd vers=4 proc=COMPOUND",
		"nfsd_compound_status: op=1/3 OP_PUTFH status=0",
		"nfsd_compound_status: op=2/3 OP_LOOKUP status=2",
		"svc_stats_latency: xid=0x00000004 server=192.0.2.1:20049 client=192.0.2.2:0 proc=COMPOUND execute-us=5",
		"svc_process: addr=192.0.2.2 xid=0x00000005 service=nfsd vers=4 proc=COMPOUND",
		"nfsd_compound_status: op=1/3 OP_PUTFH status=0",
		"nfsd_compound_status: op=3/3 OP_GETATTR status=0",
		"svc_stats_latency: xid=0x00000005 server=192.0.2.1:20049 client=192.0.2.2:0 proc=COMPOUND execute-us=5",
		"svc_process: addr=192.0.2.2 xid=0x00000006 service=nfsd vers=4 proc=COMPOUND",
		"svc_stats_latency: xid=0x00000006 server=192.0.2.1:2049 client=192.0.2.2:799 proc=COMPOUND execute-us=5", // over TCP
	} {
		thread := "7"
		if rest, ok := strings.CutPrefix(s, "8 "); ok {
			thread, s = "8", rest
		}
		line := fmt.Sprintf("x-%s [000] .... %d.0: %s", thread, i+1, s)
		b.Packets = append(b.Packets, capture.Packet{Time: int64(i+1) * 1e9, Number: uint64(i + 1), Link: capture.LinkTrace, Data: []byte(line)})
	}
	d.Batch(b)
	d.Flush()
	want := []string{
		`1 LOOKUP "NFS3ERR_NOENT" true`, `2 OPEN "NFS4ERR_DELAY" true`, `3 GETATTR "NFS4_OK" false`, `4 LOOKUP "NFS4ERR_NOENT" true`, `5 COMPOUND "" false`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, not\n%q", got, want)
	}
}

// TestCaptures does the same for all captures of a directory, where there is one: each with NAME.truth/trace.client and trace.server.
func TestCaptures(t *testing.T) {
	traces, _ := filepath.Glob(filepath.Join(os.Getenv("RPCRDMA_CAPTURES"), "*.truth/trace.*"))
	for _, trace := range traces {
		packets := strings.TrimSuffix(filepath.Dir(trace), ".truth") + ".pcap"
		t.Run(filepath.Base(packets)+filepath.Ext(trace), func(t *testing.T) { same(t, packets, trace, filepath.Ext(trace)[1:]) })
	}
}

// FuzzEvents checks that no text of events makes the Tracker fail, or keep transactions back.
func FuzzEvents(f *testing.F) {
	for _, name := range []string{"rocev2-nfs41-recall.trace.client", "rocev2-nfs41-recall.trace.server", "rocev2-nfs3-longcall.trace.client", "rocev2-nfs3-longcall.trace.server"} {
		b, err := os.ReadFile(filepath.Join("../../samples", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 2<<10)])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = text[:min(len(text), 4<<10)]
		r, err := capture.NewReader(bytes.NewReader(append([]byte("# tracer: nop\n"), text...)), "trace", capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := uint64(0)
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			n++
			if k := tx.Kernel; k == nil || k.Registration < -1 || k.Dispatch < -1 || tx.State == transaction.NoCall {
				t.Errorf("%+v", k)
			}
		})
		var b capture.Batch
		for err = r.Read(&b); err == nil; err = r.Read(&b) {
			d.Batch(&b)
		}
		d.Flush()
		if s := d.Stats(); s.Transactions != n || d.OpenCount() != 0 {
			t.Errorf("%d transactions, %d emitted, %d open", s.Transactions, n, d.OpenCount())
		}
	})
}

func typeName(m *transaction.Message) string {
	if !m.Transport || !m.Header.Fixed() {
		return ""
	}
	return m.Header.Type.String()
}
