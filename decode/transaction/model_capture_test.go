package transaction_test

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// short names a transaction without its endpoints, which are not known when a
// direction is missing.
type short struct {
	xid      uint32
	backward bool
}

// sides tells which records a transaction lost.
func whole(all, left []rocetest.Record) map[*rocetest.Transaction]bool {
	n := make(map[*rocetest.Transaction]int)
	for i := range all {
		n[all[i].Tx]++
	}
	for i := range left {
		n[left[i].Tx]--
	}
	m := make(map[*rocetest.Transaction]bool)
	for tx, missing := range n {
		m[tx] = missing == 0
	}
	return m
}

// honest compares the results of a damaged capture with the truth: what is
// said must be true as far as it goes, and what is not complete must be
// marked. It returns the results by transaction.
func honest(t *testing.T, traffic *rocetest.Traffic, results []*result) map[*rocetest.Transaction][]*result {
	t.Helper()
	names := make(map[short]*rocetest.Transaction)
	for _, tx := range traffic.Transactions {
		names[short{tx.XID, tx.Backward}] = tx
	}
	by := make(map[*rocetest.Transaction][]*result)
	for _, r := range results {
		backward := r.backward
		if !r.named && !traffic.Config.LocalHost {
			// Without a call, the direction may be a guess.
			backward = r.client.Addr == traffic.Config.Addr[1]
		}
		tx := names[short{r.xid, backward}]
		if tx == nil && traffic.Config.LocalHost {
			tx = names[short{r.xid, !backward}]
		}
		if tx == nil && has(r, transaction.AssumedCall) {
			continue
		}
		if tx == nil {
			t.Errorf("XID %#x, backward %v, is none of the model: %v", r.xid, r.backward, r)
			continue
		}
		by[tx] = append(by[tx], r)
	}
	for tx, list := range by {
		reads, writes, readBytes, writeBytes, calls, replies := 0, 0, uint64(0), uint64(0), 0, 0
		for _, r := range list {
			reads += r.reads
			writes += r.writes
			readBytes += r.readBytes
			writeBytes += r.writeBytes
			if r.call.seen {
				calls++
			}
			if r.reply.seen {
				replies++
			}
			honestOne(t, tx, r)
		}
		if reads > tx.Reads || writes > tx.Writes || readBytes > tx.ReadBytes || writeBytes > tx.WriteBytes || calls > 1 || replies > 1 {
			t.Errorf("%v: too much: %d Reads of %d, %d Writes of %d, %d calls, %d replies\n%v", tx, reads, readBytes, writes, writeBytes, calls, replies, list)
		}
	}
	return by
}

func honestOne(t *testing.T, tx *rocetest.Transaction, r *result) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%v: %s\n %v", tx, fmt.Sprintf(format, args...), r)
	}
	if r.named && (r.procedure != tx.Procedure || r.backward != tx.Backward) {
		fail("named wrongly")
	}
	if r.call.seen && r.call.length != 0 && r.call.cut == false && r.call.bytes != tx.CallBytes {
		fail("call of %d bytes", r.call.bytes)
	}
	if r.reply.seen && !r.reply.cut && r.reply.bytes != tx.ReplyBytes {
		fail("reply of %d bytes", r.reply.bytes)
	}
	if n := len(r.call.payload); n > len(tx.Call) || string(r.call.payload) != string(tx.Call[:n]) {
		fail("call differs")
	}
	if n := len(r.reply.payload); n > len(tx.Reply) || string(r.reply.payload) != string(tx.Reply[:n]) {
		fail("reply differs")
	}
	if n := len(r.read); n > len(tx.Read) || string(r.read) != string(tx.Read[:n]) {
		fail("Read chunk differs")
	}
	for i, w := range r.written {
		if len(w) > 0 && i >= len(tx.Written) || len(w) > 0 && len(w) > len(tx.Written[i]) || len(w) > 0 && string(w) != string(tx.Written[i][:len(w)]) {
			fail("Write chunk %d differs", i)
		}
	}
	switch {
	case r.state == transaction.NoCall && (r.call.seen || !r.reply.seen),
		r.state == transaction.NoReply && r.reply.seen,
		r.state == transaction.Complete && (!r.call.seen || !r.reply.seen):
		fail("state")
	case r.state == transaction.Complete && len(r.notes) == 0 &&
		(r.readBytes != tx.ReadBytes || r.writeBytes != tx.WriteBytes || len(r.call.payload) != len(tx.Call) || len(r.reply.payload) != len(tx.Reply)):
		fail("not complete")
	case r.state == transaction.Incomplete && len(r.notes) == 0:
		fail("incomplete for no reason")
	}
	if p := r.phases; r.phased && p.Divided() && p.CallTransfer+p.ArgumentPull+p.Server+p.ResultPush+p.ReplyTransfer != p.Total {
		fail("phases do not sum up: %+v", p)
	}
}

// untouched wants those transactions that lost no packet to be complete.
func untouched(t *testing.T, traffic *rocetest.Traffic, all, left []rocetest.Record, by map[*rocetest.Transaction][]*result) {
	t.Helper()
	w := whole(all, left)
	at := sightings(left)
	for _, tx := range traffic.Transactions {
		if !w[tx] {
			continue
		}
		if len(by[tx]) != 1 {
			t.Errorf("%v lost nothing, and is reported %d times", tx, len(by[tx]))
			continue
		}
		check(t, tx, by[tx][0], at, true)
	}
}

