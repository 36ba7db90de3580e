package check

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// strange connects for an upper layer that is not NFS.
func (s *scene) strange() {
	s.other = true
	s.connectWith(nil, nil)
}

// bare sends Sends that are no RPC, without acknowledgements.
func (s *scene) bare(from rdma.Side, n int) {
	for range n {
		s.sendRaw(from, bytes.Repeat([]byte{0xa5}, 40), 0)
	}
}

// back makes the next request of a side one that it has sent.
func (s *scene) back(from rdma.Side, n uint32) { s.psn[from] = (s.psn[from] - n) & psnMask }

// answerTo is an acknowledgement of a PSN that is n before the newest.
func (s *scene) answerTo(from rdma.Side, n uint32, syndrome roce.Syndrome, msn uint32) *rocetest.Packet {
	p := s.packet(from, roce.RCAcknowledge)
	p.PSN = (s.last[from.Other()] - n) & psnMask
	p.AETH = roce.AETHFields{Syndrome: syndrome, MSN: msn & psnMask}
	return s.put(p)
}

// readRequest asks for memory, and does not wait for the response.
func (s *scene) readRequest(from rdma.Side, seg rpcrdma.Segment) uint32 {
	p := s.request(from, roce.RCReadRequest, nil)
	p.RETH = roce.RETHFields{VA: seg.Offset, RKey: seg.Handle, DMALen: seg.Length}
	return p.PSN
}

func (s *scene) cnp(from rdma.Side) *rocetest.Packet {
	p := s.packet(from, roce.CNP)
	p.BECN, p.Payload = true, make([]byte, cnpReserved)
	return s.put(p)
}

