package rdma

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot adds what interfaces of this package may hold.
func Snapshot(p *snapshot.Plan) { snapshot.Boxed[watched](p) }
