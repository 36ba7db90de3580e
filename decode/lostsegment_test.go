package decode_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestLostSegment: without a TCP segment within an FPDU, its bytes are not counted, and the transaction is not complete.
func TestLostSegment(t *testing.T) {
	packets := sample(t, "iwarp-nfs3-offload.pcap.zst", 0)
	data := func(o *outcome) (n uint64) {
		for _, c := range o.conns {
			for _, s := range c.Sent {
				n += s.ReadBytes + s.WriteBytes
			}
		}
		return n
	}
	want := decoded(packets, decode.Options{})
	tried, within := 0, 0
	for i := range packets {
		var f link.Frame
		link.Decode(packets[i].Link, packets[i].Data, packets[i].Length, &f)
		const pad = 3 + 4 // with the CRC
		if f.Proto != link.TCP || f.SrcPort != 20049 && f.DstPort != 20049 || f.PayloadLen <= pad || bytes.HasPrefix(f.Payload, []byte("MPA ID")) {
			continue
		}
		if tried++; testing.Short() && tried%5 > 0 {
			continue
		}
		got := decoded(slices.Delete(slices.Clone(packets), i, i+1), decode.Options{})
		whole := 0
		for _, r := range got.rows {
			if r.State == transaction.Complete {
				whole++
			}
		}
		if whole >= len(want.rows) {
			t.Errorf("without packet %d, %d bytes, all %d transactions are complete", i+1, f.PayloadLen, whole)
		}
		if lost := data(want) - data(got); lost > 0 && lost < uint64(f.PayloadLen) {
			within++
		} else if lost > 1<<17 {
			t.Errorf("without packet %d, %d bytes, %d bytes are missing", i+1, f.PayloadLen, lost)
		}
	}
	if tried < 300 || within == 0 {
		t.Errorf("%d packets, %d of them with RDMA data", tried, within)
	}
}