// fabricBreaches are on connections whose upper layer is not known.
var fabricBreaches = []breach{
	{rule: "psn-reused", by: Responder, play: func(s *scene) {
		s.strange()
		s.read(server, memoryAt(0x100, 3000), make([]byte, 3000))
		s.back(server, 1)
		s.bare(server, 1)
	}},
	{rule: "ack-never-sent", by: Responder, play: func(s *scene) {
		s.strange()
		s.bare(client, 2)
		s.answerTo(server, 1<<22, roce.ACKUnlimited, 2)
	}},
	{rule: "rest-not-resent", by: Requester, with: []string{"packets-resent"}, play: func(s *scene) { s.notReadyFor(1) }},
	{rule: "nak-not-obeyed", by: Requester, with: []string{"packets-resent"}, play: func(s *scene) {
		s.strange()
		s.bare(client, 4)
		s.answerTo(server, 2, roce.NAKPSNSequence, 1)
		s.back(client, 2)
		s.bare(client, 1) // the one behind
		s.wait(5e6)
		s.back(client, 2)
		s.bare(client, 3)
		s.ack(server)
	}},
	{rule: "nak-repeated", by: Responder, with: []string{"packets-resent"}, play: func(s *scene) {
		s.strange()
		s.bare(client, 4)
		s.answerTo(server, 2, roce.NAKPSNSequence, 1)
		s.wait(5e6)
		s.answerTo(server, 2, roce.NAKPSNSequence, 1)
		s.back(client, 3)
		s.bare(client, 3)
		s.ack(server)
	}},
	{rule: "ack-went-back", by: Responder, play: func(s *scene) {
		s.strange()
		s.bare(client, 4)
		s.ack(server)
		s.wait(50e6)
		s.answerTo(server, 2, roce.ACKUnlimited, 4)
	}},
	{rule: "ack-late", by: Responder, play: func(s *scene) {
		s.strange()
		s.bare(client, 1)
		s.wait(2e9)
		s.ack(server)
	}},
	{rule: "msn-wrong", by: Responder, play: func(s *scene) {
		s.strange()
		s.bare(client, 2)
		s.answerTo(server, 0, roce.ACKUnlimited, 7)
	}},
	{rule: "send-without-credit", by: Requester, play: func(s *scene) {
		s.strange()
		s.bare(client, 1)
		s.answerTo(server, 0, 2, 1) // two credits
		s.bare(client, 3)           // and one more
		s.answerTo(server, 0, 0, 4) // none
		s.bare(client, 2)
	}},
	{rule: "read-depth-exceeded", by: Responder, play: func(s *scene) {
		s.strange()
		first := uint32(0)
		for i := range uint32(5) { // four are announced
			if psn := s.readRequest(server, memoryAt(0x100+i, 100)); i == 0 {
				first = psn
			}
		}
		for i := range uint32(5) {
			q := s.packet(client, roce.RCReadResponseOnly)
			q.PSN, q.Payload = first+i, make([]byte, 100)
			q.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: i + 1}
			s.put(q)
		}
	}},
	{rule: "rdma-length", by: Requester, play: func(s *scene) { // fewer bytes than the Read asks for
		s.strange()
		s.readAnswered(100, 99)
	}},
	{rule: "rdma-length", by: Requester, play: func(s *scene) { // more, in several packets
		s.strange()
		s.readAnswered(1100, 1024, 80)
	}},
	{rule: "rdma-length", by: Requester, play: func(s *scene) { // its end comes early
		s.strange()
		s.readAnswered(3000, 1024, 1024)
	}},
	{rule: "cnp-format", by: Responder, play: func(s *scene) {
		s.strange()
		s.bare(client, 1)
		s.ack(server)
		s.cnp(server).PSN = 7
	}},
	{rule: "cnp-format", by: Responder, play: func(s *scene) {
		s.strange()
		s.bare(client, 1)
		s.ack(server)
		s.cnp(server).BECN = false
		s.wait(1e6)
		s.cnp(server).Payload[3] = 1
	}},
	{rule: "cnp-rate", by: Responder, play: func(s *scene) {
		s.strange()
		s.bare(client, 1)
		s.ack(server)
		s.cnp(server)
		s.wait(1e6)
		s.cnp(server)
		s.cnp(server)
	}},
	{rule: "ecn-without-cnp", by: Responder, play: func(s *scene) {
		s.strange()
		s.bare(client, 1)
		s.recs[len(s.recs)-1].Packet.ECN = 3
		s.ack(server)
	}},
	{rule: "dscp-changed", by: Requester, play: func(s *scene) {
		s.strange()
		s.bare(client, 2)
		s.recs[len(s.recs)-1].Packet.DSCP = 26
		s.ack(server)
	}},
	{rule: "priority-changed", by: Requester, play: func(s *scene) {
		s.strange()
		s.bare(client, 2)
		s.recs[len(s.recs)-2].Packet.Priority = 3
		s.recs[len(s.recs)-1].Packet.Priority = 4
		s.ack(server)
	}},
	{rule: "message-stalled", by: Requester, play: func(s *scene) {
		s.strange()
		s.sendRaw(client, bytes.Repeat([]byte{0xa5}, 3*mtu), 0)
		s.recs[len(s.recs)-1].Time += 250e6
		s.wait(250e6)
		s.ack(server)
	}},
	{rule: "operation-refused", by: Requester, play: func(s *scene) {
		s.strange()
		s.write(client, memoryAt(9, 100), make([]byte, 100))
		s.nak(server, roce.NAKRemoteAccess)
	}},
	{rule: "opcode-sequence", by: Requester, play: func(s *scene) {
		s.strange()
		s.sendRaw(client, bytes.Repeat([]byte{0xa5}, 2*mtu), 0)
		s.recs[len(s.recs)-1].Packet.Opcode = roce.RCWriteLast
		s.ack(server)
	}},
	{rule: "first-not-mtu", by: Requester, play: func(s *scene) {
		s.strange()
		s.sendRaw(client, bytes.Repeat([]byte{0xa5}, 2*mtu), 0)
		p := s.recs[len(s.recs)-2].Packet
		p.Payload, p.PayloadLen = p.Payload[:512], 512
		s.ack(server)
	}},
	{rule: "bad-crc", by: Unknown, play: func(s *scene) {
		s.strange()
		s.bare(client, 1)
		s.spoil[len(s.recs)-1] = true
		s.ack(server)
	}},
}

func memoryAt(handle, n uint32) rpcrdma.Segment {
	return rpcrdma.Segment{Handle: handle, Offset: uint64(handle) << 20, Length: n}
}

// A conversation that keeps the rules of the fabric is judged by all of them, and nothing is found.
func TestGoodFabric(t *testing.T) {
	s := newScene()
	s.strange()
	for i := range 30 {
		s.bare(client, 3)
		s.answerTo(server, 0, 9, s.msn[client]) // 24 credits
		s.sendRaw(server, bytes.Repeat([]byte{0xa5}, 5*mtu), 0)
		s.ack(client)
		s.write(server, memoryAt(3, 9000), make([]byte, 9000))
		s.ack(client)
		s.read(server, memoryAt(4, 9000), make([]byte, 9000))
		if i%10 == 0 {
			s.recs[len(s.recs)-1].Packet.ECN = 3
			s.wait(1e6)
			s.cnp(server)
		}
	}
	s.bare(client, 4)
	s.answerTo(server, 2, roce.NAKPSNSequence, s.msn[client]-3)
	s.back(client, 3)
	s.bare(client, 3)
	s.ack(server)
	s.bare(client, 3)
	s.answerTo(server, 1, roce.RNR(1), s.msn[client]-2)
	s.wait(1e6)
	s.back(client, 2)
	s.bare(client, 2)
	s.ack(server)
	s.disconnect(client)
	for i := range s.recs {
		s.recs[i].Packet.Priority = 3
	}
	r := s.run(RFC8166)
	for _, f := range r.findings {
		if f.Rule.ID != "packets-resent" {
			t.Error(describeFinding(f))
		}
	}
	for i := range fabricBreaches {
		rule := Lookup(fabricBreaches[i].rule)
		if n := r.check.Count(rule); n.Judged == 0 && rule.id != ruleFatalNAK || n.Skipped() > 0 {
			t.Errorf("%s: judged %d times, not %v", rule.ID, n.Judged, n.NotJudged)
		}
	}
}

