package iwarp

import (
	"encoding/binary"
	"strconv"
)

// Opcode is an RDMAP operation (RFC 5040 4.1, RFC 7306 4).
type Opcode uint8

// Opcodes.
const (
	OpWrite Opcode = iota
	OpReadRequest
	OpReadResponse
	OpSend
	OpSendInvalidate
	OpSendSolicited
	OpSendSolicitedInvalidate
	OpTerminate
	OpImmediate
	OpImmediateSolicited
	OpAtomicRequest
	OpAtomicResponse
)

var opcodeNames = [...]string{
	"RDMA Write", "RDMA Read Request", "RDMA Read Response", "Send", "Send with Invalidate",
	"Send with Solicited Event", "Send with Solicited Event and Invalidate", "Terminate",
	"Immediate Data", "Immediate Data with Solicited Event", "Atomic Request", "Atomic Response",
}

func (o Opcode) String() string {
	if int(o) < len(opcodeNames) {
		return opcodeNames[o]
	}
	return "opcode " + strconv.Itoa(int(o))
}

// Tagged reports whether messages of this kind travel in tagged segments.
func (o Opcode) Tagged() bool { return o == OpWrite || o == OpReadResponse }

// IsSend reports whether o is one of the four kinds of Send.
func (o Opcode) IsSend() bool { return o >= OpSend && o <= OpSendSolicitedInvalidate }

// Invalidates reports whether o is a Send that invalidates a steering tag.
func (o Opcode) Invalidates() bool { return o == OpSendInvalidate || o == OpSendSolicitedInvalidate }

// Solicited reports whether o raises an event at the receiver.
func (o Opcode) Solicited() bool {
	return o == OpSendSolicited || o == OpSendSolicitedInvalidate || o == OpImmediateSolicited
}

// Queue is the DDP queue number of untagged messages of this kind.
func (o Opcode) Queue() uint32 {
	switch o {
	case OpReadRequest, OpAtomicRequest:
		return QueueReadRequest
	case OpTerminate:
		return QueueTerminate
	case OpAtomicResponse:
		return QueueAtomicResponse
	}
	return QueueSend
}

// payloadLen is the payload of messages that have only one size, else 0.
func (o Opcode) payloadLen() int {
	switch o {
	case OpReadRequest:
		return ReadRequestLen
	case OpImmediate, OpImmediateSolicited:
		return ImmediateLen
	case OpAtomicRequest:
		return AtomicRequestLen
	case OpAtomicResponse:
		return AtomicResponseLen
	}
	return 0
}

// Payload sizes in bytes.
const (
	ReadRequestLen    = 28
	ImmediateLen      = 8
	AtomicRequestLen  = 52
	AtomicResponseLen = 12
)

// ReadRequest is the payload of an RDMA Read Request (RFC 5040 4.4):
//
//	| sink STag 4 | sink TO 8 | size 4 | source STag 4 | source TO 8 |
//
// The sink is the requester's memory, the source the responder's: the handle
// of an RPC-over-RDMA chunk is the source STag.
type ReadRequest []byte

// SinkSTag is the steering tag of the requester's memory.
func (r ReadRequest) SinkSTag() uint32 { return binary.BigEndian.Uint32(r) }

// SinkTO is where in it the first byte goes.
func (r ReadRequest) SinkTO() uint64 { return binary.BigEndian.Uint64(r[4:]) }

// Size is the number of bytes to read.
func (r ReadRequest) Size() uint32 { return binary.BigEndian.Uint32(r[12:]) }

// SourceSTag is the steering tag of the responder's memory.
func (r ReadRequest) SourceSTag() uint32 { return binary.BigEndian.Uint32(r[16:]) }

// SourceTO is where in it the first byte is.
func (r ReadRequest) SourceTO() uint64 { return binary.BigEndian.Uint64(r[20:]) }

// SetSize sets the number of bytes to read.
func (r ReadRequest) SetSize(v uint32) { binary.BigEndian.PutUint32(r[12:], v) }

