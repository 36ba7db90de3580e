package rocev2

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// ICRCCheck says how the checksum of received packets is checked. Over IPv6 it
// is always complete, unless it is off.
type ICRCCheck uint8

// Ways to check ICRCs.
const (
	// ICRCAnyID accepts a packet if there is an IPv4 identification for which
	// its ICRC is right: the kernel does not tell the real one. One damaged
	// packet in 2^15 that the UDP checksum let through is not noticed.
	ICRCAnyID ICRCCheck = iota
	// ICRCOwnID accepts only identifications that this provider's own packets
	// have: 0, or those of segmentation offload. It is for peers of this
	// package.
	ICRCOwnID
	// ICRCOff accepts everything.
	ICRCOff
)

// Options configure a Provider. The zero value is a good choice.
type Options struct {
	// Local is the address to dial from. Default: as the system routes.
	Local netip.Addr
	// Port is the UDP port of this provider's sockets; 0 is 4791.
	Port uint16
	// PeerPort is the UDP port that peers receive at; 0 is 4791.
	PeerPort uint16
	// Symmetric says that peers receive at the port that they send from, as
	// this provider does. Adapters and rxe do not. It lets several providers
	// share an address.
	Symmetric bool
	// MTU is the path MTU to ask for in bytes of payload: 256, 512, 1024, 2048
	// or 4096. 0 is the largest that fits the interface, as rdma_cm chooses.
	MTU int
	// CheckICRC says how received packets are checked.
	CheckICRC ICRCCheck
	// NoOffload forgoes UDP_SEGMENT and UDP_GRO.
	NoOffload bool
	// Buffer is the size in bytes that socket buffers are asked to have; the
	// system may grant less (net.core.rmem_max). 0 is 4 MiB.
	Buffer int
	// Window bounds the bytes of Sends and RDMA Writes that are on their way
	// on a connection. 0 derives it from the size of the socket's buffer.
	Window int
	// ReadWindow bounds the bytes of RDMA Read responses that are on their way
	// to a connection, which nothing else limits: they would overrun the
	// socket's buffer. A Read that is longer goes out as several requests. 0
	// derives it from the size of that buffer.
	ReadWindow int
	// AckTimeout is the local ACK timeout that connection requests announce,
	// rounded up to 4.096 µs·2^n. A connection fails after 1+RetryCount times
	// as long without any progress; lost packets are repeated sooner. Default
	// 1.07 s.
	AckTimeout time.Duration
	// RepeatAfter is how long to wait for an answer before packets are repeated,
	// at least: four round trips if that is more. The wait doubles from then on,
	// up to the ACK timeout. Default 10 ms.
	RepeatAfter time.Duration
	// CMTimeout is how long to wait before a message of connection management
	// is first repeated; the wait doubles from then on, up to 4.3 s. Default
	// 200 ms.
	CMTimeout time.Duration
	// RNRTimer is what a peer whose Send found no receive is asked to wait.
	// Default 640 µs.
	RNRTimer time.Duration
	// Backlog bounds the connection requests of a listener that have not been
	// accepted or rejected. Default 128.
	Backlog int
	// HalfOpen bounds the connection requests that listeners have answered
	// themselves (verbs.Answerer) and that their senders have not confirmed. Each
	// takes about a kilobyte. When there are more, one goes: of the address that has
	// the most, and of several the oldest. Default 8192.
	HalfOpen int
	// HalfOpenTime is how long such a request is remembered. Default 5 s.
	HalfOpenTime time.Duration

	Tap  verbs.Tap
	Link verbs.Link

	// Outgoing and Incoming, if set, stand in the way of each packet, BTH
	// through ICRC, as a network that loses, repeats, reorders and damages: what
	// they call pass with goes on. They must not keep packet, nor call pass
	// later, and are called by one goroutine at a time for each socket.
	// Without offload.
	Outgoing, Incoming func(packet []byte, pass func([]byte))

	// Log, if set, is told what is wrong with peers and packets.
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

// ackExponent is the exponent of the ACK timeout to announce.
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
