package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const (
	lapQPN     = 12
	lapPrivate = 64

	aprPrivate = 84
)

// LAP proposes an alternate path for a connection.
type LAP []byte

// RemoteQPN is the receiver's queue pair number, 24 bits.
func (l LAP) RemoteQPN() uint32 { return wire.Get24(l, lapQPN) }

// Private is the private data, 168 bytes.
func (l LAP) Private() []byte { return area(l, lapPrivate, DataSize) }

// APR answers a LAP.
type APR []byte

// Private is the private data, 148 bytes.
func (a APR) Private() []byte { return area(a, aprPrivate, DataSize) }
