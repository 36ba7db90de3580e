package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const mraPrivate = 10

var (
	mraMessage = bits{8, 6, 2}
	mraTimeout = bits{9, 3, 5}
)

// MRA says that a message has been received and that the answer takes time.
type MRA []byte

// IsValid reports whether m is whole.
func (m MRA) IsValid() bool { return len(m) >= DataSize }

// LocalID is the communication id of the sender.
func (m MRA) LocalID() uint32 { return wire.Get32(m, localID) }

// RemoteID is the communication id of the receiver.
func (m MRA) RemoteID() uint32 { return wire.Get32(m, remoteID) }

// Received is which message has been received; RejectedOther is a LAP.
func (m MRA) Received() Rejected { return Rejected(mraMessage.get(m)) }

// ServiceTimeout is the exponent (see Timeout) of how long the answer takes.
func (m MRA) ServiceTimeout() uint8 { return mraTimeout.get(m) }

// Private is the private data, 222 bytes.
func (m MRA) Private() []byte { return area(m, mraPrivate, DataSize) }

// SetIDs sets the communication ids.
func (m MRA) SetIDs(local, remote uint32) { putIDs(m, local, remote) }

// SetReceived sets which message has been received.
func (m MRA) SetReceived(v Rejected) { mraMessage.put(m, uint8(v)) }

// SetServiceTimeout sets the exponent of the time that the answer takes.
func (m MRA) SetServiceTimeout(v uint8) { mraTimeout.put(m, v) }

// SetPrivate fills the private data in, with zeros after v.
func (m MRA) SetPrivate(v []byte) { putArea(m, mraPrivate, DataSize, v) }
