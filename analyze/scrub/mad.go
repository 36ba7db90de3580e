package scrub

import (
	"github.com/rpcrdma/toolkit/decode/ibcm"
)

// Parts of messages of connection management, from where their data begins (IBTA volume 1, section 12.6).
const (
	reqGUID    = 16
	reqQKey    = 24
	reqPath    = 52
	reqPrivate = 140
	repGUID    = 28
	repPrivate = 36
	rejPrivate = 84

	pathGIDs = 4 // two of them

	ipHeaderFixed = 4
	ipHeaderV4    = 12 // where an IPv4 address stands in its field

	sidrPrivate = 16
)

// upTo is how much of a message is numbers that tell nothing: ids, queue pairs, statuses. What follows is private data, or additional
// information, of which only the former is looked at.
var upTo = map[ibcm.Attribute]struct{ numbers, private int }{
	ibcm.AttributeREP:     {repGUID, repPrivate},
	ibcm.AttributeREJ:     {12, rejPrivate},
	ibcm.AttributeMRA:     {10, 10},
	ibcm.AttributeRTU:     {8, 8},
	ibcm.AttributeDREQ:    {12, 12},
	ibcm.AttributeDREP:    {8, 8},
	ibcm.AttributeSIDRREP: {24, 96},
	ibcm.AttributeLAP:     {20, 64},
	ibcm.AttributeAPR:     {10, 84},
}

// management copies a message of connection management.
func (s *Scrubber) management(h *held, p span) {
	b := h.data[p.from:p.to]
	if !ibcm.MAD(b).IsValid() {
		return
	}
	at := p.from + ibcm.HeaderSize
	end := min(p.to, at+ibcm.DataSize)
	h.keep(p.from, at)
	switch a := ibcm.MAD(b).Attribute(); a {
	case ibcm.AttributeREQ:
		h.keep(at, min(at+reqGUID, end))
		h.keep(at+reqQKey, min(at+reqPrivate, end))
		for i := range 2 {
			path := at + reqPath + i*ibcm.PathSize
			for _, gid := range [...]int{path + pathGIDs, path + pathGIDs + 16} {
				if gid < end {
					clear(h.out[gid:min(gid+16, end)])
				}
				if gid+16 <= end {
					s.address(h, gid, placeIPv6)
				}
			}
		}
		s.consumer(h, ibcm.REQ(h.data[at:end]).ServiceID(), at+reqPrivate, end)
	case ibcm.AttributeSIDRREQ:
		h.keep(at, min(at+sidrPrivate, end))
		s.consumer(h, ibcm.SIDRREQ(h.data[at:end]).ServiceID(), at+sidrPrivate, end)
	default:
		if x, ok := upTo[a]; ok {
			h.keep(at, min(at+x.numbers, end))
			h.private(at+x.private, end)
		}
	}
}

// consumer copies the private data of a request: the header of an IP addressed service, and that of RPC-over-RDMA.
func (s *Scrubber) consumer(h *held, id ibcm.ServiceID, from, to int) {
	if _, _, ok := id.IP(); ok && from+ibcm.IPHeaderSize <= to {
		x := ibcm.IPHeader(h.data[from:to])
		if !x.IsValid() {
			return
		}
		h.keep(from, from+ipHeaderFixed)
		for _, at := range [...]int{from + ipHeaderFixed, from + ipHeaderFixed + 16} {
			if x.IPVersion() == 4 {
				s.address(h, at+ipHeaderV4, placeIPv4)
			} else {
				s.address(h, at, placeIPv6)
			}
		}
		from += ibcm.IPHeaderSize
	}
	h.private(from, to)
}
