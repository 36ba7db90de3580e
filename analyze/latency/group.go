package latency

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// group collects the transactions that share a key.
type group struct {
	clean touched // by no trouble

	key      string
	index    int // in Recorder.order
	labels   []string
	tenant   uint64
	several  bool   // networks whose addresses are equal are added up in it
	handle   []byte // of the file, if its name was unknown
	server   rpc.Server
	filePart int   // index of the file in the labels
	size     uint8 // size class, if groups are formed by size alone

	Counts

	total  dist
	phases [transaction.NumPhases]dist
	apart  bool // the server's times are in phases; before that they are the same as total
	// zeros are values of 0 that phases do not have yet: most phases of most transactions do not take place.
	zeros [transaction.NumPhases]uint64

	chunks ChunkEconomy
	inline []Inline
	lost   *lost // nil before the first

	shown *Group // as Groups returned it last

	// The cost of a trouble is found by comparison with those in clean.
	touched *[numTroubles]touched
}

// time records the phases of a transaction.
func (g *group) time(p *transaction.Phases, m *memory) {
	if p.Server != p.Total {
		g.divide(m)
	}
	g.total.add(int64(p.Total), m)
	if g.apart {
		g.phase(transaction.PhaseServer, p.Server, m)
	}
	g.phase(transaction.PhaseCall, p.CallTransfer, m)
	g.phase(transaction.PhasePull, p.ArgumentPull, m)
	g.phase(transaction.PhasePush, p.ResultPush, m)
	g.phase(transaction.PhaseReply, p.ReplyTransfer, m)
	g.phase(transaction.PhaseAck, p.Ack, m)
	g.phase(transaction.PhaseWait, p.PullWait, m)
}

// phase records a phase; one below zero was not seen.
func (g *group) phase(ph transaction.Phase, d time.Duration, m *memory) {
	switch {
	case d == 0:
		g.zeros[ph]++
	case d > 0:
		g.phases[ph].add(int64(d), m)
	}
}

// divide makes the server's times a collection of their own.
func (g *group) divide(m *memory) {
	if !g.apart {
		g.apart = true
		g.phases[transaction.PhaseServer].include(&g.total, m)
	}
}

// settle adds up what is not in the counts and the phases yet.
func (g *group) settle(m *memory) {
	g.divide(m)
	for i, n := range g.zeros {
		if n > 0 {
			g.phases[i].zero(n)
		}
	}
	clear(g.zeros[:])
}

// otherName is the group, or status, that everything beyond a limit falls into.
const otherName = "other"
