package nfsserver

import (
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Call is a call that a procedure answers. It belongs to the procedure until Send, Fail or
// Drop. After that nothing of it, including its State, may be used.
type Call struct {
	// Header is the call's RPC header.
	Header oncrpc.Call
	// Cred is the caller, after squashing.
	Cred store.Cred
	// User is the user in the credential, before squashing, which tells users apart that
	// squashing makes one. With AUTH_NONE it is AnonUID.
	User uint32
	// Flavor is how it was authenticated: AuthNone, AuthSys or RPCSecGSS. Pseudo is the
	// same, and for RPCSecGSS the pseudo flavor, which also says how it was protected.
	Flavor, Pseudo oncrpc.Flavor
	// Args reads the arguments. It knows the items that travelled in chunks
	// (xdr.Data.Chunk). See Decode and Bytes.
	Args xdr.Reader
	// State is from the program's NewState.
	State any
	// Out is the reply so far: the RPC header, to which the procedure appends
	// the results. Bytes of items are not in it, see AddItem.
	Out []byte

	server  *Server
	program *program
	proc    *Procedure
	x       transport.Exchange
	msg     *transport.Message
	base    int // length of the header in Out
	sys     oncrpc.Sys
	reduced []xdr.Reduced
	reply   transport.Message
	moved   int // bytes of the reply's items so far, with padding
	reads   []*store.ReadResult
	used    int // of reads
	cached  *cachedReply
}

// outKept is the largest memory of a reply that is kept for others, in bytes.
const outKept = 256 << 10

func newCall(s *Server, p *program) *Call {
	c := &Call{server: s, program: p, Out: make([]byte, 0, 512)}
	c.reply.Release = c.released
	if p != nil && p.NewState != nil {
		c.State = p.NewState()
	}
	return c
}

// begin prepares a Call for a transport's exchange.
func (c *Call) begin(x transport.Exchange, m *transport.Message) {
	c.x, c.msg = x, m
	c.Cred = store.Cred{}
	c.moved, c.used, c.cached = 0, 0, nil
	c.reply.Items = c.reply.Items[:0]
	c.Out = c.Out[:0]
}

// header decodes the RPC header. If that fails, it answers the call.
func (c *Call) header() bool {
	b := c.msg.Stream
	if len(b) < 8 || oncrpc.MsgType(uint32(b[4])<<24|uint32(b[5])<<16|uint32(b[6])<<8|uint32(b[7])) != oncrpc.TypeCall {
		// Nothing to answer: without an XID, or not a call.
		c.server.failed.Add(1)
		c.Drop()
		return false
	}
	err := c.Header.Decode(b, len(b))
	switch {
	case err == nil:
	case len(b) >= 24 && c.Header.RPCVersion != oncrpc.Version:
		c.deny(oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.RPCMismatch, Low: oncrpc.Version, High: oncrpc.Version})
		return false
	default:
		c.Fail(oncrpc.GarbageArgs)
		return false
	}
	body := c.Header.Body()
	c.Args.Reset(b[body.Offset:], len(b)-body.Offset)
	c.Args.StartAt(uint32(body.Offset))
	c.reduced = c.reduced[:0]
	for i := range c.msg.Items {
		it := &c.msg.Items[i]
		c.reduced = append(c.reduced, xdr.Reduced{Position: it.Position, Length: uint32(len(it.Data))})
	}
	c.Args.ReduceCall(c.reduced)
	c.startReply(oncrpc.Success)
	return true
}

// startReply begins Out with the header of an accepted reply.
func (c *Call) startReply(stat oncrpc.AcceptStat) {
	r := oncrpc.Reply{XID: c.xid(), Stat: oncrpc.Accepted, Accept: stat}
	c.Out = r.Append(c.Out[:0])
	c.base = len(c.Out)
}

