package oncrpc

import "github.com/rpcrdma/toolkit/internal/freeze"

// FreezeTCP adds what is saved of TCPTrackers that somebody refers to.
func FreezeTCP(p *freeze.Plan) {
	freeze.Leave[tcpSide](p, "segment", "send") // of the packet at hand
	freeze.Leave[RecordParser](p, "Deliver")
	freeze.Boxed[*tcpSide](p) // tcp.Consumer
	freeze.After(p, func(t *TCPTracker) {
		for i := range t.sides {
			s := &t.sides[i]
			s.parser.Deliver = s.deliver
		}
	})
}
