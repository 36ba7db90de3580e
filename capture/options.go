package capture

import (
	"encoding/binary"
	"strings"
)

// Option codes (draft-ietf-opsawg-pcapng sections 3.5, 4.2, 4.3 and 4.6).
const (
	optEnd     = 0
	optComment = 1

	ifName        = 2
	ifDescription = 3
	ifResolution  = 9
	ifFCSLength   = 13
	ifOffset      = 14

	epbFlags = 2

	isbStart         = 2
	isbEnd           = 3
	isbIfaceDropped  = 5 // isb_ifdrop
	isbReceived      = 6 // isb_filteraccept
	isbSystemDropped = 7 // isb_osdrop
)

// option splits the first option off p. If it extends beyond p, rest is nil and ok false; at the end of the
// options ok is false with an empty rest.
func (d *ngDecoder) option(p []byte) (code uint16, value, rest []byte, ok bool) {
	if len(p) < 4 {
		return 0, nil, p[:0:0], false
	}
	code = d.u16(p)
	n := int(d.u16(p[2:]))
	if code == optEnd {
		return 0, nil, p[:0:0], false
	}
	if n > len(p)-4 {
		return code, nil, nil, false
	}
	return code, p[4 : 4+n], p[min(4+(n+3)&^3, len(p)):], true
}

// iface starts an interface.
func (d *ngDecoder) iface(f *file, body []byte, pos int) {
	at := f.base + int64(pos)
	if len(d.list) >= maxInterfaces {
		f.problem(f.at(), at, nil, "more than %d interfaces in a section; skipped", maxInterfaces)
		return
	}
	i := iface{clock: microseconds}
	var t Tap
	if len(body) < 8 {
		f.problem(f.at(), at, nil, "the interface description is too short")
		i.bad = true
	} else {
		i.link = LinkType(d.u16(body))
		i.snap = d.u32(body[4:])
		t = d.ifaceOptions(f, &i, body[8:], at)
	}
	t.Interface, t.Link, t.SnapLen = len(d.list), i.link, i.snap
	if len(d.list) == len(d.known) {
		d.known = append(d.known, t)
	}
	d.list = append(d.list, i)
}

func (d *ngDecoder) ifaceOptions(f *file, i *iface, p []byte, at int64) (t Tap) {
	for {
		code, v, rest, ok := d.option(p)
		if !ok {
			if rest == nil {
				f.problem(f.at(), at, nil, "option %d runs beyond its block; left out", code)
			}
			return t
		}
		p = rest
		switch code {
		case ifName:
			t.Name = optionText(v)
		case ifDescription:
			t.Description = optionText(v)
		case ifResolution:
			if len(v) < 1 || !i.clock.setResolution(v[0]) {
				f.problem(f.at(), at, nil, "time resolution % x makes no sense; took microseconds", v)
			}
		case ifOffset:
			if len(v) < 8 || !i.clock.setOffset(d.i64(v)) {
				f.problem(f.at(), at, nil, "time offset % x makes no sense; left out", v)
			}
		case ifFCSLength:
			// The draft says bits, its example and the tools say bytes.
			if len(v) >= 1 {
				i.fcs = v[0]
				if i.fcs >= 16 {
					i.fcs /= 8
				}
			}
		}
	}
}

// packetOptions returns the FCS length in bytes that the options of a packet
// tell, or else fcs.
func (d *ngDecoder) packetOptions(f *file, p []byte, pos int, fcs uint32) uint32 {
	for {
		code, v, rest, ok := d.option(p)
		if !ok {
			if rest == nil {
				f.problem(f.count+1, f.base+int64(pos), nil, "option %d runs beyond its block; left out", code)
			}
			return fcs
		}
		p = rest
		if code == epbFlags && len(v) == 4 {
			if n := d.u32(v) >> 5 & 0xf; n != 0 { // bits 5 to 8; 0 says "not known"
				fcs = n
			}
		}
	}
}

func (d *ngDecoder) i64(p []byte) int64 {
	if d.big {
		return int64(binary.BigEndian.Uint64(p))
	}
	return int64(binary.LittleEndian.Uint64(p))
}

// optionText returns the text of an option, without the zero bytes that some
// writers add.
func optionText(v []byte) string {
	v = v[:min(len(v), maxName)]
	return strings.ToValidUTF8(strings.TrimRight(string(v), "\x00"), "\uFFFD")
}
