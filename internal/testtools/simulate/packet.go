package simulate

import (
	"encoding/binary"
	"io"
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// packet is a packet on its way.
type packet struct {
	roce.Packet
	src, dst *host
	srcPort  uint16
	to       *end        // who takes it; nil for what a host takes
	arrive   func()      // instead, for management
	pause    *link.Pause // a frame of flow control, of src or, if that is nil, of the switch
	seg      *segment    // over iWARP
	port     [2]uint16   // of TCP
	stag     uint32      // over iWARP: of the memory, and where in it or in the message its data go
	offset   uint64
	msn      uint32
	part     uint32 // of a Read Request that is sent again for what is lacking: where it begins
	ends     bool   // the last of a Read's responses
	carries  bool   // an acknowledgement that waited
	carried  uint32
	id       uint64 // of what it carries, the same in each run: call, role, place, attempt
	call     *Call
	last     bool // of a reply
	ack      bool // an acknowledgement, which an adapter sends first
	ce       bool // marked by the switch
}

// record is a packet as a capture point saw it.
type record struct {
	time int64
	ce   bool
	*packet
}

const (
	rocePort  = 4791
	udpHeader = 8
	wireExtra = 24 // preamble, frame check sequence and gap
)

// size is the length of the frame in bytes, without its frame check sequence.
func (p *packet) size() int {
	if p.pause != nil {
		return 60
	}
	if p.seg != nil {
		return 14 + 20 + tcpHeader + p.seg.length
	}
	return 14 + 20 + udpHeader + p.Opcode.HeaderSize() + p.PayloadLen + int(p.Pad) + roce.ICRCSize
}

// onWire is for how long the frame occupies a link of rate bits per second.
func (p *packet) onWire(rate int64) int64 {
	return int64(p.size()+wireExtra) * 8 * 1_000_000_000 / rate
}

// frame appends the frame to b, with the right ICRC.
func (r record) frame(b []byte) []byte {
	if r.pause != nil {
		b = append(b, 0x01, 0x80, 0xc2, 0, 0, 1)
		b = append(b, r.src.mac()...)
		b = append(b, 0x88, 0x08)
		b = r.pause.Append(b)
		return append(b, make([]byte, max(0, 60-len(b)))...)
	}
	if r.seg != nil {
		return r.frameTCP(b)
	}
	p := r.packet
	n := p.size() - 14 - 20
	b = append(b, p.dst.mac()...)
	b = append(b, p.src.mac()...)
	ecn := byte(2)
	if r.ce {
		ecn = 3
	}
	if p.Opcode == roce.CNP {
		ecn = 0
	}
	b = append(b, 0x08, 0x00, 0x45, 26<<2|ecn)
	b = binary.BigEndian.AppendUint16(b, uint16(20+n))
	b = append(b, 0, 0, 0x40, 0, 64, 17, 0, 0)
	b = append(b, p.src.addr.AsSlice()...)
	b = append(b, p.dst.addr.AsSlice()...)
	ip := b[len(b)-20 : len(b) : len(b)]
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	b = binary.BigEndian.AppendUint16(b, p.srcPort)
	b = binary.BigEndian.AppendUint16(b, rocePort)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, 0, 0)
	ib := p.Packet.AppendHeaders(nil)
	ib = append(ib, p.Payload...)
	ib = append(ib, make([]byte, p.PayloadLen-len(p.Payload)+int(p.Pad))...)
	path, ok := roce.NewPath(netip.AddrPortFrom(p.src.addr, p.srcPort), netip.AddrPortFrom(p.dst.addr, rocePort))
	if !ok {
		panic("simulate: addresses of two kinds")
	}
	return append(b, path.Append(ib, 0, 0)...)
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// write writes what a capture point saw as a pcap with times in nanoseconds. Of each frame, the first snap bytes
// are kept; 0 for all.
func write(w io.Writer, records []record, snap int) error {
	out := capture.NewWriter(w, capture.WriterOptions{Format: capture.Pcap, Link: capture.LinkEthernet})
	var b []byte
	for i, r := range records {
		b = r.frame(b[:0])
		data := b
		if snap > 0 && len(data) > snap {
			data = data[:snap]
		}
		err := out.Write(&capture.Packet{
			Time: r.time, Number: uint64(i + 1), Link: capture.LinkEthernet, Length: uint32(len(b)), Data: data,
		})
		if err != nil {
			return err
		}
	}
	return out.Flush()
}
