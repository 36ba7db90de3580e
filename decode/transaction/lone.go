package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// Lone spares a MessageHandler lone calls: those that take the short way, as their replies do, and whose reply is the next
// message that it would be told of. Most calls are lone where a client waits for each reply.
//
// A call that may prove to be lone is kept back. If anything but its reply comes, or it ends without one, the handler is told of it
// first. So the handler is told the same in the same order, without some calls that are followed by their replies.
type Lone struct {
	idle  bool      // the handler has been told of nothing since Spare
	call  uint64    // generation of the transaction whose call is kept back; 0 if none is, and if not idle
	entry uint32    // that it has
	send  rdma.Send // of the call, while it is told
}

// LoneHandler is a MessageHandler that can do without some lone calls.
type LoneHandler interface {
	MessageHandler
	// SetLone is called once, before it is told of anything. Of the Send of a call that was kept back it is told what the
	// Transaction knows of it.
	SetLone(l *Lone)
}

// spared says of which calls on a connection a LoneHandler need not be told if they are lone: of none if program is 0.
type spared struct {
	program, version uint32
	from             rdma.Side
}

// Spare is for a handler that is being told of the reply of a transaction. It says that as long as it is told of nothing else, a lone
// call would leave all that it knows as it is: one of the same requester, program and version on the same connection, or on another one
// for which it has said so before. Of a connection, what it has said last counts.
func (l *Lone) Spare(tx *Transaction) {
	c := tx.Connection
	k, ok := c.Upper.(*conn)
	if !ok || c.Setup[0].Seen() && !c.Setup[1].Seen() { // the reply to the setup may still change an address
		return
	}
	k.spared = spared{tx.Program, tx.Version, tx.From}
	l.idle = true
}

// spares reports whether the handler need not be told of a message that took the short way, at least for now.
func (t *Tracker) spares(k *conn, tx *Transaction, reply bool) bool {
	l, x := &t.lone, &k.spared
	switch {
	case !l.idle:
		return false
	case reply:
		if l.call != tx.gen {
			return false
		}
		l.call = 0
		return true
	case l.call != 0 || tx.Program == 0 || x.program != tx.Program || x.version != tx.Version || x.from != tx.From:
		return false
	}
	l.call, l.entry = tx.gen, tx.entry
	return true
}

// tellLone tells the handler of the call that is kept back, if one is. It precedes whatever else concerns the handler.
func (t *Tracker) tellLone() {
	l := &t.lone
	l.idle = false
	if l.call == 0 {
		return
	}
	l.call = 0
	tx := t.entries.list[l.entry]
	m := &tx.Call
	l.send = rdma.Send{
		From: tx.From, Data: m.raw, Length: m.SendBytes, First: m.First, Last: m.Last, Packets: m.Packets, Again: tx.Retransmits,
		Invalidates: m.Invalidates, Handle: m.Handle,
	}
	t.opt.Messages.Message(tx, false, &l.send)
	l.send = rdma.Send{}
}

// mergeLone is tellLone before from becomes part of another connection. The call came on from alone.
func (t *Tracker) mergeLone(from *rdma.Connection) {
	into := from.MergedInto
	from.MergedInto = nil
	t.tellLone()
	from.MergedInto = into
}
