package text

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/digits"
	"github.com/rpcrdma/toolkit/internal/units"
)

// PacketLegend explains the listing of packets.
const PacketLegend = `One line for each packet: number, time, addresses, connection, and what the
headers of the fabric say.

RoCE and InfiniBand: the opcode (of the RC service if no other is named), the
destination queue pair, the PSN, "A" if an acknowledgement is asked for, the
length of the payload, then extension headers: the remote key, address and
length of a RETH, ACK or NAK by name with its message sequence number, the
handle that a Send invalidates. A frame that holds several packets (segmentation
offload) has a line for each.

iWARP: MPA frames, and the DDP segments (FPDUs) that begin in the TCP segment,
separated by "|". "..." stands for the end of a segment that began before.

A Send is followed by its RPC-over-RDMA header, with chunks as in the listing of
transactions, and the RPC call or reply in it. Connection management messages
are shown with ids, queue pairs and private data.

A packet that came out of a tunnel or mirror ends with "in", the wrapping and
its VNI, key, session or label, the outermost first.

With --headers, "[…]" has the UDP source port, DSCP, ECN (ect0 and ect1:
capable), TTL, VLAN and priority if there is a tag, P_Key, and the MAC
addresses.

Marks at the end of a line:

  again      seen before: retransmitted, or duplicated on the way
  gap        packets before this one are missing from the capture
  bad-crc    the ICRC, or the CRC of an FPDU, is wrong
  malformed  the RPC-over-RDMA header of the Send ending here is malformed
  ce, becn   congestion was experienced; cut: less was captured than was sent
`

const (
	numberWidth     = 6
	connectionWidth = 4
	opcodeWidth     = 25
)

// PacketLister writes packets as lines.
type PacketLister struct {
	Clock Clock
	Color bool
	// Headers adds the values of the headers below the fabric.
	Headers bool
	// Name, if set, gives the name of a host; empty to show the address.
	Name func(netip.Addr) string

	hosts   hosts
	line    line
	header  rpcrdma.Header
	message ibcm.Message
	seen    map[*rdma.Connection]*counts
	streams map[stream]boundary
}

// counts are the counters of a connection after its last packet. What has changed shows how the trackers
// classified a packet.
type counts struct{ again, gaps, crc, malformed uint64 }

// Append appends the lines of a packet, each with its newline.
func (p *PacketLister) Append(b []byte, v *decode.PacketView) []byte {
	marks := p.marks(v)
	if len(v.RoCE) == 0 {
		p.start(b, v)
		p.other(v)
		return p.end(v, nil, marks)
	}
	for i := range v.RoCE {
		p.start(b, v)
		q := &v.RoCE[i]
		p.infiniband(q)
		b = p.end(v, q, marks)
	}
	return b
}

// Summary returns what the listing says of a packet after its addresses and its connection. Texts of packets that share a frame are
// joined by "; ".
func (p *PacketLister) Summary(v *decode.PacketView) string {
	marks := p.marks(v)
	if len(v.RoCE) == 0 {
		p.line.b, p.line.col = nil, 0
		p.other(v)
		return strings.TrimSpace(string(p.end(v, nil, marks)))
	}
	var list []string
	for i := range v.RoCE {
		p.line.b, p.line.col = nil, 0
		p.infiniband(&v.RoCE[i])
		list = append(list, strings.Join(strings.Fields(string(p.end(v, &v.RoCE[i], marks))), " "))
	}
	return strings.Join(list, "; ")
}

