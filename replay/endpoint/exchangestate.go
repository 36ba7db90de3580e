package endpoint

import "sync/atomic"

// exchangeState says how far the answer to a peer's call is. next holds the
// transitions.
type exchangeState uint32

const (
	// exchangeNew: the call has been accepted. It may wait until there is room.
	exchangeNew exchangeState = iota
	// exchangePulling: the chunks of the call are being read.
	exchangePulling
	// exchangeServed: the handler has the call.
	exchangeServed
	// exchangeEncoding: the handler has given its reply, which is being encoded.
	exchangeEncoding
	// exchangeSending: the reply is being sent, its memory is in use until then.
	exchangeSending
	// exchangeExposing: as exchangeSending, and the reply names memory that
	// the peer is to read (ReadRead).
	exchangeExposing
	// exchangeExposed: the reply has been sent, the peer reads its memory.
	exchangeExposed
	// exchangeSettled: as exchangeExposing, but the peer has said RDMA_DONE
	// already, or its time is up.
	exchangeSettled
	// exchangeClosing: the memory of the reply is being closed.
	exchangeClosing
	// exchangeOver: the exchange holds nothing any more.
	exchangeOver

	exchangeStates = iota
)

// exchangeEvent is what happens to an exchange.
type exchangeEvent uint8

const (
	exchangePull   exchangeEvent = iota // the call has chunks
	exchangeServe                       // the call is complete
	exchangeReply                       // the handler gives its reply
	exchangeDrop                        // the handler gives none
	exchangeSend                        // the reply is queued, with RDMA Writes before it
	exchangeExpose                      // the reply names memory of ours
	exchangeSent                        // the reply has been sent
	exchangeDone                        // the peer has said RDMA_DONE, or its time is up
	exchangeEnd                         // nothing is left to do, or the connection has ended

	exchangeEvents = iota
)

// next returns the state that an event leads to; ok is false if the event has no
// meaning in state s. A dash stands for that.
//
//	state     pull     serve   reply     drop  send     expose    sent     done     end
//	new       pulling  served  -         -     -        -         -        -        over
//	pulling   -        served  -         -     -        -         -        -        over
//	served    -        -       encoding  over  -        -         -        -        over
//	encoding  -        -       -         -     sending  exposing  -        -        over
//	sending   -        -       -         -     -        -         over     -        over
//	exposing  -        -       -         -     -        -         exposed  settled  over
//	exposed   -        -       -         -     -        -         -        closing  over
//	settled   -        -       -         -     -        -         closing  -        over
//	closing   -        -       -         -     -        -         -        -        over
//	over      -        -       -         -     -        -         -        -        -
//
// Exposing, exposed and settled are distinguished because RDMA_DONE and the timer may
// come before the completion of the Send, which still uses the memory.
func (s exchangeState) next(e exchangeEvent) (to exchangeState, ok bool) {
	switch e {
	case exchangePull:
		return exchangePulling, s == exchangeNew
	case exchangeServe:
		return exchangeServed, s == exchangeNew || s == exchangePulling
	case exchangeReply:
		return exchangeEncoding, s == exchangeServed
	case exchangeDrop:
		return exchangeOver, s == exchangeServed
	case exchangeSend:
		return exchangeSending, s == exchangeEncoding
	case exchangeExpose:
		return exchangeExposing, s == exchangeEncoding
	case exchangeSent:
		switch s {
		case exchangeSending:
			return exchangeOver, true
		case exchangeExposing:
			return exchangeExposed, true
		}
		return exchangeClosing, s == exchangeSettled
	case exchangeDone:
		if s == exchangeExposing {
			return exchangeSettled, true
		}
		return exchangeClosing, s == exchangeExposed
	case exchangeEnd:
		return exchangeOver, s != exchangeOver
	}
	return s, false
}

// progress is the state of an exchange. Handlers, the goroutine of the connection
// and timers change it; of two that take the same step, one succeeds.
type progress struct{ state atomic.Uint32 }

func (p *progress) begin() { p.state.Store(uint32(exchangeNew)) }

func (p *progress) now() exchangeState { return exchangeState(p.state.Load()) }

// step applies an event, and returns the new state. It reports false, and changes
// nothing, if the event has no meaning now.
func (p *progress) step(e exchangeEvent) (exchangeState, bool) {
	for {
		from := p.now()
		to, ok := from.next(e)
		if !ok {
			return from, false
		}
		if p.state.CompareAndSwap(uint32(from), uint32(to)) {
			return to, true
		}
	}
}
