package latency

import "github.com/rpcrdma/toolkit/decode/transaction"

// Phase is a part of a transaction's latency.
type Phase uint8

// Phases. CallTransfer, ArgumentPull, Server, ResultPush and ReplyTransfer sum
// to the total; PullWait is a part of ArgumentPull; Ack follows the total.
const (
	CallTransfer Phase = iota
	ArgumentPull
	Server
	ResultPush
	ReplyTransfer
	PullWait
	Ack
	NumPhases = iota
)

// Parts are the phases that sum to the total.
var Parts = [...]Phase{CallTransfer, ArgumentPull, Server, ResultPush, ReplyTransfer}

var phaseNames = [NumPhases]string{
	"call_transfer", "argument_pull", "server", "result_push", "reply_transfer", "pull_wait", "ack",
}

func (p Phase) String() string { return phaseNames[p] }

// Durations are the phases of one transaction in nanoseconds.
type Durations [NumPhases]int64

// durations spreads the phases of a transaction. Ack is negative if it was not
// seen.
func durations(p *transaction.Phases) Durations {
	return Durations{
		CallTransfer: int64(p.CallTransfer), ArgumentPull: int64(p.ArgumentPull), Server: int64(p.Server),
		ResultPush: int64(p.ResultPush), ReplyTransfer: int64(p.ReplyTransfer),
		PullWait: int64(p.PullWait), Ack: int64(p.Ack),
	}
}
