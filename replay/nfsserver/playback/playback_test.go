package playback_test

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/replay/nfsserver/playback"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

const samples = "../../../samples"

// asked is a captured call with the reply that is wanted.
type asked struct {
	call    transport.Message
	reply   []byte
	results [][]byte // memory for the reply's chunks
	data    [][]byte // that they hold
}

// replay reads the calls of a capture.
func replay(t testing.TB, name string) (all []asked) {
	t.Helper()
	c, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d := decode.New(decode.Options{Transactions: transaction.Options{KeepData: true}}, func(tx *transaction.Transaction) {
		if tx.Backward || !tx.Call.Seen() || !tx.Reply.Seen() {
			return
		}
		a := asked{reply: bytes.Clone(tx.Reply.Payload)}
		if len(tx.Call.Payload) < tx.Call.PayloadLength || len(tx.Reply.Payload) < tx.Reply.PayloadLength {
			return
		}
		var h oncrpc.Call
		if h.Decode(tx.Call.Payload, tx.Call.PayloadLength) != nil || h.Cred.Flavor == oncrpc.RPCSecGSS {
			return
		}
		if tx.Reply.Transport && tx.Reply.Header.Type == rpcrdma.TypeError {
			return
		}
		a.call.Stream = bytes.Clone(tx.Call.Payload)
		if tx.Call.Transport {
			for i, chunk := range tx.Call.Header.ReducedCall(nil) {
				data := make([]byte, chunk.Length)
				copy(data, tx.CallData(i))
				a.call.Items = append(a.call.Items, transport.Item{Position: chunk.Position, Data: data})
			}
		}
		if tx.Reply.Transport {
			for i, chunk := range tx.Reply.Header.ReducedReply(nil) {
				data := make([]byte, chunk.Length)
				copy(data, tx.Data(transaction.WriteList, i))
				a.data = append(a.data, data)
				a.results = append(a.results, make([]byte, len(data)+4))
			}
		}
		all = append(all, a)
	})
	if err := d.Run(c); err != nil {
		t.Fatal(err)
	}
	d.Flush()
	return all
}

