package endpoint

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// laid is a call with a layout, and what is to be seen of it.
type laid struct {
	layout    *transport.Layout
	items     []int
	results   []uint32
	fill      uint32
	zero      bool // the rest of the call does not fit, and goes to position zero
	seed, xid uint32
}

func layouts() []laid {
	return []laid{
		{layout: &transport.Layout{}},
		{items: []int{9000}, layout: &transport.Layout{Reads: [][]uint32{{4096, 4096, 808}}}},
		{items: []int{9001, 70000, 10}, layout: &transport.Layout{Reads: [][]uint32{{9001}, {1, 69999}}}},
		{items: []int{5001}, layout: &transport.Layout{Reads: [][]uint32{{5001, 3}}}}, // with the padding
		{items: []int{6000}, layout: &transport.Layout{PositionZero: []uint32{6000 + 40 + 4 + 4 + 4 + 4 + 4 + 4}}},
		{items: []int{6000}, layout: &transport.Layout{PositionZero: []uint32{40, 24}, Reads: [][]uint32{{6000}}}},
		{results: []uint32{5001}, layout: &transport.Layout{Writes: [][]uint32{{5001, 4}}}}, // as Linux
		{results: []uint32{5000, 100000}, layout: &transport.Layout{Writes: [][]uint32{{4096, 4096}, {65536, 65536}}}},
		{results: []uint32{100}, layout: &transport.Layout{Writes: [][]uint32{{100}}}},
		{fill: 10000, layout: &transport.Layout{Reply: []uint32{8192, 8192, 8192}}},
		{fill: 10, layout: &transport.Layout{Reply: []uint32{500}}},
		{items: []int{20000}, results: []uint32{70000}, fill: 9000, layout: &transport.Layout{Reads: [][]uint32{{20000}}, Writes: [][]uint32{{70000}}, Reply: []uint32{9200}}},
		// A layout that leaves too much inline.
		{items: []int{6000, 7000}, layout: &transport.Layout{Reads: [][]uint32{{6000}}}, zero: true},
		// The Requester's own choice.
		{items: []int{100000}, results: []uint32{100000}},
		{fill: 50000},
	}
}

// TestCapture decodes what a Requester has sent and received: the transactions
// have the chunks that the calls asked for and the bytes that they moved, and
// break no rule.
func TestCapture(t *testing.T) {
	for _, f := range fabrics[1:] {
		t.Run(f.name, func(t *testing.T) {
			var file bytes.Buffer
			w := tap.NewWriter(capture.NewWriter(&file, capture.WriterOptions{}))
			sp, at, cp := f.pair(t, w)
			s, r := startAt(t, sp, at, cp, nil, Options{OperationSize: 20480}, Options{SegmentSize: 65536})
			calls := layouts()
			byXID := make(map[uint32]*laid)
			for i := range calls {
				y := &calls[i]
				var c transport.Call
				q := rpctest.Request{Seed: uint32(i), Results: y.results, Fill: y.fill}
				for k, n := range y.items {
					q.Items = append(q.Items, rpctest.Bytes(n, uint32(100*i+k)))
				}
				rpctest.Set(&c, &q)
				for _, n := range y.results {
					c.Results = append(c.Results, make([]byte, n))
				}
				c.Layout = y.layout
				if err := r.Do(t.Context(), &c); err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				if err := rpctest.Check(&c, &q); err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				y.xid, y.seed = c.XID, q.Seed
				byXID[c.XID] = y
			}
			_ = r.Close()
			_ = s.Close()
			_ = cp.Close()
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			reader, err := capture.NewReader(&file, "tap", capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checker := check.New(check.Options{Rules: check.All()}, func(x *check.Finding) {
				if x.Severity >= check.Warning {
					i := slices.IndexFunc(calls, func(y laid) bool { return y.xid == x.XID })
					t.Errorf("call %d: %s by %v: expected %s, seen %s", i, x.Rule.ID, x.By, x.Expected, x.Seen)
				}
			})
			seen := 0
			var view rpc.View
			opt := decode.Options{Observers: []decode.Observer{checker.Observer()}}
			opt.Transactions.KeepData = true
			d := decode.New(opt, func(tx *transaction.Transaction) {
				view.Set(tx)
				checker.Transaction(&view)
				if y := byXID[tx.XID]; y != nil {
					seen++
					compare(t, tx, y)
				}
			})
			if err := d.Run(reader); err != nil {
				t.Fatal(err)
			}
			checker.Finish()
			if seen != len(calls) {
				t.Errorf("%d transactions, want %d", seen, len(calls))
			}
		})
	}
}

// compare checks a transaction against the call.
func compare(t *testing.T, tx *transaction.Transaction, y *laid) {
	t.Helper()
	if tx.State != transaction.Complete || tx.Program != rpctest.Program || tx.Procedure != rpctest.Exchange {
		t.Errorf("%v, program %#x, procedure %d", tx.State, tx.Program, tx.Procedure)
	}
	var reads uint64
	for _, n := range y.items {
		reads += uint64(n)
	}
	h := &tx.Call.Header
	if l := y.layout; l != nil {
		var got transport.Layout
		for _, c := range h.ReadChunks() {
			var sizes []uint32
			for _, s := range c.Segments {
				sizes = append(sizes, s.Length)
			}
			if c.Position == 0 && y.zero {
				continue
			}
			if c.Position == 0 {
				got.PositionZero = sizes
			} else {
				got.Reads = append(got.Reads, sizes)
			}
		}
		for _, w := range h.Writes {
			got.Writes = append(got.Writes, lengths(w))
		}
		if h.HasReply {
			got.Reply = lengths(h.Reply)
		}
		if !slices.Equal(got.PositionZero, l.PositionZero) || !slices.Equal(got.Reply, l.Reply) ||
			!slices.EqualFunc(got.Reads, l.Reads, slices.Equal) || !slices.EqualFunc(got.Writes, l.Writes, slices.Equal) {
			t.Errorf("chunks %+v, want %+v", got, *l)
		}
	}
	var offered uint64
	for _, s := range h.Reads {
		offered += uint64(s.Length)
		if s.Offset>>32 != uint64(tx.XID) {
			t.Errorf("offset %#x of XID %#x", s.Offset, tx.XID)
		}
	}
	if tx.ReadBytes != offered {
		t.Errorf("%d bytes read, offered were %d", tx.ReadBytes, offered)
	}
	var written uint64
	for i, w := range tx.Reply.Header.Writes {
		written += w.Length()
		if want := rpctest.Bytes(int(y.results[i]), y.seed+uint32(i)); w.Length() > 0 && !bytes.Equal(tx.Data(transaction.WriteList, i), want) {
			t.Errorf("Write chunk %d has other data", i)
		}
	}
	written += tx.Reply.Header.Reply.Length()
	if tx.WriteBytes != written {
		t.Errorf("%d bytes written, the reply says %d", tx.WriteBytes, written)
	}
}

func lengths(w rpcrdma.WriteChunk) (sizes []uint32) {
	for _, s := range w {
		sizes = append(sizes, s.Length)
	}
	return sizes
}
