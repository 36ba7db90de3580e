package text

import "github.com/rpcrdma/toolkit/decode/rdma"

// MTU names what rdma.Connection.MTU is on a fabric. MPA has no MTU that its setup agrees on: what is known is the longest FPDU that came.
func MTU(fabric string) string {
	if fabric == rdma.IWARP.String() {
		return "longest FPDU"
	}
	return "path MTU"
}
