package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const (
	dreqQPN     = 8
	dreqPrivate = 12
	drepPrivate = 8
)

// DREQ asks for the end of a connection.
type DREQ []byte

// RemoteQPN is the receiver's queue pair number, 24 bits.
func (d DREQ) RemoteQPN() uint32 { return wire.Get24(d, dreqQPN) }

// Private is the private data, 220 bytes.
func (d DREQ) Private() []byte { return area(d, dreqPrivate, DataSize) }

// SetIDs sets the communication ids.
func (d DREQ) SetIDs(local, remote uint32) { putIDs(d, local, remote) }

// SetRemoteQPN sets the receiver's queue pair number, 24 bits.
func (d DREQ) SetRemoteQPN(v uint32) { wire.Put24(d, dreqQPN, v) }

// DREP confirms the end of a connection.
type DREP []byte

// Private is the private data, 224 bytes.
func (d DREP) Private() []byte { return area(d, drepPrivate, DataSize) }

// SetIDs sets the communication ids.
func (d DREP) SetIDs(local, remote uint32) { putIDs(d, local, remote) }
