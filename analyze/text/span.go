package text

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Within says how long something lasted that went from first to last: "10.84s". Where the time of the capture has gone back behind its
// beginning, nobody knows: "an unknown time".
func Within(first, last int64) string {
	if last < first {
		return "an unknown time"
	}
	return units.Duration(rdma.Between(first, last))
}
