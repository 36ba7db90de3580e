package layers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// BTH is the base transport header of RoCE and InfiniBand, with its extension
// headers. Contents is the BTH alone, Payload what follows the extension
// headers, without pad and ICRC.
//
// A BTH that has decoded a packet must not be copied: its extension headers are
// used again by the next packet.
type BTH struct {
	layers.BaseLayer
	Opcode   roce.Opcode
	SE       bool // solicited event
	MigReq   bool // path migration state
	PadCount uint8
	TVer     uint8 // transport header version, 0
	PKey     uint16
	FECN     bool
	BECN     bool
	DestQP   uint32 // 24 bits
	AckReq   bool
	PSN      uint32 // 24 bits

	// The extension headers that the packet has. To serialise one, either set
	// those that the opcode demands, or give them to
	// gopacket.SerializeLayers as layers of their own.
	RDETH        *RDETH
	DETH         *DETH
	XRCETH       *XRCETH
	FETH         *FETH
	RETH         *RETH
	AtomicETH    *AtomicETH
	AETH         *AETH
	AtomicAckETH *AtomicAckETH
	ImmDt        *ImmDt
	IETH         *IETH

	Padding []byte // PadCount bytes between payload and ICRC; zeros, usually
	ICRC    uint32
	// Cut says that the end of the packet was not captured: there is no
	// Padding and no ICRC.
	Cut bool

	next       gopacket.LayerType
	raw        []byte           // all of the packet
	extensions []extensionLayer // those that are there
	store      struct {
		rdeth     *RDETH
		deth      *DETH
		xrceth    *XRCETH
		feth      *FETH
		reth      *RETH
		atomic    *AtomicETH
		aeth      *AETH
		atomicAck *AtomicAckETH
		imm       *ImmDt
		ieth      *IETH
	}
	checksum icrcHeaders
}

// LayerType is LayerTypeBTH.
func (l *BTH) LayerType() gopacket.LayerType { return LayerTypeBTH }

// CanDecode is LayerTypeBTH.
func (l *BTH) CanDecode() gopacket.LayerClass { return LayerTypeBTH }

// NextLayerType is what follows the extension headers: LayerTypeRPCoverRDMA or
// LayerTypeCM if it looks like that, else a payload.
func (l *BTH) NextLayerType() gopacket.LayerType { return l.next }

// TransportFlow is the flow to the destination queue pair. The source is the
// source queue pair where the packet names it, else empty.
func (l *BTH) TransportFlow() gopacket.Flow {
	var src []byte
	dst := [3]byte{byte(l.DestQP >> 16), byte(l.DestQP >> 8), byte(l.DestQP)}
	if l.DETH != nil {
		src = []byte{byte(l.DETH.SrcQP >> 16), byte(l.DETH.SrcQP >> 8), byte(l.DETH.SrcQP)}
	}
	return gopacket.NewFlow(EndpointQP, src, dst[:])
}

// String is the text that gopacket prints for the layer: what is set, without
// the extension headers, which are layers of their own.
func (l *BTH) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{Opcode=%s DestQP=%d PSN=%d PKey=0x%04x", l.Opcode, l.DestQP, l.PSN, l.PKey)
	for _, f := range []struct {
		name string
		set  bool
	}{{"SE", l.SE}, {"MigReq", l.MigReq}, {"FECN", l.FECN}, {"BECN", l.BECN}, {"AckReq", l.AckReq}} {
		if f.set {
			b.WriteString(" " + f.name)
		}
	}
	if l.PadCount != 0 {
		fmt.Fprintf(&b, " PadCount=%d", l.PadCount)
	}
	if l.Cut {
		b.WriteString(" Cut}")
	} else {
		fmt.Fprintf(&b, " ICRC=0x%08x}", l.ICRC)
	}
	return b.String()
}

// GoString is the text of gopacket.LayerGoString, which cannot cope with nil
// pointers.
func (l *BTH) GoString() string { return "&layers.BTH" + l.String() }

