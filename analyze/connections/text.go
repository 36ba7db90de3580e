package connections

import (
	"fmt"
	"io"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Table writes a table, and below it a line for each connection. It goes through the list three times: for the widths of
// the columns, for the table, and for the lines.
func Table(w io.Writer, list *List) error {
	rows := table.NewStream(connectionHeader, connectionRight)
	n := 0
	err := list.Each(func(c *Connection) {
		n++
		for _, row := range c.rows() {
			rows.Measure(row)
		}
	})
	if n == 0 || err != nil {
		return err
	}
	rows.Print(w, connectionHeader)
	if err := list.Each(func(c *Connection) {
		for _, row := range c.rows() {
			rows.Print(w, row)
		}
	}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	var same ports
	err = list.Each(func(c *Connection) {
		fmt.Fprintf(w, "%d: %s\n", c.ID, c.life())
		same.add(c)
	})
	same.print(w)
	return err
}

type setup rdma.Setup

var connectionHeader = []string{
	"ID", "FABRIC", "SERVICE", "PEER", "", "SETUP", "DEPTH", "INLINE", "MTU",
	"PACKETS", "BYTES", "SENDS", "READS", "WRITES", "AGAIN", "NAK", "ECN", "CNP", "GAPS", "CRC",
}

var connectionRight = []bool{
	true, false, false, false, false, false, true, false, true,
	true, true, true, true, true, true, true, true, true, true, true,
}

// rows are the two lines of a connection in the table.
func (c *Connection) rows() (rows [2][]string) {
	for i, side := range c.order() {
		n, s := &c.Sent[side], &c.Setup[side]
		row := []string{"", "", "", link.AddrString(c.Ends[side].Addr), endpoint(c.Ends[side]), c.setupName(side), "-", "-", ""}
		if s.Terms() {
			if s.Depths() {
				row[6] = fmt.Sprintf("%d/%d", s.ResponderDepth, s.InitiatorDepth)
			}
			row[7] = (*setup)(s).inline()
		}
		if i == 0 {
			row[0], row[1], row[2], row[8] = fmt.Sprint(c.ID), c.Fabric.String(), c.service(), units.Number(uint64(c.MTU))
		}
		nak := units.Number(n.NAKs)
		if n.RNRs > 0 {
			nak = fmt.Sprintf("%d/%d", n.NAKs, n.RNRs)
		}
		rows[i] = append(row,
			fmt.Sprint(n.Packets), units.Size(n.Bytes), units.Number(n.Sends), units.Number(n.Reads), units.Number(n.Writes),
			units.Number(n.Retransmitted), nak, units.Number(n.ECN), units.Number(n.CNPs), units.Number(n.Gaps), units.Number(n.BadCRC))
	}
	return rows
}

func (s *setup) inline() string {
	p := &s.Private
	if !p.Present {
		return "-"
	}
	out := fmt.Sprintf("%d/%d", p.SendSize, p.ReceiveSize)
	if p.RemoteInvalidate {
		out += " i"
	}
	return out
}

// Detail writes all that is known of a connection.
func (c *Connection) Detail(w io.Writer) {
	name := c.Fabric.String()
	if s := c.service(); s != "-" {
		name += ", " + s
	}
	fmt.Fprintf(w, "Connection %d: %s\n  %s\n", c.ID, name, c.life())
	if c.MTU > 0 {
		fmt.Fprintf(w, "  %s %d bytes\n", text.MTU(c.Fabric.String()), c.MTU)
	}
	order := c.order()
	if a, b := &c.Setup[order[0]], &c.Setup[order[1]]; c.Declared(0) && c.Declared(1) && isRDMA(c.Fabric) {
		fmt.Fprintf(w, "  inline threshold %d bytes client to server, %d bytes server to client\n",
			rdma.InlineThreshold(&a.Private, &b.Private), rdma.InlineThreshold(&b.Private, &a.Private))
	}
	for i, side := range order {
		role := [2]string{"client", "server"}[i]
		s, n := &c.Setup[side], &c.Sent[side]
		fmt.Fprintf(w, "  %s %s %s\n", role, link.AddrString(c.Ends[side].Addr), endpoint(c.Ends[side]))
		if s.Seen() {
			c.setupDetail(w, side)
		} else if isRDMA(c.Fabric) {
			fmt.Fprintf(w, "    setup not captured\n")
		}
		if h := &c.Headers[side]; h.seen() {
			fmt.Fprintf(w, "    headers: %s\n", h.detail())
		}
		for _, line := range append(c.Policies.lines(i == 1), c.stackLine(side)) {
			if line != "" {
				fmt.Fprintf(w, "    %s\n", line)
			}
		}
		if !isRDMA(c.Fabric) {
			fmt.Fprintf(w, "    sent %s, %s, %s; %s seen again, %s missing\n", units.Plural(n.Packets, "packet"),
				units.Plural(n.Bytes, "byte"), units.Plural(n.Sends, "message"), units.Plural(n.Retransmitted, "packet"), units.Plural(n.Gaps, "byte"))
			continue
		}
		fmt.Fprintf(w, "    sent %s, %s: %s, %s, %s (%d bytes), %d bytes of Read Responses, %s", units.Plural(n.Packets, "packet"),
			units.Plural(n.Bytes, "byte"), units.Plural(n.Sends, "Send"), units.Plural(n.Reads, "RDMA Read"), units.Plural(n.Writes, "RDMA Write"),
			n.WriteBytes, n.ReadBytes, units.Plural(n.Acks, "ACK"))
		if n.Atomics > 0 {
			fmt.Fprint(w, ", ", units.Plural(n.Atomics, "atomic"))
		}
		fmt.Fprintf(w, "\n    health: %s seen again, %s, %s, %d missing, %d with wrong CRC, %s, %s\n", units.Plural(n.Retransmitted, "packet"),
			units.Plural(n.NAKs, "NAK"), units.Plural(n.RNRs, "RNR NAK"), n.Gaps, n.BadCRC, units.Plural(n.ECN, "congestion mark"), units.Plural(n.CNPs, "CNP"))
		if n.Resyncs > 0 {
			fmt.Fprintf(w, "    packet sequence numbers contradicted what was known, and tracking restarted: %s\n", units.Times(n.Resyncs))
		}
		if n.FalseEnds > 0 {
			fmt.Fprintf(w, "    went on after a message had ended the connection: %s\n", units.Times(n.FalseEnds))
		}
	}
	fmt.Fprintln(w)
}

func endpoint(e rdma.End) string {
	switch {
	case e.QPN != 0:
		return fmt.Sprintf("QP 0x%02x", e.QPN)
	case e.Port != 0:
		return fmt.Sprintf("port %d", e.Port)
	}
	return "QP unknown"
}

// life tells when a connection was seen and how it ended.
func (c *Connection) life() string {
	s := fmt.Sprintf("%s to %s (%s), frames %d-%d, %s", units.Clock(c.First.Time), units.Clock(c.Last.Time),
		text.Within(c.First.Time, c.Last.Time), c.First.Number, c.Last.Number, units.Plural(c.Calls.Ended, "transaction"))
	if n := c.Calls.Unanswered; n > 0 {
		s += fmt.Sprintf(", %d without reply", n)
	}
	if n := c.Calls.Incomplete; n > 0 {
		s += fmt.Sprintf(", %d incomplete or without call", n)
	}
	if n := c.Malformed; n > 0 {
		s += ", " + units.Plural(n, "malformed RPC-over-RDMA header")
	}
	if c.Tunnel != nil {
		s += "; in " + string(text.Tunnel(nil, c.Tunnel, c.order()[0]))
	}
	s += "; " + c.ending()
	if c.OtherVersion {
		s += "; the peer sends packets of the other version of RoCE only"
	}
	if c.PKeys != [2]uint16{} {
		s += fmt.Sprintf("; its P_Key 0x%04x does not match 0x%04x, that of the peer", c.PKeys[0], c.PKeys[1])
	}
	if c.Taps > 0 {
		s += "; at " + text.SafeString(c.Tap)
		if c.Taps > 1 {
			s += fmt.Sprintf(", nearest of %d taps", c.Taps)
		}
	}
	return s
}

func (c *Connection) ending() string {
	switch {
	case c.Terminated != "":
		return c.Terminated
	case c.State != rdma.Closed:
		return "open: " + c.State.String()
	}
	return "open at the end of the capture"
}

func isRDMA(f rdma.Fabric) bool { return f != rdma.TCP && f != rdma.UDP }

func (c *Connection) setupDetail(w io.Writer, side rdma.Side) {
	s := &c.Setup[side]
	if s.Cut {
		fmt.Fprintf(w, "    %s in frame %d, cut by the capture", c.setupName(side), s.Frame.Number)
		if s.ServiceID != 0 {
			fmt.Fprintf(w, ": service 0x%016x", s.ServiceID)
		}
		fmt.Fprintln(w)
		return
	}
	fmt.Fprintf(w, "    %s in frame %d: ", c.setupName(side), s.Frame.Number)
	if s.Depths() {
		fmt.Fprintf(w, "answers %d RDMA Reads at once, starts %d", s.ResponderDepth, s.InitiatorDepth)
	} else {
		fmt.Fprint(w, "no depths")
	}
	if c.Fabric == rdma.IWARP {
		fmt.Fprintf(w, ", revision %d", s.MPARevision)
		for _, x := range []struct {
			on   bool
			name string
		}{{s.Markers, "markers"}, {s.CRC, "CRC"}, {s.PeerToPeer, "peer-to-peer"}} {
			if x.on {
				fmt.Fprintf(w, ", %s", x.name)
			}
		}
	} else {
		fmt.Fprintf(w, ", first PSN %d, RNR retries %d", s.StartPSN, s.RNRRetryCount)
		if s.Message == rdma.SetupREQ {
			fmt.Fprintf(w, ", retries %d, ACK timeout %s, service 0x%016x", s.RetryCount, ackTimeout(s.AckTimeout), s.ServiceID)
		}
	}
	fmt.Fprintln(w)
	if p := &s.Private; p.Present {
		fmt.Fprintf(w, "    RFC 8797: sends %d bytes inline, receives %d", p.SendSize, p.ReceiveSize)
		if p.RemoteInvalidate {
			fmt.Fprint(w, ", supports remote invalidation")
		}
		fmt.Fprintln(w)
	} else if s.PrivateBytesLen > 0 {
		fmt.Fprintf(w, "    private data %x\n", s.PrivateBytes[:min(int(s.PrivateBytesLen), len(s.PrivateBytes))])
	}
	if !c.Declared(side) {
		fmt.Fprintln(w, "    private data cut by the capture")
	}
}

// ackTimeout formats the time that the timeout exponent of a REQ stands for: 4.096 µs·2^e, and no timeout for
// 0 (IBTA volume 1, section 9.7.6.1.3).
func ackTimeout(exponent uint8) string {
	if exponent == 0 {
		return "none"
	}
	return units.Duration(4096 * time.Nanosecond << (exponent & 31))
}