// start writes the part that all packets have.
func (p *PacketLister) start(b []byte, v *decode.PacketView) {
	l := &p.line
	l.b, l.col = b, 0
	var digits [20]byte
	n := strconv.AppendUint(digits[:0], v.Packet.Number, 10)
	l.pad(numberWidth - len(n))
	l.b, l.col = append(l.b, n...), l.col+len(n)
	l.str(" ")
	if p.Clock.Format.Style != TimeNone {
		if p.Color {
			l.b = append(l.b, ColorDim...)
		}
		start := len(l.b)
		l.b = p.Clock.Append(l.b, v.Packet.Time)
		l.since(start)
		if p.Color {
			l.b = append(l.b, ColorOff...)
		}
		l.str(" ")
	}
	if v.Frame.Src.IsValid() {
		hosts := p.hosts.pair(p.Name, v.Frame.Src, v.Frame.Dst, 0)
		l.b = append(l.b, hosts.text...)
		l.col += hosts.columns
	} else {
		l.pad(l.col + max(p.hosts.width, addressWidth) + 1)
	}
	start := l.col
	if c := v.Connection; c != nil {
		l.str("#")
		s := len(l.b)
		l.b = strconv.AppendInt(l.b, int64(c.Resolve().ID), 10)
		l.since(s)
	}
	l.str(" ")
	l.pad(start + connectionWidth)
}

// end writes the marks.
func (p *PacketLister) end(v *decode.PacketView, q *roce.Packet, marks string) []byte {
	l := &p.line
	mark := func(s, color string) {
		l.str(" ")
		l.painted(p.Color, color, s)
	}
	for i := range v.Frame.Tunnels {
		t := &v.Frame.Tunnels[i]
		l.str(" in ")
		l.str(t.Type.String())
		if t.HasID {
			p.dec(" ", uint64(t.ID))
		}
	}
	if p.Headers && v.Frame.Src.IsValid() {
		l.str(" [")
		s := len(l.b)
		l.b = appendHeaders(l.b, v, q)
		l.since(s)
		l.str("]")
	}
	if marks != "" {
		mark(marks, ColorYellow)
	}
	if q != nil {
		if q.ICRC == roce.Bad {
			mark("bad-crc", ColorRed)
		}
		if q.BECN && !q.Opcode.IsCNP() {
			mark("becn", ColorYellow)
		}
		if q.Problem != roce.NoProblem {
			mark("["+q.Problem.String()+"]", ColorRed)
		}
	} else if v.Frame.Problem != link.NoProblem {
		mark("["+v.Frame.Problem.String()+"]", ColorRed)
	}
	if v.Frame.ECN == 3 {
		mark("ce", ColorYellow)
	}
	if uint32(len(v.Packet.Data)) < v.Packet.Length {
		mark("cut", ColorDim)
	}
	l.b = append(l.b, '\n')
	b := l.b
	l.b = nil
	return b
}

// ecnCodes are the two bits of ECN (RFC 3168, section 5).
var ecnCodes = [4]string{"not-ect", "ect1", "ect0", "ce"}

// appendHeaders appends what the headers below the fabric say.
func appendHeaders(b []byte, v *decode.PacketView, q *roce.Packet) []byte {
	f := v.Frame
	if v.Fabric == rdma.RoCEv2 {
		b = fmt.Appendf(b, "port %d ", f.SrcPort)
	}
	if f.Proto != link.InfiniBand {
		b = fmt.Appendf(b, "dscp %d %s ttl %d", f.DSCP(), ecnCodes[f.ECN&3], f.TTL)
	}
	if f.VLAN|uint16(f.Priority) != 0 {
		b = fmt.Appendf(b, " vlan %d prio %d", f.VLAN, f.Priority)
	}
	if q != nil {
		b = fmt.Appendf(b, " pkey 0x%04x", q.PKey)
	}
	if to, from := v.MACs(); to != nil {
		b = fmt.Appendf(b, " %s > %s", net.HardwareAddr(from), net.HardwareAddr(to))
	}
	return b
}

// maxConnections bounds the number of remembered connections.
const maxConnections = 1 << 14

