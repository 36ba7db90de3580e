package playback_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/internal/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver/playback"
	"github.com/rpcrdma/toolkit/replay/transport"
)

var _ = rdma.Side(0)

const samples = "../../../samples"

func names(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.pcap", "*.pcap.zst", "*.pcapng.zst"} {
		m, err := filepath.Glob(filepath.Join(samples, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m...)
	}
	if len(all) == 0 {
		t.Fatal("no samples")
	}
	return all
}

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
	for _, name := range names(t) {
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

// void is a call without arguments.
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

var _ xdr.Message
