package roce

import "fmt"

// Opcode is the first byte of a BTH: three bits of transport service and five
// of operation (IBTA volume 1, section 9.2.1).
type Opcode uint8

// Opcodes of the reliable connection service.
const (
	RCSendFirst Opcode = iota
	RCSendMiddle
	RCSendLast
	RCSendLastImmediate
	RCSendOnly
	RCSendOnlyImmediate
	RCWriteFirst
	RCWriteMiddle
	RCWriteLast
	RCWriteLastImmediate
	RCWriteOnly
	RCWriteOnlyImmediate
	RCReadRequest
	RCReadResponseFirst
	RCReadResponseMiddle
	RCReadResponseLast
	RCReadResponseOnly
	RCAcknowledge
	RCAtomicAcknowledge
	RCCompareSwap
	RCFetchAdd
	RCSendLastInvalidate Opcode = 0x16
	RCSendOnlyInvalidate Opcode = 0x17
	RCFlush              Opcode = 0x1c
	RCAtomicWrite        Opcode = 0x1d
)

// Opcodes of other services that deserve a name. All others are the service plus the operation:
// ServiceXRC.Opcode(RCSendOnly).
const (
	UDSendOnly          Opcode = 0x64
	UDSendOnlyImmediate Opcode = 0x65
	CNPInfiniBand       Opcode = 0x80
	CNP                 Opcode = 0x81 // congestion notification of RoCEv2
)

// Service is the transport service: the upper three bits of an opcode.
type Service uint8

// Services. Mellanox's dynamically connected transport reuses the codes of RD.
const (
	ServiceRC Service = iota
	ServiceUC
	ServiceRD
	ServiceUD
	ServiceCNP
	ServiceXRC
	ServiceManufacturer1 // 0xc0 to 0xdf
	ServiceManufacturer2 // 0xe0 to 0xff
)

var serviceNames = [8]string{"RC", "UC", "RD", "UD", "CNP", "XRC", "Manufacturer", "Manufacturer"}

func (s Service) String() string { return serviceNames[s&7] }

// Opcode is the opcode of service s for the operation in the lower five bits
// of op.
func (s Service) Opcode(op Opcode) Opcode { return Opcode(s)<<serviceShift | op&operationMask }

const (
	serviceShift  = 5
	operationMask = 0x1f
)

// Headers is a set of extension headers.
type Headers uint16

// Extension headers, in the order in which they follow the BTH.
const (
	HasRDETH Headers = 1 << iota
	HasDETH
	HasXRCETH
	HasFETH
	HasRETH
	HasAtomicETH
	HasAETH
	HasAtomicAckETH
	HasImmDt
	HasIETH
)

var headerSizes = [...]uint8{
	RDETHSize, DETHSize, XRCETHSize, FETHSize, RETHSize,
	AtomicETHSize, AETHSize, AtomicAckETHSize, ImmDtSize, IETHSize,
}

// Has reports whether all headers of x are in h.
func (h Headers) Has(x Headers) bool { return h&x == x }

// Size is the total size of the headers in bytes.
func (h Headers) Size() int {
	n := 0
	for i, size := range headerSizes {
		if h&(1<<i) != 0 {
			n += int(size)
		}
	}
	return n
}

// What an operation is, as bits of opcodeInfo.flags.
const (
	isSend uint16 = 1 << iota
	isWrite
	isReadRequest
	isReadResponse
	isAcknowledge
	isAtomic
	isFirst
	isMiddle
	isLast
	isOnly
	isFlush
	isResponse
	isDefined
	isManufacturer
)

// How much payload an operation has.
const (
	payloadAny   uint8 = iota // from nothing up to the path MTU
	payloadMTU                // the path MTU
	payloadFixed              // opcodeInfo.fixed bytes
)

type opcodeInfo struct {
	flags   uint16
	headers Headers
	size    uint8 // of BTH and extension headers
	payload uint8
	fixed   uint8
}