// reset forgets the packet, but not the memory of the extension headers nor
// the headers for the checksum.
func (l *BTH) reset() {
	*l = BTH{extensions: l.extensions[:0], store: l.store, checksum: l.checksum}
}

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *BTH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	l.reset()
	n := declared(data, df)
	l.Cut = n == unknown || n > len(data)
	if len(data) < roce.BTHSize {
		df.SetTruncated()
		return fmt.Errorf("BTH: %d bytes of %d", len(data), roce.BTHSize)
	}
	h := roce.BTH(data[:roce.BTHSize])
	l.Opcode, l.SE, l.MigReq, l.PadCount, l.TVer = h.Opcode(), h.SE(), h.MigReq(), h.Pad(), h.TVer()
	l.PKey, l.FECN, l.BECN, l.DestQP = h.PKey(), h.FECN(), h.BECN(), h.DestQP()
	l.AckReq, l.PSN = h.AckReq(), h.PSN()
	l.raw = data[:len(data):len(data)]
	set(&l.BaseLayer, data, roce.BTHSize)
	if l.TVer != 0 {
		return fmt.Errorf("BTH: transport header version %d is not 0", l.TVer)
	}
	if !l.Opcode.IsDefined() && !l.Opcode.IsManufacturer() {
		return fmt.Errorf("BTH: opcode 0x%02x is not defined", uint8(l.Opcode))
	}
	end := len(data)
	if n != unknown {
		end = n - roce.ICRCSize - int(l.PadCount)
		if end < l.Opcode.HeaderSize() {
			if !l.Cut {
				df.SetTruncated()
			}
			return fmt.Errorf("BTH: %d bytes are too few for the headers of %s, %d pad bytes and the ICRC", n, l.Opcode, l.PadCount)
		}
		if !l.Cut {
			at := n - roce.ICRCSize
			l.Padding = data[end:at:at]
			l.ICRC = binary.LittleEndian.Uint32(data[at:])
		}
		end = min(end, len(data))
	}
	rest := data[roce.BTHSize:end:end]
	headers := l.Opcode.Headers()
	for i := 0; headers != 0; i++ {
		x := extensionOrder[i].has
		if headers&x == 0 {
			continue
		}
		headers &^= x
		e := l.extension(x)
		if err := e.DecodeFromBytes(rest, df); err != nil {
			l.Payload = rest
			return err
		}
		l.attach(x)
		l.extensions = append(l.extensions, e)
		rest = e.LayerPayload()
	}
	l.Payload = rest
	if len(rest) > roce.MaxMTU {
		return fmt.Errorf("BTH: a payload of %d bytes exceeds every path MTU: several packets in one datagram?", len(rest))
	}
	l.next = l.payloadType()
	for i, e := range l.extensions {
		if i+1 < len(l.extensions) {
			e.setNext(l.extensions[i+1].LayerType())
		} else {
			e.setNext(l.next)
		}
	}
	return nil
}

// payloadType tells what the payload is.
func (l *BTH) payloadType() gopacket.LayerType {
	switch {
	case len(l.Payload) == 0:
		return gopacket.LayerTypeZero
	case l.Opcode.Service() == roce.ServiceUD:
		// Management datagrams of other classes come to QP 1, too.
		if l.DestQP == 1 && ibcm.MAD(l.Payload).IsValid() {
			return LayerTypeCM
		}
	case l.Opcode.IsSend() && l.Opcode.Starts():
		return sendType(l.Payload, l.Opcode.Ends() && !l.Cut)
	}
	return gopacket.LayerTypePayload
}

func decodeBTH(data []byte, p gopacket.PacketBuilder) error {
	l := new(BTH)
	err := decodeInto(l, data, p)
	if len(l.Contents) == 0 {
		return err
	}
	p.SetTransportLayer(l)
	for _, e := range l.extensions {
		p.AddLayer(e)
	}
	if err != nil {
		return err
	}
	return next(l, p)
}

// memory is *store, which is allocated when it is needed first.
func memory[T any](store **T) *T {
	if *store == nil {
		*store = new(T)
	}
	return *store
}

// extension is the memory for an extension header.
func (l *BTH) extension(x roce.Headers) extensionLayer {
	s := &l.store
	switch x {
	case roce.HasRDETH:
		return memory(&s.rdeth)
	case roce.HasDETH:
		return memory(&s.deth)
	case roce.HasXRCETH:
		return memory(&s.xrceth)
	case roce.HasFETH:
		return memory(&s.feth)
	case roce.HasRETH:
		return memory(&s.reth)
	case roce.HasAtomicETH:
		return memory(&s.atomic)
	case roce.HasAETH:
		return memory(&s.aeth)
	case roce.HasAtomicAckETH:
		return memory(&s.atomicAck)
	case roce.HasImmDt:
		return memory(&s.imm)
	}
	return memory(&s.ieth)
}

// attach says that the packet has an extension header.
func (l *BTH) attach(x roce.Headers) {
	s := &l.store
	switch x {
	case roce.HasRDETH:
		l.RDETH = s.rdeth
	case roce.HasDETH:
		l.DETH = s.deth
	case roce.HasXRCETH:
		l.XRCETH = s.xrceth
	case roce.HasFETH:
		l.FETH = s.feth
	case roce.HasRETH:
		l.RETH = s.reth
	case roce.HasAtomicETH:
		l.AtomicETH = s.atomic
	case roce.HasAETH:
		l.AETH = s.aeth
	case roce.HasAtomicAckETH:
		l.AtomicAckETH = s.atomicAck
	case roce.HasImmDt:
		l.ImmDt = s.imm
	case roce.HasIETH:
		l.IETH = s.ieth
	}
}

