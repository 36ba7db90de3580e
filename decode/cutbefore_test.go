package decode_test

import (
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// TestCutBefore: what a mirror has cut is decoded like what a snapshot length has cut. It is not damaged, and it is counted.
func TestCutBefore(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap", "iwarp-nfs41-recall.pcap"} {
		packets := sample(t, name, 0)
		for _, n := range []int{64, 80, 128, 1 << 16} {
			snapped := cutAt(packets, n)
			mirrored := cutAt(packets, n)
			cut := uint64(0)
			for i := range mirrored {
				if p := &mirrored[i]; uint32(len(p.Data)) < p.Length {
					p.Length = uint32(len(p.Data))
					cut++
				}
			}
			for _, trackers := range []int{1, 2} {
				d := decode.New(decode.Options{Trackers: trackers}, func(*transaction.Transaction) {})
				traffic.Run(d, mirrored, 64)
				st := d.Stats()
				if (st.CutBefore > 0) != (cut > 0) || st.CutBefore > cut {
					t.Errorf("%s, %d bytes, %d trackers: %d of %d cut packets counted", name, n, trackers, st.CutBefore, cut)
				}
				if st.Undecodable != st.CutShort {
					t.Errorf("%s, %d bytes, %d trackers: %d packets damaged", name, n, trackers, st.Undecodable-st.CutShort)
				}
			}
			got, want := decoded(mirrored, decode.Options{}), decoded(snapped, decode.Options{})
			if !reflect.DeepEqual(got.rows, want.rows) {
				t.Errorf("%s, %d bytes: not as with a snapshot length", name, n)
			}
		}
	}
}