// TestCaptureLoss leaves packets out of the capture that were received: what
// lost nothing is complete, the rest is marked.
func TestCaptureLoss(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		for i, p := range []float64{0.002, 0.02, 0.1, 0.5} {
			if traffic.Config.ReuseHandle && p > 0.01 {
				// Where a call is lost whose memory has the handle and the
				// address of an earlier one, nobody can tell.
				break
			}
			all := traffic.Taps[i%2]
			left := rocetest.Drop(all, traffic.Config.Seed+uint64(i), p, 1+i*5)
			by := honest(t, traffic, track(left, keepData, roce.Limits{}))
			if traffic.Config.CM && p < 0.01 {
				untouched(t, traffic, all, left, by)
			}
			if t.Failed() {
				t.Fatalf("with %v left out", p)
			}
		}
	})
}

// TestStartInTheMiddle begins and ends the capture anywhere.
func TestStartInTheMiddle(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		all := traffic.Taps[0]
		for i := range 8 {
			from, to := i*len(all)/9, len(all)
			if i%2 == 1 {
				to = len(all) - (len(all)-from)/3
			}
			left := all[from:to]
			by := honest(t, traffic, track(left, keepData, roce.Limits{}))
			untouched(t, traffic, all, left, by)
			if t.Failed() {
				t.Fatalf("from %d to %d", from, to)
			}
		}
	})
}

// TestOneDirection has only what one side sent.
func TestOneDirection(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		for side := range 2 {
			left := rocetest.Only(traffic.Taps[0], func(r *rocetest.Record) bool { return int(r.Packet.From) == side })
			by := honest(t, traffic, track(left, keepData, roce.Limits{}))
			for _, tx := range traffic.Transactions {
				want := transaction.NoReply
				if (side == 0) == tx.Backward {
					want = transaction.NoCall
				}
				if len(by[tx]) != 1 || by[tx][0].state != want {
					t.Errorf("%v from side %d: %v", tx, side, by[tx])
				}
			}
		}
	})
}

// TestSnaplen cuts payloads: counts stay exact, since they are declared.
func TestSnaplen(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		for _, n := range []int{0, 4, 30, 60, 128, 200, 400} {
			results := track(rocetest.Snap(traffic.Taps[0], n), keepData, roce.Limits{})
			if n < 200 {
				// Less than the transport headers: not all can be recognised.
				for _, r := range results {
					if r.state == transaction.Complete && (len(r.call.payload) < r.call.length || len(r.reply.payload) < r.reply.length) {
						t.Errorf("cut and complete: %v", r)
					}
				}
				continue
			}
			by := honest(t, traffic, results)
			for _, tx := range traffic.Transactions {
				if traffic.Config.Segment != 0 && traffic.Config.Segment < 5000 {
					continue // long chunk lists
				}
				if len(by[tx]) != 1 {
					t.Errorf("%v: %d times", tx, len(by[tx]))
					continue
				}
				r := by[tx][0]
				if r.reads != tx.Reads || r.writes != tx.Writes || r.readBytes != tx.ReadBytes || r.writeBytes != tx.WriteBytes ||
					r.call.bytes != tx.CallBytes || r.reply.bytes != tx.ReplyBytes {
					t.Errorf("%v cut to %d: %v", tx, n, r)
				}
			}
			if t.Failed() {
				t.Fatalf("cut to %d", n)
			}
		}
	})
}

// TestDoubled shows packets twice within a moment: the first copy counts.
func TestDoubled(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		left := rocetest.Double(traffic.Taps[1], traffic.Config.Seed, 0.3)
		results := track(left, keepData, roce.Limits{})
		checkAll(t, traffic, left, results, false)
		at := sightings(left)
		for _, r := range results {
			for _, tx := range traffic.Transactions {
				if tx.XID == r.xid && tx.Backward == r.backward {
					if s := at[roleOf{tx, rocetest.ReplySend}]; r.reply.first != s.first {
						t.Errorf("reply of %v at %v, want %v", tx, r.reply.first, s.first)
					}
				}
			}
		}
	})
}

// TestShuffled has packets in an order that they were not sent in.
func TestShuffled(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		for i, p := range []float64{0.01, 0.1, 0.5} {
			if traffic.Config.ReuseHandle && p > 0.1 {
				break // as in TestCaptureLoss
			}
			left := rocetest.Shuffle(traffic.Taps[0], traffic.Config.Seed+uint64(i), p, 2+i*3)
			honest(t, traffic, track(left, keepData, roce.Limits{}))
			if t.Failed() {
				t.Fatalf("with %v", p)
			}
		}
	})
}

// TestLossUponLoss has a network and a capture that lose packets.
func TestLossUponLoss(t *testing.T) {
	each(t, func(c *rocetest.Config) {
		c.Loss = rocetest.Loss{Near: 0.02, Middle: 0.02, Far: 0.02, AckLost: 0.05, NotNow: 0.05, Copied: 0.02, Late: 0.02}
	}, func(t *testing.T, traffic *rocetest.Traffic) {
		for i, p := range []float64{0, 0.01, 0.1} {
			if traffic.Config.ReuseHandle && p > 0 {
				break // as in TestCaptureLoss
			}
			left := rocetest.Drop(traffic.Taps[i%2], traffic.Config.Seed, p, 3)
			honest(t, traffic, track(left, keepData, roce.Limits{}))
			if t.Failed() {
				t.Fatalf("with %v left out", p)
			}
		}
	})
}

// TestLate lets packets overtake others on the network before the capture:
// what is dropped for that is sent again.
func TestLate(t *testing.T) {
	each(t, func(c *rocetest.Config) { c.Loss.Late = 0.03 }, func(t *testing.T, traffic *rocetest.Traffic) {
		for _, records := range traffic.Taps {
			honest(t, traffic, track(records, keepData, roce.Limits{}))
		}
	})
}
