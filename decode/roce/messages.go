package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

// messages puts the Sends, RDMA Writes and RDMA Reads of flows together from their packets.
type messages struct {
	differing rdma.Given // see Tracker.Differing
	h         rdma.Handler
	differs   func(*rdma.Connection, rdma.Side, rdma.Tag, int, int, []byte) bool // see rdma.Hooks; nil: nobody knows
	tracer    rdma.Tracer                                                        // nil: nobody wants the packets
	watch     watch
	rings     rings
	assembler assembler
	early     earlyPackets

	// Emptied and then filled in field by field: a composite literal is made on the stack and copied in larger pieces than
	// it was written in, for which the processor has to wait (store forwarding).
	send rdma.Send
	frag rdma.Fragment
}

// settleGaps reports what was under way, and counts what has not come.
func (m *messages) settleGaps(fl *flow) {
	for len(fl.sends) > 0 {
		m.flushSend(fl, 0)
	}
	fl.c.Sent[fl.side].Gaps += fl.missing.size()
	if d := psnDiff(fl.owedPSN, fl.next); fl.owed && d >= 0 && d < pairWindow {
		fl.c.Sent[fl.side].Gaps += uint64(d) + 1 // acknowledged behind the last request
	}
	fl.owed = false
}

// release takes back what a flow remembers.
func (m *messages) release(fl *flow) {
	m.rings.release(fl)
	fl.sends = nil
	fl.missing.r, fl.headless.r, fl.gone.r, fl.respMissing.r = nil, nil, nil, nil
	m.early.drop(fl)
	m.rings.account.sets(fl)
}
