package oncrpc

import "github.com/rpcrdma/toolkit/internal/snapshot"

// SnapshotTCP adds what is saved of TCPTrackers that somebody refers to.
func SnapshotTCP(p *snapshot.Plan) {
	snapshot.Leave[tcpSide](p, "segment", "send") // of the packet at hand
	snapshot.Leave[RecordParser](p, "Deliver")
	snapshot.Boxed[*tcpSide](p) // tcp.Consumer
	snapshot.After(p, func(t *TCPTracker) {
		for i := range t.sides {
			s := &t.sides[i]
			s.parser.Deliver = s.deliver
		}
	})
}
