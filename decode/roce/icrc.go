package roce

import (
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/rpcrdma/toolkit/decode/link"
)

// Verdict is the outcome of checking an ICRC.
type Verdict uint8

// Verdicts.
const (
	Unchecked Verdict = iota // not checked
	Good
	Bad
	NotCheckedCut     // the capture cut the packet
	NotCheckedAbsent  // everything but the ICRC was captured
	NotCheckedZeroed  // the ICRC is zero: computed or removed by the adapter
	NotCheckedUnknown // the ICRC is not defined for this network header
)

var verdictNames = [...]string{
	"not checked", "good", "bad", "not checked: cut by the capture", "not checked: absent",
	"not checked: zeroed", "not checked: unknown network header",
}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return verdictNames[Unchecked]
}

// Checked reports whether v is a result: Good or Bad.
func (v Verdict) Checked() bool { return v == Good || v == Bad }

// The ICRC (IBTA volume 1, section 7.8.1; annexes A16 and A17 for RoCE) is the
// CRC-32 of Ethernet over the network header, the transport headers, payload
// and pad. What routers may change counts as ones. RoCE replaces the local
// route header, which it does not have, by eight bytes of ones.
//
// The checksum routine is fastest on at least 64 bytes and on multiples of 16.
// Therefore the masked headers are gathered in a scratch buffer, with as much
// of the packet as makes the rest a multiple of 16, and zeros before them: a
// CRC register that starts as 0 is not moved by leading zeros, and starting it
// with ones is the same as inverting the first four bytes of data. So eight
// bytes of ones are four zeros and four ones.
const (
	icrcLead    = 64   // zeros before the headers
	icrcOnes    = 4    // the local route header, less the inverted start
	maxNet      = 256  // longest network header that is examined
	icrcCopied  = 1152 // packets up to this length are gathered as a whole
	icrcScratch = icrcLead + icrcOnes + maxNet + udpSize + icrcCopied
	udpSize     = 8
)

// Checker computes ICRCs. The zero value is ready for use. It contains scratch space, so it is not safe for
// concurrent use.
type Checker struct {
	scratch [icrcScratch]byte
}

// kind is how the network header is masked.
type kind uint8

const (
	kindUnknown kind = iota
	kindIPv4         // and UDP
	kindIPv6         // and UDP
	kindGRH
	kindLRH
	kindLRHGRH
)

// classify determines how the ICRC covers the network header, and rejects headers that the arithmetic below
// cannot handle.
func classify(proto link.Proto, net, transport []byte) kind {
	if len(net) > maxNet {
		return kindUnknown
	}
	switch proto {
	case link.UDP:
		if len(transport) != udpSize {
			return kindUnknown
		}
		switch {
		case len(net) >= 20 && net[0]>>4 == 4:
			return kindIPv4
		case len(net) >= 40 && net[0]>>4 == 6:
			return kindIPv6
		}
	case link.RoCEv1:
		if len(net) == GRHSize {
			return kindGRH
		}
	case link.InfiniBand:
		switch len(net) {
		case LRHSize:
			return kindLRH
		case LRHSize + GRHSize:
			return kindLRHGRH
		}
	}
	return kindUnknown
}

// head writes the masked network header to the scratch buffer and returns its end.
func (c *Checker) head(k kind, net, transport []byte) int {
	s := &c.scratch
	end := icrcLead
	if k == kindLRH {
		copy(s[end:], net[:LRHSize])
		h := s[end : end+LRHSize]
		h[0] |= 0xf0
		h[0], h[1], h[2], h[3] = ^h[0], ^h[1], ^h[2], ^h[3]
		return end + LRHSize
	}
	if k == kindLRHGRH {
		net = net[LRHSize:]
	}
	binary.LittleEndian.PutUint32(s[end:], 0xffffffff)
	end += icrcOnes
	h := s[end : end+len(net)]
	copy(h, net)
	end += len(net)
	if k == kindIPv4 {
		h[1] = 0xff                                     // TOS
		h[8] = 0xff                                     // TTL
		binary.LittleEndian.PutUint16(h[10:12], 0xffff) // checksum
	} else {
		binary.BigEndian.PutUint32(h[0:4], 0x6fffffff) // traffic class, flow label
		h[7] = 0xff                                    // hop limit
	}
	if k == kindIPv4 || k == kindIPv6 {
		u := s[end : end+udpSize]
		copy(u, transport)
		binary.LittleEndian.PutUint16(u[6:8], 0xffff)
		end += udpSize
	}
	return end
}

