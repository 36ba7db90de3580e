// Package verbs is the interface between an RPC-over-RDMA endpoint and an RDMA
// provider, in verbs terms (IBTA volume 1, chapter 11; RFC 5040, appendix B for iWARP).
// The providers are in the folders below.
//
// A Conn is a reliable connection with a protection domain of its own and one
// completion queue for sends and receives. A handle is valid only on the connection
// that made it.
package verbs

import (
	"context"
	"net/netip"
	"time"
)

// Provider makes connections of one kind.
type Provider interface {
	// Name is "rocev2", "iwarp", "rdma" or "loop".
	Name() string
	Caps() Caps

	// Dial connects to a listener. It fails with a *RejectError, which
	// is ErrRejected, if the peer refused, and with ctx.Err() when ctx ends first. The returned connection
	// is in StateRTS.
	Dial(ctx context.Context, remote netip.AddrPort, p Params) (Conn, error)
	// Listen accepts connections at an address; port 0 chooses one.
	Listen(ctx context.Context, local netip.AddrPort) (Listener, error)

	// Alloc returns n zeroed bytes that work requests on every connection of this
	// provider may name, and that Register accepts. Providers with the capability
	// AnyMemory accept any other memory as well. Free releases memory from Alloc
	// when no work request and no registration uses it any more.
	Alloc(n int) ([]byte, error)
	Free(b []byte)

	// Close ends all connections and listeners and frees what they hold.
	Close() error
}

// Caps tells what a provider can do.
type Caps struct {
	AnyMemory      bool // work requests and registrations may use memory that is not from Alloc
	MemoryWindows  bool // AllocWindow and OpBind
	SendInvalidate bool // OpSendInvalidate
	// WindowsAtAddress says that the address of a window cannot be chosen: it is
	// the address of the same memory in its region.
	WindowsAtAddress bool
	// Invalidates says which of our handles a Send with Invalidate of the peer may
	// close so that the completion reports it.
	Invalidates Invalidates
	MaxSGE      int // slices in WorkRequest.Local
	MaxMessage  int // bytes of one work request
	MaxReads    int // RDMA Reads in flight on a connection, each way
	// Buffers is about how many bytes the provider needs for a connection in use,
	// in addition to the memory that it is given, and to what Params.Charge is told.
	Buffers int
}

// Invalidates says what a peer may close.
type Invalidates uint8

// With libibverbs a peer cannot close regions, and the kernel's rxe does not report
// windows that it has closed.
const (
	InvalidatesAll     Invalidates = iota // regions and windows
	InvalidatesWindows                    // windows
	InvalidatesNothing
)

// Params are the parameters of a connection. Zero values stand for the defaults of
// the provider.
type Params struct {
	// PrivateData goes to the peer in the connection request, or in its reply.
	PrivateData []byte
	// ResponderResources is how many RDMA Reads of the peer we answer at a time
	// (IRD), InitiatorDepth how many of our Reads may be in flight (ORD). The
	// connection gets the smaller value of both sides.
	ResponderResources, InitiatorDepth uint8
	// SendDepth and RecvDepth bound the work requests that are posted and not
	// yet completed. Default 256 each.
	SendDepth, RecvDepth int
	// RetryCount and RNRRetryCount are how often a provider retransmits before it
	// gives up; 7 RNR retries means without limit. xprtrdma uses 6 and 0.
	RetryCount, RNRRetryCount uint8
	// Recvs are posted before the peer can send anything.
	Recvs []RecvRequest
	// Charge, if set, is told how many more bytes the provider keeps for the connection than before, or, negative, how many
	// fewer. It is called from any goroutine, and must neither wait nor use the connection.
	Charge func(bytes int)
}

// Listener hands out connection requests.
type Listener interface {
	Accept(ctx context.Context) (Request, error)
	Addr() netip.AddrPort
	Close() error
}

// Answerer is a Listener that can answer connection requests before its consumer sees
// them, all with the same parameters. A request then costs very little until its sender
// has shown that it receives what is sent to its address, and a flood of requests does
// not occupy the consumer. A kernel does the same for TCP listeners.
type Answerer interface {
	Listener
	// Answer is called once, before the first Accept. It uses PrivateData,
	// ResponderResources, InitiatorDepth and RNRRetryCount of p. From then on
	// Listener.Accept returns requests whose senders have confirmed the connection.
	// Request.Accept does not wait then, and uses the other parameters;
	// Request.Reject disconnects, without private data.
	Answer(p Params) error
}

// Request is the connection request of a peer. It must be answered by Accept or
// Reject.
type Request interface {
	PrivateData() []byte
	RemoteAddr() netip.AddrPort
	LocalAddr() netip.AddrPort
	// ResponderResources and InitiatorDepth are the peer's offer, from the
	// peer's point of view.
	ResponderResources() uint8
	InitiatorDepth() uint8
	Accept(ctx context.Context, p Params) (Conn, error)
	Reject(privateData []byte) error
}

