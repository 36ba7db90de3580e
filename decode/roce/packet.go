package roce

import "encoding/binary"

// ICRCSize is the size of the invariant CRC at the end of each packet.
const ICRCSize = 4

// MaxMTU is the largest path MTU: no packet carries more payload.
const MaxMTU = 4096

// Packet is the result of Decode. Fields of extension headers that the packet lacks, or that the capture cut,
// are zero: see Headers.
type Packet struct {
	Opcode  Opcode
	Pad     uint8 // bytes between payload and ICRC
	TVer    uint8
	ICRC    Verdict // set by Splitter only
	SE      bool    // solicited event
	MigReq  bool
	FECN    bool
	BECN    bool
	AckReq  bool
	Cut     bool    // the capture holds only a part of the packet
	Headers Headers // extension headers that have been decoded
	Problem Problem // why the packet could not be decoded, or not fully
	PKey    uint16
	DestQP  uint32
	PSN     uint32

	RETH RETHFields
	AETH AETHFields
	Imm  uint32
	IETH uint32 // handle to be invalidated

	// Payload is the captured payload, without pad and ICRC.
	Payload []byte
	// PayloadLen is the payload's length as declared: greater than
	// len(Payload) if the capture cut it.
	PayloadLen int

	// The extension headers that are rare.

	DETH      DETHFields
	XRCSRQ    uint32
	EEContext uint32 // RD
	Flush     FETHFields
	Atomic    AtomicFields
	AtomicAck uint64 // former value of the word
}

// RETHFields are the contents of a RETH.
type RETHFields struct {
	VA     uint64
	RKey   uint32
	DMALen uint32 // bytes of the whole operation
}

// AETHFields are the contents of an AETH.
type AETHFields struct {
	Syndrome Syndrome
	MSN      uint32
}

// DETHFields are the contents of a DETH.
type DETHFields struct {
	QKey  uint32
	SrcQP uint32
}

// FETHFields are the contents of a FETH.
type FETHFields struct {
	Placement   uint8
	Selectivity uint8
}

// AtomicFields are the contents of an AtomicETH.
type AtomicFields struct {
	VA      uint64
	RKey    uint32
	SwapAdd uint64
	Compare uint64
}

// Complete reports whether all of the payload was captured.
func (p *Packet) Complete() bool { return len(p.Payload) == p.PayloadLen }

// Decode reads the headers of a packet into p. b is the captured part, from the BTH; declared is the length
// in bytes from the BTH through the ICRC that the outer headers declare.
//
// It returns false, with the reason in p.Problem, if part of the packet is not reliable. Even then p holds
// what could be read: the fields of the BTH if that was captured, the extension headers in p.Headers, and
// PayloadLen unless the lengths contradict each other.
//
// Decode does not allocate; p.Payload aliases b.
func Decode(b []byte, declared int, p *Packet) bool {
	*p = Packet{}
	if len(b) >= declared {
		b = b[:max(declared, 0)]
	} else {
		p.Cut = true
	}
	if len(b) < BTHSize {
		p.Problem = ProblemCutBTH
		if declared < BTHSize+ICRCSize {
			p.Problem = ProblemShortBTH
		}
		return false
	}
	h := b[:BTHSize]
	op := Opcode(h[bthOpcode])
	flags := h[bthFlags]
	ecn := binary.BigEndian.Uint32(h[bthECN:])
	psn := binary.BigEndian.Uint32(h[bthAckReq:])
	info := &opcodes[op]
	pad := int(flags & maskPad >> shiftPad)
	p.Opcode = op
	p.Pad = uint8(pad)
	p.TVer = flags & maskTVer
	p.SE = flags&flagSE != 0
	p.MigReq = flags&flagMigReq != 0
	p.FECN = ecn&(flagFECN<<24) != 0
	p.BECN = ecn&(flagBECN<<24) != 0
	p.AckReq = psn&(flagAckReq<<24) != 0
	p.PKey = binary.BigEndian.Uint16(h[bthPKey:])
	p.DestQP = ecn & mask24
	p.PSN = psn & mask24

	size := int(info.size)
	if p.TVer != 0 {
		p.Problem = ProblemVersion
		return false
	}
	n := declared - size - ICRCSize - pad
	if n >= 0 {
		p.PayloadLen = n
	}
	if len(b) < size {
		p.extensions(b, info.headers)
		p.Problem = ProblemCutHeaders
		if declared < size+ICRCSize {
			p.Problem = ProblemShort
		}
		return false
	}
	// The four sets of nearly all traffic are written out.
	switch info.headers {
	case 0:
	case HasRETH:
		e := b[BTHSize : BTHSize+RETHSize]
		p.RETH = RETHFields{RETH(e).VA(), RETH(e).RKey(), RETH(e).DMALen()}
		p.Headers = HasRETH
	case HasAETH:
		e := b[BTHSize : BTHSize+AETHSize]
		p.AETH = AETHFields{AETH(e).Syndrome(), AETH(e).MSN()}
		p.Headers = HasAETH
	case HasIETH:
		p.IETH = IETH(b[BTHSize : BTHSize+IETHSize]).RKey()
		p.Headers = HasIETH
	default:
		p.extensions(b, info.headers)
	}
	if n < 0 {
		p.Problem = ProblemShort
		if n+pad >= 0 {
			p.Problem = ProblemPad
		}
		return false
	}
	end := min(size+n, len(b))
	p.Payload = b[size:end:end]
	if info.flags == 0 {
		p.Problem = ProblemOpcode
		return false
	}
	return true
}

