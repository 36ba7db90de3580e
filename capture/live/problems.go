package live

import (
	"sync"

	"github.com/rpcrdma/toolkit/capture"
)

// problems collects what was damaged.
type problems struct {
	mu    sync.Mutex
	list  []*capture.Problem
	total int
}

func (p *problems) add(iface string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total++
	if len(p.list) < capture.MaxProblems {
		p.list = append(p.list, &capture.Problem{File: iface, Text: err.Error()})
	}
}

func (p *problems) get() ([]*capture.Problem, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*capture.Problem(nil), p.list...), p.total
}
