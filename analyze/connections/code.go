package connections

import (
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// maxWords is the length of the longest text of a connection.
const maxWords = 4096

// code codes what is listed of a connection.
func (c *Connection) code(k *state.Coder) {
	state.Number(k, &c.ID)
	state.Enum(k, &c.Fabric, rdma.Fabrics)
	state.Enum(k, &c.State, int(rdma.Closed)+1)
	state.Number(k, &c.MTU)
	state.Enum(k, &c.Client, 2)
	state.Number(k, &c.Calls.Ended)
	state.Number(k, &c.Calls.Unanswered)
	state.Number(k, &c.Calls.Incomplete)
	state.Number(k, &c.Malformed)
	codeRef(k, &c.First)
	codeRef(k, &c.Last)
	k.Text(&c.Terminated, maxWords)
	k.Flag(&c.Ended)
	state.Number(k, &c.Requests)
	state.Number(k, &c.BadRequests)
	k.Flag(&c.OtherVersion)
	state.Number(k, &c.PKeys[0])
	state.Number(k, &c.PKeys[1])
	state.Number(k, &c.Tenant)
	state.Number(k, &c.Ports[0])
	state.Number(k, &c.Ports[1])
	codeTunnel(k, &c.Tunnel)
	for side := range c.Ends {
		codeEnd(k, &c.Ends[side])
		codeSetup(k, &c.Setup[side])
		codeCounters(k, &c.Sent[side])
	}
	for side := range c.Headers {
		c.Headers[side].code(k)
	}
	c.Policies.code(k)
	k.Text(&c.Tap, maxWords)
	state.Number(k, &c.Taps)
}

// place codes what is listed of a connection, and the file that its row names, which states of taps do not have.
func (c *Connection) place(k *state.Coder) {
	c.code(k)
	k.Text(&c.Capture, maxWords)
	state.Number(k, &c.Packet)
}

func codeTunnel(k *state.Coder, t **rdma.Tunnel) {
	has := *t != nil
	if k.Flag(&has); !has {
		return
	}
	if *t == nil {
		*t = new(rdma.Tunnel)
	}
	k.Text(&(*t).Type, maxWords)
	state.Number(k, &(*t).Version)
	k.Flag(&(*t).HasID)
	state.Number(k, &(*t).ID)
	k.Address(&(*t).Ends[0])
	k.Address(&(*t).Ends[1])
}

func codeEnd(k *state.Coder, e *rdma.End) {
	k.Address(&e.Addr)
	state.Number(k, &e.Port)
	state.Number(k, &e.QPN)
}

func codeSetup(k *state.Coder, s *rdma.Setup) {
	if state.Enum(k, &s.Message, int(rdma.SetupMessages)); !s.Seen() {
		return
	}
	k.Flag(&s.Cut)
	codeRef(k, &s.Frame)
	state.Number(k, &s.StartPSN)
	state.Number(k, &s.PathMTU)
	state.Number(k, &s.ResponderDepth)
	state.Number(k, &s.InitiatorDepth)
	state.Number(k, &s.RetryCount)
	state.Number(k, &s.RNRRetryCount)
	state.Number(k, &s.AckTimeout)
	state.Number(k, &s.ServiceID)
	state.Number(k, &s.MPARevision)
	k.Flag(&s.Markers)
	k.Flag(&s.CRC)
	k.Flag(&s.PeerToPeer)
	k.Flag(&s.Private.Present)
	state.Number(k, &s.Private.Version)
	k.Flag(&s.Private.RemoteInvalidate)
	state.Number(k, &s.Private.SendSize)
	state.Number(k, &s.Private.ReceiveSize)
	b := s.PrivateBytes[:min(int(s.PrivateBytesLen), len(s.PrivateBytes))]
	if k.Blob(&b, len(s.PrivateBytes)); k.Reading() {
		s.PrivateBytesLen = uint8(copy(s.PrivateBytes[:], b))
	}
}

func codeRef(k *state.Coder, r *rdma.Ref) {
	state.Signed(k, &r.Time)
	state.Number(k, &r.Number)
}

func codeCounters(k *state.Coder, n *rdma.Counters) {
	for _, v := range [...]*uint64{
		&n.Packets, &n.Bytes, &n.Sends, &n.Writes, &n.Reads, &n.Atomics, &n.WriteBytes, &n.ReadBytes,
		&n.Acks, &n.Retransmitted, &n.NAKs, &n.RNRs, &n.ECN, &n.CNPs, &n.Gaps, &n.BadCRC, &n.Resyncs, &n.FalseEnds, &n.ZeroCRC,
	} {
		state.Number(k, v)
	}
}