// The five-bit operations of the RC service.
var operations = [32]struct {
	name    string
	flags   uint16
	headers Headers
	payload uint8
	fixed   uint8
}{
	0x00: {"Send First", isSend | isFirst, 0, payloadMTU, 0},
	0x01: {"Send Middle", isSend | isMiddle, 0, payloadMTU, 0},
	0x02: {"Send Last", isSend | isLast, 0, payloadAny, 0},
	0x03: {"Send Last Immediate", isSend | isLast, HasImmDt, payloadAny, 0},
	0x04: {"Send Only", isSend | isOnly, 0, payloadAny, 0},
	0x05: {"Send Only Immediate", isSend | isOnly, HasImmDt, payloadAny, 0},
	0x06: {"RDMA Write First", isWrite | isFirst, HasRETH, payloadMTU, 0},
	0x07: {"RDMA Write Middle", isWrite | isMiddle, 0, payloadMTU, 0},
	0x08: {"RDMA Write Last", isWrite | isLast, 0, payloadAny, 0},
	0x09: {"RDMA Write Last Immediate", isWrite | isLast, HasImmDt, payloadAny, 0},
	0x0a: {"RDMA Write Only", isWrite | isOnly, HasRETH, payloadAny, 0},
	0x0b: {"RDMA Write Only Immediate", isWrite | isOnly, HasRETH | HasImmDt, payloadAny, 0},
	0x0c: {"RDMA Read Request", isReadRequest | isOnly, HasRETH, payloadFixed, 0},
	0x0d: {"RDMA Read Response First", isReadResponse | isResponse | isFirst, HasAETH, payloadMTU, 0},
	0x0e: {"RDMA Read Response Middle", isReadResponse | isResponse | isMiddle, 0, payloadMTU, 0},
	0x0f: {"RDMA Read Response Last", isReadResponse | isResponse | isLast, HasAETH, payloadAny, 0},
	0x10: {"RDMA Read Response Only", isReadResponse | isResponse | isOnly, HasAETH, payloadAny, 0},
	0x11: {"Acknowledge", isAcknowledge | isResponse | isOnly, HasAETH, payloadFixed, 0},
	0x12: {"Atomic Acknowledge", isAcknowledge | isAtomic | isResponse | isOnly, HasAETH | HasAtomicAckETH, payloadFixed, 0},
	0x13: {"Compare Swap", isAtomic | isOnly, HasAtomicETH, payloadFixed, 0},
	0x14: {"Fetch Add", isAtomic | isOnly, HasAtomicETH, payloadFixed, 0},
	0x15: {"Resync", isOnly, 0, payloadFixed, 0},
	0x16: {"Send Last Invalidate", isSend | isLast, HasIETH, payloadAny, 0},
	0x17: {"Send Only Invalidate", isSend | isOnly, HasIETH, payloadAny, 0},
	0x1c: {"Flush", isFlush | isOnly, HasFETH | HasRETH, payloadFixed, 0},
	0x1d: {"Atomic Write", isAtomic | isOnly, HasRETH, payloadFixed, 8},
}

// serviceOperations is the set of operations of each service, one bit each.
var serviceOperations = [8]uint32{
	ServiceRC:  0x30dfffff, // all but Resync
	ServiceUC:  0x00000fff, // Send and RDMA Write
	ServiceRD:  0x303fffff, // all but Invalidate
	ServiceUD:  0x00000030, // Send Only
	ServiceXRC: 0x30dfffff,
}

var opcodes, opcodeNames = opcodeTables()

func opcodeTables() (table [256]opcodeInfo, names [256]string) {
	for i := range table {
		op, service := i&operationMask, Service(i>>serviceShift)
		o := &operations[op]
		t := &table[i]
		t.size = BTHSize
		switch {
		case Opcode(i) == CNP || Opcode(i) == CNPInfiniBand:
			*t = opcodeInfo{flags: isDefined, size: BTHSize, payload: payloadFixed, fixed: cnpReserved}
			names[i] = "CNP"
			continue
		case service >= ServiceManufacturer1:
			t.flags = isManufacturer
			names[i] = fmt.Sprintf("Manufacturer 0x%02x", i)
			continue
		case service == ServiceCNP:
			names[i] = fmt.Sprintf("Reserved 0x%02x", i)
			continue
		case serviceOperations[service]&(1<<op) == 0:
			names[i] = fmt.Sprintf("%s Reserved 0x%02x", service, i)
			continue
		}
		names[i] = service.String() + " " + o.name
		t.flags = o.flags | isDefined
		t.headers = o.headers
		t.payload, t.fixed = o.payload, o.fixed
		switch service {
		case ServiceUD:
			t.headers |= HasDETH
		case ServiceRD:
			t.headers |= HasRDETH
			if o.flags&isResponse == 0 {
				t.headers |= HasDETH
			}
		case ServiceXRC:
			if o.flags&isResponse == 0 {
				t.headers |= HasXRCETH
			}
		}
		t.size = BTHSize + uint8(t.headers.Size())
	}
	return table, names
}

