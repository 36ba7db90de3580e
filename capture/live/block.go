package live

import (
	"encoding/binary"
	"fmt"
)

// Offsets in a block of a TPACKET_V3 ring (linux/if_packet.h: struct
// tpacket_block_desc, tpacket_hdr_v1). Numbers are in the byte order of the
// machine.
const (
	blockStatus = 8
	blockCount  = 12
	blockFirst  = 16
	blockHeader = 48
)

// Offsets in the header of a packet: struct tpacket3_hdr, and after it struct sockaddr_ll.
const (
	recNext     = 0
	recSec      = 4
	recNsec     = 8
	recSnap     = 12
	recLen      = 16
	recStatus   = 20
	recMAC      = 24
	recNet      = 26
	recTCI      = 32
	recTPID     = 36
	recProtocol = 50
	recIndex    = 52
	recHatype   = 56
	recPkttype  = 58
	recHalen    = 59
	recAddr     = 60
	recHeader   = 68
)

// A virtio_net_hdr (linux/virtio_net.h) stands before the data where the socket
// asks for it: flags 1, type of segmentation offload 1, length of headers 2, size
// of segments 2, checksum 4. Numbers are in the byte order of the machine.
const (
	netHeader  = 10
	netGSOType = 1
	netGSOSize = 4

	gsoTCPv4 = 1
	gsoTCPv6 = 4
	gsoUDP   = 5    // VIRTIO_NET_HDR_GSO_UDP_L4: one datagram for each segment
	gsoECN   = 0x80 // a flag
)

// Bits of status.
const (
	statusUser     = 1 << 0 // of a block: it is ours
	statusVLAN     = 1 << 4
	statusTPID     = 1 << 6
	statusHardware = 1 << 31 // the adapter took the time
)

// record is one packet in a block. Its data lie in the ring.
type record struct {
	time     int64
	length   uint32 // on the wire, as the socket saw the packet
	status   uint32
	tci      uint16
	tpid     uint16
	protocol uint16 // ethertype
	index    int32  // of the interface
	hatype   uint16 // ARPHRD_
	pkttype  uint8
	halen    uint8
	addr     [8]byte
	segment  uint16 // what segmentation offload makes of it; 0 for nothing
	network  int    // offset of the network header in data
	data     []byte
}

// walker goes through the packets of a block. What it reads is checked: a
// number that makes no sense ends the block.
type walker struct {
	mem   []byte
	left  uint32
	off   int
	front int // what stands before the data: nothing, or a virtio_net_hdr
	err   error
}

var native = binary.NativeEndian

// start begins with a block that the kernel has handed over. front is the number
// of bytes that it has put before the data of each packet.
func (w *walker) start(mem []byte, front int) {
	*w = walker{mem: mem, front: front}
	if len(mem) < blockHeader {
		w.err = fmt.Errorf("a block of %d bytes", len(mem))
		return
	}
	w.left = native.Uint32(mem[blockCount:])
	w.off = int(native.Uint32(mem[blockFirst:]))
	if w.left > 0 && w.off < blockHeader {
		w.fail("the first packet is at %d", w.off)
	}
}

func (w *walker) fail(format string, args ...any) {
	w.err = fmt.Errorf("damaged block: "+format+"; %d packets are lost", append(args, w.left)...)
	w.left = 0
}

// next takes the next packet.
func (w *walker) next(r *record) bool {
	if w.left == 0 {
		return false
	}
	if w.off > len(w.mem)-recHeader {
		w.fail("a packet at %d of %d bytes", w.off, len(w.mem))
		return false
	}
	p := w.mem[w.off:]
	mac, snap := int(native.Uint16(p[recMAC:])), int(native.Uint32(p[recSnap:]))
	if mac < recHeader+w.front || mac > len(p) || snap > len(p)-mac {
		w.fail("a packet of %d bytes at %d+%d", snap, w.off, mac)
		return false
	}
	r.data = p[mac : mac+snap : mac+snap]
	r.segment = 0
	if w.front == netHeader {
		r.segment = segment(p[mac-netHeader : mac])
	}
	r.network = min(max(int(native.Uint16(p[recNet:]))-mac, 0), snap)
	r.time = int64(native.Uint32(p[recSec:]))*1e9 + int64(native.Uint32(p[recNsec:]))
	r.length = max(native.Uint32(p[recLen:]), uint32(snap))
	r.status = native.Uint32(p[recStatus:])
	r.tci = uint16(native.Uint32(p[recTCI:]))
	r.tpid = native.Uint16(p[recTPID:])
	r.protocol = binary.BigEndian.Uint16(p[recProtocol:])
	r.index = int32(native.Uint32(p[recIndex:]))
	r.hatype = native.Uint16(p[recHatype:])
	r.pkttype = p[recPkttype]
	r.halen = p[recHalen]
	r.addr = [8]byte(p[recAddr:])
	if w.left--; w.left > 0 {
		next := int(native.Uint32(p[recNext:]))
		if next < recHeader || next > len(p) {
			w.fail("the packet after %d is %d bytes further", w.off, next)
		} else {
			w.off += next
		}
	}
	return true
}

// segment is the size of the segments that the kernel would make of a packet,
// by its virtio_net_hdr.
func segment(h []byte) uint16 {
	switch h[netGSOType] &^ gsoECN {
	case gsoTCPv4, gsoTCPv6, gsoUDP:
		return native.Uint16(h[netGSOSize:])
	}
	return 0
}