// marks describes what the trackers found about a packet.
func (p *PacketLister) marks(v *decode.PacketView) string {
	c := v.Connection
	if c == nil {
		return ""
	}
	c = c.Resolve()
	last := p.seen[c]
	first := last == nil
	if first {
		if p.seen == nil || len(p.seen) >= maxConnections {
			p.seen = make(map[*rdma.Connection]*counts)
		}
		last = &counts{}
		p.seen[c] = last
	}
	now := counts{
		again: c.Sent[0].Retransmitted + c.Sent[1].Retransmitted,
		gaps:  c.Sent[0].Gaps + c.Sent[1].Gaps,
		crc:   c.Sent[0].BadCRC + c.Sent[1].BadCRC,
	}
	malformed := transaction.MalformedOf(c)
	now.malformed = malformed.Total()
	was := *last
	*last = now
	if first && c.First.Number != v.Packet.Number {
		return "" // earlier changes do not belong to this packet
	}
	again, gap := now.again > was.again, now.gaps > was.gaps
	mark := ""
	switch {
	case again && gap:
		mark = "again gap"
	case again:
		mark = "again"
	case gap:
		mark = "gap"
	case now.crc > was.crc && v.Fabric == rdma.TCP:
		mark = "bad-crc"
	}
	if now.malformed > was.malformed {
		mark = strings.TrimPrefix(mark+" malformed", " ")
	}
	return mark
}

func (p *PacketLister) hex(label string, n uint64, digits int) {
	l := &p.line
	start := len(l.b)
	l.b = append(l.b, label...)
	l.b = hexNumber(l.b, n, digits)
	l.since(start)
}

func (p *PacketLister) dec(label string, n uint64) {
	l := &p.line
	start := len(l.b)
	l.b = append(l.b, label...)
	l.b = strconv.AppendUint(l.b, n, 10)
	l.since(start)
}

// infiniband writes the headers of a RoCE or InfiniBand packet.
func (p *PacketLister) infiniband(q *roce.Packet) {
	l := &p.line
	if q.Problem == roce.ProblemCutBTH || q.Problem == roce.ProblemShortBTH {
		l.str("?")
		return
	}
	if q.Opcode.Service() == roce.ServiceUD && q.DestQP == 1 && q.Problem == roce.NoProblem {
		p.management(q)
		return
	}
	start := l.col
	name := q.Opcode.String()
	if q.Opcode.Service() == roce.ServiceRC {
		name = name[len("RC "):]
	}
	color := ColorBold
	if q.Opcode.IsAcknowledge() {
		color = ColorDim
	}
	l.painted(p.Color, color, name)
	l.str(" ")
	l.pad(start + opcodeWidth + 1)
	p.hex("QP ", uint64(q.DestQP), 2)
	p.dec(" PSN ", uint64(q.PSN))
	l.pad(start + opcodeWidth + 1 + len("QP 0x000000 PSN 16777215"))
	if q.AckReq {
		l.str(" A")
	} else {
		l.str("  ")
	}
	if q.PayloadLen > 0 {
		p.dec(" len ", uint64(q.PayloadLen))
	}
	if q.Headers.Has(roce.HasDETH) {
		p.hex(" from QP ", uint64(q.DETH.SrcQP), 2)
	}
	if q.Headers.Has(roce.HasRETH) {
		p.hex(" key ", uint64(q.RETH.RKey), 8)
		p.hex(" at ", q.RETH.VA, 16)
		p.dec(" of ", uint64(q.RETH.DMALen))
	}
	if q.Headers.Has(roce.HasAtomicETH) {
		p.hex(" key ", uint64(q.Atomic.RKey), 8)
		p.hex(" at ", q.Atomic.VA, 16)
		p.dec(" operand ", q.Atomic.SwapAdd)
		p.dec(" compare ", q.Atomic.Compare)
	}
	if q.Headers.Has(roce.HasAETH) {
		s := q.AETH.Syndrome
		l.str(" ")
		if s.IsACK() {
			l.str("ACK")
		} else {
			l.painted(p.Color, ColorRed, s.String())
		}
		if s.IsRNR() {
			l.str(" wait ")
			start := len(l.b)
			l.b = units.AppendDuration(l.b, s.RNRTimer())
			l.since(start)
		}
		p.dec(" MSN ", uint64(q.AETH.MSN))
	}
	if q.Headers.Has(roce.HasAtomicAckETH) {
		p.dec(" was ", q.AtomicAck)
	}
	if q.Headers.Has(roce.HasImmDt) {
		p.hex(" immediate ", uint64(q.Imm), 8)
	}
	if q.Headers.Has(roce.HasIETH) {
		p.hex(" invalidates ", uint64(q.IETH), 8)
	}
	if q.Opcode.IsSend() && q.Opcode.Starts() {
		full := q.PayloadLen
		if !q.Opcode.Ends() {
			full = 1 << 24 // the rest is not captured here
		}
		p.send(q.Payload, full)
	}
}