// extensions decodes any set of extension headers, as far as b reaches.
func (p *Packet) extensions(b []byte, headers Headers) {
	b = b[BTHSize:]
	for i, size := range headerSizes {
		x := Headers(1) << i
		if headers&x == 0 {
			continue
		}
		if len(b) < int(size) {
			return
		}
		switch x {
		case HasRDETH:
			p.EEContext = RDETH(b).EEContext()
		case HasDETH:
			p.DETH = DETHFields{DETH(b).QKey(), DETH(b).SrcQP()}
		case HasXRCETH:
			p.XRCSRQ = XRCETH(b).XRCSRQ()
		case HasFETH:
			p.Flush = FETHFields{FETH(b).Placement(), FETH(b).Selectivity()}
		case HasRETH:
			p.RETH = RETHFields{RETH(b).VA(), RETH(b).RKey(), RETH(b).DMALen()}
		case HasAtomicETH:
			h := AtomicETH(b)
			p.Atomic = AtomicFields{h.VA(), h.RKey(), h.SwapAdd(), h.Compare()}
		case HasAETH:
			p.AETH = AETHFields{AETH(b).Syndrome(), AETH(b).MSN()}
		case HasAtomicAckETH:
			p.AtomicAck = AtomicAckETH(b).Original()
		case HasImmDt:
			p.Imm = ImmDt(b).Data()
		case HasIETH:
			p.IETH = IETH(b).RKey()
		}
		p.Headers |= x
		b = b[size:]
	}
}

// AppendHeaders appends BTH and extension headers to b: those that the opcode requires, with the values of p.
// The caller appends payload, pad and ICRC.
func (p *Packet) AppendHeaders(b []byte) []byte {
	var bth [BTHSize]byte
	h := BTH(bth[:])
	h.SetOpcode(p.Opcode)
	h.SetSE(p.SE)
	h.SetMigReq(p.MigReq)
	h.SetPad(p.Pad)
	h.SetTVer(p.TVer)
	h.SetPKey(p.PKey)
	h.SetFECN(p.FECN)
	h.SetBECN(p.BECN)
	h.SetDestQP(p.DestQP)
	h.SetAckReq(p.AckReq)
	h.SetPSN(p.PSN)
	b = append(b, bth[:]...)
	headers := p.Opcode.Headers()
	for i, size := range headerSizes {
		x := Headers(1) << i
		if headers&x == 0 {
			continue
		}
		var ext [AtomicETHSize]byte
		e := ext[:size]
		switch x {
		case HasRDETH:
			RDETH(e).SetEEContext(p.EEContext)
		case HasDETH:
			DETH(e).SetQKey(p.DETH.QKey)
			DETH(e).SetSrcQP(p.DETH.SrcQP)
		case HasXRCETH:
			XRCETH(e).SetXRCSRQ(p.XRCSRQ)
		case HasFETH:
			FETH(e).SetPlacement(p.Flush.Placement)
			FETH(e).SetSelectivity(p.Flush.Selectivity)
		case HasRETH:
			RETH(e).SetVA(p.RETH.VA)
			RETH(e).SetRKey(p.RETH.RKey)
			RETH(e).SetDMALen(p.RETH.DMALen)
		case HasAtomicETH:
			AtomicETH(e).SetVA(p.Atomic.VA)
			AtomicETH(e).SetRKey(p.Atomic.RKey)
			AtomicETH(e).SetSwapAdd(p.Atomic.SwapAdd)
			AtomicETH(e).SetCompare(p.Atomic.Compare)
		case HasAETH:
			AETH(e).SetSyndrome(p.AETH.Syndrome)
			AETH(e).SetMSN(p.AETH.MSN)
		case HasAtomicAckETH:
			AtomicAckETH(e).SetOriginal(p.AtomicAck)
		case HasImmDt:
			ImmDt(e).SetData(p.Imm)
		case HasIETH:
			IETH(e).SetRKey(p.IETH)
		}
		b = append(b, e...)
	}
	return b
}
