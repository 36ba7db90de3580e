package endpoint

import (
	"os"
	"strings"
	"testing"
)

// drawn reads the table of transitions in the comment of a file: a row for each
// state, a column for each event.
func drawn(t *testing.T, file string) (states, events []string, cells map[[2]string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cells = make(map[[2]string]string)
	for line := range strings.Lines(string(text)) {
		row, ok := strings.CutPrefix(line, "//\t")
		f := strings.Fields(row)
		switch {
		case !ok || len(f) == 0:
		case f[0] == "state":
			events = f[1:]
		case len(f) != len(events)+1:
			t.Fatalf("%s: a row of %d columns: %s", file, len(f), line)
		default:
			states = append(states, f[0])
			for i, to := range f[1:] {
				cells[[2]string{f[0], events[i]}] = to
			}
		}
	}
	return states, events, cells
}

// TestTransitions compares next with the tables that are drawn above it.
func TestTransitions(t *testing.T) {
	for _, m := range []struct {
		file           string
		states, events int
		next           func(s, e int) (int, bool)
	}{
		{"callstate.go", callStates, callEvents, func(s, e int) (int, bool) {
			to, ok := callState(s).next(callEvent(e))
			return int(to), ok
		}},
		{"exchangestate.go", exchangeStates, exchangeEvents, func(s, e int) (int, bool) {
			to, ok := exchangeState(s).next(exchangeEvent(e))
			return int(to), ok
		}},
	} {
		states, events, cells := drawn(t, m.file)
		if len(states) != m.states || len(events) != m.events {
			t.Errorf("%s: %d states and %d events are drawn, there are %d and %d", m.file, len(states), len(events), m.states, m.events)
			continue
		}
		reached := map[int]bool{0: true}
		for s, state := range states {
			for e, event := range events {
				got := "-"
				if to, ok := m.next(s, e); ok {
					got = states[to]
					reached[to] = true
				}
				if want := cells[[2]string{state, event}]; got != want {
					t.Errorf("%s: %s, %s: leads to %s, drawn is %s", m.file, state, event, got, want)
				}
			}
			if _, ok := m.next(s, m.events); ok {
				t.Errorf("%s: %s: an event that does not exist leads somewhere", m.file, state)
			}
		}
		if len(reached) != m.states {
			t.Errorf("%s: %d of %d states can be reached", m.file, len(reached), m.states)
		}
	}
}

// TestStep: the table of calls and the credits in use follow the states, and an
// event without a meaning changes nothing.
func TestStep(t *testing.T) {
	c := newCaller(&Options{}, &counters{})
	c.link = &link{}
	for range 2 {
		pc := &pendingCall{xid: 7}
		c.table[7] = pc
		for _, want := range []struct {
			event  callEvent
			ok     bool
			state  callState
			credit uint32
		}{
			{callReply, false, callIdle, 0},
			{callWait, true, callQueued, 0},
			{callSend, false, callQueued, 0},
			{callCredit, true, callMarshal, 1},
			{callSend, true, callSent, 1},
			{callReply, true, callTaking, 1},
			{callFail, false, callTaking, 1},
			{callResend, false, callTaking, 1},
			{callPull, true, callPulling, 1},
			{callPulled, true, callTaking, 1},
			{callClose, true, callClosing, 1},
			{callEnd, true, callIdle, 0},
			{callEnd, false, callIdle, 0},
		} {
			if ok := c.step(pc, want.event); ok != want.ok || pc.state != want.state || c.inFlight != want.credit {
				t.Fatalf("event %d: %v, state %d, %d credits in use; want %v, %d, %d", want.event, ok, pc.state, c.inFlight, want.ok, want.state, want.credit)
			}
			if _, ok := c.table[7]; ok != (pc.state != callIdle || want.event == callReply) {
				t.Fatalf("event %d: in the table: %v", want.event, ok)
			}
		}
	}
	// An abandoned call leaves its credit to the zombie; one of a connection that
	// has ended has none to give back.
	pc := &pendingCall{}
	c.step(pc, callCredit)
	c.step(pc, callSend)
	c.step(pc, callAbandon)
	if c.inFlight != 1 {
		t.Errorf("%d credits in use after a call was abandoned, want 1", c.inFlight)
	}
	c.step(pc, callCredit)
	c.step(pc, callSend)
	c.link, c.inFlight = &link{}, 0
	c.step(pc, callResend)
	if c.inFlight != 0 || pc.link != nil {
		t.Errorf("%d credits in use, link %p after the connection was lost", c.inFlight, pc.link)
	}
}
