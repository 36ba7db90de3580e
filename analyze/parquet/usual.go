package parquet

import (
	"github.com/rpcrdma/toolkit/analyze/parquet/column"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Most columns have the same value in many rows, one after the other. They are in groups: what follows from the
// connection, and what follows from a usual transaction, which is one with messages of one packet without chunks, of which
// nothing was lost. A third one is what most files lack. Rows with the same values are counted for each group, and appended to
// its columns together: before another row, and before a page ends.

// party is the values of a connection in one direction.
type party struct {
	id     int
	fabric rdma.Fabric
	from   rdma.Side
	back   bool
	first  int64
	ends   [2]rdma.End

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
			c.ID, c.Fabric, tx.From, tx.Backward, c.First.Time, c.Ends,
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
}

// likeness is the values that usual transactions may differ in.
type likeness struct {
	program        string
	version        uint32
	call, reply    rpcrdma.Type
	asked, granted uint32
	acked          bool
}

// usual counts a row of a usual transaction, and appends what else it has up to its file; false for all others.
func (e *encoder) usual(v *rpc.View) bool {
	tx, c := v.Tx, e.rows
	call, reply := &tx.Call, &tx.Reply
	took, ok := tx.Calm()
	switch {
	case !ok || tx.Blame == nil || reply.Invalidates || !call.Chunkless() || !reply.Chunkless(),
		call.Header.Type.String() == "" || reply.Header.Type.String() == "",
		v.Program == nil || v.Procedure == nil || len(v.Steps()) > 0 || v.Wrapped() != "":
		return false
	}
	if _, compound := v.MinorVersion(); compound {
		return false
	}
	x := likeness{v.Program.Name, tx.Version, call.Header.Type, reply.Header.Type, call.Header.Credits, reply.Header.Credits, false}
	acked := tx.Acked()
	x.acked = acked >= 0
	if x != e.alike {
		e.flushUsual()
		e.alike = x
	}
	e.usualRows++
	c.callFrame.Add(int64(call.Last.Number))
	c.replyFrame.Add(int64(reply.Last.Number))
	c.callBytes.Add(int64(call.Bytes))
	c.replyBytes.Add(int64(reply.Bytes))
	c.latency.list[server].Add(int64(took))
	c.latency.list[whole].Add(int64(took))
	if x.acked {
		c.ack.Add(int64(acked))
	}
	return true
}

// flushUsual appends the rows of usual transactions.
func (e *encoder) flushUsual() {
	n, x, c := e.usualRows, &e.alike, e.rows
	if n == 0 {
		return
	}
	e.usualRows = 0
	c.program.Repeat(x.program, n)
	c.version.Repeat(int64(x.version), n)
	c.minor.Nulls(n)
	c.operations.Nulls(n)
	c.operations.status.Nulls(n)
	c.gss.Nulls(n)
	c.callFrame.Values(n)
	c.replyFrame.Values(n)
	c.callType.Repeat(x.call.String(), n)
	c.replyType.Repeat(x.reply.String(), n)
	c.requested.Repeat(int64(x.asked), n)
	c.granted.Repeat(int64(x.granted), n)
	for _, r := range [...]*readChunks{&c.reads, &c.replyReads} {
		r.Nulls(n)
		r.segments.Nulls(n)
	}
	for _, r := range [...]*ranges{&c.writes, &c.written, &c.reply, &c.writtenReply} {
		r.Nulls(n)
	}
	for _, i := range [...]*column.Ints{c.rdmaReads, c.readBytes, c.rdmaWrites, c.writeBytes, c.again, c.creditWait, c.slotWait} {
		i.Repeat(0, n)
	}
	c.invalidated.Nulls(n)
	c.latency.Values(n)
	if x.acked {
		c.ack.Values(n)
	} else {
		c.ack.Nulls(n)
	}
	for i, x := range c.latency.list {
		if i != server && i != whole {
			x.Repeat(0, n)
		}
	}
	c.lost.Values(n)
	for _, x := range c.lost.list {
		x.Repeat(0, n)
	}
	c.state.Repeat(transaction.Complete.String(), n)
	c.notes.Nulls(n)
	c.codes.Nulls(n)
}

// flush appends the rows that were only counted.
func (e *encoder) flush() {
	e.flushParty()
	e.flushUsual()
	e.flushBare()
}

// drop forgets them.
func (e *encoder) drop() { e.partyRows, e.usualRows, e.bareRows = 0, 0, 0 }