// The AETH of a Read Response grants credits, as that of an acknowledgement does (IBTA volume 1, section 9.7.7.2).
func TestCreditsOfReadResponse(t *testing.T) {
	s := newScene()
	s.strange()
	s.bare(client, 1)
	s.answerTo(server, 0, 1, 1) // one credit
	s.bare(client, 1)
	psn := s.readRequest(client, memoryAt(4, 100))
	q := s.packet(server, roce.RCReadResponseOnly)
	q.PSN, q.Payload = psn, make([]byte, 100)
	q.AETH = roce.AETHFields{Syndrome: 4, MSN: 3} // four more
	s.put(q)
	s.bare(client, 5) // and one more
	s.answerTo(server, 0, 0, 8)
	r := s.run(RFC8166)
	for _, f := range r.findings {
		t.Error(describeFinding(f))
	}
	s.bare(client, 2)
	if got := s.run(RFC8166).ids(); len(got) != 1 || got[0] != "send-without-credit" {
		t.Errorf("%v", got)
	}
}

// A NAK is called by its code.
func TestNamesOfNAKs(t *testing.T) {
	for syndrome, want := range map[roce.Syndrome]string{
		roce.NAKInvalid: "NAK: invalid request", roce.NAKRemoteAccess: "NAK: remote access error",
		roce.NAKRemoteOp: "NAK: remote operational error", roce.NAKInvalidRD: "NAK: invalid RD request or a reserved code",
		0x65: "NAK: invalid RD request or a reserved code",
	} {
		s := newScene()
		s.strange()
		s.write(client, memoryAt(9, 100), make([]byte, 100))
		s.nak(server, syndrome)
		r := s.run(RFC8166)
		if len(r.findings) != 1 || !strings.HasPrefix(r.findings[0].Seen, want+" for PSN ") {
			t.Errorf("%v: %v", syndrome, r.findings)
		}
	}
}

// When all PSNs have been used, a NAK may be for the same one as another long before.
func TestNAKsOfOnePSN(t *testing.T) {
	s := newScene()
	s.strange()
	lose := func() {
		s.wait(5e6)
		s.bare(client, 3)
		s.answerTo(server, 1, roce.NAKPSNSequence, s.msn[client]-2)
		s.back(client, 2)
		s.bare(client, 2)
		s.ack(server)
	}
	lose()
	const most = 1 << 20 // packets of a Read
	for left := uint32(1<<24 - 3); left > 0; {
		n := min(left, most)
		left -= n
		psn := s.readRequest(client, memoryAt(1, n*mtu))
		s.psn[client] = (psn + n) & psnMask
		p := s.packet(server, roce.RCReadResponseLast)
		p.PSN, p.Payload = (psn+n-1)&psnMask, make([]byte, mtu)
		p.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: s.msn[client]}
		s.put(p)
	}
	lose()
	r := s.run(RFC8166)
	for _, f := range r.findings {
		if f.Rule.ID == "nak-repeated" {
			t.Error(describeFinding(f))
		}
	}
	if n := r.check.Count(Lookup("nak-repeated")); n.Judged != 2 {
		t.Errorf("judged %d times", n.Judged)
	}
}

// readAnswered is a Read of the server, and a response in packets of these sizes.
func (s *scene) readAnswered(n uint32, sizes ...int) {
	psn := s.readRequest(server, memoryAt(0x100, n))
	for i, size := range sizes {
		op := roce.RCReadResponseMiddle
		switch {
		case len(sizes) == 1:
			op = roce.RCReadResponseOnly
		case i == 0:
			op = roce.RCReadResponseFirst
		case i == len(sizes)-1:
			op = roce.RCReadResponseLast
		}
		q := s.packet(client, op)
		q.PSN, q.Payload = psn+uint32(i), make([]byte, size)
		q.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: 1}
		s.put(q)
	}
}