func (c *Call) xid() uint32 {
	b := c.msg.Stream
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// noProgram answers a call of a program or version that is not served.
func (c *Call) noProgram() {
	low, high, ok := c.server.versions(c.Header.Program)
	if !ok {
		c.Fail(oncrpc.ProgUnavail)
		return
	}
	r := oncrpc.Reply{XID: c.xid(), Stat: oncrpc.Accepted, Accept: oncrpc.ProgMismatch, Low: low, High: high}
	c.failWith(&r)
}

// deny answers with MSG_DENIED.
func (c *Call) deny(r oncrpc.Reply) {
	r.XID = c.xid()
	c.failWith(&r)
}

// NoArguments reports whether a call has none. One that has some is rejected.
func (c *Call) NoArguments() bool {
	if c.Args.Remaining() == 0 {
		return true
	}
	c.Fail(oncrpc.GarbageArgs)
	return false
}

// Null is the procedure that does nothing, which each program has.
func Null(c *Call) {
	if c.NoArguments() {
		c.Send()
	}
}

// Fail answers with an RPC-level error instead of results.
func (c *Call) Fail(stat oncrpc.AcceptStat) {
	r := oncrpc.Reply{XID: c.xid(), Stat: oncrpc.Accepted, Accept: stat}
	c.failWith(&r)
}

func (c *Call) failWith(r *oncrpc.Reply) {
	c.server.failed.Add(1)
	c.Undo(0)
	c.Out = r.Append(c.Out[:0])
	c.Send()
}

// Decode reads the arguments. If they cannot be read, if bytes follow them, or if an item is
// not eligible, it answers with GARBAGE_ARGS and returns false.
func (c *Call) Decode(m xdr.Message) bool {
	m.Decode(&c.Args)
	if c.Args.Failed() || c.Args.Remaining() != 0 {
		c.Fail(oncrpc.GarbageArgs)
		return false
	}
	return true
}

// Bytes returns the content of an eligible item of the arguments. ok is false if fewer
// bytes arrived than its length announces.
func (c *Call) Bytes(d xdr.Data) (b []byte, ok bool) {
	b = c.msg.Bytes(d)
	if uint64(len(b)) < uint64(d.Length) {
		return nil, false
	}
	return b[:d.Length:d.Length], true
}

// Peer names the connection.
func (c *Call) Peer() transport.Peer { return c.x.Peer() }

// Exchange returns the transport's side of the call, for its Backward and Disconnect.
func (c *Call) Exchange() transport.Exchange { return c.x }

// Message returns the call's message.
func (c *Call) Message() *transport.Message { return c.msg }

// Server returns the server that received the call.
func (c *Call) Server() *Server { return c.server }

// MaxItem returns how many of want bytes the n-th eligible item of the reply (counted from
// 0) may have, so that it fits into the chunk that the client offers for it.
func (c *Call) MaxItem(n int, want uint32) uint32 {
	if room := c.x.MaxResult(n); room != 0 {
		return min(want, room)
	}
	return want
}

// inlineItem is the size in bytes up to which an item without a chunk is copied into the
// reply, which is cheaper than another part of a message.
const inlineItem = 1024

// AddData appends an eligible item to the results: its length, and its bytes, which are not
// copied and must stay unchanged until the transport has released the reply. The memory of a
// ReadResult from c.Read does.
func (c *Call) AddData(b []byte) {
	c.Out = xdr.AppendUint32(c.Out, uint32(len(b)))
	// A reply that is kept may have to go into the chunks of another call.
	if c.cached == nil && len(b) <= inlineItem && c.x.MaxResult(len(c.reply.Items)) == 0 {
		c.Out = xdr.AppendFixed(c.Out, b)
		return
	}
	c.reply.Items = append(c.reply.Items, transport.Item{Position: uint32(len(c.Out) + c.moved), Data: b})
	c.moved += (len(b) + 3) &^ 3
}

// Items returns how many items AddData has set apart so far, which is the number of the
// next.
func (c *Call) Items() int { return len(c.reply.Items) }

// Read returns a result to read into, which is released with the reply.
func (c *Call) Read() *store.ReadResult {
	if c.used == len(c.reads) {
		c.reads = append(c.reads, new(store.ReadResult))
	}
	c.used++
	return c.reads[c.used-1]
}

// Len returns the length of the results so far in bytes, including items.
func (c *Call) Len() int { return len(c.Out) - c.base + c.moved }

// Undo shortens the results to their first n bytes (of Len), and removes items that were
// added after them.
func (c *Call) Undo(n int) {
	n += c.base
	for len(c.reply.Items) > 0 && int(c.reply.Items[len(c.reply.Items)-1].Position) >= n {
		last := len(c.reply.Items) - 1
		c.moved -= (len(c.reply.Items[last].Data) + 3) &^ 3
		c.reply.Items[last] = transport.Item{}
		c.reply.Items = c.reply.Items[:last]
	}
	if n -= c.moved; n < len(c.Out) {
		c.Out = c.Out[:max(n, 0)]
	}
}

// Reply appends results and sends the reply.
func (c *Call) Reply(results xdr.Message) {
	c.Out = results.Append(c.Out)
	c.Send()
}

// Send sends the reply in Out.
func (c *Call) Send() {
	c.reply.Stream = c.Out
	if c.cached != nil {
		c.server.replies.done(c.cached, &c.reply)
		c.cached = nil
	}
	x := c.x
	c.x, c.msg = nil, nil
	x.Reply(&c.reply)
}

// Drop gives up the call without a reply.
func (c *Call) Drop() {
	if c.cached != nil {
		c.server.replies.abandon(c.cached)
		c.cached = nil
	}
	x := c.x
	c.x, c.msg = nil, nil
	x.Drop()
	c.released()
}

// released takes the call back when the transport has sent the reply.
func (c *Call) released() {
	for _, r := range c.reads[:c.used] {
		r.Release()
	}
	clear(c.reply.Items)
	c.Args = xdr.Reader{}
	c.Header.Cred, c.Header.Verf = oncrpc.Auth{}, oncrpc.Auth{}
	if cap(c.Out) > outKept {
		c.Out = make([]byte, 0, 512)
	}
	c.reply.Stream = nil
	if c.program != nil {
		c.program.pool.Put(c)
	} else {
		c.server.strays.Put(c)
	}
}
