package latency

import (
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// group collects the transactions that share a key.
type group struct {
	key      string
	index    int // in Recorder.order
	labels   []string
	handle   []byte // of the file, if its name was unknown
	filePart int    // index of the file in the labels
	size     uint8  // size class, if groups are formed by size alone

	count    uint64
	backward uint64
	states   [4]uint64
	odd      uint64 // the reply precedes the call: no times
	failed   uint64
	statuses map[string]uint64 // statuses of the failed transactions

	callBytes, replyBytes uint64
	readBytes, writeBytes uint64 // moved by RDMA
	retransmits           uint64

	total  dist
	phases [transaction.NumPhases]dist

	chunks ChunkEconomy
	inline []Inline
	lost   *lost // nil before the first

	// The cost of a trouble is found by comparison with unaffected transactions of the same group.
	clean   touched
	touched *[numTroubles]touched
}

// add counts a transaction.
func (g *group) add(v *rpc.View, failed bool) {
	tx := v.Tx
	g.count++
	if tx.Backward {
		g.backward++
	}
	g.states[tx.State&3]++
	g.callBytes += tx.Call.Bytes
	g.replyBytes += tx.Reply.Bytes
	g.readBytes += tx.ReadBytes
	g.writeBytes += tx.WriteBytes
	g.retransmits += uint64(tx.Retransmits)
	if failed {
		g.failed++
		s := v.Status()
		if g.statuses == nil {
			g.statuses = make(map[string]uint64)
		}
		if _, ok := g.statuses[s]; !ok && len(g.statuses) >= maxStatuses {
			s = otherName
		}
		g.statuses[s]++
	}
}

// time records the phases of a transaction.
func (g *group) time(p *transaction.Phases, m *memory) {
	g.total.add(int64(p.Total), m)
	d := durations(p)
	for i := range d {
		if d[i] >= 0 {
			g.phases[i].add(d[i], m)
		}
	}
}

// otherName is the group, or status, that everything beyond a limit falls into.
const otherName = "other"
