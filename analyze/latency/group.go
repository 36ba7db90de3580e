package latency

import (
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

	Counts

	total  dist
	phases [transaction.NumPhases]dist

	chunks ChunkEconomy
	inline []Inline
	lost   *lost // nil before the first

	shown *Group // as Groups returned it last

	// The cost of a trouble is found by comparison with unaffected transactions of the same group.
	clean   touched
	touched *[numTroubles]touched
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