// cnpReserved is the number of reserved bytes that a congestion notification
// carries after its BTH.
const cnpReserved = 16

// String is the service and the operation: "RC Send First". It does not
// allocate.
func (o Opcode) String() string { return opcodeNames[o] }

// Service is the transport service.
func (o Opcode) Service() Service { return Service(o >> serviceShift) }

// Operation is the corresponding opcode of the RC service, to compare with RCSendFirst and so on.
func (o Opcode) Operation() Opcode { return o & operationMask }

// IsDefined reports whether the InfiniBand architecture defines o.
func (o Opcode) IsDefined() bool { return opcodes[o].flags&isDefined != 0 }

// IsManufacturer reports whether o is left to manufacturers: only the BTH can
// be decoded.
func (o Opcode) IsManufacturer() bool { return opcodes[o].flags&isManufacturer != 0 }

// Headers is the set of extension headers that follow the BTH.
func (o Opcode) Headers() Headers { return opcodes[o].headers }

// HeaderSize is the size of BTH and extension headers in bytes.
func (o Opcode) HeaderSize() int { return int(opcodes[o].size) }

// IsSend reports a packet of a Send.
func (o Opcode) IsSend() bool { return opcodes[o].flags&isSend != 0 }

// IsWrite reports a packet of an RDMA Write.
func (o Opcode) IsWrite() bool { return opcodes[o].flags&isWrite != 0 }

// IsReadRequest reports an RDMA Read Request.
func (o Opcode) IsReadRequest() bool { return opcodes[o].flags&isReadRequest != 0 }

// IsReadResponse reports a packet of an RDMA Read Response.
func (o Opcode) IsReadResponse() bool { return opcodes[o].flags&isReadResponse != 0 }

// IsAcknowledge reports an Acknowledge or Atomic Acknowledge.
func (o Opcode) IsAcknowledge() bool { return opcodes[o].flags&isAcknowledge != 0 }

// IsAtomic reports an atomic operation or its acknowledgement.
func (o Opcode) IsAtomic() bool { return opcodes[o].flags&isAtomic != 0 }

// IsFlush reports a FLUSH.
func (o Opcode) IsFlush() bool { return opcodes[o].flags&isFlush != 0 }

// IsCNP reports a congestion notification.
func (o Opcode) IsCNP() bool { return o == CNP || o == CNPInfiniBand }

// IsResponse reports a packet that answers a request and carries its PSN.
func (o Opcode) IsResponse() bool { return opcodes[o].flags&isResponse != 0 }

// IsFirst reports the first of several packets of a message.
func (o Opcode) IsFirst() bool { return opcodes[o].flags&isFirst != 0 }

// IsMiddle reports a packet that is neither first nor last.
func (o Opcode) IsMiddle() bool { return opcodes[o].flags&isMiddle != 0 }

// IsLast reports the last of several packets of a message.
func (o Opcode) IsLast() bool { return opcodes[o].flags&isLast != 0 }

// IsOnly reports the only packet of a message.
func (o Opcode) IsOnly() bool { return opcodes[o].flags&isOnly != 0 }

// Starts reports a packet that starts a message: First or Only.
func (o Opcode) Starts() bool { return opcodes[o].flags&(isFirst|isOnly) != 0 }

// Ends reports a packet that ends a message: Last or Only.
func (o Opcode) Ends() bool { return opcodes[o].flags&(isLast|isOnly) != 0 }

// HasRETH reports whether the packet names remote memory.
func (o Opcode) HasRETH() bool { return opcodes[o].headers&HasRETH != 0 }

// HasAETH reports whether the packet has a syndrome and an MSN.
func (o Opcode) HasAETH() bool { return opcodes[o].headers&HasAETH != 0 }

// HasImmediate reports whether the packet has immediate data.
func (o Opcode) HasImmediate() bool { return opcodes[o].headers&HasImmDt != 0 }

// HasInvalidate reports whether the packet names a handle to be invalidated.
func (o Opcode) HasInvalidate() bool { return opcodes[o].headers&HasIETH != 0 }

// HasDETH reports whether the packet names the sender's queue pair.
func (o Opcode) HasDETH() bool { return opcodes[o].headers&HasDETH != 0 }
