package decode

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// Sampled counts what sFlow datagrams (version 5) hold: the first bytes of packets that a switch has picked at random. They are
// samples: what they lack was not lost, and no transaction can be followed.
type Sampled struct {
	Headers uint64 // of packets
	Rate    uint32 // one of this many packets is sampled, as the newest sample says
	RoCE    uint64 // of Headers: RoCEv2 and RoCEv1
	Marked  uint64 // of RoCE: "congestion experienced"
	CNPs    uint64
	NAKs    uint64 // those of receivers that were not ready included
	Peers   [8]SampledPeers
	Others  uint64 // of RoCE: between further peers
}

// SampledPeers are the sampled packets of RoCE from one address to another.
type SampledPeers struct {
	From, To netip.Addr
	Packets  uint64
}

// sFlow (sflow.org, version 5): structures and sizes.
const (
	sflowVersion        = 5
	sflowFlowSample     = 1
	sflowExpandedSample = 3
	sflowRawHeader      = 1
	sflowEthernet       = 1
	sflowIPv4           = 11
	sflowIPv6           = 12
)

// words reads the 32-bit words of sFlow.
type words []byte

// next takes a word; ok is false if there is none.
func (w *words) next() (v uint32, ok bool) {
	if len(*w) < 4 {
		return 0, false
	}
	v = binary.BigEndian.Uint32(*w)
	*w = (*w)[4:]
	return v, true
}

// skip takes n words.
func (w *words) skip(n int) { *w = (*w)[min(4*n, len(*w)):] }

// part takes what a type and a length in bytes precede; of a part that is cut, what is there.
func (w *words) part() (kind uint32, part words, ok bool) {
	kind, ok = w.next()
	n, more := w.next()
	if !ok || !more {
		return 0, nil, false
	}
	size := int(min(uint64(n), uint64(len(*w))))
	part = (*w)[:size:size]
	*w = (*w)[size:]
	return kind, part, true
}

// sampled takes UDP that is not an RPC.
func (d *Decoder) sampled(f *link.Frame) {
	if f.DstPort == roce.PortSFlow {
		d.stats.Sampled.datagram(f.Payload, &d.sample)
	}
}

// datagram counts the samples in the payload of a UDP datagram.
func (s *Sampled) datagram(b []byte, f *link.Frame) {
	w := words(b)
	version, _ := w.next()
	address, _ := w.next()
	switch {
	case version != sflowVersion:
		return
	case address == 1:
		w.skip(1)
	case address == 2:
		w.skip(4)
	default:
		return
	}
	w.skip(3) // sub-agent, sequence number, uptime
	for samples, _ := w.next(); samples > 0; samples-- {
		kind, part, ok := w.part()
		if !ok {
			return
		}
		switch kind {
		case sflowFlowSample:
			part.skip(2) // sequence number, source
			s.sample(part, 2, f)
		case sflowExpandedSample:
			part.skip(3)
			s.sample(part, 4, f)
		}
	}
}

// sample counts a sample, from its rate on; the interfaces take that many words.
func (s *Sampled) sample(w words, interfaces int, f *link.Frame) {
	rate, ok := w.next()
	w.skip(2 + interfaces) // pool, drops
	for records, _ := w.next(); ok && records > 0; records-- {
		var kind uint32
		var part words
		if kind, part, ok = w.part(); !ok || kind != sflowRawHeader {
			continue
		}
		protocol, _ := part.next()
		length, _ := part.next()
		part.skip(1) // bytes removed
		n, more := part.next()
		if !more {
			continue
		}
		s.Rate = rate
		s.header(protocol, part[:min(uint64(n), uint64(len(part)))], length, f)
	}
}

// header counts the first bytes of a packet.
func (s *Sampled) header(protocol uint32, b []byte, length uint32, f *link.Frame) {
	s.Headers++
	switch protocol {
	case sflowEthernet:
		link.Decode(capture.LinkEthernet, b, length, f)
	case sflowIPv4, sflowIPv6:
		link.Decode(capture.LinkRaw, b, length, f)
	default:
		return
	}
	if (f.Proto != link.UDP || f.DstPort != RoCEPort) && f.Proto != link.RoCEv1 || len(f.Payload) < roce.BTHSize {
		return
	}
	s.RoCE++
	if f.ECN == link.CongestionExperienced {
		s.Marked++
	}
	switch opcode := roce.Opcode(f.Payload[0]); {
	case opcode.IsCNP():
		s.CNPs++
	case opcode == roce.RCAcknowledge && len(f.Payload) > roce.BTHSize:
		if x := roce.Syndrome(f.Payload[roce.BTHSize]); x.IsNAK() || x.IsRNR() {
			s.NAKs++
		}
	}
	s.between(SampledPeers{f.Src, f.Dst, 1})
}

// between counts packets between two peers.
func (s *Sampled) between(x SampledPeers) {
	for i := range s.Peers {
		p := &s.Peers[i]
		if p.Packets == 0 {
			*p = x
			return
		}
		if p.From == x.From && p.To == x.To {
			p.Packets += x.Packets
			return
		}
	}
	s.Others += x.Packets
}

// Add adds others.
func (s *Sampled) Add(o *Sampled) {
	s.Headers += o.Headers
	if o.Rate != 0 {
		s.Rate = o.Rate
	}
	s.RoCE += o.RoCE
	s.Marked += o.Marked
	s.CNPs += o.CNPs
	s.NAKs += o.NAKs
	s.Others += o.Others
	for _, p := range o.Peers {
		if p.Packets > 0 {
			s.between(p)
		}
	}
}

// Since takes off what had been counted before.
func (s Sampled) Since(o *Sampled) Sampled {
	s.Headers -= o.Headers
	s.RoCE -= o.RoCE
	s.Marked -= o.Marked
	s.CNPs -= o.CNPs
	s.NAKs -= o.NAKs
	s.Others -= o.Others
	for i := range s.Peers {
		s.Peers[i].Packets -= o.Peers[i].Packets
	}
	return s
}
