package krb5

import (
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// sequence checks the sequence number of a genuine call (RFC 2203, section 5.3.3.1).
func (c *Contexts) sequence(x *context, v *rpc.View) {
	tx, n := v.Tx, v.Call().GSS.Sequence
	if n > maxSequence {
		tx.Note(transaction.Note{Kind: transaction.KRB5SequenceTooHigh, N: uint64(n), Of: maxSequence})
	}
	if x.used == nil {
		x.used = new([sequences]use)
	}
	u := &x.used[n%sequences]
	if by := whichOf(tx); u.number == n && u.by != (which{}) && u.by != by {
		tx.Note(transaction.Note{Kind: transaction.KRB5SequenceReused, N: uint64(n)})
	} else if u.number <= n {
		u.number, u.by = n, by
	}
	if x.window > 0 && x.highest >= x.window && n <= x.highest-x.window && !tx.Reply.Seen() && tx.State == transaction.NoReply {
		tx.Note(transaction.Note{Kind: transaction.KRB5SequenceBelowWindow, N: uint64(n), Window: x.window, Of: uint64(x.highest)})
	}
	x.highest = max(x.highest, n)
	if x.destroyed > 0 && tx.Call.First.Number > x.destroyed {
		tx.Note(transaction.Note{Kind: transaction.KRB5ContextDestroyed, N: x.destroyed})
	}
}

const maxSequence = 0x80000000
