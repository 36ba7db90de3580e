package journal

import (
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Priority is the priority of an entry: a severity of syslog (RFC 5424, section 6.2.1).
type Priority int8

// The priorities of transactions.
const (
	Error   Priority = 3 // what a user of the file system notices: no reply, RPC refused, I/O error
	Warning Priority = 4 // slow, or not readable
	Notice  Priority = 5 // refused with a status that programs expect, such as NOENT
	Info    Priority = 6
)

// Slow is the latency from which a transaction is a warning.
const Slow = time.Second

// serious are statuses of NFS and MOUNT that say that something is wrong with the server or its file system,
// and not only with the request.
var serious = []string{"IO", "NXIO", "SERVERFAULT", "STALE", "FHEXPIRED", "BADHANDLE", "NOSPC", "DQUOT", "ROFS"}

// PriorityOf rates the outcome of a transaction.
func PriorityOf(v *rpc.View) Priority {
	p := Info
	if v.Failed() {
		p = Notice
		// v.Reply is of RPC only if there was no error of the transport.
		if v.Tx.ReplyLost() || v.ReplyErr != nil || !v.Reply().Succeeded() || slices.Contains(serious, text.ShortStatus(v)) {
			p = Error
		}
	} else if v.ReplyErr != nil || v.ResultErr != nil {
		p = Warning
	}
	if v.Tx.State == transaction.NoReply {
		p = Error
	}
	if v.Tx.Call.Seen() && v.Tx.Reply.Seen() {
		if phases, ok := v.Tx.Phases(); ok && phases.Total >= Slow {
			p = min(p, Warning)
		}
	}
	return p
}
