// Package rdma is the fabric-neutral vocabulary: connections, their two
// sides, and the operations on them. The trackers of RoCE and iWARP turn
// packets into calls of a Handler; everything above knows only this package.
package rdma

import (
	"math"
	"net/netip"
	"time"
)

// Fabric is how the operations of a connection travel.
type Fabric uint8

// Fabrics. TCP and UDP carry RPC messages without RDMA. AnyRDMA is one of those before them: a kernel that records its calls does not say
// which.
const (
	RoCEv2 Fabric = iota + 1
	RoCEv1
	InfiniBand
	IWARP
	TCP
	UDP
	AnyRDMA

	Fabrics = int(AnyRDMA) + 1 // one more than the last
)

var fabricNames = [...]string{"", "rocev2", "rocev1", "infiniband", "iwarp", "tcp", "udp", "rdma"}

func (f Fabric) String() string {
	if int(f) < len(fabricNames) {
		return fabricNames[f]
	}
	return ""
}

// Ref is a packet of the capture: its timestamp in nanoseconds since the Unix
// epoch and its 1-based number. The zero Ref is "not seen".
type Ref struct {
	Time   int64
	Number uint64
}

// Seen reports whether r names a packet.
func (r Ref) Seen() bool { return r.Number != 0 }

// Before reports whether r comes before another packet, by its number and by its time.
func (r Ref) Before(o Ref) bool { return r.Number < o.Number && r.Time < o.Time }

// Between is the time from one timestamp to another. What is longer than a
// Duration can be (292 years) is the longest one in that direction: a capture may
// claim any times. It can be negated.
func Between(from, to int64) time.Duration {
	d := to - from
	switch {
	case to >= from && d < 0:
		d = math.MaxInt64
	case to < from && (d >= 0 || d == math.MinInt64):
		d = -math.MaxInt64
	}
	return time.Duration(d)
}

// Side is one of the two ends of a connection: 0 sent the first packet that
// was seen of it (the connection request, if that was captured).
type Side uint8

// Other is the opposite side.
func (s Side) Other() Side { return s ^ 1 }

// End is one end of a connection.
type End struct {
	Addr netip.Addr
	Port uint16 // UDP or TCP port; 0 where a queue pair is the endpoint
	QPN  uint32 // queue pair number; 0 if unknown or not RoCE/InfiniBand
}

// PrivateData is the message of RFC 8797, exchanged at connection setup.
type PrivateData struct {
	Present          bool
	Version          uint8
	RemoteInvalidate bool
	SendSize         uint32 // bytes
	ReceiveSize      uint32 // bytes
}

// SetupMessage is a message by which one side announces what it wants of a connection.
type SetupMessage uint8

// The messages of communication management (IBTA volume 1, section 12.6), and that of iWARP (RFC 5044, section 7).
const (
	SetupNone SetupMessage = iota // not captured
	SetupREQ
	SetupREP
	SetupMPA // Request or Reply

	SetupMessages // how many there are
)

// Setup is what one side announced during connection setup. If its message was not captured, nothing else is
// known.
type Setup struct {
	Message         SetupMessage
	Cut             bool // the capture cuts the message before the end of its depths, retries and timeouts
	Frame           Ref
	StartPSN        uint32
	PathMTU         uint32 // bytes; REQ only
	ResponderDepth  uint16 // RDMA Reads that the sender answers at once (responder resources, IRD)
	InitiatorDepth  uint16 // RDMA Reads that the sender starts at once (initiator depth, ORD)
	RetryCount      uint8
	RNRRetryCount   uint8
	AckTimeout      uint8 // exponent: 4.096 µs · 2^AckTimeout
	ServiceID       uint64
	MPARevision     uint8 // iWARP
	Markers         bool  // iWARP: the sender wants markers in what it receives
	CRC             bool  // iWARP: the sender wants CRCs
	PeerToPeer      bool  // iWARP, RFC 6581
	Private         PrivateData
	PrivateBytes    [64]byte // consumer private data as sent, cut to 64 bytes
	PrivateBytesLen uint8
}

// Seen reports whether the message was captured, or a part of it.
func (s *Setup) Seen() bool { return s.Message != SetupNone }

// Terms reports whether the depths, retries and timeouts of the message are known.
func (s *Setup) Terms() bool { return s.Seen() && !s.Cut }

// Depths reports whether the message announces how many RDMA Reads its sender answers and starts at once: MPA does so since revision 2 (RFC 6581, section 9.1).
func (s *Setup) Depths() bool {
	return s.Terms() && (s.Message != SetupMPA || s.MPARevision >= 2 || s.ResponderDepth|s.InitiatorDepth != 0)
}

