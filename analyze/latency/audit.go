package latency

import (
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Levels of remarks.
const (
	levelInfo    = "info"
	levelWarning = "warning"
)

// ackTimeout is the time in nanoseconds that the timeout exponent of a REQ stands for: 4.096 µs·2^e, and no
// timeout for 0 (IBTA volume 1, section 9.7.6.1.3).
func ackTimeout(exponent uint8) int64 {
	if exponent == 0 {
		return 0
	}
	return 4096 << (exponent & 31)
}

// longTimeout is an ACK timeout at which the loss of a last packet becomes noticeable.
const longTimeout = int64(time.Second)

// leastRepeated is the fewest packets of a connection for which the share of repeated packets is judged.
const leastRepeated = 20

// maxPathMTU is the largest path MTU of InfiniBand and RoCE, in bytes.
const maxPathMTU = 4096

// remarks are the remarks of an audit, in order.
type remarks []Remark

func (r *remarks) warn(format string, args ...any) {
	*r = append(*r, Remark{levelWarning, fmt.Sprintf(format, args...)})
}

func (r *remarks) info(format string, args ...any) {
	*r = append(*r, Remark{levelInfo, fmt.Sprintf(format, args...)})
}

// audit checks how a connection was set up.
func audit(c *rdma.Connection, client rdma.Side, x *Connection) []Remark {
	r := remarks{}
	if gaps := c.Sent[0].Gaps + c.Sent[1].Gaps; gaps > 0 {
		unit := "packets"
		if c.Fabric == rdma.IWARP || c.Fabric == rdma.TCP {
			unit = "bytes"
		}
		r.warn("%d %s are missing from the capture: times and sizes of the transactions that they belong to are not whole", gaps, unit)
	}
	if again, all := c.Sent[0].Retransmitted+c.Sent[1].Retransmitted, c.Sent[0].Packets+c.Sent[1].Packets; all >= leastRepeated && 4*again >= all {
		// The counts do not tell copies from retransmissions: constant reordering causes as many.
		r.warn("%d of %d packets were seen again. Either the network is that bad, or the capture has packets twice (several mirrored ports, both sides of a router): then what counts as sent again are copies; editcap -d removes those that are equal in every byte", again, all)
	}
	if from, ok := c.OneWay(); ok && from == client {
		r.warn("nothing that the server sent was captured: replies, and with them results and times, are not known")
	} else if ok {
		r.warn("nothing that the client sent was captured: calls, and with them operations and times, are not known")
	}
	if !isRDMA(c.Fabric) {
		return r
	}
	a, b := &c.Setup[client], &c.Setup[client.Other()]
	switch {
	case c.State == rdma.Rejected:
		r.warn("the connection was rejected: %s", orUnknown(c.Terminated))
		return r
	case !a.Seen() && !b.Seen():
		r.info("the setup was not captured: depths, inline sizes, timeouts and CRC settings are not known")
		return r
	case !b.Seen():
		r.info("the server's answer to the setup was not captured: what was agreed is not known")
		return r
	case !a.Seen():
		r.info("the client's request was not captured: what was agreed is not known")
		return r
	case !c.Terms():
		r.info("the setup was cut by the capture: depths, inline sizes and timeouts are not known")
		return r
	}
	if x.Forward != nil || x.Backward != nil { // the rest is about RPC
		r.depth(a, b, x)
		r.inline(c, client, x)
	}
	if c.Fabric == rdma.IWARP {
		r.mpa(a, b)
	} else {
		r.cm(c)
	}
	if f := x.Forward; f != nil && f.AtLimit > 0 {
		r.info("as many calls were in flight as credits granted (%d) for %v: %.1f %% of the time",
			f.Granted.Max, time.Duration(f.AtLimit).Round(time.Microsecond), 100*float64(f.AtLimit)/float64(max(f.Known, 1)))
	}
	if n, share := x.Forward.plateau(); n > 0 {
		r.info("a plateau at %s calls in flight, for %.0f %% of the busy time, with %d credits granted: the client may limit the rate",
			span(n, x.Forward.Most), 100*share, x.Forward.Granted.Max)
	}
	return r
}

// span is the text of the numbers from a to b.
func span(a, b int) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d to %d", a, b)
}

// plateau finds a connection whose rate is limited by the number of its calls in flight: for two fifths of the time with calls there are
// about as many as ever, and there are credits for twice as many. It returns how many, and the share of that time.
func (f *Flow) plateau() (n int, share float64) {
	if f == nil || f.Most < 2 || 2*f.Most > int(f.Granted.Max) {
		return 0, 0
	}
	n = f.Most - f.Most/8
	var busy, at float64
	for _, l := range f.Levels {
		if l.N > 0 {
			busy += float64(l.Time)
		}
		if l.N >= n {
			at += float64(l.Time)
		}
	}
	if at < 0.4*busy {
		return 0, 0
	}
	return n, at / max(busy, 1)
}

