package parquet

import (
	"time"

	"github.com/rpcrdma/toolkit/analyze/parquet/column"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Most columns have the same value in many rows, one after the other. They are in bunches: what follows from the
// connection, what else is the same for most rows (see bunch), and what most files lack. Rows with the same values are counted for
// each bunch, and appended to its columns together: before another row, and before a page ends.

// party is the values of a connection in one direction.
type party struct {
	id     int
	fabric rdma.Fabric
	from   rdma.Side
	back   bool
	first  int64
	ends   [2]rdma.End
	tunnel *rdma.Tunnel

	key, client, server            string
	clientEndpoint, serverEndpoint int64
}

// party counts a row of the transaction's connection.
func (e *encoder) party(tx *transaction.Transaction) {
	c := tx.Connection
	i := 2 * uint(c.ID)
	if tx.Backward {
		i++
	}
	p := &e.parties[i%uint(len(e.parties))]
	known := p.key != "" && p.id == c.ID && p.fabric == c.Fabric && p.from == tx.From && p.back == tx.Backward && p.first == c.First.Time &&
		p.ends[0].Is(&c.Ends[0]) && p.ends[1].Is(&c.Ends[1])
	if !known || p != e.last {
		e.flushParty()
		e.last = p
	}
	if !known {
		client, server := tx.Client(), tx.Server()
		*p = party{
			c.ID, c.Fabric, tx.From, tx.Backward, c.First.Time, c.Ends, c.Tunnel,
			e.keys.Of(c), e.addr(client.Addr), e.addr(server.Addr), int64(client.Number()), int64(server.Number()),
		}
	}
	e.partyRows++
}

// flushParty appends the rows of the connection.
func (e *encoder) flushParty() {
	n, p, c := e.partyRows, e.last, e.rows
	if n == 0 {
		return
	}
	e.partyRows = 0
	c.connection.Repeat(int64(p.id), n)
	c.key.Repeat(p.key, n)
	c.fabric.Repeat(p.fabric.String(), n)
	c.client.Repeat(p.client, n)
	c.server.Repeat(p.server, n)
	c.clientEndpoint.Repeat(p.clientEndpoint, n)
	c.serverEndpoint.Repeat(p.serverEndpoint, n)
	direction := "forward"
	if p.back {
		direction = "backward"
	}
	c.direction.Repeat(direction, n)
	c.tunnel.repeat(p.tunnel, p.from, n)
}

// bunch is columns with a value that they have in most rows: a fixed one, or that of the row before.
type bunch uint8

const (
	bunchCalled       bunch = iota // program, version, minor version: as before
	bunchFramed                    // types of the headers, and credits: as before
	bunchListed                    // the operations of a COMPOUND: none
	bunchReads                     // chunks: none
	bunchWrites                    //
	bunchReply                     //
	bunchWritten                   //
	bunchWrittenReply              //
	bunchReplyReads                //
	bunchTransfers                 // RDMA operations: none
	bunchInvalidated               // null
	bunchUnusual                   // what bad luck and RPCSEC_GSS are told by: nothing of it
	bunchSeen                      // both messages were seen, in that order, and the phases are known
	bunchPhases                    // all but those of calm transactions: 0
	bunchLost                      // nothing
	bunchAcked                     // whether the reply was acknowledged: as before
	bunchDelivered                 // the verdicts on both messages: as before
	bunches
)

// calling is the values of bunchCalled.
type calling struct {
	program        string
	version, minor uint32
	compound       bool
}

// framing is the values of bunchFramed.
type framing struct {
	call, reply    string
	asked, granted uint32
}

// delivered is the values of bunchDelivered.
type delivered struct{ call, reply transaction.Delivery }

// fill appends the rows of a bunch that were only counted. Those are all before this one that have not been appended.
func (e *encoder) fill(g bunch) {
	n := e.begun - e.done[g]
	if n > 0 {
		e.done[g] = e.begun
		e.repeat(g, n)
	}
}

// own is called before a bunch gets values of this row that are not those of most rows.
func (e *encoder) own(g bunch) {
	e.fill(g)
	e.done[g]++
}

// repeat appends that many rows of a bunch.
func (e *encoder) repeat(g bunch, n int) {
	c := e.rows
	none := func(r *ranges) { r.Nulls(n) }
	noReads := func(r *readChunks) {
		r.Nulls(n)
		r.segments.Nulls(n)
	}
	zero := func(list ...*column.Ints) {
		for _, i := range list {
			i.Repeat(0, n)
		}
	}
	switch g {
	case bunchCalled:
		c.program.Repeat(e.calling.program, n)
		c.version.Repeat(int64(e.calling.version), n)
		if e.calling.compound {
			c.minor.Values(n)
			c.minor.Repeat(int64(e.calling.minor), n)
		} else {
			c.minor.Nulls(n)
		}
	case bunchFramed:
		c.callType.Repeat(e.framing.call, n)
		c.replyType.Repeat(e.framing.reply, n)
		c.requested.Repeat(int64(e.framing.asked), n)
		c.granted.Repeat(int64(e.framing.granted), n)
	case bunchListed:
		c.operations.Nulls(n)
		c.operations.status.Nulls(n)
	case bunchReads:
		noReads(&c.reads)
	case bunchWrites:
		none(&c.writes)
	case bunchReply:
		none(&c.reply)
	case bunchWritten:
		none(&c.written)
	case bunchWrittenReply:
		none(&c.writtenReply)
	case bunchReplyReads:
		noReads(&c.replyReads)
	case bunchTransfers:
		zero(c.rdmaReads, c.readBytes, c.rdmaWrites, c.writeBytes)
	case bunchInvalidated:
		c.invalidated.Nulls(n)
	case bunchUnusual:
		c.gss.Nulls(n)
		c.opened.Nulls(n)
		c.principal.Nulls(n)
		zero(c.again, c.creditWait, c.slotWait)
		c.state.Repeat(transaction.Complete.String(), n)
		c.notes.Nulls(n)
		c.codes.Nulls(n)
	case bunchSeen:
		c.callFrame.Values(n)
		c.replyFrame.Values(n)
		c.latency.Values(n)
		c.total.Values(n)
	case bunchPhases:
		for i, x := range c.latency.list {
			if i != server {
				zero(x)
			}
		}
	case bunchLost:
		c.lost.Values(n)
		zero(c.lost.list...)
	case bunchAcked:
		if e.acked {
			c.ack.Values(n)
		} else {
			c.ack.Nulls(n)
		}
	case bunchDelivered:
		c.callDelivery.Repeat(e.reached.call.String(), n)
		c.replyDelivery.Repeat(e.reached.reply.String(), n)
	}
}

// call counts a row of what was called.
func (e *encoder) call(v *rpc.View) {
	x := calling{program: v.ProgramName(), version: v.Tx.Version}
	x.minor, x.compound = v.MinorVersion()
	if x != e.calling {
		e.fill(bunchCalled)
		e.calling = x
	}
}

// frame counts a row of such headers.
func (e *encoder) frame(x framing) {
	if x != e.framing {
		e.fill(bunchFramed)
		e.framing = x
	}
}

// ack appends how long after the reply its acknowledgement came; not if that is negative.
func (e *encoder) ack(after time.Duration) {
	if is := after >= 0; is != e.acked {
		e.fill(bunchAcked)
		e.acked = is
	}
	if after >= 0 {
		e.rows.ack.Add(int64(after))
	}
}

// deliver counts a row of such verdicts.
func (e *encoder) deliver(tx *transaction.Transaction) {
	if x := (delivered{tx.CallDelivery(), tx.ReplyDelivery()}); x != e.reached {
		e.fill(bunchDelivered)
		e.reached = x
	}
}

// flush appends the rows that were only counted.
func (e *encoder) flush() {
	e.flushParty()
	for g := range bunches {
		e.fill(g)
	}
	e.flushBare()
	e.begun, e.done = 0, [bunches]int{}
}

// drop forgets them.
func (e *encoder) drop() { e.partyRows, e.bareRows, e.begun, e.done = 0, 0, 0, [bunches]int{} }