// Start is the first PSN that the sender of the message expects to receive. The capture may cut the message before it; ok is
// false for 0 in a cut message.
func (s *Setup) Start() (psn uint32, ok bool) {
	return s.StartPSN, s.Terms() || s.Cut && s.StartPSN != 0
}

// Terms reports whether what both sides announced of depths, retries and timeouts is known.
func (c *Connection) Terms() bool { return c.Setup[0].Terms() && c.Setup[1].Terms() }

// OneWay reports whether the capture has messages of one side and nothing that the other one sent, and which side that one is. A single message may just
// have had no answer, and does not count.
func (c *Connection) OneWay() (from Side, ok bool) {
	for side := range c.Sent {
		if c.Sent[side].Sends > 1 && c.Sent[side^1].Packets == 0 {
			return Side(side), c.MergedInto == nil
		}
	}
	return 0, false
}

// Declared reports whether it is known what a side said of RPC-over-RDMA in its private data (RFC 8797). Messages of connection
// management always have the same length, so too few bytes mean that the capture cut them.
func (c *Connection) Declared(side Side) bool {
	s := &c.Setup[side]
	return s.Seen() && (s.Private.Present || c.Fabric == IWARP || s.PrivateBytesLen >= PrivateDataSize)
}

// Counters count packets that one side sent on a connection.
type Counters struct {
	Packets       uint64
	Bytes         uint64 // declared payload bytes of the transport: what UDP or TCP carried
	Sends         uint64
	Writes        uint64
	Reads         uint64
	Atomics       uint64
	WriteBytes    uint64
	ReadBytes     uint64 // bytes of Read Responses
	Acks          uint64
	Retransmitted uint64 // packets seen again
	NAKs          uint64
	RNRs          uint64
	ECN           uint64 // packets marked "congestion experienced"
	CNPs          uint64
	Gaps          uint64 // packets (RoCE) or bytes (TCP) that the capture lacks; also the bytes of FPDUs given up for a wrong length
	BadCRC        uint64 // ICRC or CRC32C wrong
	ZeroCRC       uint64 // of these, CRC32Cs of 0: the sender makes none
	Resyncs       uint64 // times that the packet sequence numbers contradicted what was known, and tracking restarted
	FalseEnds     uint64 // RoCE: times that a message or a NAK had ended the connection, and this side went on as before
}

// Given counts parts of TCP streams that were given up, or not believed.
type Given struct {
	Count, Bytes uint64
	First        uint64 // number of the packet of the first
	Offset       uint64 // of the first, in its TCP stream
}

// Add adds another count. The first is the one with the lower packet number.
func (g *Given) Add(o Given) {
	if g.Count == 0 || o.Count > 0 && o.First < g.First {
		g.First, g.Offset = o.First, o.Offset
	}
	g.Count += o.Count
	g.Bytes += o.Bytes
}

// Since takes off what had been counted before. The first stays the first of all.
func (g Given) Since(o Given) Given {
	if g.Count == o.Count {
		return Given{}
	}
	g.Count, g.Bytes = g.Count-o.Count, g.Bytes-o.Bytes
	return g
}

// Add adds what another queue pair of the same node has sent.
func (n *Counters) Add(o *Counters) {
	n.Packets += o.Packets
	n.Bytes += o.Bytes
	n.Sends += o.Sends
	n.Writes += o.Writes
	n.Reads += o.Reads
	n.Atomics += o.Atomics
	n.WriteBytes += o.WriteBytes
	n.ReadBytes += o.ReadBytes
	n.Acks += o.Acks
	n.Retransmitted += o.Retransmitted
	n.NAKs += o.NAKs
	n.RNRs += o.RNRs
	n.ECN += o.ECN
	n.CNPs += o.CNPs
	n.Gaps += o.Gaps
	n.BadCRC += o.BadCRC
	n.ZeroCRC += o.ZeroCRC
	n.Resyncs += o.Resyncs
	n.FalseEnds += o.FalseEnds
}

// State is how far a connection has come, as far as the capture tells.
type State uint8

// States of a connection.
const (
	Established State = iota // or taken for it: its setup was not captured
	Connecting
	Rejected
	Closed
)

var stateNames = [...]string{"established", "connecting", "rejected", "closed"}

func (s State) String() string { return stateNames[s] }

