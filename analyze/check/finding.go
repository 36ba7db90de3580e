package check

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Party is the side that broke a rule.
type Party uint8

// Parties. For a callback, the requester is the NFS server.
const (
	Unknown Party = iota
	Requester
	Responder
)

var partyNames = [...]string{"unknown", "requester", "responder"}

func (p Party) String() string { return partyNames[p] }

// Finding is one breach of a rule, or something worth knowing.
type Finding struct {
	Rule     *Rule
	Severity Severity // in the current profile
	Known    string   // known deviation of a real implementation; empty otherwise

	Ref        rdma.Ref // packet that shows it
	Connection int
	// Of a fleet, otherwise empty: the tap whose captures Ref and the frames are of, the file that has the packet of Ref, and its
	// number in it; the key of the connection.
	Tap, Capture string
	Packet       uint64
	Key          string
	Fabric       rdma.Fabric
	HasXID       bool
	XID          uint32
	Backward     bool // of the transaction
	// Program ("nfs3", "nfs4.1") and Operation are empty if they are not known.
	Program, Operation    string
	CallFrame, ReplyFrame uint64 // last packets of call and reply; 0 if not seen

	By       Party
	From, To rdma.End // the side that broke the rule, and its peer

	Expected, Seen string
	// Reaction is what the peer did next; empty if unknown.
	Reaction string
	// CallKey and ReplyKey are the encoding keys of the chunk lists.
	CallKey, ReplyKey string
}

// Reason is why a rule was not judged.
type Reason uint8

// Reasons.
const (
	NoCall      Reason = iota // the call was not captured
	NoReply                   // there is no reply, or it was not captured
	NoSetup                   // the connection's setup was not captured
	Gaps                      // packets are missing from the capture
	Cut                       // the capture cut a packet
	Protected                 // encrypted, or of an unknown program
	Undecodable               // arguments or results could not be decoded
	MidStream                 // earlier packets of the connection were not captured
	Ambiguous                 // several capture points, or both ends on one host
	NotAcked                  // it is not certain that everything was captured
	Limit                     // a memory limit was reached
	Reordered                 // the capture has packets of the two directions in the wrong order
	reasonCount
)

var reasonNames = [...]string{
	"call not captured", "no reply", "setup not captured", "packets missing from the capture", "cut by the capture",
	"encrypted or unknown program", "body not decodable", "connection began before the capture",
	"several capture points", "end not captured", "limit reached", "packets out of order in the capture",
}

func (r Reason) String() string { return reasonNames[r] }
