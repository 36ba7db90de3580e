package rdma

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze adds what interfaces of this package may hold.
func Freeze(p *freeze.Plan) { freeze.Boxed[watched](p) }
