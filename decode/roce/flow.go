package roce

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// flowKey identifies one direction. Only the destination queue pair is on the wire; the source has to be
// inferred.
type flowKey struct {
	src, dst netip.Addr
	tenant   uint64 // link.Frame.Tenant
	qpn      uint32
}

// flow is one direction of a connection: the requests of its sender, and the sender's responses to requests
// of the other direction.
type flow struct {
	key   flowKey
	route *Route // of the last packet that had one: as key has it
	plain plainness
	c     *connection
	side  rdma.Side // of the sender
	tap   rdma.TapFilter
	port  uint16 // last UDP source port
	last  uint64 // number of its last packet
	rpc   bool   // a Send carried RPC
	ended bool   // a NAK of the peer has ended the connection

	good, bad uint32 // ICRC verdicts
	early     int    // in Tracker.early
	ranges    int    // of all sets of PSNs that are counted
	works     uint64 // operations that the watcher was told of

	links
	suspicion
	copies
	cutPacket
	sequence
	history
	responses
	sends []*assembly // Sends in progress with several packets, ordered by PSN
}

// links chain the flows between two hosts.
type links struct {
	unpaired, paired bool // in the chain of those without a peer, or of those with one
	older, newer     *flow
}

// suspicion is what speaks for another flow being the peer of a flow.
type suspicion struct {
	suspect  *flow  // what may be its peer
	matches  int    // packets in a row that say so
	matchPSN uint32 // of the last that was exact
	sole     int    // exact ones to its newest request; negative once another may be its peer, too
	exact    int    // exact ones at different PSNs; negative once another may be its peer, too, or an answer fits none
	parted   int    // how often it had been joined to a wrong one

	// What it may be the answers to, in place of the peer there: see reconnected.
	instead    *flow
	proof      int    // what was found in a row that says so
	proofPSN   uint32 // of the last exact acknowledgement
	proofSince uint64 // number of the packet that was found first
}

// copies tell what may be seen again after a change of the capture point: requests before copyNext, responses up to copyResp.
type copies struct {
	copied, respCopied bool
	copyNext, copyResp uint32
}

// cutPacket is a packet that was cut at the capture point where the flow is followed: see whole.
type cutPacket struct {
	cut     bool
	cutPSN  uint32
	cutSize int // how many bytes of its payload were captured
}

// cutShort remembers a packet that was captured in part.
func (x *cutPacket) cutShort(p *Packet) {
	if d := psnDiff(p.PSN, x.cutPSN); !x.cut || d > maxCutBehind || d < -maxCutBehind {
		x.cut, x.cutPSN, x.cutSize = true, p.PSN, len(p.Payload)
	}
}

// responses tell where the responses of a flow are, in the peer's PSN space.
type responses struct {
	respMissing psnSet
	hasResp     bool
	lastResp    uint32
	lastRefused bool // it was a NAK
	// The last Read Response whose request was not seen.
	hasUnrequested  bool
	lastUnrequested uint32
}
