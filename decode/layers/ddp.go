package layers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/iwarp"
)

// DDP is a segment of direct data placement (RFC 5041) together with RDMAP,
// whose control byte and steering tag stand within the DDP header. Payload is
// what follows the headers of both.
//
// A DDP that has decoded a packet must not be copied.
type DDP struct {
	layers.BaseLayer
	Tagged bool // follows from RDMAP.Opcode when it is serialised
	Last   bool // last segment of its message

	// STag and TO belong to tagged segments: the memory of the data sink and
	// the place in it.
	STag uint32
	TO   uint64

	// QN, MSN and MO belong to untagged segments: queue number, message
	// sequence number and offset in the message. QN follows from RDMAP.Opcode
	// when it is serialised.
	QN, MSN, MO uint32

	RDMAP RDMAP
}

// RDMAP is the remote direct memory access protocol (RFC 5040, RFC 7306). Its
// Contents is Body.
type RDMAP struct {
	extension
	RDMAC  bool // version 0, as the RDMA Consortium had it, not version 1
	Opcode iwarp.Opcode
	// InvalidateSTag belongs to untagged segments. It is reserved but in a
	// Send with Invalidate.
	InvalidateSTag uint32
	// Body is the header that some messages have after that of DDP: that of a
	// Read Request, Immediate Data, an atomic operation, or a Terminate. See
	// the methods, and iwarp.AppendReadRequest and so on.
	Body []byte
}

// ReadRequest is the body of an RDMA Read Request, else nil.
func (l *RDMAP) ReadRequest() iwarp.ReadRequest {
	if l.Opcode == iwarp.OpReadRequest && len(l.Body) >= iwarp.ReadRequestLen {
		return l.Body
	}
	return nil
}

// Terminate is the body of a Terminate, else nil.
func (l *RDMAP) Terminate() iwarp.Terminate {
	if l.Opcode == iwarp.OpTerminate && len(l.Body) >= iwarp.TerminateLen {
		return l.Body
	}
	return nil
}

// Immediate is the body of Immediate Data, else nil.
func (l *RDMAP) Immediate() iwarp.Immediate {
	if (l.Opcode == iwarp.OpImmediate || l.Opcode == iwarp.OpImmediateSolicited) && len(l.Body) >= iwarp.ImmediateLen {
		return l.Body
	}
	return nil
}

// AtomicRequest is the body of an Atomic Request, else nil.
func (l *RDMAP) AtomicRequest() iwarp.AtomicRequest {
	if l.Opcode == iwarp.OpAtomicRequest && len(l.Body) >= iwarp.AtomicRequestLen {
		return l.Body
	}
	return nil
}

// AtomicResponse is the body of an Atomic Response, else nil.
func (l *RDMAP) AtomicResponse() iwarp.AtomicResponse {
	if l.Opcode == iwarp.OpAtomicResponse && len(l.Body) >= iwarp.AtomicResponseLen {
		return l.Body
	}
	return nil
}

// bodyLen is how much of n payload bytes is the body of a message: exactly so
// many, at least, or all.
func bodyLen(op iwarp.Opcode, n int) int {
	switch op {
	case iwarp.OpReadRequest:
		return iwarp.ReadRequestLen
	case iwarp.OpTerminate:
		return max(n, iwarp.TerminateLen)
	case iwarp.OpImmediate, iwarp.OpImmediateSolicited:
		return iwarp.ImmediateLen
	case iwarp.OpAtomicRequest:
		return iwarp.AtomicRequestLen
	case iwarp.OpAtomicResponse:
		return iwarp.AtomicResponseLen
	}
	return 0
}

// String is the text that gopacket prints for the layer.
func (l RDMAP) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{Opcode=%s", l.Opcode)
	if l.RDMAC {
		b.WriteString(" RDMAC=true")
	}
	if l.Opcode.Invalidates() {
		fmt.Fprintf(&b, " InvalidateSTag=%#x", l.InvalidateSTag)
	}
	if r := l.ReadRequest(); r != nil {
		fmt.Fprintf(&b, " SinkSTag=%#x SinkTO=%#x Size=%d SourceSTag=%#x SourceTO=%#x", r.SinkSTag(), r.SinkTO(), r.Size(), r.SourceSTag(), r.SourceTO())
	}
	if t := l.Terminate(); t != nil {
		fmt.Fprintf(&b, " Terminate=%q", t.String())
	}
	b.WriteByte('}')
	return b.String()
}

// LayerType is LayerTypeDDP.
func (l *DDP) LayerType() gopacket.LayerType { return LayerTypeDDP }

