package scrub

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// The copy of a recording has the transactions of the recording, between other hosts.
func TestEventsKeepTransactions(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../samples/*.trace.*")
	if len(files) < 4 {
		t.Fatalf("%d recordings", len(files))
	}
	type call struct {
		xid, program, version, procedure uint32
		operation                        string
		latency                          time.Duration
		header                           string
	}
	list := func(in packets) (calls []call, hosts map[netip.Addr]bool) {
		hosts = make(map[netip.Addr]bool)
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			took, _ := tx.Took()
			calls = append(calls, call{tx.XID, tx.Program, tx.Version, tx.Procedure, tx.Kernel.Operation, took, string(tx.Call.Raw())})
			for _, end := range tx.Connection.Ends {
				hosts[end.Addr] = true
			}
		})
		var b capture.Batch
		for in.Read(&b) == nil {
			d.Batch(&b)
		}
		d.Flush()
		return calls, hosts
	}
	for _, file := range files {
		in := read(t, file)
		was, from := list(append(packets(nil), in...))
		out, _ := copied(t, in, Options{})
		is, to := list(out)
		if len(was) == 0 || len(was) != len(is) {
			t.Fatalf("%s: %d calls become %d", file, len(was), len(is))
		}
		for i := range was {
			if was[i] != is[i] {
				t.Errorf("%s: %+v becomes %+v", file, was[i], is[i])
			}
		}
		if len(from) != len(to) {
			t.Errorf("%s: %v become %v", file, from, to)
		}
		for a := range from {
			if a.IsValid() && to[a] {
				t.Errorf("%s: %v is in the copy", file, a)
			}
		}
	}
}

// No text that kernels do not have is in the copy, nor an address.
func TestEventsTellNothing(t *testing.T) {
	t.Parallel()
	const secret = "Secret_Of_7"
	local, peer := netip.MustParseAddrPort("192.0.2.77:20049"), netip.MustParseAddrPort("[2001:db8::77]:1023")
	var in packets
	add := func(data []byte) {
		in = append(in, capture.Packet{Number: uint64(len(in) + 1), Link: capture.LinkTrace, Length: uint32(len(data)), Data: data})
	}
	for _, k := range append(ftrace.Events, ftrace.Known{Kind: ftrace.Transport}, ftrace.Known{Kind: ftrace.Counter}) {
		e := ftrace.Event{
			Kind: k.Kind, XID: 7, Program: []byte(secret), Procedure: []byte(secret), Version: 3, ReadList: []byte(secret), Local: local, Peer: peer,
			Seen: ftrace.XID | ftrace.Connected | ftrace.Outcome | ftrace.Numbered | ftrace.Place,
		}
		add(e.Append(nil))
		e.Program, e.Procedure = []byte("nfs"), []byte("READ"+secret)
		add(e.Append(nil))
	}
	add([]byte(" " + secret + "-12 [000] .... 1.000000: xprtrdma_marshal: task:00000030@00000003 xid=0xd9268031 hdr=76 xdr=176/262144/16 " + secret + "/0x9"))
	add([]byte(" x-12 [000] .... 1.000000: of_another_kind: name=" + secret))
	add([]byte(secret))
	add(nil)
	out, _ := copied(t, in, Options{})
	if len(out) != len(in) {
		t.Fatalf("%d events become %d", len(in), len(out))
	}
	for i := range out {
		for what, b := range map[string][]byte{"text": []byte(secret), "IPv4 address": local.Addr().AsSlice(), "IPv6 address": peer.Addr().AsSlice()} {
			if bytes.Contains(out[i].Data, b) {
				t.Errorf("event %d: the %s is in %q", i, what, out[i].Data)
			}
		}
	}
	counter := (&ftrace.Event{Kind: ftrace.Counter, Program: []byte("mlx5_0/1"), Procedure: []byte("out_of_sequence"), Grown: 3}).Append(nil)
	var e ftrace.Event
	out, _ = copied(t, packets{{Number: 1, Link: capture.LinkTrace, Length: uint32(len(counter)), Data: counter}}, Options{})
	if !e.Decode(out[0].Data) || e.Grown != 3 || string(e.Procedure) != "out_of_sequence" || !strings.HasSuffix(string(e.Program), "/1") || strings.Contains(string(e.Program), "mlx5") {
		t.Errorf("a counter becomes %q %q", e.Program, e.Procedure)
	}
	callback := (&ftrace.Event{Kind: ftrace.Latency, Program: []byte("NFSv4 callback"), Procedure: []byte("CB_COMPOUND"), Version: 1}).Append(nil)
	out, _ = copied(t, packets{{Number: 1, Link: capture.LinkTrace, Length: uint32(len(callback)), Data: callback}}, Options{})
	if !e.Decode(out[0].Data) || string(e.Program) != "NFSv4 callback" || string(e.Procedure) != "CB_COMPOUND" {
		t.Errorf("a callback becomes %q %q", e.Program, e.Procedure)
	}
}

// The recording has random bytes in its records and times: a transaction ends as soon as its reply has come, before it is told to end.
func TestDamagedEvents(t *testing.T) {
	t.Parallel()
	in := read(t, "testdata/damaged-events.pcapng.zst")
	if out, _ := copied(t, in, Options{}); len(out) != len(in) {
		t.Fatalf("%d events become %d", len(in), len(out))
	}
}
