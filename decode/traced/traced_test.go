package traced_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
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
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
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
		all = append(all, c)
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	if list, n := r.Problems(); n > 0 {
		t.Errorf("%s: %v", name, list[0])
	}
	return all
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
		if c.kernel.Server != (side == "server") {
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
			if !k.backward {
				t.Errorf("%s: the packets have %08x, too (%v)", trace, k.xid, c.state)
			}
		}
	}
	if n == 0 || side == "server" && joined == 0 {
		t.Errorf("%s: %d calls, %d with what was returned", trace, n, joined)
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