// depth checks how many RDMA Reads the two ends agreed on; a is the client.
func (r *remarks) depth(a, b *rdma.Setup, x *Connection) {
	switch {
	case x.Depth == 0 && (b.InitiatorDepth == 0) == (a.ResponderDepth == 0):
		r.warn("RDMA Read depth 0: neither end allows the server to read; WRITE data cannot be pulled")
	case x.Depth == 0 && b.InitiatorDepth == 0:
		r.warn("RDMA Read depth 0: the server starts none, so that WRITE data cannot be pulled")
	case x.Depth == 0:
		r.warn("RDMA Read depth 0: the client answers none, so that WRITE data cannot be pulled")
	case x.Depth == 1:
		r.warn("RDMA Read depth 1 (server starts %d, client answers %d): WRITE data is pulled one Read at a time", b.InitiatorDepth, a.ResponderDepth)
	case x.Reads != nil && x.Reads.Most >= x.Depth:
		r.info("RDMA Read depth %d (server starts %d, client answers %d) was reached: Reads may have waited for it", x.Depth, b.InitiatorDepth, a.ResponderDepth)
	}
}

// inline checks the private data of RFC 8797.
func (r *remarks) inline(c *rdma.Connection, client rdma.Side, x *Connection) {
	p, q := &c.Setup[client].Private, &c.Setup[client.Other()].Private
	for _, end := range []struct {
		name string
		side rdma.Side
	}{{"client", client}, {"server", client.Other()}} {
		switch {
		case !c.Declared(end.side):
			r.info("the private data of the %s was cut by the capture: inline sizes and remote invalidation are not known", end.name)
		case !c.Setup[end.side].Private.Present:
			r.warn("the %s sent no private data of RFC 8797: it sends and receives 1024 bytes inline, and remote invalidation is off", end.name)
		}
	}
	if !p.Present || !q.Present {
		return
	}
	for _, t := range []struct {
		way         string
		n, from, to uint32
	}{
		{"calls", x.InlineCall, p.SendSize, q.ReceiveSize},
		{"replies", x.InlineReply, q.SendSize, p.ReceiveSize},
	} {
		switch {
		case t.n <= rdma.DefaultInlineThreshold:
			r.warn("inline threshold of %s is %d bytes (sent %d, received %d): what is longer needs chunks", t.way, t.n, t.from, t.to)
		case t.from != t.to:
			r.info("inline threshold of %s is %d bytes: the ends differ (sent %d, received %d) and the smaller counts", t.way, t.n, t.from, t.to)
		}
	}
	if !p.RemoteInvalidate {
		r.info("the client does not support remote invalidation: it has to invalidate its handles itself")
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "reason not known"
	}
	return s
}

// mpa checks the setup of iWARP (RFC 5044, RFC 6581).
func (r *remarks) mpa(a, b *rdma.Setup) {
	if !a.CRC && !b.CRC {
		r.warn("MPA without CRC: only the checksum of TCP protects the data")
	}
	if a.Markers || b.Markers {
		r.info("MPA markers are on: four bytes in every 512, and data must be moved around them")
	}
	if a.MPARevision < 2 || b.MPARevision < 2 {
		r.info("MPA revision %d: RDMA Read depths were not negotiated", min(a.MPARevision, b.MPARevision))
	}
}

// cm checks the setup of RoCE and InfiniBand.
func (r *remarks) cm(c *rdma.Connection) {
	req := &c.Setup[0] // a REP has no such terms
	if c.MTU > 0 && c.MTU < maxPathMTU {
		r.info("path MTU %d: %d times the packets of %d", c.MTU, maxPathMTU/c.MTU, maxPathMTU)
	}
	if req.RetryCount == 0 {
		r.warn("retry count 0: one lost packet ends the connection")
	}
	if req.RNRRetryCount == 0 {
		r.info("RNR retry count 0: a receiver that is not ready ends the connection; credits must keep that from happening")
	}
	switch t := ackTimeout(req.AckTimeout); {
	case t == 0:
		r.warn("no ACK timeout: the loss of a last packet is never noticed")
	case t >= longTimeout:
		r.warn("ACK timeout %v: the loss of a last packet costs at least that", time.Duration(t).Round(time.Millisecond))
	}
}
