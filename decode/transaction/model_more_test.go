package transaction_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestTwoTaps merges the captures of both ends, whose clocks differ: each
// packet counts once, and all times are of one clock.
func TestTwoTaps(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		for _, skew := range []int64{0, 700, -700, 131_000, -131_000, 300_000_000, -300_000_000} {
			left := rocetest.Merge([]int64{0, skew}, traffic.Taps[0], traffic.Taps[1])
			results := track(left, keepData, roce.Limits{})
			checkAll(t, traffic, left, results, false)
			taps := func(refs ...rdma.Ref) (seen [2]bool) {
				for _, r := range refs {
					if r.Seen() {
						seen[left[r.Number-1].Tap] = true
					}
				}
				return seen
			}
			for _, r := range results {
				if r.retransmits != 0 {
					t.Errorf("%d retransmits with the clocks %d apart: %v", r.retransmits, skew, r)
				}
				if taps(r.call.first, r.call.last, r.reply.first, r.reply.last, r.times.FirstRead, r.times.LastRead,
					r.times.FirstPush, r.times.LastPush, r.times.Ack) == [2]bool{true, true} {
					t.Errorf("times of both clocks, %d apart: %v", skew, r)
				}
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	})
}

// join puts captures one behind the other.
func join(captures ...[]rocetest.Record) []rocetest.Record {
	var out []rocetest.Record
	for _, c := range captures {
		out = append(out, c...)
	}
	return out
}

// TestQueuePairsAgain lets other connections have the queue pair numbers of
// earlier ones, with other PSNs and the same XIDs.
func TestQueuePairsAgain(t *testing.T) {
	for _, cm := range []bool{true, false} {
		t.Run(fmt.Sprintf("CM %v", cm), func(t *testing.T) {
			for seed := range uint64(sampled.Rounds(30)) {
				base := rocetest.Config{CM: cm, Callbacks: 2, Connections: 2}
				var all []rocetest.Record
				var runs []*rocetest.Traffic
				for i := range uint64(3) {
					c := base
					c.Seed = seed*10 + i
					c.Start = 1_700_000_000_000_000_000 + int64(i)*60_000_000_000
					c.PSN = [2]uint32{uint32(1+i) * 3_000_000, uint32(1+i) * 4_000_000}
					// The client's numbers go on, the server's come again.
					c.QPN = [2]uint32{0x20 + uint32(i)*8, 0x11}
					if i == 2 {
						c.QPN[0] = 0x20
					}
					runs = append(runs, rocetest.Make(c))
					all = append(all, runs[i].Taps[0]...)
				}
				results := track(all, keepData, roce.Limits{})
				for _, traffic := range runs {
					var part []*result
					end := traffic.Config.Start + 50_000_000_000
					for _, r := range results {
						if at := r.call.first.Time; at >= traffic.Config.Start && at < end {
							r.notes = slices.DeleteFunc(r.notes, resent)
							part = append(part, r)
						}
					}
					checkAll(t, traffic, all, part, true)
				}
				ids := make(map[int]bool)
				for _, r := range results {
					ids[r.id] = true
				}
				if len(ids) != 6 {
					t.Errorf("%d connections, want 6", len(ids))
				}
				if t.Failed() {
					t.FailNow()
				}
			}
		})
	}
}

// TestNumbers wants connections to be numbered without gaps where each
// direction is paired with its first packets.
func TestNumbers(t *testing.T) {
	traffic := rocetest.Make(rocetest.Config{Seed: 1, Connections: 6, Kinds: []rocetest.Kind{rocetest.Small}, Outstanding: 1})
	left := rocetest.Only(traffic.Taps[0], func(r *rocetest.Record) bool { return r.Role != rocetest.Acknowledge })
	most := 0
	for _, r := range track(left, keepData, roce.Limits{}) {
		most = max(most, r.id)
	}
	if most != 6 {
		t.Errorf("numbers up to %d, want 6", most)
	}
}

