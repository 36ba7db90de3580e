package roce

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
)

// Field is a header field that the ICRC covers, or that it takes for ones.
type Field uint8

// Fields. Those from FieldTOS on do not count for the ICRC: a sender that takes their values computes a wrong one.
const (
	FieldIPID        Field = iota // IPv4 identification
	FieldSource                   // IPv4 address
	FieldDestination              // IPv4 address
	FieldLength                   // total length of IPv4, payload length of IPv6
	FieldFragment                 // flags and fragment offset of IPv4
	FieldPort                     // UDP source port
	FieldUDPLength                // length of UDP
	FieldPKey                     // of the BTH
	FieldAddress                  // of one host: the source of what it sends, the destination of what it receives
	FieldRequested                // both addresses: those that a REQ names in its private data are right
	FieldTOS                      // type of service of IPv4
	FieldTTL                      // time to live, hop limit
	FieldChecksum                 // of IPv4
	FieldUDPChecksum              // of UDP
	fields
)

// fieldNames are sentences' ends.
var fieldNames = [fields]string{
	"IP identification", "source address", "destination address", "IP length", "IP flags or fragment offset", "UDP source port", "UDP length", "P_Key", "IP address", "addresses",
	"DSCP or ECN", "TTL", "IP checksum", "UDP checksum",
}

func (f Field) String() string { return fieldNames[f] }

// Masked reports whether the ICRC takes the field for ones.
func (f Field) Masked() bool { return f >= FieldTOS }

// place is where a field lies.
type fieldPlace struct {
	at, size int
	part     uint8
}

const (
	inNet uint8 = iota
	inUDP
	inBTH
)

var fieldPlaces = map[kind]map[Field]fieldPlace{
	kindIPv4: {
		FieldIPID: {4, 2, inNet}, FieldSource: {12, 4, inNet}, FieldDestination: {16, 4, inNet}, FieldLength: {2, 2, inNet}, FieldFragment: {6, 2, inNet},
		FieldPort: {0, 2, inUDP}, FieldUDPLength: {4, 2, inUDP}, FieldPKey: {2, 2, inBTH},
		FieldTOS: {1, 1, inNet}, FieldTTL: {8, 1, inNet}, FieldChecksum: {10, 2, inNet}, FieldUDPChecksum: {6, 2, inUDP},
	},
	kindIPv6: {
		FieldLength: {4, 2, inNet}, FieldPort: {0, 2, inUDP}, FieldUDPLength: {4, 2, inUDP}, FieldPKey: {2, 2, inBTH},
		FieldTTL: {7, 1, inNet}, FieldUDPChecksum: {6, 2, inUDP},
	},
}

// Misfits counts wrong ICRCs by the single header field that would make them right with another value. The zero value is ready for use.
type Misfits struct {
	Looked    uint64 // packets
	Fields    [fields]Misfit
	Requested [2]netip.Addr           // the addresses of the first packet of FieldRequested
	asked     [maxAsked][2]netip.Addr // that REQs name
	known     int
}

// maxAsked is how many REQs are used.
const maxAsked = 8

// Misfit is a field with which ICRCs would be right.
type Misfit struct {
	Packets  uint64
	Number   uint64 // of the first of these packets
	Now, Was uint32 // its value in it, and the one that fits
}

// maxMisfits is how many packets are looked into: a cause that is not that of the first ones is not searched for.
const maxMisfits = 32

// wide is how many bits the value of a field may have so that it is not found by chance. Wider ones must be likely, and the same each time.
const wide = 16

// Look looks into a packet with a wrong ICRC, the only one in its frame.
func (m *Misfits) Look(f *link.Frame, number uint64) {
	k := classify(f.Proto, f.Net, f.Transport)
	n := f.PayloadLen
	if m.Looked >= maxMisfits || fieldPlaces[k] == nil || n < BTHSize+ICRCSize || len(f.Payload) < n {
		return
	}
	ib := f.Payload[:n-ICRCSize]
	sum, ok := ICRC(f.Proto, f.Net, f.Transport, ib)
	if !ok {
		return
	}
	m.learn(ib)
	m.requested(f, ib, number)
	wrong := sum ^ binary.LittleEndian.Uint32(f.Payload[n-ICRCSize:])
	m.Looked++
	parts := [...][]byte{inNet: f.Net, inUDP: f.Transport, inBTH: ib}
	behind := [...]int{inNet: len(f.Net) + udpSize + len(ib), inUDP: udpSize + len(ib), inBTH: len(ib)}
	for field, p := range fieldPlaces[k] {
		change, ok := solve(wrong, behind[p.part]-p.at, p.size)
		if !ok {
			continue
		}
		now, was := number32(parts[p.part][p.at:][:p.size]), uint32(0)
		if was = now ^ change; field.Masked() {
			was = change ^ uint32(1<<(8*p.size)-1)
		}
		x := &m.Fields[field]
		if 8*p.size > wide && (!likely(was, now) || x.Packets > 0 && (x.Now != now || x.Was != was)) {
			continue
		}
		if x.Packets++; x.Packets == 1 {
			x.Number, x.Now, x.Was = number, now, was
		}
	}
}

