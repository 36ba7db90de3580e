package rpc

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// AppendConnectionKey appends what identifies a connection in any input: the
// fabric, the two ends, and the time of its first packet in nanoseconds since 1970.
//
//	rocev2|192.0.2.1/17|192.0.2.2/18|1763704890123456789
//
// The ends are in ascending order, as it is not always known which one is the
// client; a number that is not known is 0. A tunnel around the connection makes no
// difference. It does not allocate.
func AppendConnectionKey(b []byte, c *rdma.Connection) []byte {
	x, y := c.Ends[0], c.Ends[1]
	if d := y.Addr.Compare(x.Addr); d < 0 || d == 0 && y.Number() < x.Number() {
		x, y = y, x
	}
	b = append(b, c.Fabric.String()...)
	for _, end := range [...]rdma.End{x, y} {
		b = append(b, '|')
		b = link.AppendAddr(b, end.Addr)
		b = append(b, '/')
		b = strconv.AppendUint(b, uint64(end.Number()), 10)
	}
	b = append(b, '|')
	return strconv.AppendInt(b, c.First.Time, 10)
}

// maxKeys bounds the connections whose keys ConnectionKeys remembers.
const maxKeys = 4096

// ConnectionKeys gives the keys of connections as strings, without allocating for
// one that it remembers.
type ConnectionKeys struct {
	keys map[string]string
	buf  []byte
	last [64]keyed
}

// keyed is a connection, as far as its key goes, with its key.
type keyed struct {
	fabric rdma.Fabric
	first  int64
	ends   [2]rdma.End
	key    string
}

// Of is the key of a connection: AppendConnectionKey.
func (k *ConnectionKeys) Of(c *rdma.Connection) string {
	l := &k.last[uint(c.ID)%uint(len(k.last))]
	if l.key != "" && l.fabric == c.Fabric && l.first == c.First.Time && l.ends == c.Ends {
		return l.key
	}
	k.buf = AppendConnectionKey(k.buf[:0], c)
	s, ok := k.keys[string(k.buf)]
	if !ok {
		if k.keys == nil || len(k.keys) >= maxKeys {
			k.keys = make(map[string]string)
		}
		s = string(k.buf)
		k.keys[s] = s
	}
	*l = keyed{c.Fabric, c.First.Time, c.Ends, s}
	return s
}
