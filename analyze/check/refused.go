package check

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// attempts remembers recent attempts to open TCP connections to iWARP ports. If nothing listens there, no
// payload ever identifies the connection as iWARP: only the port does.
type attempts struct {
	ring  []attempt
	next  int
	ports []uint16 // in addition to the well-known port
}

type attempt struct {
	tenant   uint64
	from, to netip.AddrPort
	sequence uint32 // that the answer acknowledges, without payload
	length   uint32 // of the payload, with TCP Fast Open
	ref      rdma.Ref
	settled  bool // it was answered
}

const (
	maxAttempts = 64
	maxPorts    = 16
	portNFS     = 20049 // nfsrdma in the IANA registry
	flagACK     = 0x10
)

// learn records a server's port.
func (a *attempts) learn(port uint16) {
	if !a.knows(port) && len(a.ports) < maxPorts {
		a.ports = append(a.ports, port)
	}
}

func (a *attempts) knows(port uint16) bool { return port == portNFS || slices.Contains(a.ports, port) }

func (a *attempts) find(tenant uint64, from, to netip.AddrPort, is func(*attempt) bool) *attempt {
	for i := range a.ring {
		if t := &a.ring[i]; t.tenant == tenant && t.from == from && t.to == to && is(t) {
			return t
		}
	}
	return nil
}

// Attempt is decode.Observer.Attempt. A single SYN may be answered after the capture.
func (c *Checker) Attempt(k *rdma.Connection, a decode.Asked) {
	if a.Requests < 2 || c.opt.Match != nil || !c.attempts.knows(k.Ends[1].Port) {
		return
	}
	c.leave()
	c.report(&Finding{
		Rule: &rules[ruleNoAnswer], Ref: k.First, Fabric: rdma.IWARP, By: Unknown, From: k.Ends[0], To: k.Ends[1],
		Expected: "an answer", Seen: text.Asked(&a, "by TCP"),
	})
}

// attempted handles a TCP segment that opens a connection, or that answers such a segment.
func (c *Checker) attempted(v *decode.PacketView) {
	if c.on[ruleRejected] == Off || c.opt.Match != nil || v.Frame.Proto != link.TCP {
		return
	}
	f, a := v.Frame, &c.attempts
	src, dst := netip.AddrPortFrom(f.Src, f.SrcPort), netip.AddrPortFrom(f.Dst, f.DstPort)
	switch {
	case f.TCPFlags&(tcp.SYN|tcp.RST|flagACK) == tcp.SYN:
		if !a.knows(f.DstPort) {
			return
		}
		// A retransmission, or a copy from another capture point, is the same attempt.
		if a.find(v.Tenant, src, dst, func(t *attempt) bool { return t.sequence == f.TCPSeq+1 }) != nil {
			return
		}
		t := attempt{tenant: v.Tenant, from: src, to: dst, sequence: f.TCPSeq + 1, length: uint32(f.PayloadLen), ref: c.packet.ref}
		if len(a.ring) < maxAttempts {
			a.ring = append(a.ring, t)
			return
		}
		if !a.ring[a.next].settled {
			c.skip(ruleRejected, Limit)
		}
		a.ring[a.next] = t
		a.next = (a.next + 1) % maxAttempts
	case f.TCPFlags&flagACK != 0 && a.knows(f.SrcPort):
		t := a.find(v.Tenant, dst, src, func(t *attempt) bool {
			return !t.settled && (f.TCPAck == t.sequence || f.TCPAck == t.sequence+t.length)
		})
		if t == nil {
			return
		}
		// RFC 9293, section 3.5.2: where there is no connection, a reset has
		// sequence number 0 and acknowledges what it answers.
		if f.TCPFlags&tcp.SYN == 0 && f.TCPSeq != 0 {
			return
		}
		t.settled = true
		if f.TCPFlags&tcp.SYN != 0 {
			return
		}
		c.report(&Finding{
			Rule: &rules[ruleRejected], Ref: c.packet.ref, Fabric: rdma.IWARP, By: Responder,
			From:     rdma.End{Addr: f.Src, Port: f.SrcPort},
			To:       rdma.End{Addr: f.Dst, Port: f.DstPort},
			Expected: "a connection",
			Seen:     fmt.Sprintf("TCP reset in answer to the SYN of %s in frame %d", link.AddrString(f.Dst), t.ref.Number),
		})
	}
}
