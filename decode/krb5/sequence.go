package krb5

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// sequence looks at the sequence number of a genuine call (RFC 2203, section
// 5.3.3.1).
func (c *Contexts) sequence(x *context, v *rpc.View) {
	tx, n := v.Tx, v.Call.GSS.Sequence
	if n > maxSequence {
		tx.Note(fmt.Sprintf("krb5: sequence number %d is beyond %d", n, uint32(maxSequence)))
	}
	if x.used == nil {
		x.used = new([sequences]use)
	}
	u := &x.used[n%sequences]
	if by := whichOf(tx); u.number == n && u.by != (which{}) && u.by != by {
		tx.Note(fmt.Sprintf("krb5: sequence number %d of the context was used before", n))
	} else if u.number <= n {
		u.number, u.by = n, by
	}
	if x.window > 0 && x.highest >= x.window && n <= x.highest-x.window && !tx.Reply.Seen() && tx.State == transaction.NoReply {
		tx.Note(fmt.Sprintf("krb5: sequence number %d is below the window of the context (%d below %d): the server does not answer", n, x.window, x.highest))
	}
	x.highest = max(x.highest, n)
	if x.destroyed > 0 && tx.Call.First.Number > x.destroyed {
		tx.Note(fmt.Sprintf("krb5: the context was destroyed in packet %d", x.destroyed))
	}
}

const maxSequence = 0x80000000
