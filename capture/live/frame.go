package live

import (
	"encoding/binary"
	"math"

	"github.com/rpcrdma/toolkit/capture"
)

// Kinds of links (linux/if_arp.h) and of packets (linux/if_packet.h).
const (
	arphrdEthernet   = 1
	arphrdInfiniBand = 32
	arphrdLoopback   = 772

	packetOutgoing = 4
)

const defaultTPID = 0x8100

// linkOf is the link type of packets from an interface: Ethernet frames unchanged; for all others, the
// network packet after a header with what the kernel knows (SLL2).
func linkOf(hatype uint16) capture.LinkType {
	if hatype == arphrdEthernet || hatype == arphrdLoopback {
		return capture.LinkEthernet
	}
	return capture.LinkSLL2
}

// echo reports whether a packet leaves by a loopback interface: it will come
// in again.
func (r *record) echo() bool { return r.hatype == arphrdLoopback && r.pkttype == packetOutgoing }

// tagged returns the tag that the kernel has stripped.
func (r *record) tagged() (tpid uint16, ok bool) {
	if r.status&statusVLAN == 0 {
		return 0, false
	}
	if r.status&statusTPID == 0 {
		return defaultTPID, true
	}
	return r.tpid, true
}

// add copies a packet to a batch, with the tag back in its place.
func (r *record) add(b *capture.Batch, number uint64, tap uint16) {
	p := capture.Packet{Time: r.time, Number: number, Tap: tap, Link: linkOf(r.hatype), Length: r.length, Segment: r.segment}
	tpid, tagged := r.tagged()
	be := binary.BigEndian
	if p.Link == capture.LinkEthernet {
		const addresses = 12
		if !tagged || len(r.data) < addresses {
			copy(b.Extend(p, len(r.data)), r.data)
			return
		}
		p.Length = longer(p.Length, 4)
		d := b.Extend(p, len(r.data)+4)
		copy(d, r.data[:addresses])
		be.PutUint16(d[addresses:], tpid)
		be.PutUint16(d[addresses+2:], r.tci)
		copy(d[addresses+4:], r.data[addresses:])
		return
	}
	const header = 20 // https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html
	body := r.data[r.network:]
	n, protocol := header, r.protocol
	if tagged {
		n, protocol = header+4, tpid
	}
	p.Length = longer(p.Length-uint32(r.network), uint32(n))
	d := b.Extend(p, n+len(body))
	be.PutUint16(d, protocol)
	be.PutUint16(d[2:], 0)
	be.PutUint32(d[4:], uint32(r.index))
	be.PutUint16(d[8:], r.hatype)
	d[10], d[11] = r.pkttype, r.halen
	copy(d[12:20], r.addr[:])
	if tagged {
		be.PutUint16(d[20:], r.tci)
		be.PutUint16(d[22:], r.protocol)
	}
	copy(d[n:], body)
}

func longer(n, by uint32) uint32 {
	if n > math.MaxUint32-by {
		return n
	}
	return n + by
}
