package connections

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// CreditPolicy is the rule that an end seems to follow when it asks for credits, or grants them.
type CreditPolicy uint8

// Policies.
const (
	CreditsUnknown  CreditPolicy = iota // too few messages, or none of the rules below
	CreditsConstant                     // always Value
	CreditsEcho                         // as many as the other end said last
	CreditsBounded                      // as many as were asked for, at most Value
	CreditsOSU                          // the formulas of OSU-CISRC-4/06-TR43, figures 10 (asking) and 11 (granting)
	creditPolicies
)

var creditNames = [creditPolicies]string{"unknown", "constant", "echo", "bounded", "osu"}

// String is the word of JSON.
func (p CreditPolicy) String() string { return creditNames[p] }

// Credits is the policy with its parameters as far as they show.
type Credits struct {
	Policy   CreditPolicy
	Messages uint64
	Value    uint64  // the constant, the bound, the client's minimum, or the server's average
	Factor   float64 // f_client or f_server
	// Least and Most bound the client's threshold: it asks for the minimum with Most credits to spare, and for more with Least.
	Least, Most uint64
	Zero        bool // it has asked for, or granted, none
}

// said is one value in its circumstances: of a call the credits it asks for, with the calls in flight and the credits granted; of a reply
// the grant, and what its call asked for.
type said struct{ value, inFlight, window uint32 }

const (
	maxSaid = 128 // different circumstances
	fewSaid = 16  // fewer messages say nothing
)

// creditValues are the different circumstances that were seen.
type creditValues struct {
	messages uint64
	list     []said
	times    []uint64 // that each of list was seen
	more     bool
	zero     bool
}

func (v *creditValues) add(x said) {
	v.messages++
	v.zero = v.zero || x.value == 0
	switch i := slices.Index(v.list, x); {
	case i >= 0:
		v.times[i]++
	case len(v.list) < maxSaid:
		v.list, v.times = append(v.list, x), append(v.times, 1)
	default:
		v.more = true
	}
}

// all reports whether f holds for all values.
func (v *creditValues) all(f func(said) bool) bool {
	return !slices.ContainsFunc(v.list, func(x said) bool { return !f(x) })
}

// windows reports whether there were several windows.
func (v *creditValues) windows() bool {
	return slices.ContainsFunc(v.list, func(x said) bool { return x.window != 0 && x.window != v.list[len(v.list)-1].window })
}

// limits returns the smallest and the largest value.
func (v *creditValues) limits() (least, most said) {
	by := func(a, b said) int { return cmp.Compare(a.value, b.value) }
	return slices.MinFunc(v.list, by), slices.MaxFunc(v.list, by)
}

// guess names the policy. asks is set for the end that asks.
func (v *creditValues) guess(asks bool) Credits {
	c := Credits{Messages: v.messages, Zero: v.zero}
	if v.messages < fewSaid {
		return c
	}
	least, most := v.limits()
	c.Value = uint64(most.value)
	switch {
	case least.value == most.value && !v.more:
		c.Policy = CreditsConstant
	case v.all(func(x said) bool { return x.value == x.window || x.window == 0 }) && v.windows():
		c.Policy = CreditsEcho
	case asks:
		v.figure10(&c, least.value, most.value)
	case v.all(func(x said) bool { return x.value == min(x.window, most.value) }):
		c.Policy = CreditsBounded
	default:
		v.figure11(&c)
	}
	return c
}