// Connection is a pair of endpoints: two queue pairs, or one TCP connection,
// or two UDP ports.
type Connection struct {
	ID          int // 1, 2, … in order of the first packet
	Fabric      Fabric
	State       State
	Ends        [2]End
	Ports       [2]uint16 // RoCEv2: newest UDP source port of each side, once the connection is closed
	First, Last Ref
	Setup       [2]Setup
	Sent        [2]Counters
	MTU         uint32 // path MTU in bytes as known from setup or traffic, over iWARP the longest FPDU that came; 0 if unknown
	Terminated  string // why it ended: disconnect, reset, Terminate message, NAK …; empty while open
	Ended       bool   // Terminated is an end that was captured: else the capture, or what is remembered of it, ended before
	// Requests counts the messages that asked for it, REQ or MPA Request, repetitions included; BadRequests those with a wrong ICRC.
	Requests, BadRequests uint32
	// OtherVersion is true if the connection has packets of one side only, or a request without an answer, and the peer's packets are all of
	// the other version of RoCE. PKeys holds the P_Key of the request, or of the packets, and that of the setup or of the peer's packets if
	// the two do not match.
	OtherVersion bool
	PKeys        [2]uint16
	// Reused is the latest EventReused of each side.
	Reused [2]Reused
	// Tenant tells equal addresses in different tunnels apart: 0 outside of
	// tunnels.
	Tenant uint64
	// Tunnel is the outermost wrapping of the first packet; nil if it had none.
	Tunnel *Tunnel
	// MergedInto is set when a connection that was first taken for two turned
	// out to be part of another. Turned says that side 0 is side 1 there.
	MergedInto *Connection
	Turned     bool
	// Settled says that this is a copy that a consumer may rely on: nothing in it changes any more. Whoever keeps such a pointer can
	// compare it with another one instead of what they lead to.
	Settled bool
	// Upper belongs to the Handler, Watched to the Watcher.
	Upper   Upper
	Watched Watched
	// Stamp belongs to the TCP segment that is being handled. It distinguishes needless retransmissions from
	// needed ones.
	Stamp Stamp
	// Header belongs to the packet that is being handled; only for a Tracer.
	Header Header
}

// Copy returns a copy of what is known of the connection, without what the layers above keep
// with it.
func (c *Connection) Copy() Connection {
	x := *c
	x.Upper, x.Watched, x.Settled = nil, nil, false
	return x
}

// Upper is what a Handler knows of a Connection: one value, of a type that only the Handler's package has.
// Trackers carry it without looking inside, and never call its method.
type Upper interface{ UpperOfConnection() }

// Watched is what a Watcher knows of a Connection, like Upper.
type Watched interface{ WatchedConnection() }

// Tag is what a Handler returns for a Send, or sets in an Op, to recognise it later: numbers that mean something
// to the Handler alone. It refers to no memory, so that what a tracker remembers of the past keeps nothing alive.
// The zero Tag is none.
//
// It is a struct and no array, since Go passes a struct of two words in registers, and an array through memory.
type Tag struct{ W0, W1 uint64 }

// Stamp is what a TCP segment shows about copies: the timestamps option (RFC 7323, section 3.2) and whether
// it acknowledges data that came twice (RFC 2883).
type Stamp struct {
	Present     bool
	Value, Echo uint32
	Twice       bool
}

// Tunnel is a wrapping around the packets of a connection.
type Tunnel struct {
	Type    string // "vxlan", "erspan", …: see package link
	Version uint8  // of ERSPAN: 1 to 3; else 0
	HasID   bool
	ID      uint32        // VNI, key, session or label, if HasID is set
	Ends    [2]netip.Addr // addresses of the tunnel's ends by Side; not valid without outer IP
}

// From returns t for a packet that went from src to dst, sent by side.
func (t Tunnel) From(side Side, src, dst netip.Addr) *Tunnel {
	t.Ends[side], t.Ends[side.Other()] = src, dst
	return &t
}

// Send is one complete Send operation, or one whole RPC message where the
// fabric is TCP or UDP. It is valid during the call of Handler.Send.
type Send struct {
	From        Side
	Data        []byte // what was captured, from the start without holes
	Length      int    // bytes sent; greater than len(Data) if the capture cut or lost some
	First, Last Ref
	Packets     int
	Again       int // packets of it that were seen before it was complete more than once
	Invalidates bool
	Handle      uint32 // invalidated by this Send
	Solicited   bool
	Parts       []Part // its packets, if there were several; only for a Tracer
	Claimed     int    // of a record of TCP: what its mark says of its length, if that is not true
	Sequence    uint32 // RPC over TCP: the sequence number of its first record mark
}

// OpKind tells RDMA operations apart.
type OpKind uint8

// RDMA operations other than Send.
const (
	Write OpKind = iota + 1
	Read
	Atomic
)

// Op is one RDMA Write or RDMA Read (with its response). Trackers reuse an Op
// once it has completed; a Handler that keeps it must copy it.
type Op struct {
	Kind   OpKind
	From   Side   // who initiated it
	Handle uint32 // steering tag of the memory at the other side
	Offset uint64 // address in that memory
	Length uint32 // bytes; for an iWARP Write what has been seen so far
	First  Ref    // Read Request, or first packet of the Write
	Last   Ref    // last packet that carried payload
	Late   bool   // it was sent before something that has been reported already
	Tag    Tag    // belongs to the Handler
}