// TestSentAgain reconnects with calls unanswered: they come again with their
// XIDs.
func TestSentAgain(t *testing.T) {
	for _, cm := range []bool{true, false} {
		for seed := range uint64(sampled.Rounds(20)) {
			c := rocetest.Config{
				Seed: seed, CM: cm, Calls: 8, Outstanding: 8,
				Kinds: []rocetest.Kind{rocetest.Silent, rocetest.Small, rocetest.LongCall}, StayOpen: true,
			}
			first := rocetest.Make(c)
			c.Start = 1_700_000_060_000_000_000
			c.QPN = [2]uint32{0x33, 0x44}
			second := rocetest.Make(c) // the same calls
			results := track(join(first.Taps[0], second.Taps[0]), keepData, roce.Limits{})
			for _, r := range results {
				again := slices.Contains(r.notes, transaction.Note{Kind: transaction.ResentFrom, N: 1})
				where := slices.Contains(r.notes, transaction.Note{Kind: transaction.ResentOn, N: 2})
				late := r.call.first.Time >= c.Start
				if late != again {
					t.Errorf("CM %v: XID %#x at %d: %q", cm, r.xid, r.call.first.Number, r.notes)
				}
				if !late && r.state == transaction.NoReply && !where {
					t.Errorf("CM %v: the earlier call %#x does not tell: %q", cm, r.xid, r.notes)
				}
			}
			// Connections that count alike and exist side by side are none.
			c = rocetest.Config{Seed: seed, CM: cm, Calls: 8}
			one := rocetest.Make(c)
			c.QPN = [2]uint32{0x33, 0x44}
			c.Start = one.Config.Start + 1
			for _, r := range track(rocetest.Merge(nil, one.Taps[0], rocetest.Make(c).Taps[0]), keepData, roce.Limits{}) {
				for _, n := range r.notes {
					if cm && resent(n) {
						t.Errorf("XID %#x: %q", r.xid, n)
					}
				}
			}
		}
	}
}

// TestRecycledMemory runs different traffic through one tracker: what was in
// the memory of a transaction before must not show.
func TestRecycledMemory(t *testing.T) {
	var old []*result
	shared := transaction.NewTracker(keepData, func(tx *transaction.Transaction) { old = append(old, keep(tx)) })
	for i, v := range variants {
		for seed := range uint64(3) {
			c := v.config
			c.Seed = seed
			if i%2 == 1 {
				c.Loss = rocetest.Loss{Near: 0.02, Far: 0.02, Copied: 0.05}
			}
			records := rocetest.Drop(rocetest.Make(c).Taps[0], seed, 0.02, 2)
			old = nil
			f := rocetest.Feeder{Tracker: roce.NewTracker(shared, shared.Hooks(), new(rdma.Numbers), roce.Limits{})}
			f.All(records)
			shared.Flush()
			fresh := track(records, keepData, roce.Limits{})
			if len(old) != len(fresh) {
				t.Fatalf("%s: %d transactions, want %d", v.name, len(old), len(fresh))
			}
			for j := range fresh {
				a := slices.DeleteFunc(old[j].notes, resent)
				old[j].notes = a
				fresh[j].notes = slices.DeleteFunc(fresh[j].notes, resent)
				if old[j].String() != fresh[j].String() {
					t.Fatalf("%s:\n %v\nwant\n %v", v.name, old[j], fresh[j])
				}
			}
		}
	}
}

// TestOnCompletion reports the same transactions in another order.
func TestOnCompletion(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		opt := keepData
		opt.OnCompletion = true
		results := track(traffic.Taps[0], opt, roce.Limits{})
		for i := 1; i < len(results); i++ {
			a, b := results[i-1], results[i]
			if a.times.Ack.Seen() && b.times.Ack.Seen() && a.times.Ack.Number > b.times.Ack.Number {
				t.Errorf("not in the order of completion: %v, %v", a, b)
			}
		}
		slices.SortFunc(results, func(a, b *result) int { return int(first(a)) - int(first(b)) })
		checkAll(t, traffic, traffic.Taps[0], results, true)
	})
}

// TestTimeStandsStill has no clock, or one that runs backwards.
func TestTimeStandsStill(t *testing.T) {
	for _, step := range []int64{0, -1000, -1_000_000_000_000} {
		traffic := rocetest.Make(rocetest.Config{Seed: 3, CM: true, Connections: 3})
		left := slices.Clone(traffic.Taps[0])
		for i := range left {
			left[i].Time = 1_700_000_000_000_000_000 + int64(i)*step
		}
		results := track(left, keepData, roce.Limits{})
		if len(results) != len(traffic.Transactions) {
			t.Errorf("%d transactions", len(results))
		}
		for _, r := range results {
			p := r.phases
			if r.state != transaction.Complete || p.CallTransfer+p.ArgumentPull+p.Server+p.ResultPush+p.ReplyTransfer != p.Total {
				t.Errorf("step %d: %v", step, r)
			}
		}
	}
}
