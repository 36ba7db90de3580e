package link

import (
	"net/netip"
	"strconv"
	"sync/atomic"
)

// lidZone tells LIDs from IP addresses and GIDs.
const lidZone = "lid"

// lids holds the addresses of LIDs in pages of 256, made when first used: attaching a zone to an address
// costs more than the rest of Decode. All of them together take 1.5 MiB.
var lids [256]atomic.Pointer[[256]netip.Addr]

// LID converts the local identifier of an InfiniBand port to an address, so that it can be used where one is
// expected.
func LID(lid uint16) netip.Addr {
	page := lids[lid>>8].Load()
	if page == nil {
		page = new([256]netip.Addr)
		for i := range page {
			page[i] = netip.AddrFrom16([16]byte{14: byte(lid >> 8), 15: byte(i)}).WithZone(lidZone)
		}
		lids[lid>>8].Store(page) // of two that race, either is as good
	}
	return page[lid&0xff]
}

// IsLID gives back the local identifier if a is one.
func IsLID(a netip.Addr) (lid uint16, ok bool) {
	if a.Zone() != lidZone {
		return 0, false
	}
	b := a.As16()
	return uint16(b[14])<<8 | uint16(b[15]), true
}

// AddrString is a.String, with a LID as "lid 5".
func AddrString(a netip.Addr) string {
	if lid, ok := IsLID(a); ok {
		return lidZone + " " + strconv.Itoa(int(lid))
	}
	if !a.IsValid() {
		return "?"
	}
	return a.String()
}

// AddrTexts keeps what AddrString says of addresses, for those who write many. The zero value is ready for use.
type AddrTexts struct{ texts map[netip.Addr]string }

// Of is AddrString(a).
func (x *AddrTexts) Of(a netip.Addr) string {
	s, ok := x.texts[a]
	if !ok {
		if x.texts == nil || len(x.texts) >= maxAddrTexts {
			x.texts = make(map[netip.Addr]string)
		}
		s = AddrString(a)
		x.texts[a] = s
	}
	return s
}

const maxAddrTexts = 4096

// AppendAddr appends AddrString(a). It does not allocate.
func AppendAddr(b []byte, a netip.Addr) []byte {
	if lid, ok := IsLID(a); ok {
		b = append(b, lidZone...)
		b = append(b, ' ')
		return strconv.AppendUint(b, uint64(lid), 10)
	}
	if !a.IsValid() {
		return append(b, '?')
	}
	return a.AppendTo(b)
}
