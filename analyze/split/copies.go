package split

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
)

// copies finds the packets that another capture point shows once more. Decoding
// follows a connection at one point and leaves the others out, so that copies
// belong to no transaction by themselves: they go where their originals go.
type copies struct {
	seed   maphash.Seed
	hash   maphash.Hash
	first  uint16 // capture point of the first packet
	some   bool
	on     bool // there is more than one
	recent [2]map[uint64]*original
}

// original is a packet that belongs to transactions.
type original struct {
	number uint64
	file   *file // where it went, once it was written
	conn   *conn
}

// maxOriginals bounds those of a generation; two are remembered.
const maxOriginals = 1 << 16

// sum is the same for all copies of a packet; 0 for what is not compared.
func (c *copies) sum(v *decode.PacketView) uint64 {
	tap := v.Packet.Tap
	if !c.some {
		c.some, c.first, c.seed = true, tap, maphash.MakeSeed()
	}
	c.on = c.on || tap != c.first
	f := v.Frame
	if !c.on || f.Proto == link.None || f.Proto == link.Fragment {
		return 0
	}
	c.hash.SetSeed(c.seed)
	src, dst := f.Src.As16(), f.Dst.As16()
	_, _ = c.hash.Write(src[:])
	_, _ = c.hash.Write(dst[:])
	var b [16]byte
	binary.BigEndian.PutUint16(b[0:], f.SrcPort)
	binary.BigEndian.PutUint16(b[2:], f.DstPort)
	binary.BigEndian.PutUint32(b[4:], f.TCPSeq)
	binary.BigEndian.PutUint32(b[8:], f.TCPAck)
	binary.BigEndian.PutUint32(b[12:], uint32(f.PayloadLen))
	_, _ = c.hash.Write(b[:])
	if f.Proto != link.TCP {
		_, _ = c.hash.Write(f.Payload)
	}
	return max(c.hash.Sum64(), 1)
}

func (c *copies) find(sum uint64) *original {
	if o := c.recent[0][sum]; o != nil {
		return o
	}
	return c.recent[1][sum]
}

// note remembers a packet that belongs to transactions.
func (c *copies) note(sum, number uint64) {
	if o := c.find(sum); o != nil {
		o.number = number
		return
	}
	if c.recent[0] == nil || len(c.recent[0]) >= maxOriginals {
		c.recent[1] = c.recent[0]
		c.recent[0] = make(map[uint64]*original)
	}
	c.recent[0][sum] = &original{number: number}
}
