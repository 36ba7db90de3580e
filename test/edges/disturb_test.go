package edges

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

var disturbances = flag.Int("disturb", 4, "packets of each capture that are dropped, doubled, swapped, delayed")

// sizes has the fields of a transaction that must never be wrong.
type sizes struct {
	state       transaction.State
	procedure   uint32
	read, write uint64
	call, reply uint64
}

// outcome is the result of decoding and checking a capture.
type outcome struct {
	transactions map[uint32][]sizes // by XID
	packets      map[uint64][]uint32
	errors       map[string]int // by rule
	told         []*check.Finding
}

func (o *outcome) complete() (n int) {
	for _, list := range o.transactions {
		for _, s := range list {
			if s.state == transaction.Complete {
				n++
			}
		}
	}
	return n
}

func judged(packets []capture.Packet, list bool) *outcome {
	o := &outcome{transactions: map[uint32][]sizes{}, errors: map[string]int{}}
	opt := decode.Options{}
	if list {
		opt.Transactions.Packets = 1 << 16
		o.packets = map[uint64][]uint32{}
	}
	c := check.New(check.Options{Profile: check.RFC8166, Rules: check.All()}, func(f *check.Finding) {
		if f.Severity == check.Error {
			o.errors[f.Rule.ID]++
			o.told = append(o.told, f)
		}
	})
	opt.Observe(c.Observer())
	var v rpc.View
	numbered := slices.Clone(packets)
	for i := range numbered {
		numbered[i].Number = uint64(i + 1)
	}
	traffic.Run(decode.New(opt, func(tx *transaction.Transaction) {
		o.transactions[tx.XID] = append(o.transactions[tx.XID], sizes{
			tx.State, tx.Procedure, tx.ReadBytes, tx.WriteBytes, tx.Call.Bytes, tx.Reply.Bytes,
		})
		for _, p := range tx.Packets {
			if of := o.packets[p.Ref.Number]; !slices.Contains(of, tx.XID) {
				o.packets[p.Ref.Number] = append(of, tx.XID)
			}
		}
		v.Set(tx)
		c.Transaction(&v)
	}), numbered, 64)
	c.Finish()
	return o
}

// disturbance is a change to one packet of a capture.
type disturbance string

const (
	drop   disturbance = "drop"   // the capture lost it
	double disturbance = "double" // it is there twice
	swap   disturbance = "swap"   // it changed places with the next one
	delay  disturbance = "delay"  // it came 2 to 5 packets later
)

// apply disturbs the packet at an index; the times stay in order.
func (d disturbance) apply(packets []capture.Packet, at, by int) []capture.Packet {
	out := slices.Clone(packets)
	switch d {
	case drop:
		return slices.Delete(out, at, at+1)
	case double:
		return slices.Insert(out, at+1, out[at])
	}
	p := out[at]
	to := min(at+by, len(out)-1)
	for i := at; i < to; i++ {
		time := out[i].Time
		out[i] = out[i+1]
		out[i].Time = time
	}
	p.Time = out[to].Time
	out[to] = p
	return out
}

// TestDisturbed: whatever the capture did to one packet, no transaction is complete with wrong
// bytes, no transaction disappears whose packets are there, and no finding of check blames a
// peer.
func TestDisturbed(t *testing.T) {
	x := readTable(t, "packets")
	for i, f := range files(t) {
		packets := load(t, f.path)
		var want *outcome
		var sum disturbed
		var cells []any
		for k, how := range []disturbance{drop, double, swap, delay} {
			if testing.Short() && k != i%4 {
				continue
			}
			t.Run(f.name+"/"+string(how), func(t *testing.T) {
				if want == nil {
					want = judged(packets, true)
				}
				d := disturb(t, packets, want, how, *disturbances)
				cells = append(cells, d.marked)
				sum.wrong, sum.gone, sum.blamed = sum.wrong+d.wrong, sum.gone+d.gone, sum.blamed+d.blamed
			})
		}
		if *disturbances == documentedDisturbances && len(cells) == 4 {
			x.check(t, f, append(cells, sum.wrong, sum.gone, sum.blamed)...)
		}
	}
	x.write(t)
}

// documentedDisturbances is how many of each kind the results in tables.md cover.
const documentedDisturbances = 250

// disturbed counts the transactions of a capture by outcome.
type disturbed struct {
	times  int // that a packet was disturbed
	marked int // transactions that are no longer complete, and say so
	wrong  int // complete with other bytes than they have
	gone   int // not there, though their packets are
	blamed int // kinds of errors that check finds
}

func disturb(t *testing.T, packets []capture.Packet, want *outcome, how disturbance, n int) (d disturbed) {
	rng := rand.New(rand.NewPCG(uint64(len(packets)), uint64(how[1])))
	order := rng.Perm(len(packets)) // each packet once before any of them again
	d.times = n
	whole := want.complete()
	for i := range n {
		at, by := order[i%len(order)], 1
		if how == delay {
			by = 2 + rng.IntN(4)
		}
		got := judged(how.apply(packets, at, by), false)
		tell := func(n *int, format string, args ...any) {
			if *n++; *n <= shown {
				t.Errorf("%s packet %d by %d: %s", how, at+1, by, fmt.Sprintf(format, args...))
			}
		}
		d.marked += max(0, whole-got.complete())
		for xid, list := range got.transactions {
			for _, r := range list {
				if r.state == transaction.Complete && !slices.ContainsFunc(want.transactions[xid], func(w sizes) bool {
					w.state = r.state
					return w == r
				}) {
					tell(&d.wrong, "XID %#x is complete: %+v, want %+v", xid, r, want.transactions[xid])
				}
			}
		}
		for xid, list := range want.transactions {
			if len(got.transactions[xid]) < len(list) && (how != drop || !slices.Contains(want.packets[uint64(at+1)], xid)) {
				tell(&d.gone, "XID %#x %d times, want %d", xid, len(got.transactions[xid]), len(list))
			}
		}
		for rule, k := range got.errors {
			if k > want.errors[rule] {
				i := slices.IndexFunc(got.told, func(f *check.Finding) bool { return f.Rule.ID == rule })
				f := got.told[i]
				tell(&d.blamed, "%s: %d errors, want %d; XID %#x, packet %d, by %v: %s, not %s", rule, k, want.errors[rule], f.XID, f.Ref.Number, f.By, f.Seen, f.Expected)
			}
		}
	}
	t.Logf("%d times: %d marked, %d wrong, %d gone, %d blamed", d.times, d.marked, d.wrong, d.gone, d.blamed)
	return d
}
