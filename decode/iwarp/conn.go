package iwarp

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// Verdict is the classification of a TCP connection by a Conn or by Sniff.
type Verdict uint8

// Verdicts.
const (
	Maybe Verdict = iota // not enough has been seen
	Yes                  // it is iWARP
	No                   // it is not, or there is no sign of it
)

func (v Verdict) String() string { return [...]string{"maybe", "yes", "no"}[v] }

// crcState is what is known about the use of CRCs on a connection.
type crcState uint8

const (
	crcUnknown crcState = iota
	crcOn
	crcOff
)

// crcSamples is how many FPDUs without a right CRC show that CRCs are off, if the setup was not captured.
const crcSamples = 4

// Conn decodes one TCP connection. Its two directions are numbered 0 and 1 by
// the caller, by rule 0 for the sender of the first packet. The sides of the
// rdma.Connection are the same, unless the MPA Request comes in direction 1:
// side 0 is the MPA initiator. Then Ends and Sent of the rdma.Connection are
// swapped before anything is reported.
//
// Nothing is reported until the connection has been recognised as iWARP.
type Conn struct {
	t       *Tracker
	c       *rdma.Connection
	halves  [2]half
	flip    uint8 // direction of side 0
	verdict Verdict

	streams [2]tcp.Stream // for Segment
	bases   [2]base
	scales  [2]int8 // see windowScale; only for a watcher

	expected   bool // on an expected port
	negotiated bool // the MPA frame of the initiator or its peer was seen
	closed     bool
	replaced   bool   // another connection has reused the addresses and ports
	vain       int    // bytes searched without finding an FPDU
	ending     string // what ended it first at the TCP level, and who sent that
	endedBy    uint64 // number of the packet that did

	crc      crcState
	goodCRCs uint64
	noCRCs   int
}

// New creates the decoder of a connection, which reports on c. Ends of c must be set, with Ends[0] the sender
// of direction 0.
func (t *Tracker) New(c *rdma.Connection) *Conn {
	n := &Conn{t: t, c: c}
	n.expected = t.expected(c.Ends[0].Port) || t.expected(c.Ends[1].Port)
	for i := range n.halves {
		n.halves[i].conn = n
		n.halves[i].dir = uint8(i)
		n.streams[i].Init(t.o.Pool, &n.halves[i])
	}
	return n
}

// Connection is what New was given.
func (c *Conn) Connection() *rdma.Connection { return c.c }

// Verdict reports whether the connection is iWARP. Once it is Yes or No it does not change. After No the Conn
// is useless, and has reported nothing.
func (c *Conn) Verdict() Verdict { return c.verdict }

// Side is the side that sends in a direction.
func (c *Conn) Side(dir int) rdma.Side { return c.side(&c.halves[dir]) }

// side is the side that sends in a direction.
func (c *Conn) side(h *half) rdma.Side { return rdma.Side(h.dir ^ c.flip) }

// peer is the other direction.
func (c *Conn) peer(h *half) *half { return &c.halves[h.dir^1] }

// recognise takes the connection for iWARP.
func (c *Conn) recognise() {
	if c.verdict != Maybe {
		return
	}
	c.verdict = Yes
	c.c.Fabric = rdma.IWARP
}

// refuse takes it for something else.
func (c *Conn) refuse() {
	if c.verdict != Maybe {
		return
	}
	c.verdict = No
	for i := range c.halves {
		c.halves[i].off()
	}
}

// searched counts bytes in which no FPDU was found.
func (c *Conn) searched(n int) {
	if c.verdict != Maybe {
		return
	}
	c.vain += n
	if c.vain >= giveUpPort || c.vain >= giveUp && !c.expected {
		c.refuse()
	}
}

// wantsMarkers reports whether the receiver of a direction asked for markers.
func (c *Conn) wantsMarkers(h *half) bool {
	s := &c.c.Setup[c.side(h).Other()]
	return s.Seen() && s.Markers
}

