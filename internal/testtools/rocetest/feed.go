package rocetest

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// udpSize is the size of a UDP header in bytes.
const udpSize = 8

// Port is the UDP destination port of RoCEv2.
const Port = 4791

// Feeder gives records to a tracker as a decoder would.
type Feeder struct {
	Tracker *roce.Tracker
	Number  uint64 // of the last record
	Last    rdma.Ref
	frame   link.Frame
	packet  roce.Packet
}

// Feed gives the tracker one record.
func (f *Feeder) Feed(r *Record) *rdma.Connection {
	f.Number++
	p := r.Packet
	f.packet = p.Packet
	f.packet.Headers = p.Opcode.Headers()
	verdict := roce.Good
	if r.Cut >= 0 && r.Cut < p.PayloadLen {
		f.packet.Payload = p.Payload[:r.Cut]
		f.packet.Cut = true
		verdict = roce.NotCheckedCut
	}
	f.packet.ICRC = verdict
	f.frame = link.Frame{
		Proto: link.UDP, Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: Port, PayloadLen: p.size(),
	}
	f.Last = rdma.Ref{Time: r.Time, Number: f.Number}
	return f.Tracker.Packet(f.Last, r.Tap, 0, rdma.RoCEv2, &f.frame, &f.packet, verdict)
}

// All feeds a whole capture, and its end.
func (f *Feeder) All(records []Record) {
	for i := range records {
		f.Feed(&records[i])
	}
	f.Tracker.Flush(f.Last)
}

// size is the length of the packet from the BTH through the ICRC in bytes.
func (p *Packet) size() int {
	return p.Opcode.HeaderSize() + p.PayloadLen + int(p.Pad) + roce.ICRCSize
}

// Frames turns records into captured Ethernet frames, with ICRC.
func Frames(records []Record) []capture.Packet {
	out := make([]capture.Packet, len(records))
	for i := range records {
		r := &records[i]
		b := r.frame()
		n := len(b)
		if r.Cut >= 0 && r.Cut < r.PayloadLen {
			n = len(b) - r.size() + r.Opcode.HeaderSize() + r.Cut
		}
		out[i] = capture.Packet{
			Time: r.Time, Number: uint64(i + 1), Tap: r.Tap, Link: capture.LinkEthernet,
			Length: uint32(len(b)), Data: b[:n:n],
		}
	}
	return out
}

// frame is the packet in an Ethernet frame.
func (p *Packet) frame() []byte {
	ib := p.Packet.AppendHeaders(nil)
	ib = append(ib, p.Payload...)
	ib = append(ib, make([]byte, p.Pad)...)
	path, ok := roce.NewPath(netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, Port))
	if !ok {
		panic("rocetest: addresses of two kinds")
	}
	ib = path.Append(ib, 0, 0)
	return append(p.lower(len(ib)), ib...)
}

// lower is all that stands before the BTH of n bytes.
func (p *Packet) lower(n int) []byte {
	var b []byte
	b = append(b, 2, 0, 0, 0, 0, byte(2-p.From), 2, 0, 0, 0, 0, byte(1+p.From))
	if p.Priority > 0 {
		b = append(b, 0x81, 0x00, p.Priority<<5, 42)
	}
	tos := p.DSCP<<2 | p.ECN
	if p.Src.Is4() {
		b = append(b, 0x08, 0x00, 0x45, tos)
		b = binary.BigEndian.AppendUint16(b, uint16(20+udpSize+n))
		b = append(b, 0, 0, 0x40, 0, 64, 17, 0, 0)
	} else {
		b = append(b, 0x86, 0xdd, 0x60|tos>>4, tos<<4, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(udpSize+n))
		b = append(b, 17, 64)
	}
	b = append(b, p.Src.AsSlice()...)
	b = append(b, p.Dst.AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, p.SrcPort)
	b = binary.BigEndian.AppendUint16(b, Port)
	b = binary.BigEndian.AppendUint16(b, uint16(udpSize+n))
	return append(b, 0, 0)
}

// Join is Frames with up to n packets of a direction in one datagram, where
// they follow each other and have one size: what segmentation offload shows of
// what it makes. The identification of the i-th packet is i. It returns how
// many packets were joined to one before.
func Join(records []Record, n int) (out []capture.Packet, joined int) {
	for i := 0; i < len(records); {
		r := &records[i]
		var ib []byte
		j := i
		for ; j < len(records) && j-i < n; j++ {
			q := &records[j]
			if j > i && (q.Packet.From != r.Packet.From || q.Link != r.Link || q.Role == Management || records[j-1].size() != r.size() || q.size() > r.size() ||
				q.PSN != (records[j-1].PSN+1)&mask24 || q.Opcode.Service() != r.Opcode.Service()) {
				break
			}
			part := q.Packet.AppendHeaders(nil)
			part = append(part, q.Payload...)
			part = append(part, make([]byte, q.Pad)...)
			path, _ := roce.NewPath(netip.AddrPortFrom(r.Src, r.SrcPort), netip.AddrPortFrom(r.Dst, Port))
			ib = append(ib, path.Append(part, 0, uint16(j-i))...)
		}
		b := append(r.lower(len(ib)), ib...)
		out = append(out, capture.Packet{
			Time: r.Time, Number: uint64(len(out) + 1), Tap: r.Tap, Link: capture.LinkEthernet, Length: uint32(len(b)), Data: b,
		})
		joined += j - i - 1
		i = j
	}
	return out, joined
}
