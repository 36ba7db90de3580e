// Package transport is the interface between RPC programs and the transports of their
// messages: RPC over RDMA (package endpoint) and RPC over TCP (package tcprpc). It
// knows which bytes of a message are eligible for direct data placement, and nothing
// about programs.
package transport

import (
	"context"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Message is an RPC message with its header. DDP-eligible items (RFC 8166, section
// 3.4) are kept apart from the rest.
type Message struct {
	// Stream is the message in XDR without the bytes and the padding of Items. The
	// length words of the items are in Stream.
	Stream []byte
	// Items are in ascending order of Position. A receiver finds an item here only
	// if it traveled in a chunk; otherwise its bytes are in Stream.
	Items []Item
	// Release, if set, is called once, when the transport no longer needs the
	// memory of the message.
	Release func()
}

// Item is the content of an opaque that may travel in a chunk.
type Item struct {
	// Position is the offset of Data in the whole message, other items included
	// (RFC 8166, section 3.4.4). In a received reply it is zero, since it is not
	// known: the n-th eligible item that is not in Stream is the n-th item here.
	Position uint32
	Data     []byte
}

// Size returns the size of the whole message in bytes.
func (m *Message) Size() int {
	n := len(m.Stream)
	for i := range m.Items {
		n += (len(m.Items[i].Data) + 3) &^ 3
	}
	return n
}

// AppendWhole appends the message with its items in their places.
func (m *Message) AppendWhole(b []byte) []byte { return m.AppendReduced(b, nil) }

// AppendReduced appends the message with those items in their places that inline
// reports, by their index in Items, and without the others; nil is all of them.
func (m *Message) AppendReduced(b []byte, inline func(i int) bool) []byte {
	at, moved := 0, 0 // in Stream; bytes of items so far
	for i := range m.Items {
		it := &m.Items[i]
		if inline == nil || inline(i) {
			cut := min(max(int(it.Position)-moved, at), len(m.Stream))
			b = append(b, m.Stream[at:cut]...)
			b = xdr.AppendFixed(b, it.Data)
			at = cut
		}
		moved += (len(it.Data) + 3) &^ 3
	}
	return append(b, m.Stream[at:]...)
}

// Bytes returns the content of an eligible opaque of a decoded message.
func (m *Message) Bytes(d xdr.Data) []byte {
	if d.Chunk == 0 {
		return d.Inline
	}
	if d.Chunk > len(m.Items) {
		return nil
	}
	b := m.Items[d.Chunk-1].Data
	// A chunk may include the padding.
	return b[:min(len(b), int(d.Length))]
}

// Call is one RPC. The caller fills the first part, and leaves it alone until Done has
// been called; the transport fills the second part.
type Call struct {
	// XID is written into the first word of Message.Stream. With 0 the transport
	// chooses one.
	XID uint32
	Message
	// Results is memory for the DDP-eligible items of the reply, in order,
	// each as large as the item may become. Over RDMA it must be memory that
	// the provider can register (see Requester.Alloc).
	Results [][]byte
	// MaxReply is the size of the largest reply without the items that fit
	// into Results, in bytes. A reply that is longer is an error over RDMA.
	MaxReply int
	// Layout, if set, is how the call is to be laid out in chunks, instead of
	// the transport's own choice. Ignored by TCP.
	Layout *Layout
	// Timeout ends the call with ErrTimeout; 0 is the transport's default.
	Timeout time.Duration
	// Done, if set, is called by a goroutine of the transport when Err, Reply and
	// Times are valid. It must not block.
	Done func(*Call)
	// Again, if set, is called before the call is sent once more, on another
	// connection. It may change the bytes of Stream, except for the XID, and not
	// their number. It must not block, nor call the Requester.
	Again func(*Call)
	// User belongs to the caller.
	User any

	Reply Message // valid until Done has returned; after Do, until the next use of the Call
	Err   error
	Times Times

	// Private belongs to the transport.
	Private any
}

// Layout says which chunks a call offers, by the sizes of their segments in bytes. An
// empty list is no chunk.
type Layout struct {
	PositionZero []uint32   // the call itself travels in a Read chunk
	Reads        [][]uint32 // one for each of Items that goes into a chunk
	Writes       [][]uint32 // one for each of Results
	Reply        []uint32
	// Inline forbids all chunks that are not listed above. A call whose message
	// does not fit inline then fails. Without Inline, a call fails with
	// ErrReplyRoom, before it is sent, if a reply of MaxReply bytes fits neither
	// inline nor into the Reply chunk.
	Inline bool
}

// Times are the times of a call as the transport saw them.
type Times struct {
	Queued  time.Time // Start was called
	Sent    time.Time // handed to the provider or the socket, after waiting for a credit; zero if it never was
	Replied time.Time // the reply arrived
}

// Requester sends calls on one connection, or on a sequence of connections if it
// reconnects. All methods may be called from any goroutine.
type Requester interface {
	// Start sends a call and returns without waiting. Calls beyond the credits are
	// queued in order.
	Start(c *Call)
	// Do sends a call and waits for its end, or until ctx cancels it. It returns
	// c.Err. The reply is valid until the next use of c.
	Do(ctx context.Context, c *Call) error
	// Alloc returns memory for Items and Results, Free takes it back.
	Alloc(n int) ([]byte, error)
	Free(b []byte)
	Peer() Peer
	// Serve sets the handler for calls in the backward direction (RFC 8167).
	Serve(h Handler)
	Stats() Stats
	Close() error
}

// Peer describes a connection.
type Peer struct {
	Transport     string // "rocev2", "iwarp", "rdma", "loop", "tcp"
	Local, Remote netip.AddrPort
	Detail        string
	ID            uint64 // unique within the process
}

// Stats are counts since the start of a Requester or of a server.
type Stats struct {
	Calls         uint64 `json:"calls"`
	Replies       uint64 `json:"replies"`
	Errors        uint64 `json:"errors"`
	Sends         uint64 `json:"sends"`
	Receives      uint64 `json:"receives"`
	Reads         uint64 `json:"rdma_reads"` // RDMA operations that this side initiated
	Writes        uint64 `json:"rdma_writes"`
	ReadBytes     uint64 `json:"rdma_read_bytes"`
	WriteBytes    uint64 `json:"rdma_write_bytes"`
	Registrations uint64 `json:"registrations"`
	Reconnects    uint64 `json:"reconnects"`
	CreditWaits   uint64 `json:"credit_waits"`
	CreditsAsked  uint32 `json:"credits_asked"` // at present
	CreditsHeld   uint32 `json:"credits_held"`
}

// Handler answers calls.
type Handler interface {
	// ServeRPC is called for each call, in order of arrival, on the goroutine of
	// the connection. Work that may take long has to move to another goroutine.
	// The reply may be given during ServeRPC or later, from any goroutine.
	ServeRPC(x Exchange)
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(x Exchange)

// ServeRPC calls f.
func (f HandlerFunc) ServeRPC(x Exchange) { f(x) }

// Exchange is a call of a peer that waits for its reply.
type Exchange interface {
	// Call is valid until Reply or Drop.
	Call() *Message
	Peer() Peer
	// MaxResult returns how many bytes the n-th eligible item of the reply may
	// have to fit into a chunk of its own; 0 if there is no such chunk, and over
	// TCP.
	MaxResult(n int) uint32
	// Reply sends the reply. Its memory belongs to the transport until Release is
	// called. Only the first of Reply and Drop has an effect.
	Reply(m *Message)
	// Drop gives up the call without a reply.
	Drop()
	// Disconnect drops the connection.
	Disconnect()
	// Backward returns a Requester for calls to the peer on the same connection
	// (over RDMA, RFC 8167); nil if the transport has none.
	Backward() Requester
	// OnClose has f called when the connection has ended, or at once if it has.
	// Each connection keeps the last function given for a key.
	OnClose(key any, f func())
}
