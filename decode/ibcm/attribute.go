package ibcm

// Attribute is the kind of a message.
type Attribute uint16

// Kinds of messages (IBTA volume 1, section 16.7.3).
const (
	AttributeREQ     Attribute = 0x10 // connection request
	AttributeMRA     Attribute = 0x11 // message receipt acknowledgement: have patience
	AttributeREJ     Attribute = 0x12 // reject
	AttributeREP     Attribute = 0x13 // reply to a request
	AttributeRTU     Attribute = 0x14 // ready to use
	AttributeDREQ    Attribute = 0x15 // disconnect request
	AttributeDREP    Attribute = 0x16 // disconnect reply
	AttributeSIDRREQ Attribute = 0x17 // service id resolution request
	AttributeSIDRREP Attribute = 0x18 // service id resolution reply
	AttributeLAP     Attribute = 0x19 // load alternate path
	AttributeAPR     Attribute = 0x1a // alternate path response
)

var attributeNames = [...]string{"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"}

// String is the short name of the specification, or "unknown".
func (a Attribute) String() string {
	if a >= AttributeREQ && int(a-AttributeREQ) < len(attributeNames) {
		return attributeNames[a-AttributeREQ]
	}
	return "unknown"
}

// Rejected is which message a REJ rejects, or an MRA acknowledges.
type Rejected uint8

// Messages that can be rejected. An MRA uses 2 for a LAP.
const (
	RejectedREQ Rejected = iota
	RejectedREP
	RejectedOther
)

// String is "REQ", "REP", "other" or "reserved".
func (r Rejected) String() string {
	switch r {
	case RejectedREQ:
		return "REQ"
	case RejectedREP:
		return "REP"
	case RejectedOther:
		return "other"
	}
	return "reserved"
}
