// Package verbs is what an RPC-over-RDMA endpoint needs of an RDMA provider, in
// verbs terms (IBTA volume 1, chapter 11; RFC 5040, appendix B for iWARP): one
// small interface, and providers behind it in the folders below.
//
// A Conn is a reliable connection with its protection domain and one completion
// queue for its sends and receives. Handles are valid on the connection that
// made them and nowhere else.
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

	// Alloc returns n zeroed bytes that work requests of every connection of
	// this provider may name and that Register accepts. Providers whose Caps
	// say AnyMemory take any other memory as well. Free gives it back when no
	// work request and no registration uses it; it takes what Alloc returned.
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
	// WindowsAtAddress says that a window appears at the address that its
	// region gives to the memory, and nowhere else.
	WindowsAtAddress bool
	// Invalidates is what of ours the peer's Send with Invalidate may name, so
	// that the receiver learns of it.
	Invalidates Invalidates
	MaxSGE      int // slices in WorkRequest.Local
	MaxMessage  int // bytes of one work request
	MaxReads    int // RDMA Reads in flight on a connection, each way
	// Buffers is about how many bytes the provider needs for a connection in use,
	// beside what it is given.
	Buffers int
}

// Invalidates is what a peer may close.
type Invalidates uint8

// What a peer may close. libibverbs has no regions that a peer may close, and
// the kernel's rxe does not tell users of it that a window was.
const (
	InvalidatesAll     Invalidates = iota // regions and windows
	InvalidatesWindows                    // windows
	InvalidatesNothing
)

// Params are asked for at connection setup; zero values take the provider's
// default.
type Params struct {
	// PrivateData goes to the peer in the connection request, or in its reply.
	PrivateData []byte
	// ResponderResources is how many RDMA Reads of the peer's we answer at a
	// time (IRD), InitiatorDepth how many of ours the peer shall (ORD). The
	// connection gets the lesser of both sides.
	ResponderResources, InitiatorDepth uint8
	// SendDepth and RecvDepth bound the work requests that are posted and not
	// yet completed. Default 256 each.
	SendDepth, RecvDepth int
	// RetryCount and RNRRetryCount are how often a provider repeats itself
	// before it gives up; 7 RNR retries are endless. xprtrdma uses 6 and 0.
	RetryCount, RNRRetryCount uint8
	// Recvs are posted before the peer can send anything.
	Recvs []RecvRequest
}

// Listener hands out connection requests.
type Listener interface {
	Accept(ctx context.Context) (Request, error)
	Addr() netip.AddrPort
	Close() error
}

// Answerer is a Listener that can answer connection requests before its consumer
// sees them, all on the same terms. A request then costs next to nothing until its
// sender has shown that it receives what is sent to its address, and a flood of
// requests does not wait for the consumer. A kernel does the same for those who
// listen on TCP.
type Answerer interface {
	Listener
	// Answer is called once, before the first Accept. Of p it takes PrivateData,
	// ResponderResources, InitiatorDepth and RNRRetryCount. From then on Accept
	// returns requests whose senders have confirmed the connection; their Accept
	// does not wait, and takes the rest of its Params. Their Reject disconnects,
	// and its private data goes nowhere.
	Answer(p Params) error
}

// Request is a connection that a peer asks for. It must be answered by one of
// Accept and Reject.
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

// Conn is a connected queue pair. Post, PostRecv, Register and Deregister may
// be called from any goroutine; Poll and Wait from one at a time.
type Conn interface {
	Info() Info
	State() State
	// Err tells why the connection left StateRTS; nil before that, and
	// ErrDisconnected, perhaps wrapped, when either side has left.
	Err() error

	// Post hands work requests to the send queue, in order, all or none. It
	// does not wait for the network. ErrQueueFull: more than SendDepth.
	// The slices of Local belong to the provider until the completion of this
	// or of a later request; the requests themselves are copied.
	Post(wrs ...WorkRequest) error
	PostRecv(wrs ...RecvRequest) error

	// Poll moves completions to c and returns their number, at once. After the
	// connection has failed, all posted requests complete with
	// StatusFlushed. Requests of the send queue complete in order, and so do
	// receives.
	Poll(c []Completion) int
	// Wait returns nil when Poll has something to give, or Err when it has
	// not and never will again.
	Wait() error

	// Register opens memory to the peer. offset is the address under which the
	// peer names its first byte, as xprtrdma uses it (XID in the upper half);
	// OffsetAny leaves it to the provider. It fails if the provider cannot
	// have the offset that was asked for.
	Register(mem []byte, access Access, offset uint64) (Region, error)
	// Deregister closes it. When Deregister has returned, the peer can no
	// longer reach the memory: no Read Response of it is in work.
	Deregister(handle uint32) error
	// AllocWindow returns the handle of a memory window (type 2); it opens
	// nothing before OpBind has completed.
	AllocWindow() (handle uint32, err error)

	// Disconnect ends the connection in order: posted sends go out first,
	// within ctx. Close ends it at once and gives back what it holds; it may
	// be called more than once.
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
	PrivateData                        []byte // the peer's
	Detail                             string // what else a person wants to know: "MPA 2, CRC on"
}

// State is that of a queue pair.
type State uint8

// States of a queue pair that a user of this package can meet.
const (
	StateInit  State = iota // not connected yet
	StateRTS                // ready to send
	StateSQD                // disconnecting: the send queue drains
	StateError              // failed, or disconnected
)

// Access is what the peer may do with memory.
type Access uint8

// Accesses.
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
	// Signaled asks for a completion. Requests without it are reported only if
	// they fail; they are done when a later one of the same queue is.
	Signaled bool
	// Fence holds the request back until all earlier Reads are complete.
	Fence bool
	// Handle is the region of the peer's (OpWrite, OpRead, OpSendInvalidate)
	// or our own window (OpBind: the new handle, see NextHandle).
	Handle uint32
	Offset uint64
	Local  [][]byte
}

// RecvRequest is one entry of the receive queue: memory for one Send.
type RecvRequest struct {
	ID     uint64
	Buffer []byte
}

// NextHandle is the handle with which a window is bound after handle: its low
// byte counts (as ibv_inc_rkey does), so that old handles are recognised.
func NextHandle(handle uint32) uint32 { return handle&^0xff | (handle+1)&0xff }

// Completion is the outcome of a work request.
type Completion struct {
	ID     uint64
	Op     Op
	Status Status
	// Length is the number of bytes received (OpRecv).
	Length uint32
	// Invalidated says that the peer's Send has closed the region or window
	// Handle of ours (OpRecv).
	Invalidated bool
	Handle      uint32
	// Time is when the provider knew.
	Time time.Time
}
