package transaction

import (
	"iter"
	"time"
)

// Phase is a part of a transaction's latency.
type Phase uint8

// The phases in the order in which they take place. The first five, its parts,
// sum to the total. PhaseAck follows the total, and PhaseWait is the beginning of
// PhasePull.
const (
	PhaseCall   Phase = iota // the call's first packet to its last
	PhasePull                // to the last RDMA Read Response of the call's chunks
	PhaseServer              // to the first RDMA Write, or the reply's first packet
	PhasePush                // to the end of the last RDMA Write
	PhaseReply               // to the reply's last packet
	PhaseAck                 // from the reply's last packet to its acknowledgement
	PhaseWait                // of PhasePull, until the first RDMA Read Request

	NumPhases = iota
	NumParts  = int(PhaseReply) + 1
)

var phaseNames = [NumPhases]struct{ long, short string }{
	PhaseCall: {"call_transfer", "call"}, PhasePull: {"argument_pull", "pull"}, PhaseServer: {"server", "server"},
	PhasePush: {"result_push", "push"}, PhaseReply: {"reply_transfer", "reply"}, PhaseAck: {"ack", "ack"}, PhaseWait: {"pull_wait", "wait"},
}

// String is the name in the output that programs read: "argument_pull".
func (p Phase) String() string { return phaseNames[p].long }

// Short is the name in a word, for narrow columns: "pull".
func (p Phase) Short() string { return phaseNames[p].short }

// Parts are the phases that sum to the total, in their order.
func Parts() iter.Seq[Phase] {
	return func(yield func(Phase) bool) {
		for p := PhaseCall; p <= PhaseReply; p++ {
			if !yield(p) {
				return
			}
		}
	}
}

// AllPhases are the parts, and then PhaseWait and PhaseAck.
func AllPhases() iter.Seq[Phase] {
	return func(yield func(Phase) bool) {
		for p := range Parts() {
			if !yield(p) {
				return
			}
		}
		_ = yield(PhaseWait) && yield(PhaseAck)
	}
}

// Parts are how long the phases took that sum to the total, in their order.
func (p *Phases) Parts() [NumParts]time.Duration {
	return [NumParts]time.Duration{p.CallTransfer, p.ArgumentPull, p.Server, p.ResultPush, p.ReplyTransfer}
}

// Of is how long a phase took. It is negative if that is not known: PhaseAck if no acknowledgement was
// seen, all others unless Divided.
func (p *Phases) Of(ph Phase) time.Duration {
	switch ph {
	case PhaseCall:
		return p.CallTransfer
	case PhasePull:
		return p.ArgumentPull
	case PhaseServer:
		return p.Server
	case PhasePush:
		return p.ResultPush
	case PhaseReply:
		return p.ReplyTransfer
	case PhaseAck:
		return p.Ack
	}
	return p.PullWait
}