// cmNames are the names of connection management messages, from REQ on.
var cmNames = [...]string{
	"CM ConnectRequest", "CM MessageReceiptAck", "CM ConnectReject", "CM ConnectReply", "CM ReadyToUse",
	"CM DisconnectRequest", "CM DisconnectReply", "CM ServiceIDRequest", "CM ServiceIDReply",
	"CM LoadAlternatePath", "CM AlternatePathResponse",
}

// management writes a connection management message.
func (p *PacketLister) management(q *roce.Packet) {
	l, m := &p.line, &p.message
	if !ibcm.Decode(q.Payload, q.PayloadLen, m) {
		l.str("MAD: ")
		l.str(m.Problem)
		return
	}
	l.painted(p.Color, ColorBold, cmNames[m.Attribute-ibcm.AttributeREQ])
	// What the capture has cut is zero, which is not what was sent.
	if len(m.Data) >= 4 {
		p.hex(" id ", uint64(m.LocalID), 8)
	}
	if m.RemoteID != 0 && m.IDsKnown() {
		p.hex(" to id ", uint64(m.RemoteID), 8)
	}
	switch m.Attribute {
	case ibcm.AttributeREQ, ibcm.AttributeREP:
		p.queuePair(m)
		if m.StartKnown {
			p.dec(" PSN ", uint64(m.StartPSN))
		}
		if m.Attribute == ibcm.AttributeREQ {
			p.request(m)
		}
		if m.TermsKnown {
			p.dec(" depth ", uint64(m.ResponderResources))
			p.dec("/", uint64(m.InitiatorDepth))
			p.dec(" rnr-retry ", uint64(m.RNRRetryCount))
		}
		p.private(&m.RDMA, m.Private)
	case ibcm.AttributeREJ:
		if m.ReasonKnown() {
			l.str(" of ")
			l.str(m.Rejected.String())
			l.str(": ")
			l.painted(p.Color, ColorRed, m.Reason.String())
		}
		p.private(&m.RDMA, nil)
	case ibcm.AttributeMRA:
		if m.ReasonKnown() {
			l.str(" of ")
			l.str(m.Rejected.String())
		}
	case ibcm.AttributeDREQ:
		p.queuePair(m)
	case ibcm.AttributeSIDRREQ, ibcm.AttributeSIDRREP:
		p.service(m)
	}
}

func (p *PacketLister) queuePair(m *ibcm.Message) {
	if m.QPNKnown() {
		p.hex(" QP ", uint64(m.QPN), 2)
	}
}

// request writes what only a REQ has.
func (p *PacketLister) request(m *ibcm.Message) {
	if m.TermsKnown {
		p.line.str(" ")
		p.line.str(m.Transport.String())
		p.dec(" MTU ", uint64(m.PathMTU))
	}
	p.service(m)
	if m.IP {
		p.address(" from ", netip.AddrPortFrom(m.Src, m.SrcPort))
	}
	if m.TermsKnown {
		p.dec(" retry ", uint64(m.RetryCount))
	}
}

func (p *PacketLister) service(m *ibcm.Message) {
	if !m.ServiceKnown() {
		return
	}
	s := m.ServiceID
	if proto, port, ok := s.IP(); ok {
		if proto == 6 {
			p.dec(" port ", uint64(port))
			return
		}
		p.dec(" protocol ", uint64(proto))
		p.dec(" port ", uint64(port))
		return
	}
	p.hex(" service ", uint64(s), 16)
}

func (p *PacketLister) address(label string, a netip.AddrPort) {
	l := &p.line
	start := len(l.b)
	l.b = append(l.b, label...)
	l.b = a.AppendTo(l.b)
	l.since(start)
}

