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
	handle   []byte // of the file, if its name was not known
	filePart int    // which label that is
	size     uint8  // its class, if groups are made by nothing else

	count    uint64
	backward uint64
	states   [4]uint64
	odd      uint64 // the reply came before the call: no time
	failed   uint64
	statuses map[string]uint64 // of those that failed

	callBytes, replyBytes uint64
	readBytes, writeBytes uint64 // moved by RDMA
	retransmits           uint64

	total  dist
	phases [transaction.NumPhases]dist

	chunks ChunkEconomy
	inline []Inline

	// What troubles cost is told by comparing with transactions of the same
	// group that nothing touched.
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

// otherName is the group, or status, of what is beyond a limit.
const otherName = "other"
