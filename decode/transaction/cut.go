package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// truncated says what is known of a transaction of whose message no more than the XID
// was captured.
func (t *Tracker) truncated(c *rdma.Connection, tag rdma.Tag) {
	tx, reply := t.OfSend(tag)
	switch {
	case tx == nil:
	case reply && tx.Call.Seen():
		// The calls before and after it are calls, too.
		t.halves.of(c, tx.From).proven = true
		tx.unproven = false
	default:
		tx.unproven = !tx.Reply.Seen() || !tx.Call.Seen()
		tx.note(AssumedByLength)
	}
}