// attached is the extension header x that the user or the decoder has set, or
// nil.
func (l *BTH) attached(x roce.Headers) extensionLayer {
	switch {
	case x == roce.HasRDETH && l.RDETH != nil:
		return l.RDETH
	case x == roce.HasDETH && l.DETH != nil:
		return l.DETH
	case x == roce.HasXRCETH && l.XRCETH != nil:
		return l.XRCETH
	case x == roce.HasFETH && l.FETH != nil:
		return l.FETH
	case x == roce.HasRETH && l.RETH != nil:
		return l.RETH
	case x == roce.HasAtomicETH && l.AtomicETH != nil:
		return l.AtomicETH
	case x == roce.HasAETH && l.AETH != nil:
		return l.AETH
	case x == roce.HasAtomicAckETH && l.AtomicAckETH != nil:
		return l.AtomicAckETH
	case x == roce.HasImmDt && l.ImmDt != nil:
		return l.ImmDt
	case x == roce.HasIETH && l.IETH != nil:
		return l.IETH
	}
	return nil
}

// SerializeTo implements gopacket.SerializableLayer. It writes the BTH, the
// extension headers that are not there as layers yet, pad and ICRC.
//
// FixLengths sets PadCount and Padding. ComputeChecksums computes the ICRC; the
// headers below have to be known for that: see SetNetworkLayerForChecksum.
func (l *BTH) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	headers := l.Opcode.Headers()
	given, err := l.given(b.Layers())
	if err != nil {
		return err
	}
	if opts.FixLengths {
		n := len(b.Bytes())
		if given {
			n -= headers.Size()
		}
		l.PadCount = uint8(-n & 3)
		l.Padding = zeros[:l.PadCount:l.PadCount]
	}
	if l.PadCount > 3 {
		return fmt.Errorf("BTH: %d pad bytes are more than 3", l.PadCount)
	}
	trailer, err := b.AppendBytes(int(l.PadCount) + roce.ICRCSize)
	if err != nil {
		return err
	}
	clear(trailer)
	copy(trailer[:l.PadCount], l.Padding)
	for i := len(extensionOrder) - 1; i >= 0 && !given; i-- {
		x := extensionOrder[i]
		if headers&x.has == 0 {
			continue
		}
		e := l.attached(x.has)
		if e == nil {
			return fmt.Errorf("BTH: %s needs a %s", l.Opcode, x.layer)
		}
		if err := e.SerializeTo(b, opts); err != nil {
			return err
		}
	}
	p, err := give(b, roce.BTHSize)
	if err != nil {
		return err
	}
	h := roce.BTH(p)
	h.SetOpcode(l.Opcode)
	h.SetSE(l.SE)
	h.SetMigReq(l.MigReq)
	h.SetPad(l.PadCount)
	h.SetTVer(l.TVer)
	h.SetPKey(l.PKey)
	h.SetFECN(l.FECN)
	h.SetBECN(l.BECN)
	h.SetDestQP(l.DestQP)
	h.SetAckReq(l.AckReq)
	h.SetPSN(l.PSN)
	packet := b.Bytes()
	if opts.ComputeChecksums {
		if l.ICRC, err = l.checksum.compute(packet, opts); err != nil {
			return err
		}
	}
	binary.LittleEndian.PutUint32(packet[len(packet)-roce.ICRCSize:], l.ICRC)
	return nil
}

var zeros [3]byte

// given reports whether the extension headers have been serialised as layers
// of their own. done is the layers so far, innermost first.
func (l *BTH) given(done []gopacket.LayerType) (bool, error) {
	if len(done) == 0 || !isExtension(done[len(done)-1]) {
		return false, nil
	}
	headers := l.Opcode.Headers()
	for _, x := range extensionOrder {
		if headers&x.has == 0 {
			continue
		}
		if len(done) == 0 || done[len(done)-1] != x.layer {
			return false, fmt.Errorf("BTH: %s needs a %s at this place", l.Opcode, x.layer)
		}
		done = done[:len(done)-1]
	}
	if len(done) > 0 && isExtension(done[len(done)-1]) {
		return false, errors.New("BTH: " + l.Opcode.String() + " has no " + done[len(done)-1].String())
	}
	return true, nil
}