// learn takes the addresses that a REQ names in its private data, as its sender has them.
func (m *Misfits) learn(ib []byte) {
	var req ibcm.Message
	if n := BTHSize + DETHSize; Opcode(ib[0]) != UDSendOnly || len(ib) < n || m.known == maxAsked || !ibcm.Decode(ib[n:], len(ib)-n, &req) || !req.IP {
		return
	}
	if x := [2]netip.Addr{req.Src, req.Dst}; !slices.Contains(m.asked[:m.known], x) {
		m.asked[m.known] = x
		m.known++
	}
}

// requested tries the addresses of REQs, in both directions.
func (m *Misfits) requested(f *link.Frame, ib []byte, number uint64) {
	was := binary.LittleEndian.Uint32(f.Payload[len(ib):])
	for _, x := range m.asked[:m.known] {
		for range 2 {
			x[0], x[1] = x[1], x[0]
			ends := append(x[0].AsSlice(), x[1].AsSlice()...)
			if len(f.Net) < ipv4Size || len(ends) != 8 && len(ends) != 32 || len(ends) == 8 != (f.Net[0]>>4 == 4) {
				continue
			}
			at := 12
			if len(ends) == 32 {
				at = 8
			}
			if len(f.Net) < at+len(ends) || bytes.Equal(f.Net[at:at+len(ends)], ends) {
				continue
			}
			net := bytes.Clone(f.Net)
			copy(net[at:], ends)
			if sum, ok := ICRC(f.Proto, net, f.Transport, ib); ok && sum == was {
				y := &m.Fields[FieldRequested]
				if y.Packets++; y.Packets == 1 {
					y.Number, m.Requested = number, x
				}
				return
			}
		}
	}
}

// likely reports whether an address may be one that a NAT has translated into another.
func likely(was, now uint32) bool {
	return was>>16 == now>>16 || netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, was))).IsPrivate()
}

func number32(b []byte) (n uint32) {
	for _, x := range b {
		n = n<<8 | uint32(x)
	}
	return n
}

// solve finds what has to be changed in size bytes, of which the first is that far from the end, to change the CRC by wrong. A CRC is linear: each
// bit of the message changes it in the same way, whatever the others are.
func solve(wrong uint32, distance, size int) (change uint32, ok bool) {
	type vector struct{ sum, of uint32 }
	var basis [32]vector
	reduce := func(v vector) vector {
		for v.sum != 0 {
			b := basis[31-bits.LeadingZeros32(v.sum)]
			if b.sum == 0 {
				return v
			}
			v.sum, v.of = v.sum^b.sum, v.of^b.of
		}
		return v
	}
	for i := range size {
		for bit := range 8 {
			crc := crc32.IEEETable[byte(1)<<bit]
			for range distance - i - 1 {
				crc = crc32.IEEETable[byte(crc)] ^ crc>>8
			}
			if v := reduce(vector{crc, 1 << (8*(size-1-i) + bit)}); v.sum != 0 {
				basis[31-bits.LeadingZeros32(v.sum)] = v
			}
		}
	}
	v := reduce(vector{wrong, 0})
	return v.of, v.sum == 0
}

// Fits is the field that explains nearly all packets that were looked into. A change that is always the same can be explained by any field that is
// as wide as the CRC, so that the narrowest field counts, and among equals the one of which fewer bits were changed.
func (m *Misfits) Fits() (f Field, x Misfit, ok bool) {
	least := 0
	all := *m
	if y, z := all.Fields[FieldSource], all.Fields[FieldDestination]; y.Now == z.Now && y.Was == z.Was && y.Packets > 0 && z.Packets > 0 {
		if z.Number < y.Number {
			y.Number = z.Number
		}
		y.Packets += z.Packets
		all.Fields[FieldAddress] = y
	}
	m = &all
	if y := m.Fields[FieldRequested]; y.Packets > 0 && 10*y.Packets >= 9*m.Looked {
		return FieldRequested, y, true
	}
	for i := range m.Fields {
		y := &m.Fields[i]
		size := fieldPlaces[kindIPv4][Field(i)].size
		if Field(i) == FieldAddress {
			size = 4
		}
		if y.Packets == 0 || 10*y.Packets < 9*m.Looked || 8*size > wide && y.Packets < 2 {
			continue
		}
		if cost := 32*size + bits.OnesCount32(y.Now^y.Was); !ok || cost < least {
			f, x, ok, least = Field(i), *y, true, cost
		}
	}
	return f, x, ok
}

// Add adds others.
func (m *Misfits) Add(o *Misfits) {
	m.Looked += o.Looked
	for i := range m.Fields {
		x, y := &m.Fields[i], &o.Fields[i]
		if x.Packets == 0 || y.Packets > 0 && y.Number < x.Number {
			if Field(i) == FieldRequested {
				m.Requested = o.Requested
			}
			x.Number, x.Now, x.Was = y.Number, y.Now, y.Was
		}
		x.Packets += y.Packets
	}
}
