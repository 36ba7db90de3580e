package iwarp

import (
	"errors"
	"fmt"
	"io"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// agreement is the result of the MPA negotiation.
type agreement struct {
	initiator            bool
	revision             uint8
	peerToPeer           bool
	crc                  bool
	sendMarkers, markers bool // in what we send; in what we receive
	rtr                  RTR  // what the initiator sends first; 0 is nothing
	ird, ord             int
	private              []byte // of the peer
	maxULPDU             int
}

// errRevision1 says that the peer has answered a request of revision 2 with a reply of
// revision 1. It has taken our depths for private data, so a new attempt is needed.
var errRevision1 = errors.New("iwarp: the peer knows MPA revision 1 only")

// request asks for a connection.
func (p *Provider) request(s io.ReadWriter, params *verbs.Params, revision uint8) (*agreement, error) {
	ird, ord := depth(params.ResponderResources), depth(params.InitiatorDepth)
	f := iwarp.MPAFrame{
		Revision: revision,
		CRC:      p.o.CRC == CRCOn,
		Markers:  p.o.Markers,
		Private:  params.PrivateData,
	}
	if revision >= 2 {
		f.Enhanced, f.IRD, f.ORD = true, ird, ord
		if !p.o.NoPeerToPeer {
			f.PeerToPeer = true
			setRTR(&f, p.o.RTR)
		}
	}
	if err := send(s, &f); err != nil {
		return nil, err
	}
	var r iwarp.MPAFrame
	if err := receive(s, &r); err != nil {
		return nil, fmt.Errorf("iwarp: MPA Reply: %w", err)
	}
	switch {
	case !r.Reply:
		return nil, errors.New("iwarp: the peer sent an MPA Request too")
	case r.Reject:
		return nil, &verbs.RejectError{Reason: "MPA Reply with the reject bit", PrivateData: r.Private}
	case r.Revision > revision:
		return nil, fmt.Errorf("iwarp: MPA Reply of revision %d to a request of revision %d", r.Revision, revision)
	case f.Enhanced && r.Revision < 2:
		return nil, errRevision1
	case f.Enhanced != r.Enhanced:
		return nil, fmt.Errorf("iwarp: MPA Reply of revision %d without depths", r.Revision)
	}
	a := &agreement{
		initiator: true, revision: r.Revision,
		crc: f.CRC || r.CRC, sendMarkers: r.Markers, markers: f.Markers,
		ird: int(ird), ord: int(ord), private: r.Private, maxULPDU: p.o.MaxULPDU,
	}
	if r.Enhanced {
		a.ord = min(a.ord, int(r.IRD))
		// A responder whose ORD exceeds our IRD wants more than we offered. We
		// have the room, so it gets it, as with Linux.
		switch {
		case r.ORD == iwarp.MPADepthUnlimited:
		case r.ORD > maxReads:
			return nil, fmt.Errorf("iwarp: the peer wants %d RDMA Reads at a time, %d are possible", r.ORD, maxReads)
		default:
			a.ird = int(r.ORD)
		}
		if f.PeerToPeer && r.PeerToPeer {
			if a.rtr = choose(p.o.RTR & rtrOf(&r)); a.rtr == 0 {
				return nil, errors.New("iwarp: the peer offers no ready-to-receive message that we know")
			}
			a.peerToPeer = true
		}
	}
	return a, nil
}

// reply answers a request.
func (p *Provider) reply(s io.Writer, r *iwarp.MPAFrame, params *verbs.Params) (*agreement, error) {
	ird, ord := depth(params.ResponderResources), depth(params.InitiatorDepth)
	a := &agreement{
		revision: r.Revision,
		crc:      p.o.CRC == CRCOn || r.CRC, sendMarkers: r.Markers, markers: p.o.Markers,
		ird: int(ird), ord: int(ord), private: r.Private, maxULPDU: p.o.MaxULPDU,
	}
	f := iwarp.MPAFrame{
		Reply: true, Revision: r.Revision, CRC: a.crc, Markers: a.markers,
		Private: params.PrivateData, Enhanced: r.Enhanced,
	}
	if r.Enhanced {
		if r.ORD != iwarp.MPADepthUnlimited {
			a.ird = min(a.ird, int(r.ORD))
		}
		a.ord = min(a.ord, int(r.IRD))
		f.IRD, f.ORD = uint16(a.ird), uint16(a.ord)
		if r.PeerToPeer {
			// One that both sides support, or else our first choice (RFC 6581, section
			// 9.1).
			a.peerToPeer = true
			if a.rtr = choose(p.o.RTR & rtrOf(r)); a.rtr == 0 {
				a.rtr = choose(p.o.RTR)
			}
			f.PeerToPeer = true
			setRTR(&f, a.rtr)
		}
	}
	return a, send(s, &f)
}

// depth returns what was asked for, or the default, within the limit.
func depth(n uint8) uint16 {
	if n == 0 {
		return defaultRead
	}
	return uint16(min(n, maxReads))
}

func send(s io.Writer, f *iwarp.MPAFrame) error {
	room := iwarp.MPAMaxPrivate
	if f.Enhanced {
		room -= 4
	}
	if len(f.Private) > room {
		return fmt.Errorf("iwarp: %d bytes of private data, %d are possible", len(f.Private), room)
	}
	_, err := s.Write(f.Append(make([]byte, 0, f.Size())))
	return err
}

// receive reads one MPA frame and no further.
func receive(s io.Reader, f *iwarp.MPAFrame) error {
	b := make([]byte, iwarp.MPAHeaderLen, iwarp.MPAHeaderLen+iwarp.MPAMaxPrivate)
	if _, err := io.ReadFull(s, b); err != nil {
		return err
	}
	_, err := f.Decode(b)
	if errors.Is(err, iwarp.ErrShort) {
		n := int(b[18])<<8 | int(b[19]) // at most MPAMaxPrivate: Decode has seen it
		b = b[:iwarp.MPAHeaderLen+n]
		if _, err := io.ReadFull(s, b[iwarp.MPAHeaderLen:]); err != nil {
			return err
		}
		_, err = f.Decode(b)
		return err
	}
	return err
}

func setRTR(f *iwarp.MPAFrame, r RTR) {
	f.RTRWrite, f.RTRRead, f.RTRSend = r&RTRWrite != 0, r&RTRRead != 0, r&RTRSend != 0
}

func rtrOf(f *iwarp.MPAFrame) (r RTR) {
	if f.RTRWrite {
		r |= RTRWrite
	}
	if f.RTRRead {
		r |= RTRRead
	}
	if f.RTRSend {
		r |= RTRSend
	}
	return r
}

// choose picks one of a set, preferably a Write, which needs no answer.
func choose(r RTR) RTR { return r & -r }
