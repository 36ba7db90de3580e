package roce

import "github.com/rpcrdma/toolkit/decode/internal/wire"

// RETHSize is the size of the RDMA extended transport header in bytes.
const RETHSize = 16

const (
	rethVA     = 0
	rethRKey   = 8
	rethDMALen = 12
)

// RETH names remote memory, in RDMA Write and RDMA Read Request packets.
type RETH []byte

// VA is the address in the memory that RKey names.
func (h RETH) VA() uint64 { return wire.Get64(h, rethVA) }

// RKey names the memory: the handle of a chunk segment.
func (h RETH) RKey() uint32 { return wire.Get32(h, rethRKey) }

// DMALen is the length of the whole operation in bytes.
func (h RETH) DMALen() uint32 { return wire.Get32(h, rethDMALen) }

// SetVA sets the address.
func (h RETH) SetVA(v uint64) { wire.Put64(h, rethVA, v) }

// SetRKey sets the remote key.
func (h RETH) SetRKey(v uint32) { wire.Put32(h, rethRKey, v) }

// SetDMALen sets the length in bytes.
func (h RETH) SetDMALen(v uint32) { wire.Put32(h, rethDMALen, v) }