// CanDecode is LayerTypeDDP.
func (l *DDP) CanDecode() gopacket.LayerClass { return LayerTypeDDP }

// NextLayerType is what follows the headers of DDP and RDMAP:
// LayerTypeRPCoverRDMA if it looks like that, else a payload.
func (l *DDP) NextLayerType() gopacket.LayerType { return l.RDMAP.NextLayerType() }

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *DDP) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = DDP{}
	if len(data) < iwarp.ControlLen {
		df.SetTruncated()
		return fmt.Errorf("DDP: %d bytes of a control word of %d", len(data), iwarp.ControlLen)
	}
	u := iwarp.ULPDU(data)
	c := u.Control()
	if !c.Valid() {
		return fmt.Errorf("DDP: control word 0x%04x has no valid versions, opcode and flags", uint16(c))
	}
	n := u.HeaderLen()
	if len(data) < n {
		df.SetTruncated()
		return fmt.Errorf("DDP: %d bytes of a header of %d", len(data), n)
	}
	set(&l.BaseLayer, data, n)
	l.Tagged, l.Last = c.Tagged(), c.Last()
	r := &l.RDMAP
	r.RDMAC, r.Opcode = c.RDMAPVersion() == 0, c.Opcode()
	if l.Tagged {
		h := iwarp.Tagged(data)
		l.STag, l.TO = h.STag(), h.TO()
	} else {
		h := iwarp.Untagged(data)
		r.InvalidateSTag, l.QN, l.MSN, l.MO = h.InvalidateSTag(), h.QN(), h.MSN(), h.MO()
		if l.QN != r.Opcode.Queue() {
			return fmt.Errorf("DDP: queue %d is not that of a %s", l.QN, r.Opcode)
		}
	}
	payload := l.Payload
	body := bodyLen(r.Opcode, len(payload))
	if len(payload) < body {
		df.SetTruncated()
		return fmt.Errorf("RDMAP: %d bytes of a %s of %d", len(payload), r.Opcode, body)
	}
	set(&r.BaseLayer, payload, body)
	if body > 0 {
		r.Body = r.Contents
	}
	l.Payload = r.Payload
	if r.Opcode.IsSend() && l.MO == 0 && len(r.Payload) > 0 {
		r.next = sendType(r.Payload, l.Last && declared(data, df) == len(data))
	}
	return nil
}

func decodeDDP(data []byte, p gopacket.PacketBuilder) error {
	l := new(DDP)
	if err := decodeInto(l, data, p); err != nil {
		return err
	}
	p.AddLayer(&l.RDMAP)
	return next(l, p)
}

// SerializeTo implements gopacket.SerializableLayer. It writes the header with
// the opcode in RDMAP, and the body of RDMAP if that is not there as a layer
// yet.
func (l *DDP) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if done := b.Layers(); len(done) == 0 || done[len(done)-1] != LayerTypeRDMAP {
		if err := l.RDMAP.SerializeTo(b, opts); err != nil {
			return err
		}
	}
	op := l.RDMAP.Opcode
	if op > iwarp.OpAtomicResponse {
		return fmt.Errorf("RDMAP: %s is not defined", op)
	}
	c := iwarp.NewControl(op, l.Last)
	if l.RDMAP.RDMAC {
		c &^= rdmapVersion
	}
	n := iwarp.UntaggedLen
	if op.Tagged() {
		n = iwarp.TaggedLen
	}
	p, err := b.PrependBytes(n)
	if err != nil {
		return err
	}
	if op.Tagged() {
		iwarp.AppendTagged(p[:0:n], c, l.STag, l.TO)
	} else {
		iwarp.AppendUntagged(p[:0:n], c, l.RDMAP.InvalidateSTag, l.MSN, l.MO)
	}
	return nil
}

// rdmapVersion is the place of RDMAP's version in the control word.
const rdmapVersion iwarp.Control = 0x00c0

// LayerType is LayerTypeRDMAP.
func (l *RDMAP) LayerType() gopacket.LayerType { return LayerTypeRDMAP }

// SerializeTo implements gopacket.SerializableLayer. It writes Body; the rest
// stands in the header of DDP.
func (l *RDMAP) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	if len(l.Body) != bodyLen(l.Opcode, len(l.Body)) {
		return errors.New("RDMAP: Body does not have the length of a " + l.Opcode.String())
	}
	p, err := b.PrependBytes(len(l.Body))
	if err != nil {
		return err
	}
	copy(p, l.Body)
	return nil
}