// private writes the private data of a connection setup: decoded if it is an RFC 8797 message, otherwise its
// first bytes.
func (p *PacketLister) private(m *rdma.PrivateData, data []byte) {
	l := &p.line
	switch {
	case m.Present:
		p.dec(" inline ", uint64(m.SendSize))
		p.dec("/", uint64(m.ReceiveSize))
		if m.RemoteInvalidate {
			l.str(" remote-invalidate")
		}
	default:
		for len(data) > 0 && data[len(data)-1] == 0 {
			data = data[:len(data)-1]
		}
		if len(data) == 0 {
			return
		}
		start := len(l.b)
		l.b = append(l.b, " private "...)
		l.b = digits.Hex(l.b, data[:min(len(data), 16)])
		if len(data) > 16 {
			l.b = append(l.b, "..."...)
		}
		l.since(start)
	}
}

// send writes the start of a Send: the RPC-over-RDMA header, and the RPC message after it.
func (p *PacketLister) send(data []byte, full int) {
	if !rpcrdma.Plausible(data, full) && !rpcrdma.PlausibleV2(data, full) && !rpcrdma.PlausibleV0(data, full) {
		return
	}
	h := &p.header
	_ = h.Decode(data, full) // show what can be decoded
	l := &p.line
	l.str(" ")
	if s := h.Type.String(); s != "" {
		l.painted(p.Color, ColorGreen, s)
	} else {
		p.dec("type ", uint64(h.Type))
	}
	if h.Version != rpcrdma.Version1 {
		p.dec(" v", uint64(h.Version))
	}
	p.hex(" ", uint64(h.XID), 8)
	if h.Version != rpcrdma.Version0 {
		p.dec(" credits ", uint64(h.Credits))
	}
	if h.Type == rpcrdma.TypeError {
		l.str(" ")
		l.painted(p.Color, ColorRed, h.Error.Name(h.Version))
	}
	start := len(l.b)
	l.b = append(l.b, ' ')
	if l.b = appendChunks(l.b, h, nil); len(l.b) == start+1 {
		l.b = l.b[:start]
	}
	l.since(start)
	if h.Inline() {
		p.rpc(h.Payload)
	}
}

// rpc writes what the first words of an RPC message contain.
func (p *PacketLister) rpc(b []byte) {
	m, ok := oncrpc.Peek(b)
	if !ok {
		return
	}
	l := &p.line
	if m.Type == oncrpc.TypeReply {
		l.str(" reply")
		return
	}
	l.str(" call ")
	if name := nfs.Name(m.Program, m.Version); name != "" {
		l.str(name)
	} else {
		p.dec("program ", uint64(m.Program))
		l.str(" v")
	}
	p.dec("", uint64(m.Version))
	l.str(" ")
	if proc := nfs.Lookup(m.Program, m.Version).Procedure(m.Procedure); proc != nil {
		l.str(proc.Name)
	} else if m.Procedure == 0 {
		l.str("NULL")
	} else {
		p.dec("procedure ", uint64(m.Procedure))
	}
}

// other writes a packet that is neither RoCE nor InfiniBand.
func (p *PacketLister) other(v *decode.PacketView) {
	l, f := &p.line, v.Frame
	switch f.Proto {
	case link.TCP:
		p.tcp(v)
	case link.UDP:
		p.dec("UDP ", uint64(f.SrcPort))
		p.dec(" > ", uint64(f.DstPort))
		p.dec(" len ", uint64(f.PayloadLen))
		if oncrpc.PlausibleDatagram(f.Payload, f.PayloadLen) {
			if m, ok := oncrpc.Peek(f.Payload); ok {
				p.hex(" ", uint64(m.XID), 8)
			}
			p.rpc(f.Payload)
		}
	case link.Fragment:
		p.hex("IP fragment of ", uint64(f.FragmentID), 4)
		p.dec(" at ", uint64(f.FragmentOffset))
		p.dec(" len ", uint64(f.PayloadLen))
		if f.MoreFragments {
			l.str(" more")
		}
	case link.RoCEv1, link.InfiniBand:
		l.str("InfiniBand, not decodable")
	default:
		if u := f.Unknown.String(); u != "" {
			l.str(u)
		} else {
			l.str("other")
		}
		p.dec(", ", uint64(v.Packet.Length))
		l.str(" bytes")
	}
}
