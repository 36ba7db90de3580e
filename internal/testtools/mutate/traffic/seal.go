package traffic

import (
	"encoding/binary"
	"unsafe"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// item is a packet with what is known of its layout in the sample. Changes may
// make it wrong; it is only used to put things right that were right before.
type item struct {
	capture.Packet
	net, upper, payload int  // where the headers and the payload begin; net is -1 if there are none
	tcp                 bool // or UDP
	crc                 bool // FPDUs have a CRC
	mine                bool // Data may be written
	raw                 bool // lengths and checksums stay as they are
	longer              int  // bytes that were added to the payload
}

func newItem(p capture.Packet) item {
	it := item{Packet: p}
	var f link.Frame
	link.Decode(p.Link, p.Data, p.Length, &f)
	it.net, it.upper, it.payload = within(p.Data, f.Net), within(p.Data, f.Transport), within(p.Data, f.Payload)
	if len(f.Net) == 0 {
		it.net = -1
	}
	it.tcp = f.Proto == link.TCP
	if it.payload == 0 {
		it.payload = len(p.Data)
	}
	if it.tcp && uint32(len(p.Data)) == p.Length {
		if u, err := iwarp.ParseFPDU(f.Payload); err == nil {
			it.crc = u.CRC() == u.Checksum()
		}
	}
	return it
}

// within is where a part of b begins in b.
func within(b, part []byte) int {
	if len(part) == 0 || len(b) == 0 {
		return 0
	}
	return int(uintptr(unsafe.Pointer(&part[0])) - uintptr(unsafe.Pointer(&b[0])))
}

// seal puts lengths and checksums right.
func (it *item) seal() {
	if it.raw {
		return
	}
	if d := it.longer; d != 0 && len(it.lower()) > 0 && len(it.Data) >= it.payload {
		net := it.lower()
		add := func(at, by int) {
			if len(net) >= at+2 {
				binary.BigEndian.PutUint16(net[at:], uint16(int(binary.BigEndian.Uint16(net[at:]))+by))
			}
		}
		switch {
		case it.Link == capture.LinkInfiniBand:
			add(4, d/4)
			add(roce.LRHSize+4, d)
		case net[0]>>4 == 4:
			add(2, d)
		default:
			add(4, d)
		}
		if !it.tcp && it.upper > it.net {
			net = it.Data[it.upper:]
			add(4, d)
		}
	}
	if uint32(len(it.Data)) < it.Length {
		return
	}
	if it.tcp {
		it.sealFPDUs()
		return
	}
	sealICRC(&it.Packet)
}

// sealFPDUs gives the FPDUs of a segment the CRCs that they had.
func (it *item) sealFPDUs() {
	if !it.crc || len(it.Data) < it.payload {
		return
	}
	for b := it.Data[it.payload:]; len(b) > 2; {
		n := iwarp.FPDULen(int(binary.BigEndian.Uint16(b)))
		if n > len(b) {
			return
		}
		u, err := iwarp.ParseFPDU(b[:n])
		if err != nil {
			return
		}
		binary.LittleEndian.PutUint32(b[n-iwarp.CRCLen:], u.Checksum())
		b = b[n:]
	}
}

// sealICRC gives a packet of RoCE or InfiniBand its ICRC.
func sealICRC(p *capture.Packet) {
	var f link.Frame
	link.Decode(p.Link, p.Data, p.Length, &f)
	switch f.Proto {
	case link.RoCEv1, link.InfiniBand:
	case link.UDP:
		if f.DstPort != 4791 {
			return
		}
	default:
		return
	}
	n := f.PayloadLen - roce.ICRCSize
	if n < roce.BTHSize || len(f.Payload) < f.PayloadLen {
		return
	}
	if sum, ok := roce.ICRC(f.Proto, f.Net, f.Transport, f.Payload[:n]); ok {
		binary.LittleEndian.PutUint32(f.Payload[n:], sum)
	}
}
