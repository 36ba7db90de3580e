package session

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestSlotWait tries what may happen between the time when all slots are in use and the next call.
func TestSlotWait(t *testing.T) {
	const (
		call = iota
		reply
		limit
	)
	type step struct {
		what int
		n    uint32 // slot or limit
		at   int64
		wait time.Duration
	}
	for name, steps := range map[string][]step{
		"one slot":             {{limit, 1, 0, 0}, {call, 0, 10, 0}, {reply, 0, 30, 0}, {call, 0, 31, 20}, {reply, 0, 40, 0}, {call, 0, 90, 9}},
		"two":                  {{limit, 2, 0, 0}, {call, 0, 10, 0}, {call, 1, 15, 0}, {reply, 0, 30, 0}, {reply, 1, 33, 0}, {call, 0, 40, 15}, {call, 1, 41, 0}},
		"only the first":       {{limit, 2, 0, 0}, {call, 0, 10, 0}, {call, 1, 15, 0}, {reply, 0, 30, 0}, {call, 0, 31, 15}, {reply, 0, 32, 0}, {call, 0, 33, 1}},
		"not known":            {{call, 0, 10, 0}, {reply, 0, 30, 0}, {call, 0, 31, 0}},
		"limit raised":         {{limit, 1, 0, 0}, {call, 0, 10, 0}, {limit, 2, 20, 0}, {reply, 0, 30, 0}, {call, 0, 31, 0}, {call, 1, 40, 0}, {reply, 1, 50, 0}, {call, 1, 51, 10}},
		"limit lowered":        {{limit, 2, 0, 0}, {call, 0, 10, 0}, {limit, 1, 20, 0}, {reply, 0, 30, 0}, {call, 0, 31, 0}, {reply, 0, 35, 0}, {call, 0, 36, 4}},
		"sent again":           {{limit, 1, 0, 0}, {call, 0, 10, 0}, {call, 0, 20, 0}, {reply, 0, 30, 0}, {call, 0, 31, 20}},
		"reply without a call": {{limit, 1, 0, 0}, {reply, 0, 5, 0}, {call, 0, 10, 0}, {reply, 0, 12, 0}, {reply, 0, 14, 0}, {call, 0, 15, 2}},
		"clock goes back":      {{limit, 1, 0, 0}, {call, 0, 100, 0}, {reply, 0, 50, 0}, {call, 0, 60, 0}},
		"beyond":               {{limit, 1, 0, 0}, {call, maxSlots, 10, 0}, {reply, maxSlots, 20, 0}, {call, maxSlots, 30, 0}},
	} {
		var x table
		r := New(nil)
		for i, s := range steps {
			switch s.what {
			case call:
				if got := x.begin(r, new(int), s.n, s.at); got != s.wait {
					t.Errorf("%s, step %d: waited %d, want %d", name, i, got, s.wait)
				}
			case reply:
				x.end(r, s.n, s.at)
			case limit:
				x.limit = s.n
			}
		}
	}
}

// TestTargeted: the limit is what was granted, or the newest target if that is less or came later.
func TestTargeted(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var x session
		least := uint32(0)
		for range 30 {
			n := 1 + rng.Uint32N(4)
			if rng.IntN(4) == 0 {
				x.fore.limit, x.grant = n, n // see Recorder.answered
				continue
			}
			x.targeted(n - 1)
			if least == 0 || n < least {
				least = n
			}
			want := n
			if x.grant != 0 {
				want = min(n, x.grant)
			}
			if x.fore.limit != want || x.target != n || x.least != least {
				t.Fatalf("target %d, granted %d: limit %d, target %d, least %d", n, x.grant, x.fore.limit, x.target, x.least)
			}
		}
	}
}

// With a limit that stays, and calls that come as long as there are replies, the waits sum to the time in which all
// slots were in use.
func TestSlotWaitsSum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		x := table{limit: 1 + rnd.Uint32N(5)}
		r := New(nil)
		busy := make([]bool, x.limit)
		var sum time.Duration
		var waits uint64
		at := int64(1)
		for range 500 {
			at += rnd.Int64N(10)
			slot := rnd.Uint32N(x.limit)
			if busy[slot] {
				x.end(r, slot, at)
			} else if d := x.begin(r, new(int), slot, at); d > 0 {
				sum += d
				waits++
			}
			busy[slot] = !busy[slot]
		}
		at += 5
		for slot := range busy {
			if busy[slot] {
				x.end(r, uint32(slot), at)
			}
		}
		sum += x.begin(r, new(int), 0, at)
		if int64(sum) != x.full || waits > x.after {
			t.Fatalf("waits of %d, full for %d; %d waits, %d after", sum, x.full, waits, x.after)
		}
	}
}