// figure10: with at least a threshold of credits to spare, a client asks for a minimum, otherwise for as much more as it has calls in
// flight, times a factor.
func (v *creditValues) figure10(c *Credits, minimum, most uint32) {
	var factors []float64
	for _, x := range v.list {
		if x.value > minimum && x.value < most && x.inFlight > 0 {
			factors = append(factors, float64(x.value-minimum)/float64(x.inFlight))
		}
	}
	if len(factors) < 2 {
		return
	}
	slices.Sort(factors)
	f := factors[len(factors)/2]
	var minima, others []spare
	var wrong uint64
	for i, x := range v.list {
		k, want := spare{int64(x.window) - int64(x.inFlight), v.times[i]}, float64(minimum)+f*float64(x.inFlight)
		switch {
		case x.window == 0: // what the client has before the first reply is its own affair
		case x.value == minimum:
			minima = append(minima, k)
		case math.Abs(float64(x.value)-want) <= max(f, 1) || x.value == most && want > float64(most): // the client may limit what it asks for
			others = append(others, k)
		default:
			wrong += k.times // a reply may have been on its way
		}
	}
	threshold, missed := divide(others, minima)
	if len(others) < 3 || len(minima) == 0 || (wrong+missed)*10 > v.messages {
		return
	}
	c.Policy, c.Value, c.Factor = CreditsOSU, uint64(minimum), f
	c.Least, c.Most = 0, math.MaxUint32
	for _, x := range others {
		if x.credits < threshold {
			c.Least = max(c.Least, uint64(max(x.credits, 0)))
		}
	}
	for _, x := range minima {
		if x.credits >= threshold {
			c.Most = min(c.Most, uint64(max(x.credits, 0)))
		}
	}
}

// spare is a number of credits that are left, and how often a value was seen with it.
type spare struct {
	credits int64
	times   uint64
}

// divide finds the number of credits from which on most of above lie, and below which most of below do, and how many do not.
func divide(below, above []spare) (threshold int64, missed uint64) {
	missed = math.MaxUint64
	for _, at := range above {
		n := uint64(0)
		for _, x := range below {
			if x.credits >= at.credits {
				n += x.times
			}
		}
		for _, x := range above {
			if x.credits < at.credits {
				n += x.times
			}
		}
		if n < missed || n == missed && at.credits < threshold {
			threshold, missed = at.credits, n
		}
	}
	return threshold, missed
}

// figure11: a server grants what it has posted if no more was asked for, what was asked for up to an average, and beyond that the average
// and a share of the rest.
func (v *creditValues) figure11(c *Credits) {
	var less []said // grants that are smaller than what was asked for
	for _, x := range v.list {
		if x.value < x.window {
			less = append(less, x)
		}
	}
	if len(less) < 2 {
		return
	}
	by := func(a, b said) int { return cmp.Compare(a.window, b.window) }
	a, b := slices.MinFunc(less, by), slices.MaxFunc(less, by)
	if a.window == b.window || b.value <= a.value {
		return
	}
	f := float64(b.value-a.value) / float64(b.window-a.window)
	average := (float64(a.value) - f*float64(a.window)) / (1 - f)
	for _, x := range less {
		// What has been posted is never taken back, so that a grant may be larger.
		if f >= 1 || average < 0 || float64(x.value) < average+f*(float64(x.window)-average)-2 {
			return
		}
	}
	c.Policy, c.Value, c.Factor = CreditsOSU, uint64(math.Round(average)), f
}

// text is the policy for people, empty if it is not known. verb is "asks for" or "grants", other what the other end does.
func (c *Credits) text(verb, other string) string {
	var s string
	switch c.Policy {
	case CreditsConstant:
		s = fmt.Sprintf("always %d", c.Value)
	case CreditsEcho:
		s = "what the " + other
	case CreditsBounded:
		s = fmt.Sprintf("what the %s, at most %d", other, c.Value)
	case CreditsOSU:
		if verb == "grants" {
			s = fmt.Sprintf("about %d, and %.2g of what is asked for beyond (OSU 2006, figure 11)", c.Value, c.Factor)
			break
		}
		s = fmt.Sprintf("%d, and %.2g for each call in flight when fewer than ", c.Value, c.Factor)
		if c.Most > c.Least+1 {
			s += fmt.Sprintf("%d to %d", c.Least+1, c.Most)
		} else {
			s += fmt.Sprint(c.Least + 1)
		}
		s += " credits are left (OSU 2006, figure 10)"
	default:
		return ""
	}
	if c.Zero {
		s += "; sometimes 0"
	}
	return fmt.Sprintf("%s credits: %s", verb, s)
}

func (c *Credits) code(k *state.Coder) {
	state.Enum(k, &c.Policy, int(creditPolicies))
	bits := math.Float64bits(c.Factor)
	for _, n := range [...]*uint64{&c.Messages, &c.Value, &c.Least, &c.Most, &bits} {
		state.Number(k, n)
	}
	c.Factor = math.Float64frombits(bits)
	k.Flag(&c.Zero)
}