// negotiate handles the MPA frame of a direction.
func (c *Conn) negotiate(h *half, f *MPAFrame, from *span) {
	c.recognise()
	initiator := h.dir
	if f.Reply {
		initiator ^= 1
	}
	if !c.negotiated && initiator != c.flip && c.halves[0].fpdus+c.halves[1].fpdus == 0 {
		c.flip = initiator
		k := c.c
		k.Ends[0], k.Ends[1] = k.Ends[1], k.Ends[0]
		k.Sent[0], k.Sent[1] = k.Sent[1], k.Sent[0]
		k.Setup[0], k.Setup[1] = k.Setup[1], k.Setup[0]
	}
	c.negotiated = true
	if !f.Reply {
		c.c.Requests++
	}
	setup := &c.c.Setup[c.side(h)]
	*setup = rdma.Setup{
		Message: rdma.SetupMPA, Frame: from.last, MPARevision: f.Revision, Markers: f.Markers, CRC: f.CRC,
		PeerToPeer: f.PeerToPeer, ResponderDepth: f.IRD, InitiatorDepth: f.ORD,
	}
	setup.PrivateBytesLen = uint8(copy(setup.PrivateBytes[:], f.Private))
	setup.Private.Decode(f.Private)
	other := &c.c.Setup[c.side(h).Other()]
	switch {
	case f.CRC || other.Seen() && other.CRC:
		c.crc = crcOn
	case other.Seen():
		c.crc = crcOff
	}
	switch {
	case f.Reject && f.Reply:
		c.c.State = rdma.Rejected
		c.c.Terminated = "MPA request rejected"
	case f.Reply:
		c.c.State = rdma.Established
	case !other.Seen():
		c.c.State = rdma.Connecting
	}
}

// proveSetup compares the setup with the first FPDU of a direction, which packet ref completes. Where they contradict each other, the traffic
// decides.
func (c *Conn) proveSetup(h *half, ref rdma.Ref) {
	side := c.side(h)
	own := &c.c.Setup[side]
	if c.c.State == rdma.Rejected {
		c.c.State, c.c.Terminated = rdma.Established, ""
		c.t.handler.Event(c.c, side, rdma.EventMPARejected, 0, ref)
	}
	if own.Seen() && own.MPARevision-1 >= mpaRevisions {
		c.t.handler.Event(c.c, side, rdma.EventMPARevision, uint32(own.MPARevision), ref)
	}
	if peer := &c.c.Setup[side.Other()]; peer.Seen() && !h.searched && peer.Markers != h.marked {
		asked := uint32(0)
		if peer.Markers {
			asked = 1
		}
		c.t.handler.Event(c.c, side, rdma.EventMPAMarkers, asked, ref)
	}
}

// check verifies the CRC of a whole FPDU at a stream offset. If the setup was not captured, it determines
// whether CRCs are in use.
func (c *Conn) check(h *half, raw []byte, start uint64) bool {
	body := raw[:len(raw)-CRCLen]
	field := binary.LittleEndian.Uint32(raw[len(body):])
	if c.crc == crcUnknown && field == 0 {
		c.withoutCRC()
		return true
	}
	good := checksum(body) == field
	if !good && h.marked && (start-h.base)%MarkerInterval == 0 {
		// Does a marker in front of the length field belong to the FPDU? Our reading is yes; a sender that
		// reads otherwise is accepted, too.
		good = checksum(body[MarkerLen:]) == field
	}
	if good {
		c.goodCRCs++
		c.crc = crcOn
		return true
	}
	if c.crc == crcUnknown {
		c.withoutCRC()
		return true
	}
	return false
}

func (c *Conn) withoutCRC() {
	if c.noCRCs++; c.noCRCs >= crcSamples {
		c.crc = crcOff
	}
}

// flush reports what is under way.
func (c *Conn) flush() {
	if c.verdict != Yes {
		return
	}
	for i := range c.halves {
		h := &c.halves[i]
		h.regained(h.pos)
		if h.mode == modeFraming {
			h.settleSize()
			if h.need > 0 {
				h.finish()
			}
			h.drop()
			h.lose()
		}
		h.out.abandon(h)
	}
}

// Close ends the connection: it reports what is in progress, and then that the connection is closed. why goes
// to Terminated if no better reason is known; it is empty at the end of the capture, which leaves the
// connection open.
func (c *Conn) Close(why string, ref rdma.Ref) {
	if c.closed {
		return
	}
	for i := range c.streams {
		c.streams[i].Flush(ref)
		c.streams[i].Release()
	}
	c.over(why, ref)
}

// over is Close, after the streams have delivered everything.
func (c *Conn) over(why string, ref rdma.Ref) {
	if c.closed {
		return
	}
	c.flush()
	c.closed = true
	for i := range c.halves {
		c.halves[i].off()
	}
	if c.verdict != Yes {
		return
	}
	for i := range c.streams {
		if n := c.streams[i].Stats().Displaced(); n > 0 {
			c.t.Displaced.Add(rdma.Given{Count: 1, Bytes: n, First: c.c.First.Number})
		}
	}
	c.taken(0, ref, 0)
	c.taken(1, ref, 0)
	c.terminated(why)
	if c.c.Terminated != "" && c.c.State != rdma.Rejected {
		c.c.State = rdma.Closed
	}
	c.t.handler.Closed(c.c, ref)
}

// Closed reports whether the connection is over. Then the Conn is useless.
func (c *Conn) Closed() bool { return c.closed }

func (c *Conn) terminated(why string) {
	if c.c.Terminated == "" {
		c.c.Terminated = why
	}
}
