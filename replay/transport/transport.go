// Package transport is what an RPC client and an RPC server see of the way their
// messages travel: RPC over RDMA (package endpoint) or over TCP (package
// tcprpc). It knows which bytes of a message are eligible for direct data
// placement, and nothing about programs.
package transport

import (
	"context"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Message is an RPC message, header included, with its DDP-eligible items
// (RFC 8166, section 3.4) apart from the rest.
type Message struct {
	// Stream is the message in XDR, without the bytes and the padding of
	// Items. The length words of the items stand in it.
	Stream []byte
	// Items are in ascending order of Position. A receiver finds an item here
	// only if it travelled apart; otherwise its bytes are in Stream.
	Items []Item
	// Release, if set, is called once when the transport needs the message's
	// memory no more.
	Release func()
}

// Item is the content of an opaque that may travel in a chunk.
type Item struct {
	// Position is the offset of Data in the whole message (RFC 8166, section
	// 3.4.4 counts from the message's first byte, other items included). In a
	// reply received it is not known and zero: the n-th eligible item that is
	// not in Stream is the n-th here.
	Position uint32
	Data     []byte
}

// Size is the length of the whole message in bytes.
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

// Bytes is the content of an eligible opaque of a decoded message.
func (m *Message) Bytes(d xdr.Data) []byte {
	if d.Chunk == 0 {
		return d.Inline
	}
	if d.Chunk > len(m.Items) {
		return nil
	}
	b := m.Items[d.Chunk-1].Data
	// A chunk may hold the padding as well.
	return b[:min(len(b), int(d.Length))]
}

// Call is one RPC on its way. The caller fills the first part and does not touch
// it before Done was called; the transport fills the second.
type Call struct {
	// XID is put into the first word of Message.Stream. 0 lets the transport
	// choose.
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
	// Done, if set, is called when Err, Reply and Times are valid, from a
	// goroutine of the transport that it must not hold up.
	Done func(*Call)
	// User is the caller's.
	User any

	Reply Message // valid until Done has returned; after Do, until the next use of the Call
	Err   error
	Times Times

	// Private belongs to the transport.
	Private any
}

// Layout says which chunks a call offers; sizes in bytes, one number for each
// segment. An empty list is no chunk.
type Layout struct {
	PositionZero []uint32   // the call itself travels in a Read chunk
	Reads        [][]uint32 // one for each of Items that goes into a chunk
	Writes       [][]uint32 // one for each of Results
	Reply        []uint32
	// Inline forbids all chunks that are not named above, even if the message
	// does not fit: the call then fails. Without it, a call fails with
	// ErrReplyRoom before it is sent if a reply of MaxReply fits neither inline
	// nor into the Reply chunk.
	Inline bool
}

// Times are what the transport saw of a call.
type Times struct {
	Queued  time.Time // Start was called
	Sent    time.Time // handed to the provider, after waiting for a credit
	Replied time.Time // the reply was there
}

// Requester sends calls on one connection, or on one after another if it
// reconnects. All methods may be called from any goroutine.
type Requester interface {
	// Start sends a call and returns; it waits for nothing. Calls beyond the
	// credits are queued in order.
	Start(c *Call)
	// Do sends a call and waits until it is done, or cancelled by ctx. The
	// reply is valid until the next use of c.
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

// Peer names a connection.
type Peer struct {
	Transport     string // "rocev2", "iwarp", "rdma", "loop", "tcp"
	Local, Remote netip.AddrPort
	Detail        string
	ID            uint64 // unlike that of any other connection of this process
}

// Stats are counts since the start of a Requester or a server.
type Stats struct {
	Calls         uint64 `json:"calls"`
	Replies       uint64 `json:"replies"`
	Errors        uint64 `json:"errors"`
	Sends         uint64 `json:"sends"`
	Receives      uint64 `json:"receives"`
	Reads         uint64 `json:"rdma_reads"` // RDMA operations of this side
	Writes        uint64 `json:"rdma_writes"`
	ReadBytes     uint64 `json:"rdma_read_bytes"`
	WriteBytes    uint64 `json:"rdma_write_bytes"`
	Registrations uint64 `json:"registrations"`
	Reconnects    uint64 `json:"reconnects"`
	CreditWaits   uint64 `json:"credit_waits"`
	CreditsAsked  uint32 `json:"credits_asked"` // as of now
	CreditsHeld   uint32 `json:"credits_held"`
}

// Handler answers calls.
type Handler interface {
	// ServeRPC is called for each call, in order of arrival, on the
	// connection's own goroutine: work that may take long must leave it. The
	// reply may be given during the call or later, from any goroutine.
	ServeRPC(x Exchange)
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(x Exchange)

// ServeRPC calls f.
func (f HandlerFunc) ServeRPC(x Exchange) { f(x) }

// Exchange is a call that waits for its reply.
type Exchange interface {
	// Call is valid until Reply or Drop.
	Call() *Message
	Peer() Peer
	// MaxResult is how many bytes the n-th eligible item of the reply may have
	// to go into a chunk of its own; 0 if there is no such chunk. TCP: 0.
	MaxResult(n int) uint32
	// Reply sends the reply. Its memory belongs to the transport until
	// Release is called.
	Reply(m *Message)
	// Drop gives up the call without a reply.
	Drop()
	// Disconnect drops the connection.
	Disconnect()
	// Backward sends calls to the peer (RFC 8167, or the same TCP
	// connection); nil if the transport cannot.
	Backward() Requester
	// OnClose has f called when the connection has ended, or at once if it has.
	// Each connection keeps the last function given for a key.
	OnClose(key any, f func())
}
