package roce

import "github.com/rpcrdma/toolkit/decode/internal/wire"

// Sizes of the headers that name the sender or its context, in bytes.
const (
	DETHSize   = 8
	RDETHSize  = 4
	XRCETHSize = 4
)

// GSIQKey is the Q_Key of QP 1, where connection management happens.
const GSIQKey = 0x80010000

const (
	dethQKey  = 0
	dethSrcQP = 5
)

// DETH is the datagram header of UD and RD packets.
type DETH []byte

// QKey is the key that the receiving queue pair expects.
func (h DETH) QKey() uint32 { return wire.Get32(h, dethQKey) }

// SrcQP is the sender's queue pair number, 24 bits.
func (h DETH) SrcQP() uint32 { return wire.Get24(h, dethSrcQP) }

// SetQKey sets the queue key.
func (h DETH) SetQKey(v uint32) { wire.Put32(h, dethQKey, v) }

// SetSrcQP sets the sender's queue pair number, 24 bits.
func (h DETH) SetSrcQP(v uint32) { wire.Put24(h, dethSrcQP, v) }

// RDETH is the header of all reliable datagram packets.
type RDETH []byte

// EEContext is the end-to-end context number, 24 bits.
func (h RDETH) EEContext() uint32 { return wire.Get24(h, 1) }

// SetEEContext sets the end-to-end context number, 24 bits.
func (h RDETH) SetEEContext(v uint32) { wire.Put24(h, 1, v) }

// XRCETH is the header of extended reliable connection requests.
type XRCETH []byte

// XRCSRQ is the number of the shared receive queue, 24 bits.
func (h XRCETH) XRCSRQ() uint32 { return wire.Get24(h, 1) }

// SetXRCSRQ sets the number of the shared receive queue, 24 bits.
func (h XRCETH) SetXRCSRQ(v uint32) { wire.Put24(h, 1, v) }
