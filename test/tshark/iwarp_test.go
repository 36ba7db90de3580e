package tshark

import (
	"bytes"
	"errors"
	"math/bits"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// streams puts the iWARP connections of a capture together and files their
// FPDUs under the packets that complete them. The decoder has no call that
// reports FPDUs, so its codecs and its stream reassembly are driven here.
// Connections whose handshake was not captured are left out, since tshark
// finds nothing in them.
type streams struct {
	pool   *tcp.Pool
	frames map[uint64]*frame
	byEnds map[ends]*mpaStream
	again  map[uint64]int // bytes of a packet that were seen before
}

type ends struct{ src, dst netip.AddrPort }

func newStreams(frames map[uint64]*frame) *streams {
	return &streams{
		pool: tcp.NewPool(tcp.Options{}), frames: frames,
		byEnds: make(map[ends]*mpaStream), again: make(map[uint64]int),
	}
}

func (s *streams) segment(f *link.Frame, ref rdma.Ref) {
	from := ends{netip.AddrPortFrom(f.Src, f.SrcPort), netip.AddrPortFrom(f.Dst, f.DstPort)}
	to := ends{from.dst, from.src}
	if f.TCPFlags&tcp.SYN != 0 && s.byEnds[from] == nil {
		m := &mpaStream{streams: s}
		m.tcp.Init(s.pool, m)
		s.byEnds[from] = m
	}
	if m := s.byEnds[to]; m != nil && f.TCPFlags&0x10 != 0 {
		m.tcp.Acked(f.TCPAck, ref)
	}
	if m := s.byEnds[from]; m != nil {
		m.peer = s.byEnds[to]
		m.tcp.Segment(f.TCPSeq, f.TCPFlags, f.Payload, f.PayloadLen, ref)
	}
}

func (s *streams) flush(ref rdma.Ref) {
	for _, m := range s.byEnds {
		m.tcp.Flush(ref)
	}
}

// mpaStream is one direction of a TCP connection that may carry iWARP.
type mpaStream struct {
	streams *streams
	peer    *mpaStream
	tcp     tcp.Stream
	buf     []byte
	started bool // the MPA frame has been seen
	markers bool // this side wants markers
	crc     bool // this side wants CRCs
	lost    bool // not iWARP, or not to be followed any more
}

// Data implements tcp.Consumer.
func (m *mpaStream) Data(_ uint64, p []byte, _, ready rdma.Ref) {
	if m.lost {
		return
	}
	m.buf = append(m.buf, p...)
	f := m.streams.frames[ready.Number]
	if !m.started {
		var mpa iwarp.MPAFrame
		n, err := mpa.Decode(m.buf)
		if errors.Is(err, iwarp.ErrShort) && len(m.buf) < iwarp.MPAHeaderLen+iwarp.MPAMaxPrivate {
			m.lost = len(m.buf) >= 4 && !bytes.HasPrefix(m.buf, []byte("MPA "))
			return
		}
		if err != nil {
			m.lost = true
			return
		}
		f.handshake(m.buf[:n], &mpa)
		m.started, m.markers, m.crc = true, mpa.Markers, mpa.CRC
		m.buf = m.buf[n:]
	}
	if m.peer != nil && m.peer.markers {
		m.lost = true // no capture has markers; the decoder's own tests cover them
		return
	}
	for {
		fpdu, err := iwarp.ParseFPDU(m.buf)
		if err != nil {
			return
		}
		f.fpdu(fpdu, m.crc || m.peer != nil && m.peer.crc)
		m.buf = m.buf[len(fpdu):]
	}
}

// Skip implements tcp.Consumer.
func (m *mpaStream) Skip(uint64, int, tcp.Reason, rdma.Ref, rdma.Ref) { m.lost = true }

// Again implements tcp.Consumer.
func (m *mpaStream) Again(_ uint64, n int, ref rdma.Ref) { m.streams.again[ref.Number] += n }

// End implements tcp.Consumer.
// Differs implements tcp.Consumer.
func (m *mpaStream) Differs(uint64, int, rdma.Ref) {}

func (m *mpaStream) End(uint64, tcp.Ending, rdma.Ref) {}

// Reset implements tcp.Consumer.
func (m *mpaStream) Reset(rdma.Ref) {
	m.buf, m.started, m.lost, m.markers, m.crc = m.buf[:0], false, false, false, false
}

func (f *frame) handshake(raw []byte, m *iwarp.MPAFrame) {
	v := f.values
	v.add("iwarp_mpa.marker_flag", boolean(m.Markers))
	v.add("iwarp_mpa.crc_flag", boolean(m.CRC))
	v.add("iwarp_mpa.rej_flag", boolean(m.Reject))
	v.add("iwarp_mpa.rev", num(m.Revision))
	if private := raw[iwarp.MPAHeaderLen:]; len(private) > 0 {
		v.add("iwarp_mpa.privatedata", bin(private))
	}
	v.add("iwarp_mpa.pdlength", num(len(raw)-iwarp.MPAHeaderLen))
}

func (f *frame) fpdu(p iwarp.FPDU, checked bool) {
	v := f.values
	v.add("iwarp_mpa.ulpdulength", num(p.ULPDULen()))
	// tshark computes the CRC if that was negotiated. It shows the bytes in the
	// order of the wire; they are little-endian.
	name, crc := "iwarp_mpa.crc", p.CRC()
	if checked {
		name, crc = "iwarp_mpa.crc_check", p.Checksum()
	}
	v.add(name, num(bits.ReverseBytes32(crc)))
	u := iwarp.ULPDU(p.ULPDU())
	if !u.Valid(len(u)) {
		f.problem = "invalid ULPDU"
		return
	}
	c := u.Control()
	v.add("iwarp_ddp.tagged_flag", boolean(c.Tagged()))
	v.add("iwarp_ddp.last_flag", boolean(c.Last()))
	v.add("iwarp_ddp.dv", num(c.DDPVersion()))
	v.add("iwarp_rdma.version", num(c.RDMAPVersion()))
	v.add("iwarp_rdma.opcode", num(c.Opcode()))
	if c.Tagged() {
		t := iwarp.Tagged(u)
		v.add("iwarp_ddp.stag", num(t.STag()))
		v.add("iwarp_ddp.tagged_offset", num(t.TO()))
		return
	}
	t := iwarp.Untagged(u)
	v.add("iwarp_ddp.qn", num(t.QN()))
	v.add("iwarp_ddp.msn", num(t.MSN()))
	v.add("iwarp_ddp.mo", num(t.MO()))
	switch op := c.Opcode(); {
	case op.Invalidates():
		v.add("iwarp_rdma.inval_stag", num(t.InvalidateSTag()))
	case op == iwarp.OpReadRequest && len(u.Payload()) >= iwarp.ReadRequestLen:
		r := iwarp.ReadRequest(u.Payload())
		v.add("iwarp_rdma.sinkstag", num(r.SinkSTag()))
		v.add("iwarp_rdma.sinkto", num(r.SinkTO()))
		v.add("iwarp_rdma.rdmardsz", num(r.Size()))
		v.add("iwarp_rdma.srcstag", num(r.SourceSTag()))
		v.add("iwarp_rdma.srcto", num(r.SourceTO()))
	case op == iwarp.OpTerminate && len(u.Payload()) >= iwarp.TerminateLen:
		term := iwarp.Terminate(u.Payload())
		v.add("iwarp_rdma.term_layer", num(term.Layer()))
		switch {
		case term.Layer() == 0:
			v.add("iwarp_rdma.term_errcode_rdma", num(term.Code()))
		case term.Layer() == 1 && term.EType() == 1:
			v.add("iwarp_rdma.term_errcode_ddp_tagged", num(term.Code()))
		case term.Layer() == 1 && term.EType() == 2:
			v.add("iwarp_rdma.term_errcode_ddp_untagged", num(term.Code()))
		case term.Layer() == 2:
			v.add("iwarp_rdma.term_errcode_llp", num(term.Code()))
		}
	}
}
