package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

// Sizes in bytes.
const (
	MADSize    = 256
	HeaderSize = 24
	DataSize   = MADSize - HeaderSize
)

// What the header of a communication management MAD says.
const (
	BaseVersion  = 1
	ClassCM      = 0x07
	ClassVersion = 2
	MethodSend   = 0x03
)

const (
	madBaseVersion   = 0
	madClass         = 1
	madClassVersion  = 2
	madMethod        = 3
	madStatus        = 4
	madTransactionID = 8
	madAttribute     = 16
	madModifier      = 20
)

// MAD is a management datagram:
//
//	 0               1               2               3
//	+---------------+---------------+---------------+---------------+
//	| base version  |     class     | class version |    method     |
//	+---------------+---------------+---------------+---------------+
//	|            status             |        class specific         |
//	+-------------------------------+-------------------------------+
//	|                        transaction id                         |
//	|                                                               |
//	+-------------------------------+-------------------------------+
//	|          attribute            |           reserved            |
//	+-------------------------------+-------------------------------+
//	|                      attribute modifier                       |
//	+---------------------------------------------------------------+
//	|                      232 bytes of data                        |
type MAD []byte

// IsValid reports whether m has a whole header and belongs to communication
// management.
func (m MAD) IsValid() bool {
	return len(m) >= HeaderSize && m[madBaseVersion] == BaseVersion && m[madClass] == ClassCM
}

// BaseVersion is 1.
func (m MAD) BaseVersion() uint8 { return wire.Get8(m, madBaseVersion) }

// Class is the management class.
func (m MAD) Class() uint8 { return wire.Get8(m, madClass) }

// ClassVersion is 2 for communication management.
func (m MAD) ClassVersion() uint8 { return wire.Get8(m, madClassVersion) }

// Method is MethodSend for communication management.
func (m MAD) Method() uint8 { return wire.Get8(m, madMethod) }

// Status is 0.
func (m MAD) Status() uint16 { return wire.Get16(m, madStatus) }

// TransactionID is chosen by the side that starts an exchange and echoed by the other; a disconnect starts
// its own exchange or reuses the first ID.
func (m MAD) TransactionID() uint64 { return wire.Get64(m, madTransactionID) }

// Attribute is the kind of the message.
func (m MAD) Attribute() Attribute { return Attribute(wire.Get16(m, madAttribute)) }

// Modifier is the attribute modifier, 0.
func (m MAD) Modifier() uint32 { return wire.Get32(m, madModifier) }

// Data is what follows the header, at most DataSize bytes.
func (m MAD) Data() []byte { return area(m, HeaderSize, MADSize) }

// SetTransactionID sets the transaction id.
func (m MAD) SetTransactionID(v uint64) { wire.Put64(m, madTransactionID, v) }

// SetAttribute sets the kind of the message.
func (m MAD) SetAttribute(a Attribute) { wire.Put16(m, madAttribute, uint16(a)) }

// SetStatus sets the status.
func (m MAD) SetStatus(v uint16) { wire.Put16(m, madStatus, v) }

// SetModifier sets the attribute modifier.
func (m MAD) SetModifier(v uint32) { wire.Put32(m, madModifier, v) }

// Append appends an empty communication management MAD of MADSize bytes to b
// and returns the whole together with the MAD within it, to be filled in:
//
//	b, mad := ibcm.Append(b, ibcm.AttributeREQ, id)
//	req := ibcm.REQ(mad.Data())
func Append(b []byte, a Attribute, transactionID uint64) ([]byte, MAD) {
	var zero [MADSize]byte
	n := len(b)
	b = append(b, zero[:]...)
	m := MAD(b[n : n+MADSize : n+MADSize])
	m[madBaseVersion], m[madClass], m[madClassVersion], m[madMethod] = BaseVersion, ClassCM, ClassVersion, MethodSend
	m.SetTransactionID(transactionID)
	m.SetAttribute(a)
	return b, m
}
