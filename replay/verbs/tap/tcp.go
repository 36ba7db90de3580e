package tap

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// TCP flags.
const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagPSH = 0x08
	flagACK = 0x10
)

// maxSegment is the payload of the largest segment, a multiple of 4 that leaves
// room for IPv6 and TCP headers. A capture below segmentation offload has
// segments of this size too.
const maxSegment = (maxPacket - ipv6Len - tcpLen) &^ 3

// TCP builds the packets of one TCP connection: first a handshake, then the data that
// its methods are given. All methods may be called from any goroutine; the packets are
// in the order of the calls.
type TCP struct {
	tap   verbs.Tap
	mu    sync.Mutex
	ends  [2]netip.AddrPort // ends[0] is local
	next  [2]uint32         // sequence numbers
	fin   [2]bool
	id    [2]uint16
	buf   []byte
	clock func() time.Time
}

// NewTCP begins a connection. dialed says that the local end opened it.
func NewTCP(t verbs.Tap, local, remote netip.AddrPort, dialed bool) *TCP {
	c := &TCP{tap: t, clock: time.Now}
	c.ends[0], c.ends[1] = samePlain(local, remote)
	c.next = [2]uint32{start(), start()}
	c.mu.Lock()
	defer c.mu.Unlock()
	opener := 1
	if dialed {
		opener = 0
	}
	c.packet(opener, flagSYN)
	c.next[opener]++
	c.packet(1-opener, flagSYN|flagACK)
	c.next[1-opener]++
	c.packet(opener, flagACK)
	return c
}

var starts atomic.Uint32

// start returns an initial sequence number. It differs between connections, so that two
// connections that use the same ports one after the other can be distinguished.
func start() uint32 { return starts.Add(0x9e3779b9) }

// Sent adds data that the local end sends. It is called before the peer can answer.
func (c *TCP) Sent(bufs ...[]byte) { c.data(0, bufs) }

// Received adds data from the peer.
func (c *TCP) Received(bufs ...[]byte) { c.data(1, bufs) }

// SentFIN ends the direction to the peer. Later calls have no effect.
func (c *TCP) SentFIN() { c.finish(0) }

// ReceivedFIN ends the direction from the peer. Later calls have no effect.
func (c *TCP) ReceivedFIN() { c.finish(1) }

func (c *TCP) finish(from int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fin[from] {
		return
	}
	c.packet(from, flagFIN|flagACK)
	c.next[from]++
	c.fin[from] = true
	if c.fin[1-from] {
		c.packet(1-from, flagACK)
	}
}

func (c *TCP) data(from int, bufs [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fin[from] {
		return
	}
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	for total > 0 {
		n := min(total, maxSegment)
		flags := uint8(flagACK)
		if n == total {
			flags |= flagPSH
		}
		c.begin(from, flags, n)
		for left := n; left > 0; {
			m := min(left, len(bufs[0]))
			c.buf = append(c.buf, bufs[0][:m]...)
			if bufs[0] = bufs[0][m:]; len(bufs[0]) == 0 {
				bufs = bufs[1:]
			}
			left -= m
		}
		c.end(from)
		c.next[from] += uint32(n)
		total -= n
	}
}

// packet writes one without payload.
func (c *TCP) packet(from int, flags uint8) {
	c.begin(from, flags, 0)
	c.end(from)
}

// begin writes the headers of a packet with n bytes of payload.
func (c *TCP) begin(from int, flags uint8, n int) {
	src, dst := c.ends[from], c.ends[1-from]
	c.id[from]++
	b := appendIP(c.buf[:0], protoTCP, src.Addr(), dst.Addr(), c.id[from], tcpLen+n)
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint32(b, c.next[from])
	ack := c.next[1-from]
	if flags&flagACK == 0 {
		ack = 0
	}
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, tcpLen/4<<4, flags, 0xff, 0xff, 0, 0, 0, 0) // window 65535, no checksum yet
	c.buf = b
}

// end computes the checksum of the packet and passes it to the tap.
func (c *TCP) end(from int) {
	header := ipv4Len
	if !c.ends[0].Addr().Is4() {
		header = ipv6Len
	}
	segment := c.buf[header:]
	binary.BigEndian.PutUint16(segment[16:], transportSum(protoTCP, c.ends[from].Addr(), c.ends[1-from].Addr(), segment))
	c.tap.Packet(c.clock(), c.buf)
}
