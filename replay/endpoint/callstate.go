package endpoint

// callState says where a call of ours is. caller.mu protects it; next holds the
// transitions.
type callState uint8

const (
	// callIdle: the call is its owner's, before the start and after the end.
	callIdle callState = iota
	// callQueued: it waits for a credit, or for a connection.
	callQueued
	// callMarshal: it has a credit, and a goroutine encodes it.
	callMarshal
	// callRequeued: its connection has ended. What it held of that is given
	// back, then it waits for the next one.
	callRequeued
	// callSent: it waits for its reply.
	callSent
	// callTaking: the goroutine of the connection handles its reply.
	callTaking
	// callPulling: RDMA Reads of its reply are under way (ReadRead).
	callPulling
	// callClosing: its memory windows are being closed.
	callClosing

	callStates = iota
)

// callEvent is what happens to a call.
type callEvent uint8

const (
	callWait    callEvent = iota // there is no credit, or no connection
	callCredit                   // it gets a credit of the connection
	callSend                     // its Send is queued
	callResend                   // the connection has ended; the next one is to carry the call
	callReply                    // a message with its XID is there
	callPull                     // the reply names memory of the peer
	callPulled                   // the Reads of that memory are complete
	callClose                    // windows have to be closed before the end
	callEnd                      // the reply has been handled, and all memory is closed
	callFail                     // the call ends with an error, and all memory is closed
	callAbandon                  // the call ends with an error; its credit and memory stay with a zombie

	callEvents = iota
)

// next returns the state that an event leads to; ok is false if the event has no
// meaning in state s. A dash stands for that.
//
//	state     wait    credit   send  resend    reply   pull     pulled  close    end   fail  abandon
//	idle      queued  marshal  -     -         -       -        -       -        -     -     -
//	queued    -       marshal  -     -         -       -        -       -        -     idle  -
//	marshal   -       -        sent  requeued  -       -        -       -        -     idle  -
//	requeued  queued  -        -     -         -       -        -       -        -     idle  -
//	sent      -       -        -     requeued  taking  -        -       -        -     idle  idle
//	taking    -       -        -     -         -       pulling  -       closing  idle  -     -
//	pulling   -       -        -     requeued  -       -        taking  -        -     idle  -
//	closing   -       -        -     requeued  -       -        -       -        idle  idle  -
//
// In the states marshal and taking one goroutine has the call to itself. Nobody
// else can end it there: who wants to sets pendingCall.giveUp, and that goroutine
// sees it when it is done. A connection ends on the goroutine that takes its
// replies, so no call is in state taking then.
func (s callState) next(e callEvent) (to callState, ok bool) {
	switch e {
	case callWait:
		return callQueued, s == callIdle || s == callRequeued
	case callCredit:
		return callMarshal, s == callIdle || s == callQueued
	case callSend:
		return callSent, s == callMarshal
	case callResend:
		return callRequeued, s == callMarshal || s == callSent || s == callPulling || s == callClosing
	case callReply:
		return callTaking, s == callSent
	case callPull:
		return callPulling, s == callTaking
	case callPulled:
		return callTaking, s == callPulling
	case callClose:
		return callClosing, s == callTaking
	case callEnd:
		return callIdle, s == callTaking || s == callClosing
	case callFail:
		return callIdle, s != callIdle && s != callTaking
	case callAbandon:
		return callIdle, s == callSent
	}
	return s, false
}

// credited reports whether a call in this state has a credit of its connection.
func (s callState) credited() bool {
	return s == callMarshal || s >= callSent
}

// step applies an event to a call, and keeps the table of calls and the count of
// credits in use in step with its state. It reports false, and changes nothing, if
// the event has no meaning now. c.mu is held.
func (c *caller) step(pc *pendingCall, e callEvent) bool {
	to, ok := pc.state.next(e)
	if !ok {
		return false
	}
	had, has := pc.state.credited(), to.credited()
	switch {
	case !had && has:
		c.inFlight++
		pc.link = c.link
	case had && !has && e != callAbandon && pc.link == c.link:
		c.inFlight-- // a connection that has ended has no credits to give back
	}
	pc.state = to
	switch to {
	case callIdle:
		delete(c.table, pc.xid)
	case callQueued, callRequeued:
		pc.link = nil
	}
	return true
}
