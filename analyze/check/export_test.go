package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Breaches runs the scenes that break each rule, for tests of packages that show
// findings.
func Breaches(f func(*Checker, []*Finding)) {
	for i := range breaches {
		r := breaches[i].scene(true).run(RFC8166)
		f(r.check, r.findings)
	}
}

// Known is what the Checker knows of the packets of a connection, in words.
func (c *Checker) Known(x *rdma.Connection) string {
	s := c.conns.all[x]
	if s == nil {
		return ""
	}
	return fmt.Sprintf("connection %d: %v %v %v %v %+v %+v %+v", x.ID, s.first, s.gaps, s.cut, *s.lost, s.requests, s.marks, s.wire)
}