// AppendReadRequest adds the payload of a Read Request to dst.
func AppendReadRequest(dst []byte, sinkSTag uint32, sinkTO uint64, size, sourceSTag uint32, sourceTO uint64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, sinkSTag)
	dst = binary.BigEndian.AppendUint64(dst, sinkTO)
	dst = binary.BigEndian.AppendUint32(dst, size)
	dst = binary.BigEndian.AppendUint32(dst, sourceSTag)
	return binary.BigEndian.AppendUint64(dst, sourceTO)
}

// Immediate is the payload of Immediate Data (RFC 7306 6.1): 8 bytes.
type Immediate []byte

// Value is the data as a number.
func (i Immediate) Value() uint64 { return binary.BigEndian.Uint64(i) }

// SetValue sets the data.
func (i Immediate) SetValue(v uint64) { binary.BigEndian.PutUint64(i, v) }

// AtomicOp is the operation of an Atomic Request.
type AtomicOp uint8

// Atomic operations.
const (
	AtomicFetchAdd AtomicOp = 0
	AtomicSwap     AtomicOp = 1
	AtomicCmpSwap  AtomicOp = 2
)

func (o AtomicOp) String() string {
	switch o {
	case AtomicFetchAdd:
		return "FetchAdd"
	case AtomicSwap:
		return "Swap"
	case AtomicCmpSwap:
		return "CmpSwap"
	}
	return "atomic operation " + strconv.Itoa(int(o))
}

// AtomicRequest is the payload of an Atomic Request (RFC 7306 5.2.1):
//
//	| reserved 28 bits, operation 4 bits | request identifier 4 | STag 4 | TO 8 |
//	| add or swap data 8 | add or swap mask 8 | compare data 8 | compare mask 8 |
type AtomicRequest []byte

// Op is the operation.
func (r AtomicRequest) Op() AtomicOp { return AtomicOp(r[3] & 0x0f) }

// Identifier comes back in the response.
func (r AtomicRequest) Identifier() uint32 { return binary.BigEndian.Uint32(r[4:]) }

// STag is the steering tag of the responder's memory.
func (r AtomicRequest) STag() uint32 { return binary.BigEndian.Uint32(r[8:]) }

// TO is where in it the 8 bytes are.
func (r AtomicRequest) TO() uint64 { return binary.BigEndian.Uint64(r[12:]) }

// Data is what is added or swapped in.
func (r AtomicRequest) Data() uint64 { return binary.BigEndian.Uint64(r[20:]) }

// Mask belongs to Data.
func (r AtomicRequest) Mask() uint64 { return binary.BigEndian.Uint64(r[28:]) }

// Compare is what the memory is compared with.
func (r AtomicRequest) Compare() uint64 { return binary.BigEndian.Uint64(r[36:]) }

// CompareMask belongs to Compare.
func (r AtomicRequest) CompareMask() uint64 { return binary.BigEndian.Uint64(r[44:]) }

// SetSTag sets the steering tag.
func (r AtomicRequest) SetSTag(v uint32) { binary.BigEndian.PutUint32(r[8:], v) }

// SetTO sets the tagged offset.
func (r AtomicRequest) SetTO(v uint64) { binary.BigEndian.PutUint64(r[12:], v) }

// SetData sets the add or swap data.
func (r AtomicRequest) SetData(v uint64) { binary.BigEndian.PutUint64(r[20:], v) }

// SetCompare sets the compare data.
func (r AtomicRequest) SetCompare(v uint64) { binary.BigEndian.PutUint64(r[36:], v) }

// AtomicResponse is the payload of an Atomic Response (RFC 7306 5.2.2):
//
//	| request identifier 4 | original value 8 |
type AtomicResponse []byte

// Identifier is the identifier of the request.
func (r AtomicResponse) Identifier() uint32 { return binary.BigEndian.Uint32(r) }

// Value is what the memory held before.
func (r AtomicResponse) Value() uint64 { return binary.BigEndian.Uint64(r[4:]) }

// SetValue sets the original value.
func (r AtomicResponse) SetValue(v uint64) { binary.BigEndian.PutUint64(r[4:], v) }
