package ndjson

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Key appends what identifies a connection, wherever it is decoded: the fabric, the two ends, and the time of
// its first packet in nanoseconds since 1970.
//
//	rocev2|192.0.2.1/17|192.0.2.2/18|1763704890123456789
//
// The ends are in ascending order, as it is not always known which one is the client; a number that is not
// known is 0. A tunnel around the connection makes no difference.
func (e *Encoder) Key(b []byte, c *rdma.Connection) []byte {
	x, y := c.Ends[0], c.Ends[1]
	if d := y.Addr.Compare(x.Addr); d < 0 || d == 0 && y.Number() < x.Number() {
		x, y = y, x
	}
	b = append(b, c.Fabric.String()...)
	for _, end := range [...]rdma.End{x, y} {
		b = append(b, '|')
		b = append(b, e.addr(end.Addr)...)
		b = append(b, '/')
		b = strconv.AppendUint(b, uint64(end.Number()), 10)
	}
	b = append(b, '|')
	return strconv.AppendInt(b, c.First.Time, 10)
}