// alone sets the lengths in the headers and the IPv4 identification to the values for a packet of n bytes,
// ICRC included, that travels alone. net bytes of the headers belong to IP.
func (c *Checker) alone(k kind, net, n int, id uint16) {
	h := c.scratch[icrcLead+icrcOnes : icrcLead+icrcOnes+net+udpSize]
	if k == kindIPv4 {
		binary.BigEndian.PutUint16(h[2:4], uint16(net+udpSize+n))
		binary.BigEndian.PutUint16(h[4:6], id)
	} else {
		binary.BigEndian.PutUint16(h[4:6], uint16(net-ipv6Size+udpSize+n))
	}
	binary.BigEndian.PutUint16(h[net+4:net+6], uint16(udpSize+n))
}

// aligned is the latest start within the zeros for which the bytes up to end are a multiple of 16 and at
// least 64.
func aligned(end int) int {
	start := min(icrcLead, end-64)
	return start - (start-end)&15
}

// sum is the ICRC of the packet ib, which extends from the BTH to just before the ICRC and has at least the
// length of a BTH. If ib is one segment of a longer datagram, the lengths in the headers and the IPv4
// identification id have the values of a segment that travels alone.
func (c *Checker) sum(k kind, net, transport, ib []byte, segment bool, id uint16) uint32 {
	s := &c.scratch
	end := c.head(k, net, transport)
	if segment && (k == kindIPv4 || k == kindIPv6) {
		c.alone(k, len(net), len(ib)+ICRCSize, id)
	}
	n := len(ib)
	if n > icrcCopied {
		n = BTHSize + (len(ib)-BTHSize)&15
	}
	copy(s[end:], ib[:n])
	s[end+bthECN] = 0xff
	end += n
	crc := crc32.Update(^uint32(0), crc32.IEEETable, s[aligned(end):end])
	if n < len(ib) {
		crc = crc32.Update(crc, crc32.IEEETable, ib[n:])
	}
	return crc
}

// Check verifies the ICRC of a frame that holds one packet.
func (c *Checker) Check(f *link.Frame) Verdict {
	k := classify(f.Proto, f.Net, f.Transport)
	n := f.PayloadLen
	if k == kindUnknown || n < BTHSize+ICRCSize {
		return NotCheckedUnknown
	}
	if len(f.Payload) < n {
		if len(f.Payload) == n-ICRCSize {
			return NotCheckedAbsent
		}
		return NotCheckedCut
	}
	return verdict(c.sum(k, f.Net, f.Transport, f.Payload[:n-ICRCSize], false, 0), f.Payload[n-ICRCSize:n])
}

func verdict(sum uint32, stored []byte) Verdict {
	// Unlike all other fields, the CRC is stored least significant byte first.
	switch v := binary.LittleEndian.Uint32(stored); v {
	case sum:
		return Good
	case 0:
		return NotCheckedZeroed
	}
	return Bad
}

// Sum computes the ICRC of a packet. net and transport are as in link.Frame: the IP header and the UDP header
// (RoCEv2), the GRH and nothing (RoCEv1), or LRH and GRH and nothing (InfiniBand); their length fields must
// be those of the finished packet. ib is the packet from the BTH through the pad bytes. It returns false if
// net or ib cannot belong to a packet.
func (c *Checker) Sum(proto link.Proto, net, transport, ib []byte) (uint32, bool) {
	k := classify(proto, net, transport)
	if k == kindUnknown || len(ib) < BTHSize {
		return 0, false
	}
	return c.sum(k, net, transport, ib, false, 0), true
}

// Append appends the ICRC to ib, a packet from the BTH through the pad bytes. See Sum for the arguments. It
// returns ib unchanged if they do not form a packet.
func (c *Checker) Append(proto link.Proto, net, transport, ib []byte) []byte {
	sum, ok := c.Sum(proto, net, transport, ib)
	if !ok {
		return ib
	}
	return binary.LittleEndian.AppendUint32(ib, sum)
}

var checkers = sync.Pool{New: func() any { return new(Checker) }}

// ICRC is Checker.Sum for occasional use; it is safe for concurrent use.
func ICRC(proto link.Proto, net, transport, ib []byte) (uint32, bool) {
	c := checkers.Get().(*Checker)
	sum, ok := c.Sum(proto, net, transport, ib)
	checkers.Put(c)
	return sum, ok
}
