package ibcm

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// What Decode finds wrong.
const (
	ProblemCut       = "cut in the header of a management datagram"
	ProblemShort     = "shorter than a management datagram"
	ProblemClass     = "not of the communication management class"
	ProblemVersion   = "unknown version of communication management"
	ProblemAttribute = "not a connection management message"
)

// Message is the result of Decode: what the messages have in common, and what
// followers of connections need of them. The rest is in Data; convert it to
// the type that belongs to Attribute: REQ(m.Data). Fields that a kind of
// message does not have are zero, and so are those that the capture cut.
type Message struct {
	Attribute     Attribute
	TransactionID uint64
	Data          []byte // what was captured of the 232 bytes after the header
	Cut           bool   // that is not all

	// LocalID and RemoteID are the communication ids of sender and receiver;
	// SIDR messages have their request id in LocalID.
	LocalID, RemoteID uint32

	// QPN is the sender's queue pair (REQ, REP), the receiver's (DREQ), or the
	// service's (SIDR_REP).
	QPN uint32

	// REQ and REP:

	StartPSN           uint32 // the PSN that the sender expects in the first packet to it
	StartKnown         bool   // StartPSN was captured
	ResponderResources uint8  // RDMA Reads that the sender answers at once
	InitiatorDepth     uint8  // RDMA Reads that the sender starts at once
	RNRRetryCount      uint8
	TermsKnown         bool             // the numbers here, and those of a REQ below, were captured
	RDMA               rdma.PrivateData // the message of RFC 8797

	// REQ:

	ServiceID  ServiceID // SIDR too
	Transport  Transport
	PathMTU    uint32 // bytes; 0 if the code is undefined
	RetryCount uint8
	AckTimeout uint8 // exponent; see Timeout

	// IP says that Src, Dst and SrcPort were found in the private data: the
	// addresses that the consumers asked to be connected (REQ, SIDR_REQ).
	IP       bool
	Src, Dst netip.Addr
	SrcPort  uint16

	// REJ and MRA:

	Rejected Rejected
	Reason   Reason // REJ

	// Private is the consumer's private data as captured, without the header
	// of IP addressed services.
	Private []byte

	// Problem is a constant that says why this message is unusable; empty if there was no problem.
	Problem string
}

// Decode reads a MAD into m. b is what was captured of it, the payload of a UD
// packet to queue pair 1; declared is its length on the wire in bytes. It
// returns false, with the reason in m.Problem, if b is not a connection
// management message or is cut within the header. A message that is cut later
// is decoded as far as it goes.
//
// Decode does not allocate; m aliases b.
func Decode(b []byte, declared int, m *Message) bool {
	*m = Message{}
	if len(b) > declared {
		b = b[:max(declared, 0)]
	}
	mad := MAD(b)
	m.Attribute = mad.Attribute()
	m.TransactionID = mad.TransactionID()
	m.Data = mad.Data()
	m.Cut = len(b) < min(declared, MADSize)
	switch {
	case declared < HeaderSize:
		m.Problem = ProblemShort
	case len(b) < HeaderSize:
		m.Problem = ProblemCut
	case !mad.IsValid():
		m.Problem = ProblemClass
	case mad.ClassVersion() != ClassVersion:
		m.Problem = ProblemVersion
	case m.Attribute < AttributeREQ || m.Attribute > AttributeAPR:
		m.Problem = ProblemAttribute
	case declared < MADSize:
		m.Problem = ProblemShort
	}
	if m.Problem != "" {
		return false
	}
	m.body()
	return true
}

// IDsKnown reports whether the communication ids were captured. A REQ has only that of its sender.
func (m *Message) IDsKnown() bool {
	if m.Attribute == AttributeREQ {
		return len(m.Data) >= reqLocalID+4
	}
	return len(m.Data) >= remoteID+4
}

// qpnEnds, serviceEnds and reasonEnds are how many bytes of a message have to be captured for its QPN, its service, and for what is
// rejected or acknowledged and why. Others are 0.
var (
	qpnEnds     = [...]int{AttributeREQ: reqQPN + 3, AttributeREP: repQPN + 3, AttributeDREQ: dreqQPN + 3, AttributeSIDRREP: sidrQPN + 3, AttributeLAP: lapQPN + 3}
	serviceEnds = [...]int{AttributeREQ: reqServiceID + 8, AttributeSIDRREQ: sidrServiceID + 8, AttributeSIDRREP: sidrRepService + 8}
	reasonEnds  = [...]int{AttributeREJ: rejReason + 2, AttributeMRA: mraPrivate}
)

