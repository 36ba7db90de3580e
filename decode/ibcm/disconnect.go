package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const (
	dreqQPN     = 8
	dreqPrivate = 12
	drepPrivate = 8
)

// DREQ asks for the end of a connection.
type DREQ []byte

// IsValid reports whether d is whole.
func (d DREQ) IsValid() bool { return len(d) >= DataSize }

// LocalID is the communication id of the sender.
func (d DREQ) LocalID() uint32 { return wire.Get32(d, localID) }

// RemoteID is the communication id of the receiver.
func (d DREQ) RemoteID() uint32 { return wire.Get32(d, remoteID) }

// RemoteQPN is the receiver's queue pair number, 24 bits.
func (d DREQ) RemoteQPN() uint32 { return wire.Get24(d, dreqQPN) }

// Private is the private data, 220 bytes.
func (d DREQ) Private() []byte { return area(d, dreqPrivate, DataSize) }

// SetIDs sets the communication ids.
func (d DREQ) SetIDs(local, remote uint32) { putIDs(d, local, remote) }

// SetRemoteQPN sets the receiver's queue pair number, 24 bits.
func (d DREQ) SetRemoteQPN(v uint32) { wire.Put24(d, dreqQPN, v) }

// SetPrivate fills the private data in, with zeros after v.
func (d DREQ) SetPrivate(v []byte) { putArea(d, dreqPrivate, DataSize, v) }

// DREP confirms the end of a connection.
type DREP []byte

// IsValid reports whether d is whole.
func (d DREP) IsValid() bool { return len(d) >= DataSize }

// LocalID is the communication id of the sender.
func (d DREP) LocalID() uint32 { return wire.Get32(d, localID) }

// RemoteID is the communication id of the receiver.
func (d DREP) RemoteID() uint32 { return wire.Get32(d, remoteID) }

// Private is the private data, 224 bytes.
func (d DREP) Private() []byte { return area(d, drepPrivate, DataSize) }

// SetIDs sets the communication ids.
func (d DREP) SetIDs(local, remote uint32) { putIDs(d, local, remote) }

// SetPrivate fills the private data in, with zeros after v.
func (d DREP) SetPrivate(v []byte) { putArea(d, drepPrivate, DataSize, v) }
