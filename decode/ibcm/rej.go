package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const (
	rejReason  = 10
	rejInfo    = 12
	rejPrivate = 84
)

var (
	rejMessage    = bits{8, 6, 2}
	rejInfoLength = bits{9, 1, 7}
)

// REJ refuses a connection.
type REJ []byte

// Rejected is which message is rejected.
func (r REJ) Rejected() Rejected { return Rejected(rejMessage.get(r)) }

// Reason is why.
func (r REJ) Reason() Reason { return Reason(wire.Get16(r, rejReason)) }

// Info is additional information that depends on the reason, up to 72 bytes.
func (r REJ) Info() []byte {
	return area(r, rejInfo, min(rejInfo+int(rejInfoLength.get(r)), rejPrivate))
}

// Private is the private data, 148 bytes.
func (r REJ) Private() []byte { return area(r, rejPrivate, DataSize) }

// SetIDs sets the communication ids.
func (r REJ) SetIDs(local, remote uint32) { putIDs(r, local, remote) }

// SetRejected sets which message is rejected.
func (r REJ) SetRejected(v Rejected) { rejMessage.put(r, uint8(v)) }

// SetReason sets why.
func (r REJ) SetReason(v Reason) { wire.Put16(r, rejReason, uint16(v)) }

// SetInfo sets the additional information, up to 72 bytes.
func (r REJ) SetInfo(v []byte) {
	v = v[:min(len(v), rejPrivate-rejInfo)]
	rejInfoLength.put(r, uint8(len(v)))
	putArea(r, rejInfo, rejPrivate, v)
}

// SetPrivate fills the private data in, with zeros after v.
func (r REJ) SetPrivate(v []byte) { putArea(r, rejPrivate, DataSize, v) }
