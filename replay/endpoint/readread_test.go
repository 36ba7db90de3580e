package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// readRead are the calls of a conversation in the read-read model.
var readRead = []rpctest.Request{
	{},
	{Items: [][]byte{rpctest.Bytes(9000, 1)}},
	{Results: []uint32{5001}},
	{Results: []uint32{5000, 70000, 20003}},
	{Fill: 9000}, // a reply in a Position-Zero Read chunk
	{Fill: 10, Results: []uint32{30000}, Items: [][]byte{rpctest.Bytes(12000, 2)}},
	{Fill: 50000, Results: []uint32{65536, 8000}},
	{Items: [][]byte{rpctest.Bytes(100, 3)}, Filler: make([]byte, 6000)}, // a long call
	{},
}

// converse plays the calls and returns the packets and the XIDs.
func converse(t *testing.T, f fabric) (packets []capture.Packet, xids []uint32) {
	t.Helper()
	var file bytes.Buffer
	w := tap.NewWriter(capture.NewWriter(&file, capture.WriterOptions{}))
	sp, at, cp := f.pair(t, w)
	s, r := startAt(t, sp, at, cp, nil, Options{Model: ReadRead}, Options{Model: ReadRead})
	for i := range readRead {
		q := readRead[i]
		q.Seed = uint32(i)
		var c transport.Call
		rpctest.Set(&c, &q)
		for _, n := range q.Results {
			c.Results = append(c.Results, make([]byte, n))
		}
		if err := r.Do(t.Context(), &c); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if err := rpctest.Check(&c, &q); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		xids = append(xids, c.XID)
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
	var b capture.Batch
	for {
		err := reader.Read(&b)
		if errors.Is(err, io.EOF) {
			return packets, xids
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			p.Data = slices.Clone(p.Data)
			packets = append(packets, p)
		}
	}
}

// TestReadRead decodes the read-read model of version 1: data and messages of
// replies are where the Requester has found them.
func TestReadRead(t *testing.T) {
	for _, f := range fabrics[1:] {
		t.Run(f.name, func(t *testing.T) {
			packets, xids := converse(t, f)
			checker := check.New(check.Options{Rules: check.All(), Profile: check.RFC5666}, func(x *check.Finding) {
				if x.Severity >= check.Warning {
					t.Errorf("%s by %v: expected %s, seen %s", x.Rule.ID, x.By, x.Expected, x.Seen)
				}
			})
			var view rpc.View
			seen := 0
			opt := decode.Options{Observers: []decode.Observer{checker.Observer()}}
			opt.Transactions.KeepData = true
			opt.Transactions.Packets = 1000
			d := decode.New(opt, func(tx *transaction.Transaction) {
				view.Set(tx)
				checker.Transaction(&view)
				i := slices.Index(xids, tx.XID)
				if i < 0 {
					return
				}
				seen++
				if err := exposed(tx, &readRead[i], uint32(i)); err != nil {
					t.Errorf("call %d: %v; notes %v", i, err, tx.Notes)
				}
			})
			d.Batch(&capture.Batch{Packets: packets})
			d.Flush()
			checker.Finish()
			if seen != len(xids) {
				t.Errorf("%d transactions, want %d", seen, len(xids))
			}
		})
	}
}

// exposed compares a transaction with the request that it carried.
func exposed(tx *transaction.Transaction, q *rpctest.Request, seed uint32) error {
	h := &tx.Reply.Header
	if tx.State != transaction.Complete || tx.Procedure != rpctest.Exchange {
		return fmt.Errorf("%v, procedure %d", tx.State, tx.Procedure)
	}
	if long := h.Type == rpcrdma.TypeNoMsg; long != (q.Fill > 4096) {
		return fmt.Errorf("reply of type %v", h.Type)
	}
	if len(tx.Reply.Payload) != tx.Reply.PayloadLength || tx.Reply.PayloadLength == 0 {
		return fmt.Errorf("reply of %d bytes, %d captured", tx.Reply.PayloadLength, len(tx.Reply.Payload))
	}
	want := uint64(0)
	for _, c := range h.Reads {
		want += uint64(c.Length)
	}
	for _, c := range tx.Call.Header.Reads {
		want += uint64(c.Length)
	}
	if tx.ReadBytes != want || (tx.ReadsByRequester > 0) != (len(h.Reads) > 0) || tx.Done.Seen() != (len(h.Reads) > 0) {
		return fmt.Errorf("%d bytes of %d read, %d Reads by the requester, RDMA_DONE %v", tx.ReadBytes, want, tx.ReadsByRequester, tx.Done)
	}
	n := 0
	for i, size := range q.Results {
		data := rpctest.Bytes(int(size), seed+uint32(i))
		if len(h.Reads) > 0 && !bytes.Equal(tx.ReplyData(n), data) {
			return fmt.Errorf("item %d: %d other bytes", i, len(tx.ReplyData(n)))
		}
		n++
	}
	return nil
}

// TestReadReadWithoutCalls: what a capture tells of replies whose calls it
// lacks. A long reply is none that began as a call of the server.
func TestReadReadWithoutCalls(t *testing.T) {
	for _, f := range fabrics[1:] {
		packets, xids := converse(t, f)
		gone := map[uint64]bool{}
		var first uint64
		opt := decode.Options{}
		opt.Transactions.Packets = 1000
		d := decode.New(opt, func(tx *transaction.Transaction) {
			if first == 0 || tx.Call.First.Number < first {
				first = tx.Call.First.Number
			}
			gone[tx.Call.First.Number] = true
			for i := range tx.Packets { // on a busy machine it may have been sent again
				if p := &tx.Packets[i]; p.Role == transaction.CallPart {
					gone[p.Ref.Number] = true
				}
			}
		})
		d.Batch(&capture.Batch{Packets: packets})
		d.Flush()
		for _, setup := range []bool{true, false} {
			t.Run(fmt.Sprint(f.name, " setup ", setup), func(t *testing.T) {
				left := slices.DeleteFunc(slices.Clone(packets), func(p capture.Packet) bool {
					return gone[p.Number] || !setup && p.Number < first
				})
				seen := map[uint32]int{}
				d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
					seen[tx.XID]++
					i := slices.Index(xids, tx.XID)
					if i < 0 {
						t.Errorf("XID %#x", tx.XID)
						return
					}
					if tx.Call.Seen() || !tx.Reply.Seen() || tx.Backward || tx.Reply.PayloadLength == 0 {
						t.Errorf("call %d: %v, call %v, backward %v, reply of %d bytes", i, tx.State, tx.Call.Seen(), tx.Backward, tx.Reply.PayloadLength)
					}
					if want := len(tx.Reply.Payload); readRead[i].Fill > 4096 && want != tx.Reply.PayloadLength {
						t.Errorf("call %d: %d of %d bytes", i, want, tx.Reply.PayloadLength)
					}
				})
				d.Batch(&capture.Batch{Packets: left})
				d.Flush()
				for i, xid := range xids {
					if seen[xid] != 1 {
						t.Errorf("call %d: %d transactions", i, seen[xid])
					}
				}
			})
		}
	}
}
