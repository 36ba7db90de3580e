package iwarp

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// show passes a DDP segment to Hooks.Segment. raw is the captured part of
// its FPDU, markers included, which begins at stream offset start.
func (h *half) show(u []byte, length int, raw []byte, start uint64, damaged bool, from *span) {
	c := h.conn
	s := &c.t.segment
	*s = rdma.Segment{
		From: c.side(h), Data: u, Length: length, First: from.first, Last: from.last, Damaged: damaged,
		Follows: !h.out.lost && (h.fpdus > 1 || !h.searched), Sequence: c.streams[h.dir].Sequence(start), Marker: -1,
	}
	if h.marked {
		s.Marker = int((h.base - start) % MarkerInterval)
		s.Pointer, s.HasPointer = wrongMarker(raw, start-h.base)
	}
	c.t.shown(c.c, s)
}

// showMalformed passes what stands in the place of a DDP segment.
func (h *half) showMalformed(raw []byte, size int, start uint64, from *span) {
	c := h.conn
	if c.t.shown == nil || c.verdict != Yes || h.searched {
		return
	}
	b := raw
	if h.marked {
		c.t.scratch = RemoveMarkers(c.t.scratch[:0], raw, start-h.base)
		b = c.t.scratch
	}
	if len(b) < FPDUHeaderLen+ControlLen {
		return
	}
	length := int(binary.BigEndian.Uint16(b))
	s := &c.t.segment
	*s = rdma.Segment{
		From: c.side(h), Data: b[FPDUHeaderLen:min(FPDUHeaderLen+length, len(b))], Length: length,
		First: from.first, Last: from.last, Follows: true, Malformed: true,
		Damaged: c.crc == crcOn && !c.t.o.NoCRC && (len(raw) < size || !c.check(h, raw, start)),
	}
	c.t.shown(c.c, s)
}

// wrongMarker is the first marker in an FPDU that does not hold the distance to
// its ULPDU length field. raw is its captured part, at stream position pos.
func wrongMarker(raw []byte, pos uint64) (pointer uint16, wrong bool) {
	header := pos
	if pos%MarkerInterval == 0 {
		header += MarkerLen
	}
	first := (pos + MarkerInterval - 1) / MarkerInterval * MarkerInterval
	for at := first; at+MarkerLen <= pos+uint64(len(raw)); at += MarkerInterval {
		want := uint16(0)
		if at > header {
			want = uint16(at - header)
		}
		if p := binary.BigEndian.Uint16(raw[at-pos+2:]); p != want {
			return p, true
		}
	}
	return 0, false
}

// Fault is what is wrong with a DDP segment that cannot be one.
type Fault uint8

// Faults.
const (
	FaultNone     Fault = iota
	FaultLength         // too short for its header, or not the size of its kind
	FaultVersion        // not version 1 of DDP, or not 0 or 1 of RDMAP
	FaultReserved       // reserved bits are set
	FaultOpcode         // no operation has this code
	FaultTagged         // the tagged flag does not go with the opcode
	FaultQueue          // nor the queue number
	FaultOffset         // the offset is not 0 in a message of one segment, or it wraps
	FaultNotLast        // a message of one segment that is not the last
	faultsUndefined
)

var faultNames = [faultsUndefined]string{
	"none", "a length that its kind cannot have", "an unknown version of DDP or RDMAP", "reserved bits set", "an unknown opcode",
	"a tagged flag that does not match the opcode", "a queue number that does not match the opcode", "an impossible offset",
	"a part of a message that must have one segment",
}

func (f Fault) String() string {
	if f < faultsUndefined {
		return faultNames[f]
	}
	return ""
}

// FaultOf says why u cannot be a DDP segment of length bytes; FaultNone if it can.
func FaultOf(u []byte, length int) Fault {
	if len(u) < ControlLen || length < ControlLen {
		return FaultLength
	}
	if plausible(u, length) >= 0 {
		return FaultNone
	}
	c := ULPDU(u).Control()
	op := c.Opcode()
	switch {
	case c.DDPVersion() != 1 || c.RDMAPVersion() > 1:
		return FaultVersion
	case c&(controlReservedDDP|controlReserved) != 0:
		return FaultReserved
	case op > OpAtomicResponse:
		return FaultOpcode
	case op.Tagged() != c.Tagged():
		return FaultTagged
	case length < ULPDU(u).HeaderLen():
		return FaultLength
	case c.Tagged():
		return FaultOffset
	case op.payloadLen() > 0 && length != UntaggedLen+op.payloadLen():
		return FaultLength
	case op.payloadLen() > 0 && !c.Last():
		return FaultNotLast
	case len(u) >= 10 && Untagged(u).QN() != op.Queue():
		return FaultQueue
	}
	return FaultOffset
}
