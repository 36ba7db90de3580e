package run

import (
	"sync"

	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// line is a live connection.
type line struct {
	req    transport.Requester
	pool   *pool
	limit  int // calls under way; 0 is no limit
	flying int
	wait   []*schedule.Entry // for room
	plain  bool              // TCP: there are no chunks
	lost   uint64            // connections before this one, as far as the engine knows
}

// room reports whether another call may be under way.
func (l *line) room() bool { return l.limit == 0 || l.flying < l.limit }

// lines are the connections of a run.
type lines struct {
	all      []*line
	captured []map[int]*line // by clone, by captured connection
	round    [][]*line       // by clone, for round robin; nil: as captured
	turn     int
}

// of is the connection that a call goes out on.
func (l *lines) of(n *schedule.Entry) *line {
	if r := l.round[n.Clone]; r != nil && !isLock(n.Op) {
		l.turn++
		return r[l.turn%len(r)]
	}
	return l.captured[n.Clone][n.Op.Connection]
}

// pool keeps data buffers of a connection; their sizes are powers of two.
type pool struct {
	req  transport.Requester
	mu   sync.Mutex
	free map[int][][]byte
	all  [][]byte
}

// smallest is the size in bytes of the smallest block of a pool.
const smallest = 4096

func (p *pool) get(n int) ([]byte, error) {
	size := smallest
	for size < n {
		size *= 2
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.free[size]; len(l) > 0 {
		b := l[len(l)-1]
		p.free[size] = l[:len(l)-1]
		return b[:n], nil
	}
	b, err := p.req.Alloc(size)
	if err != nil {
		return nil, err
	}
	p.all = append(p.all, b)
	return b[:n], nil
}

func (p *pool) put(b []byte) {
	b = b[:cap(b)]
	size := smallest
	for size*2 <= len(b) {
		size *= 2
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free = map[int][][]byte{}
	}
	p.free[size] = append(p.free[size], b[:size])
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.all {
		p.req.Free(b)
	}
	p.all, p.free = nil, nil
}
