package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const rtuPrivate = 8

// RTU says that the requester is ready to use the connection.
type RTU []byte

// IsValid reports whether r is whole.
func (r RTU) IsValid() bool { return len(r) >= DataSize }

// LocalID is the communication id of the sender.
func (r RTU) LocalID() uint32 { return wire.Get32(r, localID) }

// RemoteID is the communication id of the receiver.
func (r RTU) RemoteID() uint32 { return wire.Get32(r, remoteID) }

// Private is the private data, 224 bytes.
func (r RTU) Private() []byte { return area(r, rtuPrivate, DataSize) }

// SetIDs sets the communication ids.
func (r RTU) SetIDs(local, remote uint32) { putIDs(r, local, remote) }

// SetPrivate fills the private data in, with zeros after v.
func (r RTU) SetPrivate(v []byte) { putArea(r, rtuPrivate, DataSize, v) }
