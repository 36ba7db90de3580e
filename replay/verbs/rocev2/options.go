package rocev2

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// ICRCCheck says how the ICRC of received packets is checked. Over IPv6 the check is
// always complete, unless it is off.
type ICRCCheck uint8

// Ways to check ICRCs.
const (
	// ICRCAnyID accepts a packet if its ICRC is correct for some IPv4
	// identification, since the kernel does not tell the real one. Of the damaged
	// packets that pass the UDP checksum, one in 2^15 is not detected.
	ICRCAnyID ICRCCheck = iota
	// ICRCOwnID accepts only identifications that this package sends: 0, or those of
	// segmentation offload.
	ICRCOwnID
	// ICRCOff accepts everything.
	ICRCOff
)

// Options configure a Provider. The zero value is ready for use.
type Options struct {
	// Local is the address to dial from. By default the system chooses it.
	Local netip.Addr
	// Port is the UDP port of this provider's sockets; 0 is 4791.
	Port uint16
	// PeerPort is the UDP port that peers receive at; 0 is 4791.
	PeerPort uint16
	// Symmetric says that peers receive at the port that they send from, as this
	// provider does; adapters and rxe do not. Several providers can then share an
	// address.
	Symmetric bool
	// MTU is the path MTU to ask for in bytes of payload: 256, 512, 1024, 2048
	// or 4096. 0 is the largest that fits the interface, as rdma_cm chooses.
	MTU int
	// CheckICRC says how received packets are checked.
	CheckICRC ICRCCheck
	// NoOffload disables UDP_SEGMENT and UDP_GRO.
	NoOffload bool
	// Buffer is the size in bytes to ask for socket buffers; the system may grant
	// less (net.core.rmem_max). 0 is 4 MiB.
	Buffer int
	// Window bounds the bytes of Sends and RDMA Writes in flight on a connection. 0
	// derives it from the size of the socket buffer.
	Window int
	// ReadWindow bounds the bytes of RDMA Read responses in flight to a connection,
	// which could otherwise overrun the socket buffer. A longer Read is sent as
	// several requests. 0 derives it from the size of that buffer.
	ReadWindow int
	// AckTimeout is the local ACK timeout that connection requests announce, rounded
	// up to 4.096 µs·2^n. A connection fails after 1+RetryCount times as long without
	// progress; lost packets are retransmitted sooner. Default 1.07 s.
	AckTimeout time.Duration
	// RepeatAfter is the shortest wait for an answer before packets are
	// retransmitted; the wait is four round trips if that is longer. It doubles each
	// time, up to the ACK timeout. Default 10 ms.
	RepeatAfter time.Duration
	// CMTimeout is how long to wait before a message of connection management is
	// retransmitted. The wait doubles each time, up to 4.3 s. Default 200 ms.
	CMTimeout time.Duration
	// RNRTimer is how long a peer is asked to wait if its Send found no receive.
	// Default 640 µs.
	RNRTimer time.Duration
	// Backlog bounds the connection requests of a listener that have not been
	// accepted or rejected. Default 128.
	Backlog int
	// HalfOpen bounds the connection requests that listeners have answered themselves
	// (verbs.Answerer) and that their senders have not confirmed. Each takes about a
	// kilobyte. Beyond it, the oldest one of the address that has the most is
	// dropped. Default 8192.
	HalfOpen int
	// HalfOpenTime is how long such a request is remembered. Default 5 s.
	HalfOpenTime time.Duration

	Tap  verbs.Tap
	Link verbs.Link

	// Outgoing and Incoming, if set, intercept each packet, BTH through ICRC, to
	// model a network that loses, duplicates, reorders and damages packets: only
	// packets that they call pass with continue. They must not keep packet, nor call
	// pass later. They are called by one goroutine at a time for each socket, and
	// disable offload.
	Outgoing, Incoming func(packet []byte, pass func([]byte))

	// Log, if set, reports what is wrong with peers and packets.
	Log func(format string, args ...any)
}

const (
	defaultAckExponent = 18 // 1.07 s
	maxResponse        = 4300 * time.Millisecond
	responseExponent   = 20 // 4.3 s
	maxCMRetries       = 15
	defaultDepth       = 32
	maxDepth           = 128
	defaultQueue       = 256
	maxQueue           = 1 << 20
	defaultRetries     = 7
	maxMessage         = 32 << 20
	maxSGE             = 32
	reqPrivateMax      = 56
	repPrivateMax      = 196
	rejPrivateMax      = 148
)

func (o *Options) setDefaults() error {
	if o.Port == 0 {
		o.Port = roce.Port
	}
	if o.PeerPort == 0 {
		o.PeerPort = roce.Port
	}
	if o.MTU != 0 && ibcm.MTUCode(uint32(o.MTU)) == 0 {
		return fmt.Errorf("rocev2: path MTU %d: must be 256, 512, 1024, 2048 or 4096", o.MTU)
	}
	if o.Buffer <= 0 {
		o.Buffer = 4 << 20
	}
	if o.RepeatAfter <= 0 {
		o.RepeatAfter = 10 * time.Millisecond
	}
	if o.CMTimeout <= 0 {
		o.CMTimeout = 200 * time.Millisecond
	}
	if o.RNRTimer <= 0 {
		o.RNRTimer = 640 * time.Microsecond
	}
	if o.Backlog <= 0 {
		o.Backlog = 128
	}
	if o.HalfOpen <= 0 {
		o.HalfOpen = 8192
	}
	if o.HalfOpenTime <= 0 {
		o.HalfOpenTime = 5 * time.Second
	}
	if o.Link != (verbs.Link{}) || o.Outgoing != nil {
		o.NoOffload = true
	}
	return nil
}

// ackExponent returns the exponent of the ACK timeout to announce.
func (o *Options) ackExponent() uint8 {
	if o.AckTimeout <= 0 {
		return defaultAckExponent
	}
	e := uint8(1)
	for e < 31 && ibcm.Timeout(e) < o.AckTimeout {
		e++
	}
	return e
}

func (o *Options) logf(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}
