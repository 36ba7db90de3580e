package ibcm

const mraPrivate = 10

var (
	mraMessage = bits{8, 6, 2}
	mraTimeout = bits{9, 3, 5}
)

// MRA says that a message has been received and that the answer takes time.
type MRA []byte

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
