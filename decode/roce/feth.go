package roce

import "github.com/rpcrdma/toolkit/decode/internal/wire"

// FETHSize is the size of the FLUSH extended transport header in bytes.
const FETHSize = 4

const (
	fethByte         = 3
	maskPlacement    = 0x0f
	maskSelectivity  = 0x30
	shiftSelectivity = 4
)

// FETH says what a FLUSH makes visible or persistent.
type FETH []byte

// Placement is the placement type: 1 global visibility, 2 persistence, 3 both.
func (h FETH) Placement() uint8 { return wire.Get8(h, fethByte) & maskPlacement }

// Selectivity is the range: 0 the memory that the RETH names, 1 all of the
// memory region.
func (h FETH) Selectivity() uint8 {
	return wire.Get8(h, fethByte) & maskSelectivity >> shiftSelectivity
}

// SetPlacement sets the placement type.
func (h FETH) SetPlacement(v uint8) { wire.PutBits(h, fethByte, maskPlacement, v) }

// SetSelectivity sets the range.
func (h FETH) SetSelectivity(v uint8) {
	wire.PutBits(h, fethByte, maskSelectivity, v<<shiftSelectivity)
}
