// Package fault injects faults at chosen calls, to see how the peer recovers: delays,
// lost replies, lost connections, shrinking credits, refused chunks, missing receives.
// It does so at three places: in front of a program (Plan.Handler), behind a caller
// (Plan.Requester), and between an endpoint and its provider (Plan.Provider).
package fault

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Action is what goes wrong.
type Action uint8

// Actions.
const (
	// Delay delays a call (Requester) or its reply (Handler) by Spec.Time.
	Delay Action = iota
	// Drop discards a reply. A Requester retransmits the call after Spec.Time, with
	// the same XID, as a client does whose reply was lost; a Handler sends no
	// reply, so that the peer has to retransmit.
	Drop
	// Disconnect ends the connection after the call was sent (Requester) or in the
	// place of a reply (Handler).
	Disconnect
	// Credits puts Spec.Number into the credit field of the call or reply.
	Credits
	// ErrChunk answers with RDMA_ERROR, ERR_CHUNK (RFC 8166, section 4.5).
	ErrChunk
	// RNR posts only Spec.Number receives on each connection, regardless of the
	// credits that were granted.
	RNR
)

var names = [...]string{"delay", "drop", "disconnect", "credits", "err_chunk", "rnr"}

func (a Action) String() string { return names[a] }

// Spec is one fault and the calls that it applies to.
type Spec struct {
	Action Action
	Time   time.Duration
	Number int

	// The calls: those with an XID, those of an operation of a plan, the Call-th,
	// or each Every-th. All zero: every call.
	XID         uint32
	HasXID      bool
	Op          int
	Call, Every int
}

// Parse reads "SELECTOR:ACTION": xid=0x138a9383:delay=100ms, op=12:drop,
// call=5:disconnect, every=100:credits=1, all:err_chunk; and rnr=2.
func Parse(s string) (f Spec, err error) {
	selector, action, ok := strings.Cut(s, ":")
	if !ok {
		selector, action = "all", s
	}
	key, value, _ := strings.Cut(selector, "=")
	number := func(v string) int {
		n, e := strconv.Atoi(v)
		if e != nil || n < 1 {
			err = fmt.Errorf("fault %q: %q is not a number", s, v)
		}
		return n
	}
	switch key {
	case "all":
		f.Every = 1
	case "xid":
		x, e := strconv.ParseUint(strings.TrimPrefix(value, "0x"), 16, 32)
		if e != nil {
			return f, fmt.Errorf("fault %q: %q is not an XID in hexadecimal", s, value)
		}
		f.XID, f.HasXID = uint32(x), true
	case "op":
		f.Op = number(value)
	case "call":
		f.Call = number(value)
	case "every":
		f.Every = number(value)
	default:
		return f, fmt.Errorf("fault %q: %q is none of xid, op, call, every and all", s, key)
	}
	key, value, has := strings.Cut(action, "=")
	at := -1
	for i, n := range names {
		if n == key {
			at = i
		}
	}
	if at < 0 {
		return f, fmt.Errorf("fault %q: %q is none of %s", s, key, strings.Join(names[:], ", "))
	}
	f.Action = Action(at)
	switch f.Action {
	case Delay, Drop:
		if !has && f.Action == Drop {
			f.Time = 100 * time.Millisecond
			break
		}
		d, e := time.ParseDuration(value)
		if _, plain := strconv.ParseFloat(value, 64); plain == nil {
			d, e = time.ParseDuration(value + "s") // seconds, as in the flags of all programs
		}
		if e != nil || d < 0 {
			return f, fmt.Errorf("fault %q: %q is not a time", s, value)
		}
		f.Time = d
	case Credits, RNR:
		if f.Number = number(value); f.Number > math.MaxUint32 {
			return f, fmt.Errorf("fault %q: %s is a field of 32 bits", s, key)
		}
	default:
		if has {
			return f, fmt.Errorf("fault %q: %s has no value", s, key)
		}
	}
	if f.Action == RNR && ok {
		return f, errors.New("rnr applies to connections, not to calls: write rnr=N")
	}
	return f, err
}

// Plan holds the faults of one side. The nil Plan has none.
type Plan struct {
	specs []Spec

	mu      sync.Mutex
	calls   int
	used    []bool            // of specs: whether it applied to a call
	pending map[uint32][]Spec // faults for the provider, by the XID of calls under way
	done    map[Action]int
}

// New returns a plan, or nil if there are no faults.
func New(specs []Spec) *Plan {
	if len(specs) == 0 {
		return nil
	}
	return &Plan{specs: specs, used: make([]bool, len(specs)), pending: map[uint32][]Spec{}, done: map[Action]int{}}
}

// Resolve replaces XIDs of a capture by operations of a plan; find returns 0 for an
// XID that is not in the plan.
func (p *Plan) Resolve(find func(xid uint32) int) error {
	if p == nil {
		return nil
	}
	for i := range p.specs {
		if s := &p.specs[i]; s.HasXID {
			if s.Op = find(s.XID); s.Op == 0 {
				return fmt.Errorf("XID %08x is not in the plan", s.XID)
			}
			s.HasXID = false
		}
	}
	return nil
}

// Wants reports whether the plan contains one of the actions.
func (p *Plan) Wants(actions ...Action) bool {
	return p != nil && slices.ContainsFunc(p.specs, func(s Spec) bool { return slices.Contains(actions, s.Action) })
}

// Done counts what has been done.
func (p *Plan) Done() map[Action]int {
	out := map[Action]int{}
	if p == nil {
		return out
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(out, p.done)
	return out
}

// Unused are the indexes of those faults of New that no call has met. RNR is not about calls.
func (p *Plan) Unused() []int {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []int
	for i := range p.specs {
		if p.specs[i].Action != RNR && !p.used[i] {
			out = append(out, i)
		}
	}
	return out
}

func (p *Plan) count(a Action) {
	p.mu.Lock()
	p.done[a]++
	p.mu.Unlock()
}

// maxPending bounds the number of calls whose faults wait for the provider.
const maxPending = 1 << 16

// next counts a call and returns its faults.
func (p *Plan) next(xid uint32, op int) (out []Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	for i, s := range p.specs {
		switch {
		case s.Action == RNR:
			continue
		case s.HasXID && s.XID != xid, s.Op != 0 && s.Op != op, s.Call != 0 && s.Call != p.calls, s.Every > 0 && p.calls%s.Every != 0:
			continue
		}
		p.used[i] = true
		out = append(out, s)
		if s.Action == Credits || s.Action == ErrChunk {
			if len(p.pending) < maxPending {
				p.pending[xid] = append(p.pending[xid], s)
			}
		}
	}
	return out
}

// take returns the faults that the provider applies to the message of a call.
func (p *Plan) take(xid uint32) []Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.pending[xid]
	delete(p.pending, xid)
	return s
}

// receives returns how many receives a connection may post; 0 is no limit.
func (p *Plan) receives() int {
	for _, s := range p.specs {
		if s.Action == RNR {
			return s.Number
		}
	}
	return 0
}
