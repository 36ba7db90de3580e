package text

import (
	"errors"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// stream is one direction of a TCP connection.
type stream struct{ src, dst netip.AddrPort }

// boundary is where the next FPDU of a stream begins, as far as the packet listing can tell: it does not
// reorder segments. The trackers do.
type boundary struct {
	known bool
	next  uint32 // sequence number
}

// maxStreams bounds the number of remembered streams.
const maxStreams = 1 << 14

var tcpFlags = [...]struct {
	bit  uint8
	name string
}{{0x02, "SYN"}, {0x01, "FIN"}, {0x04, "RST"}}

// tcp writes a TCP segment and the frames that begin in it.
func (p *PacketLister) tcp(v *decode.PacketView) {
	l, f := &p.line, v.Frame
	p.dec("TCP ", uint64(f.SrcPort))
	p.dec(" > ", uint64(f.DstPort))
	for _, x := range tcpFlags {
		if f.TCPFlags&x.bit != 0 {
			l.str(" ")
			l.painted(p.Color, ColorBold, x.name)
		}
	}
	p.dec(" seq ", uint64(f.TCPSeq))
	if f.TCPFlags&0x10 != 0 {
		p.dec(" ack ", uint64(f.TCPAck))
	}
	if f.PayloadLen == 0 {
		return
	}
	p.dec(" len ", uint64(f.PayloadLen))
	rpc := v.Connection != nil && v.Connection.Fabric == rdma.TCP
	if oncrpc.StartsRecord(f.Payload) {
		if m, ok := oncrpc.Peek(f.Payload[4:]); ok {
			p.hex(" ", uint64(m.XID), 8)
			p.rpc(f.Payload[4:])
		}
		return
	}
	if !rpc {
		p.fpdus(v, f)
	}
}

// fpdus writes the MPA frame or the FPDUs of a segment.
func (p *PacketLister) fpdus(v *decode.PacketView, f *link.Frame) {
	l := &p.line
	key := stream{netip.AddrPortFrom(f.Src, f.SrcPort), netip.AddrPortFrom(f.Dst, f.DstPort)}
	data := f.Payload
	at := 0
	var m iwarp.MPAFrame
	n, err := m.Decode(data)
	switch {
	case err == nil:
		p.mpa(&m)
		at = n
	case errors.Is(err, iwarp.ErrShort) && len(data) >= 8:
		l.str(" MPA frame, not all of it")
		return
	default:
		if s := p.streams[key]; s.known && int32(s.next-f.TCPSeq) >= 0 {
			if d := s.next - f.TCPSeq; d < uint32(f.PayloadLen) {
				at = int(d)
				if at > 0 {
					l.str(" ...")
				}
			} else {
				l.str(" ...")
				return // the middle of an FPDU
			}
		} else if iwarp.Sniff(data, f.PayloadLen) != iwarp.Yes {
			if v.Connection != nil && v.Connection.Fabric == rdma.IWARP {
				l.str(" ...")
			}
			return
		}
	}
	if p.markers(v, f) {
		if at < len(data) {
			l.str(" FPDUs with markers")
		}
		return
	}
	for at+iwarp.FPDUHeaderLen+iwarp.ControlLen <= len(data) {
		n := int(data[at])<<8 | int(data[at+1])
		u := iwarp.ULPDU(data[at+iwarp.FPDUHeaderLen : min(at+iwarp.FPDUHeaderLen+n, len(data))])
		if !u.Valid(n) {
			return
		}
		if at > 0 {
			l.str(" |")
		}
		p.segment(u, n)
		at += iwarp.FPDULen(n)
	}
	if at <= f.PayloadLen && at+iwarp.FPDUHeaderLen > len(data) && at < f.PayloadLen {
		return // the length of the next FPDU is cut
	}
	if p.streams == nil || len(p.streams) >= maxStreams {
		p.streams = make(map[stream]boundary)
	}
	p.streams[key] = boundary{true, f.TCPSeq + uint32(at)}
}

// markers reports whether the sender of a segment inserts markers because its peer requested them.
func (p *PacketLister) markers(v *decode.PacketView, f *link.Frame) bool {
	c := v.Connection
	if c == nil {
		return false
	}
	receiver := rdma.Side(0)
	if e := c.Ends[0]; e.Addr == f.Src && e.Port == f.SrcPort {
		receiver = 1
	}
	return c.Setup[receiver].Markers
}

// mpa writes an MPA Request or Reply.
func (p *PacketLister) mpa(m *iwarp.MPAFrame) {
	l := &p.line
	name := "MPA Request"
	if m.Reply {
		name = "MPA Reply"
	}
	l.str(" ")
	l.painted(p.Color, ColorBold, name)
	p.dec(" revision ", uint64(m.Revision))
	for _, x := range [...]struct {
		on   bool
		name string
	}{
		{m.Reject, " reject"}, {m.Markers, " markers"}, {m.CRC, " CRC"}, {m.PeerToPeer, " peer-to-peer"},
	} {
		if x.on {
			l.str(x.name)
		}
	}
	if m.Enhanced {
		p.dec(" IRD ", uint64(m.IRD))
		p.dec(" ORD ", uint64(m.ORD))
	}
	var private rdma.PrivateData
	private.Decode(m.Private)
	p.private(&private, m.Private)
}

// segment writes a DDP segment; u holds the captured part of its length bytes.
func (p *PacketLister) segment(u iwarp.ULPDU, length int) {
	l := &p.line
	c := u.Control()
	l.str(" ")
	l.painted(p.Color, ColorBold, c.Opcode().String())
	if c.Tagged() {
		h := iwarp.Tagged(u)
		p.hex(" key ", uint64(h.STag()), 8)
		p.hex(" at ", h.TO(), 16)
		p.dec(" len ", uint64(length-iwarp.TaggedLen))
		if c.Last() {
			l.str(" last")
		}
		return
	}
	h := iwarp.Untagged(u)
	payload := u.Payload()
	p.dec(" MSN ", uint64(h.MSN()))
	if h.MO() != 0 {
		p.dec(" MO ", uint64(h.MO()))
	}
	p.dec(" len ", uint64(length-iwarp.UntaggedLen))
	if c.Last() {
		l.str(" last")
	}
	if c.Opcode().Invalidates() {
		p.hex(" invalidates ", uint64(h.InvalidateSTag()), 8)
	}
	switch op := c.Opcode(); {
	case op == iwarp.OpReadRequest && len(payload) >= iwarp.ReadRequestLen:
		r := iwarp.ReadRequest(payload)
		p.hex(" key ", uint64(r.SourceSTag()), 8)
		p.hex(" at ", r.SourceTO(), 16)
		p.dec(" of ", uint64(r.Size()))
		p.hex(" to key ", uint64(r.SinkSTag()), 8)
	case op == iwarp.OpTerminate && len(payload) >= iwarp.TerminateLen:
		l.str(" ")
		l.painted(p.Color, ColorRed, iwarp.Terminate(payload).String())
	case op.IsSend() && h.MO() == 0:
		full := length - iwarp.UntaggedLen
		if !c.Last() {
			full = 1 << 24
		}
		p.send(payload, full)
	}
}

// Setup reports whether a packet may belong to the setup of an iWARP connection that is not yet known: a SYN,
// or an MPA frame.
func Setup(v *decode.PacketView) bool {
	f := v.Frame
	if f.Proto != link.TCP {
		return false
	}
	const nfsRDMA = 20049 // RFC 8267, section 7
	if f.SrcPort == nfsRDMA || f.DstPort == nfsRDMA {
		return true
	}
	var m iwarp.MPAFrame
	_, err := m.Decode(f.Payload)
	return err == nil
}