// Conn is a connected queue pair. Post, PostRecv, Register and Deregister may be called
// from any goroutine; Poll and Wait from one goroutine at a time.
type Conn interface {
	Info() Info
	State() State
	// Err returns why the connection left StateRTS: nil before that, and
	// ErrDisconnected, perhaps wrapped, when either side has disconnected.
	Err() error

	// Post adds work requests to the send queue, in order, all or none. It does not
	// wait for the network. It fails with ErrQueueFull if that would exceed
	// SendDepth. The memory that Local names belongs to the provider until the
	// completion of this or of a later request; the requests themselves are copied.
	Post(wrs ...WorkRequest) error
	PostRecv(wrs ...RecvRequest) error

	// Poll moves completions to c and returns their number without waiting. After
	// the connection has failed, all posted requests complete with StatusFlushed.
	// Requests of the send queue complete in order, and so do receives.
	Poll(c []Completion) int
	// Wait waits for completions. It returns nil if Poll has some, or Err if there
	// are none and never will be.
	Wait() error

	// Register opens memory to the peer. offset is the address under which the peer
	// names the first byte, as xprtrdma uses it (XID in the upper half); OffsetAny
	// leaves it to the provider. Register fails if the provider does not support
	// that offset.
	Register(mem []byte, access Access, offset uint64) (Region, error)
	// Deregister closes the memory. When it has returned, the peer cannot reach the
	// memory any more, and no Read Response uses it.
	Deregister(handle uint32) error
	// AllocWindow returns the handle of a memory window (type 2). The window opens
	// nothing before an OpBind has completed.
	AllocWindow() (handle uint32, err error)

	// Disconnect ends the connection after all posted requests have been sent, or
	// when ctx ends. Close ends it at once and releases its resources; it may be
	// called more than once.
	Disconnect(ctx context.Context) error
	Close() error
}

// OffsetAny lets the provider choose the address of a region.
const OffsetAny = ^uint64(0)

// Region is memory that the peer may reach.
type Region struct {
	Handle uint32 // R_key or STag
	Offset uint64 // address of the first byte
	Length uint32
}

// Info describes a connection.
type Info struct {
	Fabric                             string // "rocev2", "iwarp", …, as in the schema of transactions
	Local, Remote                      netip.AddrPort
	LocalQP, RemoteQP                  uint32 // 0 on iWARP
	MTU                                int    // bytes: path MTU, or the largest FPDU payload
	ResponderResources, InitiatorDepth uint8  // as agreed
	PrivateData                        []byte // of the peer
	Detail                             string // for people: "MPA 2, CRC on"
}

// State is the state of a connection's queue pair.
type State uint8

// States that users of this package can observe.
const (
	StateInit  State = iota // not connected yet
	StateRTS                // ready to send
	StateSQD                // disconnecting: the send queue drains
	StateError              // failed, or disconnected
)

// Access is a set of access rights to memory.
type Access uint8

// Access rights.
const (
	RemoteRead Access = 1 << iota
	RemoteWrite
	WindowBind // windows may be bound to the region
)

// Op is the operation of a work request or of a completion.
type Op uint8

// Operations.
const (
	OpSend            Op = iota
	OpSendInvalidate     // Send with Invalidate of Handle
	OpWrite              // Local to Handle, Offset
	OpRead               // from Handle, Offset to Local
	OpLocalInvalidate    // of Handle, a window
	OpBind               // window Handle opens Local at Offset for Access
	OpRecv               // completions only
)

// WorkRequest is one entry of the send queue.
type WorkRequest struct {
	ID     uint64
	Op     Op
	Access Access // OpBind
	// Signaled asks for a completion. Other requests are reported only if they
	// fail; they are complete when a later request of the same queue is.
	Signaled bool
	// Fence holds the request back until all earlier Reads are complete.
	Fence bool
	// Handle names memory of the peer (OpWrite, OpRead, OpSendInvalidate) or a
	// window of ours (OpLocalInvalidate; OpBind: the new handle, see NextHandle).
	Handle uint32
	Offset uint64
	Local  [][]byte
}

// RecvRequest is one entry of the receive queue: memory for one Send of the peer.
type RecvRequest struct {
	ID     uint64
	Buffer []byte
}

// NextHandle returns the handle for the next binding of a window: the low byte counts
// up (as by ibv_inc_rkey), so that old handles become invalid.
func NextHandle(handle uint32) uint32 { return handle&^0xff | (handle+1)&0xff }

// Completion is the outcome of a work request.
type Completion struct {
	ID     uint64
	Op     Op
	Status Status
	// Length is the number of bytes received (OpRecv).
	Length uint32
	// Invalidated says that a Send of the peer has closed our region or window
	// Handle (OpRecv).
	Invalidated bool
	Handle      uint32
	// Time is when the provider learned of it.
	Time time.Time
}
