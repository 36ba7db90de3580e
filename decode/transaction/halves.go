package transaction

import (
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// halves keeps the half of each side of each connection within the limit on what is remembered of them.
type halves struct {
	peers *memory.Account
	free  []*half // of connections that are closed, for others
}

func (l *halves) of(c *rdma.Connection, side rdma.Side) *half {
	k := of(c)
	if h := k.halves[side]; h != nil {
		return h
	}
	h := l.take()
	h.c, h.side = c, side
	k.halves[side] = h
	l.grew(h, halfSize)
	if h.orphans != nil {
		l.grew(h, orphansSize)
	}
	l.countTables(h)
	return h
}

// remembers counts n bytes more of what is known of a connection.
func (l *halves) grew(h *half, n int) {
	h.size += n
	l.peers.Add(n)
}

// tables counts the tables of h, after something was put into them or taken out.
func (l *halves) countTables(h *half) {
	if n := len(h.open.slots)*openCallSize + h.memory.high*handleSize; n != h.tables {
		l.grew(h, n-h.tables)
		h.tables = n
	}
}

// forget counts nothing more of h.
func (l *halves) forget(h *half) {
	l.peers.Add(-h.size)
	h.size = 0
}

// maxHalves is how many halves are kept for other connections.
const maxHalves = 32

// newHalf returns an unused half.
func (l *halves) take() *half {
	n := len(l.free)
	if n == 0 {
		return new(half)
	}
	h := l.free[n-1]
	l.free[n-1] = nil
	l.free = l.free[:n-1]
	return h
}

// recycleHalf keeps the memory of a half, if that is little. Tags of operations
// may still point to it: they are distinguished from later ones by their generation.
func (l *halves) recycle(h *half) {
	if len(l.free) >= maxHalves || h.open.n > 0 || len(h.open.slots) > minOpenCalls || h.memory.high > 0 {
		return
	}
	if h.orphans != nil {
		*h.orphans = orphans{}
	}
	*h = half{open: h.open, orphans: h.orphans}
	l.free = append(l.free, h)
}
