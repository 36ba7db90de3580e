package roce

import "github.com/rpcrdma/toolkit/decode/internal/wire"

// Sizes of the headers of atomic operations in bytes.
const (
	AtomicETHSize    = 28
	AtomicAckETHSize = 8
)

const (
	atomicVA      = 0
	atomicRKey    = 8
	atomicSwapAdd = 12
	atomicCompare = 20
)

// AtomicETH is the operand of Compare Swap and Fetch Add.
type AtomicETH []byte

// VA is the address of the 64-bit word.
func (h AtomicETH) VA() uint64 { return wire.Get64(h, atomicVA) }

// RKey names the memory.
func (h AtomicETH) RKey() uint32 { return wire.Get32(h, atomicRKey) }

// SwapAdd is the new value of Compare Swap, the summand of Fetch Add.
func (h AtomicETH) SwapAdd() uint64 { return wire.Get64(h, atomicSwapAdd) }

// Compare is the value that Compare Swap expects.
func (h AtomicETH) Compare() uint64 { return wire.Get64(h, atomicCompare) }

// SetVA sets the address.
func (h AtomicETH) SetVA(v uint64) { wire.Put64(h, atomicVA, v) }

// SetRKey sets the remote key.
func (h AtomicETH) SetRKey(v uint32) { wire.Put32(h, atomicRKey, v) }

// SetSwapAdd sets the new value or the summand.
func (h AtomicETH) SetSwapAdd(v uint64) { wire.Put64(h, atomicSwapAdd, v) }

// SetCompare sets the expected value.
func (h AtomicETH) SetCompare(v uint64) { wire.Put64(h, atomicCompare, v) }

// AtomicAckETH returns what the word held before an atomic operation.
type AtomicAckETH []byte

// Original is the word's former value.
func (h AtomicAckETH) Original() uint64 { return wire.Get64(h, 0) }

// SetOriginal sets the former value.
func (h AtomicAckETH) SetOriginal(v uint64) { wire.Put64(h, 0, v) }