func load(t testing.TB, name string) *playback.Recording {
	t.Helper()
	c, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := playback.Load(c, playback.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSamples asks again what was asked in each capture, in the same order: each
// reply is the one captured, and nothing is answered by guessing.
func TestSamples(t *testing.T) {
	for _, name := range sampled.Captures(t, "*") {
		t.Run(strings.SplitN(filepath.Base(name), ".", 2)[0], func(t *testing.T) {
			r := load(t, name)
			h := playback.New(r, playback.Options{})
			d := nfstest.NewDirect(h)
			all := replay(t, name)
			bad := 0
			for i, a := range all {
				call := &transport.Call{Message: a.call, Results: a.results}
				if err := d.Do(t.Context(), call); err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				got := call.Reply
				same := bytes.Equal(got.Stream, a.reply)
				for n, it := range got.Items {
					same = same && n < len(a.data) && bytes.Equal(it.Data, a.data[n][:len(it.Data)])
				}
				if !same && len(a.results) > 0 && len(got.Items) > 0 && len(got.Stream) < len(a.reply) {
					// What came inline although there was a chunk is apart now.
					same = true
				}
				if !same {
					if bad++; bad < 4 {
						t.Errorf("call %d: got %d bytes and %d items, want %d and %d\n%x\n%x", i, len(got.Stream), len(got.Items), len(a.reply), len(a.data), got.Stream[:min(len(got.Stream), 200)], a.reply[:min(len(a.reply), 200)])
					}
				}
			}
			st, counts := h.Stats(), r.Counts()
			t.Logf("%+v, %+v", counts, st)
			if st.Unmatched > 0 || st.Again > 0 || int(st.Exact) != len(all) {
				t.Errorf("%d calls: %+v", len(all), st)
			}
		})
	}
}

// record is a sample, loaded and taken apart.
func record(t *testing.T, sample string) (*playback.Recording, []asked) {
	t.Helper()
	name := filepath.Join(samples, sample)
	return load(t, name), replay(t, name)
}

// ask calls a procedure without arguments.
func ask(t *testing.T, d *nfstest.Direct, program, version, procedure uint32) *oncrpc.Reply {
	t.Helper()
	c := &nfstest.Client{Doer: d, Program: program, Version: version}
	call := &transport.Call{Message: transport.Message{Stream: c.Header(procedure)}}
	if err := d.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	var r oncrpc.Reply
	if err := r.Decode(call.Reply.Stream, len(call.Reply.Stream)); err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestNoMatch(t *testing.T) {
	r, _ := record(t, "rocev2-nfs3-basic.pcap.zst")
	h := playback.New(r, playback.Options{})
	d := nfstest.NewDirect(h)
	if got := ask(t, d, 100003, 3, 0); !got.Succeeded() {
		t.Errorf("NULL: %s", got.Status())
	}
	if got := ask(t, d, 100003, 3, 17); got.Accept != oncrpc.SystemErr {
		t.Errorf("no arguments: %s", got.Status())
	}
	if got := ask(t, d, 100003, 4, 1); got.Accept != oncrpc.ProgMismatch || got.Low != 3 || got.High != 3 {
		t.Errorf("version 4: %s, %d to %d", got.Status(), got.Low, got.High)
	}
	if got := ask(t, d, 400000, 1, 0); got.Accept != oncrpc.ProgUnavail {
		t.Errorf("another program: %s", got.Status())
	}
	h = playback.New(r, playback.Options{Fallback: transport.HandlerFunc(func(x transport.Exchange) {
		reply := oncrpc.Reply{XID: 1, Accept: oncrpc.ProcUnavail}
		x.Reply(&transport.Message{Stream: reply.Append(nil)})
	})})
	if got := ask(t, nfstest.NewDirect(h), 400000, 1, 0); got.Accept != oncrpc.ProcUnavail {
		t.Errorf("fallback: %s", got.Status())
	}
	if st := h.Stats(); st.Unmatched != 1 {
		t.Errorf("%+v", st)
	}
}

// TestDegrees changes calls so that they are the same in another degree only.
func TestDegrees(t *testing.T) {
	r, all := record(t, "rocev2-nfs41-recall.pcap")
	reply := func(h *playback.Handler, stream []byte, a asked) []byte {
		t.Helper()
		call := &transport.Call{Message: transport.Message{Stream: stream, Items: a.call.Items}, Results: a.results}
		if err := nfstest.NewDirect(h).Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		return call.Reply.Stream
	}
	found := 0
	for _, a := range all {
		var h oncrpc.Call
		if err := h.Decode(a.call.Stream, len(a.call.Stream)); err != nil {
			t.Fatal(err)
		}
		if h.Program != nfs4.NFS4_PROGRAM || h.Procedure != nfs4.NFSPROC4_COMPOUND {
			continue
		}
		body := h.Body()
		var args nfs4.CompoundArgs
		decode := func(b []byte) {
			var rd xdr.Reader
			rd.Reset(b, len(b))
			rd.StartAt(uint32(body.Offset))
			var reduced []xdr.Reduced
			for _, it := range a.call.Items {
				reduced = append(reduced, xdr.Reduced{Position: it.Position, Length: uint32(len(it.Data))})
			}
			rd.ReduceCall(reduced)
			args.Decode(&rd)
			if rd.Failed() {
				t.Fatal(rd.Err())
			}
		}
		decode(a.call.Stream[body.Offset:])
		seq, ok := args.Ops[0].Body.(*nfs4.SEQUENCE4args)
		if !ok {
			continue
		}
		found++
		// Another slot and credential: the reply has them, too.
		seq.SaSequenceid, seq.SaSlotid = 0xabcdef, 3
		h.XID, h.Cred = 0x1234, nfstest.Sys(7, 7)
		if h.Size() != body.Offset && len(a.call.Items) > 0 {
			continue // items would have to move
		}
		p := playback.New(r, playback.Options{})
		got := reply(p, args.Append(h.Append(nil)), a)
		if st := p.Stats(); st.Sessionless != 1 {
			t.Fatalf("%+v", st)
		}
		want := bytes.Clone(a.reply)
		binary.BigEndian.PutUint32(want, 0x1234)
		if len(want) > 24+12+16+8 && binary.BigEndian.Uint32(want[24:]) == 0 {
			at := bytes.Index(want[24:], seq.SaSessionid[:])
			if at > 0 {
				binary.BigEndian.PutUint32(want[24+at+16:], 0xabcdef)
				binary.BigEndian.PutUint32(want[24+at+20:], 3)
			}
		}
		if len(a.results) == 0 && len(got) != len(want) {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
		if string(got[:4]) != string(want[:4]) || !bytes.Contains(got, []byte{0, 0xab, 0xcd, 0xef, 0, 0, 0, 3}) && bytes.Contains(want, []byte{0, 0xab, 0xcd, 0xef, 0, 0, 0, 3}) {
			t.Errorf("got  %x\nwant %x", got, want)
		}
		// Another state ID, or another tag: only what clients make up.
		args.Tag = append([]byte("other"), args.Tag...)
		if len(a.call.Items) > 0 {
			continue
		}
		p = playback.New(r, playback.Options{})
		reply(p, args.Append(h.Append(nil)), a)
		if st := p.Stats(); st.Loose != 1 {
			t.Fatalf("%+v", st)
		}
	}
	if found < 20 {
		t.Errorf("only %d COMPOUNDs with SEQUENCE", found)
	}
}

// TestAgain asks for more than there is.
func TestAgain(t *testing.T) {
	r, all := record(t, "rocev2-nfs3-basic.pcap.zst")
	h := playback.New(r, playback.Options{})
	d := nfstest.NewDirect(h)
	for range 2 {
		for i, a := range all {
			if err := d.Do(t.Context(), &transport.Call{Message: a.call, Results: a.results}); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
	}
	if st := h.Stats(); int(st.Again) != len(all) || st.Unmatched != 0 {
		t.Errorf("%+v", st)
	}
}

// TestWithoutChunks asks over a transport without chunks what was captured with
// them, and the other way round.
func TestWithoutChunks(t *testing.T) {
	r, all := record(t, "rocev2-nfs3-basic.pcap.zst")
	l, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", playback.New(r, playback.Options{}), tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := tcprpc.Dial(t.Context(), l.Addr().String(), tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	direct := nfstest.NewDirect(playback.New(r, playback.Options{}))
	items := 0
	for i, a := range all {
		xid := binary.BigEndian.Uint32(a.call.Stream)
		tcp := &transport.Call{XID: xid, Message: a.call}
		if err := c.Do(t.Context(), tcp); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		apart := &transport.Call{Message: a.call, Results: [][]byte{make([]byte, 2<<20)}}
		if err := direct.Do(t.Context(), apart); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		whole := apart.Reply.Stream
		for _, it := range apart.Reply.Items {
			items++
			// All items of NFSv3 stand at the end.
			whole = xdr.AppendFixed(whole, it.Data)
		}
		if !bytes.Equal(tcp.Reply.Stream, whole) {
			t.Errorf("call %d: %d bytes over TCP, %d in chunks", i, len(tcp.Reply.Stream), len(whole))
		}
	}
	if items == 0 {
		t.Error("no items")
	}
}

// TestServiceTime waits as long as the server did, and longer.
func TestServiceTime(t *testing.T) {
	r, all := record(t, "rocev2-nfs41-recall.pcap")
	const scale = 1.5
	want := time.Duration(float64(r.ServiceTime()) * scale)
	d := nfstest.NewDirect(playback.New(r, playback.Options{Scale: scale}))
	start := time.Now()
	for i, a := range all {
		if err := d.Do(t.Context(), &transport.Call{Message: a.call, Results: a.results}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	// It may take any time longer on a machine with other work to do.
	if took := time.Since(start); took < want*9/10 || want < time.Millisecond {
		t.Errorf("%v, want %v", took, want)
	}
}

func TestLimits(t *testing.T) {
	name := filepath.Join(samples, "rocev2-nfs3-basic.pcap.zst")
	full := load(t, name).Counts()
	for _, l := range []playback.Limits{{Records: 10}, {Bytes: 300000}} {
		c, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := playback.Load(c, l)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := r.Counts()
		if got.Records+got.Full != full.Records || l.Records > 0 && got.Records != l.Records || l.Bytes > 0 && (got.Bytes > l.Bytes || got.Missing == 0) {
			t.Errorf("%+v: %+v of %+v", l, got, full)
		}
	}
}

// FuzzServe gives a handler arbitrary calls: each is answered or dropped.
func FuzzServe(f *testing.F) {
	name := filepath.Join(samples, "rocev2-nfs41-recall.pcap")
	h := playback.New(load(f, name), playback.Options{})
	for _, a := range replay(f, name) {
		f.Add(a.call.Stream, []byte(nil))
		if len(a.call.Items) > 0 {
			f.Add(a.call.Stream, a.call.Items[0].Data[:10])
		}
	}
	f.Fuzz(func(t *testing.T, stream, item []byte) {
		call := &transport.Call{Message: transport.Message{Stream: stream}, Results: [][]byte{make([]byte, 1<<20)}}
		if len(item) > 0 {
			call.Items = []transport.Item{{Position: uint32(len(stream)), Data: item}}
		}
		switch err := nfstest.NewDirect(h).Do(t.Context(), call); err {
		case nfstest.ErrDropped:
		case nil:
			var r oncrpc.Reply
			if err := r.Decode(call.Reply.Stream, len(call.Reply.Stream)); err != nil || r.XID != binary.BigEndian.Uint32(stream) {
				t.Errorf("%v: %x", err, call.Reply.Stream)
			}
		default:
			t.Error(err)
		}
	})
}
