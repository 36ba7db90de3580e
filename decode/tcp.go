package decode

import (
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

type TCPLimits struct{}
type tcpDemux struct{}

func (t *tcpDemux) init(h rdma.Handler, n *rdma.Numbers, l TCPLimits) {}
func (t *tcpDemux) packet(ref rdma.Ref, tap uint16, f *link.Frame) *rdma.Connection {
	return nil
}
func (t *tcpDemux) flush(ref rdma.Ref) {}
