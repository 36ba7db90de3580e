package decode_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// TestTrackersGroups has groups consume most transactions themselves. The others come in the order in which one tracker has
// them, although groups then tell only after a batch how far they are.
func TestTrackersGroups(t *testing.T) {
	var list [][]capture.Packet
	for i := range uint8(80) {
		list = append(list, moved(i%uint8(traffic.Count()), 3*i))
	}
	packets := manyHosts(list...)
	name := func(tx *transaction.Transaction) string {
		return fmt.Sprint(tx.Connection.Ends, tx.XID, tx.State, tx.First().Number)
	}
	for _, completion := range []bool{false, true} {
		opt := decode.Options{Concurrent: true, Transactions: transaction.Options{OnCompletion: completion}}
		for _, every := range []uint64{2, 7} {
			passed := func(tx *transaction.Transaction) bool { return tx.First().Number%every == 0 }
			var want []string
			all := 0
			d := decode.New(opt, func(tx *transaction.Transaction) {
				if all++; passed(tx) {
					want = append(want, name(tx))
				}
			})
			if err := d.Run(&traffic.Reader{Packets: packets, Batch: 100}); err != nil || len(want) < 20 {
				t.Fatal(err, len(want))
			}
			for _, n := range []int{1, 2, 16} {
				opt := opt
				var taken [64]int // by group
				opt.Trackers, opt.Group = n, func(group int) func(*transaction.Transaction) bool {
					return func(tx *transaction.Transaction) bool {
						if passed(tx) {
							return false
						}
						taken[group]++
						return true
					}
				}
				var got []string
				d := decode.New(opt, func(tx *transaction.Transaction) { got = append(got, name(tx)) })
				if err := d.Run(&traffic.Reader{Packets: packets, Batch: 100}); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d trackers, every %d, in order %v: other transactions than those of one tracker:\n%v\n%v", n, every, !completion, got, want)
				}
				if n := sum(taken[:]); n != all-len(want) {
					t.Errorf("%d trackers: groups took %d, want %d", opt.Trackers, sum(taken[:]), all-len(want))
				}
			}
		}
	}
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}
