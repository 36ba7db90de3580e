package live

import (
	"encoding/binary"
	"time"
)

// packet is what the kernel would put into a block.
type packet struct {
	at       int64
	data     string
	length   uint32 // 0: that of data
	status   uint32
	tci      uint16
	tpid     uint16
	protocol uint16
	index    int32
	hatype   uint16
	pkttype  uint8
	network  int // offset of the network header in data
}

// fillBlock lays packets out in a block as the kernel does.
func fillBlock(mem []byte, list ...packet) {
	clear(mem[:blockHeader])
	native.PutUint32(mem, 1)
	native.PutUint32(mem[blockCount:], uint32(len(list)))
	native.PutUint32(mem[blockFirst:], blockHeader)
	off := blockHeader
	for i, p := range list {
		r := mem[off:]
		const mac = 82 // behind header and address, such that the network header is aligned
		end := (mac + len(p.data) + 15) &^ 15
		next := end
		if i == len(list)-1 {
			next = 0
		}
		native.PutUint32(r[recNext:], uint32(next))
		native.PutUint32(r[recSec:], uint32(p.at/1e9))
		native.PutUint32(r[recNsec:], uint32(p.at%1e9))
		native.PutUint32(r[recSnap:], uint32(len(p.data)))
		native.PutUint32(r[recLen:], max(p.length, uint32(len(p.data))))
		native.PutUint32(r[recStatus:], p.status)
		native.PutUint16(r[recMAC:], mac)
		native.PutUint16(r[recNet:], uint16(mac+p.network))
		native.PutUint32(r[recTCI:], uint32(p.tci))
		native.PutUint16(r[recTPID:], p.tpid)
		binary.BigEndian.PutUint16(r[recProtocol:], p.protocol)
		native.PutUint32(r[recIndex:], uint32(p.index))
		native.PutUint16(r[recHatype:], p.hatype)
		r[recPkttype], r[recHalen] = p.pkttype, 6
		copy(r[recAddr:], "\x02\x00\x00\x00\x00\x01\x00\x00")
		copy(r[mac:], p.data)
		off += end
	}
	native.PutUint32(mem[blockStatus:], statusUser)
}

var start = time.Unix(1_700_000_000, 0)

// at is a time some milliseconds after the start.
func at(ms int) int64 { return start.Add(time.Duration(ms) * time.Millisecond).UnixNano() }
