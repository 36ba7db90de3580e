// Package transaction turns the operations of connections into transactions:
// an RPC call, the RDMA operations that its chunks triggered, the reply, and
// the time that each part took.
package transaction

import (
	"math"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// State says whether a transaction was seen whole.
type State uint8

// States of a transaction.
const (
	Complete   State = iota // call, reply, and all that their chunks moved
	NoReply                 // no reply until the connection or the capture ended
	NoCall                  // a reply whose call was not captured
	Incomplete              // both, but part of them is missing; Notes say what
)

var stateNames = [...]string{"complete", "no_reply", "no_call", "incomplete"}

func (s State) String() string { return stateNames[s] }

// Message is one half of a transaction: a call or a reply.
type Message struct {
	// Header is the transport header; meaningful if Transport is set. Its
	// lists and its Payload belong to the transaction.
	Header    rpcrdma.Header
	Transport bool // there is a transport header: not over TCP and UDP
	Cut       bool // the capture holds less of the Send than was sent

	// First and Last are the packets of its Send. If packets were sent again,
	// Last is the copy that was acknowledged.
	First, Last rdma.Ref
	Packets     int
	SendBytes   int // length of the Send in bytes: transport header and inline part

	// Payload is the RPC message without data items that live in chunks: the
	// inline part, or what was assembled from a Position-Zero or Reply chunk.
	Payload []byte
	// PayloadLength is the length that Payload would have had nothing been
	// lost.
	PayloadLength int
	// Bytes is the size of the whole RPC message, data in chunks included; 0 if the capture cuts the transport header.
	Bytes uint64

	Invalidates bool   // it was sent with Send With Invalidate
	Handle      uint32 // the handle that it invalidated

	shared     bool       // other Sends have its tag: see Tracker.Differs
	original   rdma.Ref   // last packet of the first copy
	stamp      rdma.Stamp // of the first copy
	againStamp rdma.Stamp // of the first complete repetition

	raw  []byte // the Send as captured
	long buffer // the message as assembled from a chunk
}

// Seen reports whether the message was captured.
func (m *Message) Seen() bool { return m.Last.Seen() }

// Raw is the payload of the Send as captured: transport header and inline
// part.
func (m *Message) Raw() []byte { return m.raw }

// Operation is an RDMA Read or Write that served a chunk.
type Operation struct {
	Kind   rdma.OpKind
	From   rdma.Side
	Chunk  ChunkKind
	Index  int // of the chunk in its list
	Handle uint32
	Offset uint64
	Length uint32 // as requested; an RDMA Write may carry more, against the rules
	Bytes  uint32 // payload seen, without repetitions
	First  rdma.Ref
	Last   rdma.Ref
	Again  int // packets of it that were seen again
}

// ChunkKind is the list that a segment stands in.
type ChunkKind uint8

// Lists of the transport header.
const (
	ReadList ChunkKind = iota
	WriteList
	ReplyChunk
	// ReplyReadList is the list of a reply of the read-read model; in
	// Operation.Chunk such segments count as ReadList.
	ReplyReadList
)

func (k ChunkKind) String() string {
	return [...]string{"read", "write", "reply", "reply read"}[k&3]
}

// Timeline holds the moments of a transaction that its phases are made of.
type Timeline struct {
	FirstRead rdma.Ref // first Read Request for a chunk of the call
	LastRead  rdma.Ref // last Read Response
	FirstPush rdma.Ref // first packet of the first RDMA Write
	LastPush  rdma.Ref // last packet of the last RDMA Write
	Ack       rdma.Ref // first packet that acknowledges the reply
	CallAck   rdma.Ref // first packet that acknowledges the call
	LastFetch rdma.Ref // last Read Response to the requester, which reads the reply's chunks (read-read model)
}

// Phases are the parts of a transaction's latency. The five sum to Total if it is Divided; if
// not, they and PullWait are negative. A Total that no Duration can hold is the longest one, and all
// of it is Server's.
type Phases struct {
	CallTransfer  time.Duration
	ArgumentPull  time.Duration
	Server        time.Duration
	ResultPush    time.Duration
	ReplyTransfer time.Duration
	Total         time.Duration
	// PullWait is the part of ArgumentPull before the first Read Request.
	PullWait time.Duration
	// Ack is the time from the reply to its acknowledgement; negative if that
	// was not seen.
	Ack time.Duration
}

// Divided reports whether the parts of the Total are known: the transaction Lacks nothing for that.
func (p *Phases) Divided() bool { return p.ArgumentPull >= 0 }

// Transaction is one RPC. It and all that it points to are valid until the
// consumer returns; then its memory is used for another one.
type Transaction struct {
	Connection *rdma.Connection
	From       rdma.Side // the requester
	Backward   bool      // from the connection's responder to its requester (RFC 8167)

	XID       uint32
	Program   uint32
	Version   uint32
	Procedure uint32
	// Named says that Program, Version and Procedure are known: the call, or
	// enough of it, was captured.
	Named bool

	Call, Reply Message
	Times       Timeline
	Operations  []Operation
	// OperationsLost counts operations beyond the limit of Operations.
	OperationsLost int

	Reads, Writes         int    // RDMA operations for its chunks, without repetitions
	ReadBytes, WriteBytes uint64 // payload that they moved, without repetitions
	Retransmits           int    // packets seen again
	ReadsByRequester      int    // those of Reads that the requester started: the read-read model
	// Blame says what its phases were lost to: nil if nobody has looked, and over
	// fabrics that nobody watches (TCP and UDP).
	Blame *Blame
	// Kernel is what a kernel recorded of it, where trace events are the source; nil for packets.
	Kernel *Kernel
	// Credits is how long all credits of the requester were in use before a reply
	// freed the one that the call took: at most so long it waited for that. It lies
	// before the call, and is not part of its phases.
	Credits time.Duration
	// InFlight is how many calls of the requester waited for their replies when the call was sent, itself included; 0 over TCP
	// and UDP. Window is how many credits the newest reply had granted then; 0 before the first.
	InFlight, Window uint32
	// Slots is how long all slots of the session were in use before a reply freed one,
	// for the first call since: at most so long it waited. It lies before the call, too.
	// A decode.Observer that knows NFSv4.1 fills it in: package analyze/session.
	// SlotLimit is how many slots the client may use, as far as that Observer knows.
	Slots     time.Duration
	SlotLimit uint32

	// Done is the RDMA_DONE of that model: the requester has read the reply's
	// chunks.
	Done rdma.Ref

	// Troubles are the packets of it that were seen again, and what happened
	// to its connection while it was under way. TroublesLost counts those
	// beyond the limit.
	Troubles     []Trouble
	TroublesLost int

	// Packets lists the transaction's packets, with Options.Packets, in the order
	// of the capture. PacketsLost counts those beyond the limit.
	Packets     []Packet
	PacketsLost int

	State State
	Notes []Note

	blame    *Blame  // room for Blame
	kernel   *Kernel // room for Kernel
	segments []segment
	served   []segment // memory that the responder offered in its reply

	entry        uint32 // in Tracker.entries
	gen          uint64
	serial       uint64
	untraced     bool
	disclosed    bool // the message in a Position-Zero Read chunk has said what it is
	assumed      bool // it was taken for a forward call without evidence
	unproven     bool // only an answer with its XID will show that it is one
	late         bool // its call came after its reply
	turned       bool // a call that proved to be a reply
	bySide       bool // its reply, the first that was seen, was taken for one because of its side
	unplaced     bool // Read Responses came that could not be placed
	fastCall     bool // the call took the fast path
	fast         bool // so did the reply, and both lie as they came
	replied      bool
	counted      bool   // among the calls that use a credit
	holes        uint32 // of credits.holes when it was counted
	acked        bool
	callAcked    bool
	ackMissed    bool     // an acknowledgement of the call may have come before it was known whose it is
	callLost     Delivery // if nothing of the responder shows that it has it
	replyLost    Delivery // if it was not acknowledged
	finished     bool
	empty        bool // released
	size         int  // bytes held
	noted        int  // bytes taken by Notes that are not in size yet
	lists        int  // of size, by the lists of the headers
	spans        int  // of size, by the coverage of segments, if measured
	measured     bool
	origin       int   // connection on which the call was sent first; 0 if on this one
	sentFirst    int64 // when it was, if on another one
	waitingUntil int64
	waiting      bool
	chunkData    []chunkData

	prev, next *Transaction // in the order of first packets
}

// First is the first packet of the transaction.
func (t *Transaction) First() rdma.Ref {
	if t.Call.Seen() {
		return t.Call.First
	}
	return t.Reply.First
}

// Serial tells a transaction from all others of its Tracker, before and after
// it ends.
func (t *Transaction) Serial() uint64 { return t.serial }

// Traced reports whether Options.TraceXID has accepted the XID when the transaction began.
func (t *Transaction) Traced() bool { return !t.untraced }

// Client is the requester's end.
func (t *Transaction) Client() rdma.End { return t.Connection.Ends[t.From] }

// Server is the responder's end.
func (t *Transaction) Server() rdma.End { return t.Connection.Ends[t.From.Other()] }

// Memory is how many bytes the transaction takes, with its messages and lists.
func (t *Transaction) Memory() int { return t.size }

// Phases computes the latency breakdown. ok is false unless call and reply
// were both seen, and in that order by their timestamps: otherwise nothing can
// be said of the time that they took.
func (t *Transaction) Phases() (p Phases, ok bool) {
	ok = t.SetPhases(&p)
	return p, ok
}

// Took is the total of Phases, for those who want nothing else. ok is false where Phases has no latency.
func (t *Transaction) Took() (d time.Duration, ok bool) {
	if !t.Call.Seen() || !t.Reply.Seen() {
		return 0, false
	}
	start, end := t.Call.First.Time, t.Reply.Last.Time
	if end < start || t.late && end == start {
		return 0, false
	}
	return rdma.Between(start, end), true
}

// SetPhases is Phases for those who ask for each transaction. The result is not copied: for that, the processor would
// have to wait until all of it has been stored.
func (t *Transaction) SetPhases(p *Phases) (ok bool) {
	*p = Phases{}
	p.Ack = -1
	if !t.Call.Seen() || !t.Reply.Seen() {
		return false
	}
	start, end := t.Call.First.Time, t.Reply.Last.Time
	if end < start || t.late && end == start {
		return false
	}
	p.Total, p.Ack = rdma.Between(start, end), t.Acked()
	if t.Lacks() != LackNothing {
		p.CallTransfer, p.ArgumentPull, p.PullWait, p.Server, p.ResultPush, p.ReplyTransfer = -1, -1, -1, -1, -1, -1
		return true
	}
	if p.Total == math.MaxInt64 {
		p.Server = p.Total // the clock is wrong by centuries; nothing finer can be said
		return true
	}
	clamp := func(at, from int64) int64 { return min(max(at, from), end) }
	t1 := clamp(t.Call.Last.Time, start)
	t2 := t1
	if t.Times.LastRead.Seen() {
		t2 = clamp(t.Times.LastRead.Time, t1)
	}
	if t.Times.FirstRead.Seen() {
		p.PullWait = time.Duration(min(max(t.Times.FirstRead.Time, t1), t2) - t1)
	}
	t3 := clamp(t.Reply.First.Time, t2)
	t4 := t3
	if t.Times.FirstPush.Seen() {
		t3 = clamp(t.Times.FirstPush.Time, t2)
		t4 = clamp(t.Times.LastPush.Time, t3)
	}
	p.CallTransfer = time.Duration(t1 - start)
	p.ArgumentPull = time.Duration(t2 - t1)
	p.Server = time.Duration(t3 - t2)
	p.ResultPush = time.Duration(t4 - t3)
	p.ReplyTransfer = time.Duration(end - t4)
	return true
}

// Credits are those that the transport header asks for or grants, 0 without one.
func (m *Message) Credits() uint32 {
	if !m.Transport {
		return 0
	}
	return m.Header.Credits
}

// Acked is the time from the reply to its acknowledgement, as Phases.Ack.
func (t *Transaction) Acked() time.Duration {
	if !t.Times.Ack.Seen() {
		return -1
	}
	return max(rdma.Between(t.Reply.Last.Time, t.Times.Ack.Time), 0) // the clock may go backwards
}
