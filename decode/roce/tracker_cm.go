package roce

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

type cmID struct {
	addr netip.Addr
	id   uint32
}
type cmState struct{}

func newCMState() cmState               { return cmState{} }
func (s *cmState) forget(c *connection) {}
func (t *Tracker) mad(ref rdma.Ref, tap int32, fabric rdma.Fabric, f *link.Frame, p *Packet) *rdma.Connection {
	return nil
}
