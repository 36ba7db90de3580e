// Package rocetest makes RoCE traffic for tests: a model of hosts whose reliable connections carry
// RPC-over-RDMA, across a network that can lose, copy and reorder packets, with a capture point near each
// host. What the endpoints did is known, so that the output of a decoder can be compared with it.
//
// The model follows the rules of the wire, not those of one product: requests have consecutive PSNs,
// responses take theirs; a lost packet is answered by one NAK, and all from it on is retransmitted; a Read is
// resumed where its responses end.
package rocetest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// Kind is what an RPC moves and how.
type Kind uint8

// Kinds of RPC.
const (
	Small     Kind = iota // call and reply inline
	WriteData             // call with a Read chunk
	ReadData              // call with a Write chunk
	LongCall              // call in a Position-Zero Read chunk
	LongReply             // reply in a Reply chunk
	Exchange              // Read chunk and two Write chunks
	Refused               // answered with RDMA_ERROR
	Unused                // Write and Reply chunk offered, neither used
	Silent                // never answered
)

// Loss is what may happen to a packet, as probabilities.
type Loss struct {
	Near    float64 // lost before the sender's capture point
	Middle  float64 // lost between the capture points
	Far     float64 // lost after the receiver's capture point
	Copied  float64 // delivered twice
	Late    float64 // overtaken by others, before the first capture point
	NotNow  float64 // refused with an RNR NAK
	AckLost float64 // of acknowledgements only, after both capture points
}

// Config describes the traffic. Zero fields take the defaults.
type Config struct {
	Seed        uint64
	Connections int    // between the same two hosts (1)
	Calls       int    // per connection (20)
	Outstanding int    // calls at once per connection (4)
	Callbacks   int    // backward calls per connection
	Kinds       []Kind // that are drawn from (all that are answered)
	MTU         uint32 // (1024)
	Inline      int    // longest inline RPC message (600)
	Data        int    // longest chunk (20000)
	Segment     int    // longest segment of a chunk (as long as the chunk)
	Transfer    int    // longest RDMA Read or Write (8192)
	Depth       int    // RDMA Reads at once (4)
	Invalidate  bool   // replies are sent with Send With Invalidate
	CM          bool   // connections are set up and ended with messages
	StayOpen    bool   // with CM: not ended
	SameHandle  bool   // all segments have the same handle
	ReuseHandle bool   // the same few handles and addresses again and again
	XIDInOffset bool   // as Linux does
	SameXID     bool   // callbacks have the XIDs of forward calls
	Rename      bool   // a sender that resumes in the middle of a Write names its position with a First or Only packet
	OnePort     bool   // one UDP source port for both directions
	LocalHost   bool   // client and server have one address
	FirstXID    uint32
	PSN         [2]uint32 // first PSN of each side; 0 for random
	QPN         [2]uint32 // of the first connection; counted up for the others
	Loss        Loss
	SameWork    bool  // the calls of a seed are the same whatever is lost
	Start       int64 // time of the first packet, in nanoseconds
	Addr        [2]netip.Addr
}

func (c *Config) defaults() {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&c.Connections, 1)
	set(&c.Calls, 20)
	set(&c.Outstanding, 4)
	set(&c.Inline, 600)
	set(&c.Data, 20000)
	set(&c.Segment, 1<<30)
	set(&c.Transfer, 8192)
	set(&c.Depth, 4)
	if c.MTU == 0 {
		c.MTU = 1024
	}
	if c.Kinds == nil {
		c.Kinds = []Kind{Small, WriteData, ReadData, LongCall, LongReply, Exchange, Refused, Unused}
	}
	if c.FirstXID == 0 {
		c.FirstXID = 0x10000
	}
	if c.QPN == [2]uint32{} {
		c.QPN = [2]uint32{0x11, 0x11}
	}
	if c.Start == 0 {
		c.Start = 1_700_000_000_000_000_000
	}
	if !c.Addr[0].IsValid() {
		c.Addr = [2]netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")}
	}
	if c.LocalHost {
		c.Addr[1] = c.Addr[0]
	}
}

// Transaction is what happened of an RPC.
type Transaction struct {
	Connection int // 0, 1, …
	XID        uint32
	Backward   bool
	Kind       Kind
	Procedure  uint32

	Reads, Writes         int
	ReadBytes, WriteBytes uint64
	CallBytes, ReplyBytes uint64
	Read                  []byte   // the Read chunk
	Written               [][]byte // the Write chunks
	Call, Reply           []byte   // the RPC messages without what lies in chunks
	Invalidated           uint32
	Answered              bool

	handles []uint32
}

var kindNames = [...]string{
	"small", "write data", "read data", "long call", "long reply", "exchange", "refused", "unused", "silent",
}

func (k Kind) String() string { return kindNames[k] }

func (t *Transaction) String() string {
	return fmt.Sprintf("XID %#x on %d (%v, backward %v): %d Reads of %d, %d Writes of %d, call %d, reply %d",
		t.XID, t.Connection, t.Kind, t.Backward, t.Reads, t.ReadBytes, t.Writes, t.WriteBytes, t.CallBytes, t.ReplyBytes)
}

// Role is what a packet does for its transaction.
type Role uint8

// Roles of packets.
const (
	CallSend Role = iota + 1
	ReplySend
	ReadRequest
	ReadResponse
	Write
	Acknowledge
	Management
)

// Packet is a packet on the wire.
type Packet struct {
	roce.Packet
	Src, Dst  netip.Addr
	SrcPort   uint16
	From      rdma.Side
	Link      *Link        // its connection
	Tx        *Transaction // nil for acknowledgements and management
	Role      Role
	Resent    bool  // not the first time
	DSCP, ECN uint8 // of the IP header
	Priority  uint8 // of the VLAN tag, which it has if this is not 0
}

// Record is a packet as a capture point saw it.
type Record struct {
	Time int64
	Tap  uint16
	Cut  int // bytes of the payload that were captured; -1 for all
	*Packet
}

// Traffic is what a run of the model gave.
type Traffic struct {
	Config       Config
	Transactions []*Transaction // in the order of their calls
	Taps         [2][]Record    // near the client, near the server; in the order of time
	Resent       int            // packets that were retransmitted
}

// Make runs the model.
func Make(c Config) *Traffic {
	c.defaults()
	n := &network{
		Config: c,
		rng:    rand.New(rand.NewPCG(c.Seed, 0x20049)),
		now:    c.Start,
	}
	n.luck = n.rng
	if c.SameWork {
		n.luck = rand.New(rand.NewPCG(c.Seed, 0x4791))
	}
	n.run()
	return &Traffic{Config: c, Transactions: n.transactions, Taps: n.sorted(), Resent: n.resent}
}
