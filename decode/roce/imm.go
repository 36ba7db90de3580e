package roce

import "github.com/rpcrdma/toolkit/decode/internal/wire"

// Sizes of the one-word extension headers in bytes.
const (
	ImmDtSize = 4
	IETHSize  = 4
)

// ImmDt is immediate data: one word for the receiver's completion.
type ImmDt []byte

// Data is the immediate word.
func (h ImmDt) Data() uint32 { return wire.Get32(h, 0) }

// SetData sets the immediate word.
func (h ImmDt) SetData(v uint32) { wire.Put32(h, 0, v) }

// IETH is the header of a Send with Invalidate.
type IETH []byte

// RKey is the handle that the receiver shall invalidate.
func (h IETH) RKey() uint32 { return wire.Get32(h, 0) }

// SetRKey sets the handle.
func (h IETH) SetRKey(v uint32) { wire.Put32(h, 0, v) }