// Fragment is payload of an RDMA Write or a Read Response in one packet.
type Fragment struct {
	Offset uint64 // address in the memory that Op.Handle names
	Length uint32 // bytes on the wire
	Data   []byte // what was captured of them
	Ref    Ref
	Again  bool   // these bytes have been seen before
	Acked  bool   // and had been acknowledged, or not been requested again: the receiver has not waited for this copy
	Last   bool   // the last packet of the operation
	Parts  []Part // its packets, if there were several; only for a Tracer
}

// Event is something that the wire says about the health of a connection.
type Event uint8

// Events.
const (
	EventNAKSequence  Event = iota + 1 // PSN sequence error: packets were lost
	EventNAKInvalid                    // invalid request
	EventNAKAccess                     // remote access error
	EventNAKOperation                  // remote operational error
	EventRNR                           // receiver not ready
	EventTerminate                     // iWARP Terminate
	EventGap                           // the capture lacks packets
	EventCNP
	EventECN         // a packet marked "congestion experienced"
	EventRetransmit  // a packet that was seen again; not reported by Handler.Event
	EventResync      // PSNs contradict what was known: tracking of the direction restarts at value
	EventDoubted     // an RST, FIN or SYN of TCP that was contradicted by what went on
	EventDiffers     // bytes that were seen again with other values: of TCP, or of a Send; value is their number
	EventUnrequested // a Read Response whose Read Request was not captured, or asks for something else; value is its PSN, 0 over iWARP
	EventNAKOther    // a NAK of another code: invalid RD request, or reserved
	EventUDPLength   // a datagram whose UDP length, value, contradicts the length of the IP packet
	EventMPARejected // the first FPDU after the MPA Request was rejected
	EventMPARevision // the first FPDU after an MPA frame of a revision that is not defined: value
	EventMPAMarkers  // the first FPDU is without the markers that the peer asked for, or has some that it did not; value is 1 if it asked
	EventReused      // a request with a PSN, value, of another one that it does not repeat: see Connection.Reused
	EventAckUnsent   // an acknowledgement of a PSN, value, that was never sent
)

// Reused is a request of RoCE that has a PSN of an earlier one without repeating it.
type Reused struct {
	Kind, Of          WorkKind // of the request, and of the earlier one
	PSN, Start, Count uint32   // of the request; of the earlier one: its first PSN, and how many it takes
}

// Handler receives what the trackers of the fabrics find, in capture order. Its arguments must not be kept
// beyond the call, except the *Connection.
type Handler interface {
	// Send reports a complete Send. The tracker keeps the returned tag until
	// the Send has been acknowledged.
	Send(c *Connection, s *Send) Tag
	// SendAgain reports a packet of an earlier Send that was seen again.
	// complete means that it was its last packet.
	SendAgain(c *Connection, from Side, tag Tag, ref Ref, complete bool)
	// SendAcked reports the first packet that acknowledges a Send.
	SendAcked(c *Connection, from Side, tag Tag, ref Ref)
	// OpStart reports the first packet of an RDMA Write, or a Read Request.
	OpStart(c *Connection, op *Op, ref Ref)
	// OpData reports payload of a Write or of a Read's response.
	OpData(c *Connection, op *Op, f *Fragment)
	// OpAgain reports a packet without payload of an operation (a Read
	// Request) that was seen again.
	OpAgain(c *Connection, op *Op, ref Ref)
	// Event reports trouble. from is the side that sent the packet; value
	// depends on the event: the PSN, or the Terminate word.
	Event(c *Connection, from Side, e Event, value uint32, ref Ref)
	// Merged reports that side was of from was found to be side of into.
	Merged(into *Connection, side Side, from *Connection, was Side)
	// Closed reports the end of a connection: nothing more follows on it.
	Closed(c *Connection, ref Ref)
	// FindCall returns the side of c that has sent a call with this XID without
	// a reply, or a reply without a call, to help a tracker pair the two halves
	// of a connection whose setup was not captured.
	FindCall(c *Connection, xid uint32) (from Side, ok bool)
}

// Is reports whether two ends are equal. Field by field it takes half as long as == in a loop.
func (e *End) Is(o *End) bool { return e.QPN == o.QPN && e.Port == o.Port && e.Addr == o.Addr }

// Number distinguishes the connections of an address: the queue pair's number, or the port where there is
// none.
func (e End) Number() uint32 {
	if e.QPN != 0 {
		return e.QPN
	}
	return uint32(e.Port)
}
