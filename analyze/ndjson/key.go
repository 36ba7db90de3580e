package ndjson

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Key appends the value of "connection_key": rpc.AppendConnectionKey.
func (e *Encoder) Key(b []byte, c *rdma.Connection) []byte { return rpc.AppendConnectionKey(b, c) }