func (m *Message) holds(ends []int) bool {
	return int(m.Attribute) < len(ends) && ends[m.Attribute] > 0 && len(m.Data) >= ends[m.Attribute]
}

// QPNKnown reports whether the message has a QPN that was captured.
func (m *Message) QPNKnown() bool { return m.holds(qpnEnds[:]) }

// ServiceKnown reports whether the message has a ServiceID that was captured.
func (m *Message) ServiceKnown() bool { return m.holds(serviceEnds[:]) }

// ReasonKnown reports whether the message says what it rejects or acknowledges, and a REJ why, and that was captured.
func (m *Message) ReasonKnown() bool { return m.holds(reasonEnds[:]) }

func (m *Message) body() {
	d := m.Data
	m.LocalID = wire.Get32(d, localID)
	m.RemoteID = wire.Get32(d, remoteID)
	switch m.Attribute {
	case AttributeREQ:
		r := REQ(d)
		m.RemoteID = 0
		m.ServiceID = r.ServiceID()
		m.QPN, m.StartPSN = r.LocalQPN(), r.StartingPSN()
		m.StartKnown, m.TermsKnown = len(d) >= reqPSN+3, len(d) >= reqAlternatePath
		m.ResponderResources, m.InitiatorDepth = r.ResponderResources(), r.InitiatorDepth()
		m.RetryCount, m.RNRRetryCount = r.RetryCount(), r.RNRRetryCount()
		m.Transport = r.Transport()
		m.PathMTU = MTUBytes(r.PathMTU())
		m.AckTimeout = r.Primary().AckTimeout()
		m.Private = r.Private()
		m.ip(r.ServiceID())
		m.RDMA.Decode(m.Private)
	case AttributeREP:
		r := REP(d)
		m.QPN, m.StartPSN = r.LocalQPN(), r.StartingPSN()
		m.StartKnown, m.TermsKnown = len(d) >= repPSN+3, len(d) >= repPrivate
		m.ResponderResources, m.InitiatorDepth = r.ResponderResources(), r.InitiatorDepth()
		m.RNRRetryCount = r.RNRRetryCount()
		m.Private = r.Private()
		m.RDMA.Decode(m.Private)
	case AttributeREJ:
		r := REJ(d)
		m.Rejected, m.Reason = r.Rejected(), r.Reason()
		m.Private = r.Private()
	case AttributeMRA:
		m.Rejected = MRA(d).Received()
		m.Private = MRA(d).Private()
	case AttributeRTU:
		m.Private = RTU(d).Private()
	case AttributeDREQ:
		m.QPN = DREQ(d).RemoteQPN()
		m.Private = DREQ(d).Private()
	case AttributeDREP:
		m.Private = DREP(d).Private()
	case AttributeSIDRREQ:
		m.RemoteID = 0
		m.ServiceID = SIDRREQ(d).ServiceID()
		m.Private = SIDRREQ(d).Private()
		m.ip(m.ServiceID)
	case AttributeSIDRREP:
		m.RemoteID = 0
		m.QPN = SIDRREP(d).QPN()
		m.ServiceID = SIDRREP(d).ServiceID()
		m.Private = SIDRREP(d).Private()
	case AttributeLAP:
		m.QPN = LAP(d).RemoteQPN()
		m.Private = LAP(d).Private()
	case AttributeAPR:
		m.Private = APR(d).Private()
	}
}

// ip takes the header of IP addressed services off the private data.
func (m *Message) ip(s ServiceID) {
	if _, _, ok := s.IP(); !ok {
		return
	}
	h := IPHeader(m.Private)
	m.Private = area(m.Private, IPHeaderSize, len(m.Private))
	if h.IsValid() {
		m.IP, m.Src, m.Dst, m.SrcPort = true, h.Src(), h.Dst(), h.SrcPort()
	}
}
