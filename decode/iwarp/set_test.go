package iwarp

import "encoding/binary"

// SetInvalidateSTag sets the steering tag to invalidate.
func (t Untagged) SetInvalidateSTag(v uint32) { binary.BigEndian.PutUint32(t[2:], v) }

// SetMO sets the message offset.
func (t Untagged) SetMO(v uint32) { binary.BigEndian.PutUint32(t[14:], v) }

// SetSinkSTag sets the steering tag of the requester's memory.
func (r ReadRequest) SetSinkSTag(v uint32) { binary.BigEndian.PutUint32(r, v) }

// SetSinkTO sets the offset in the requester's memory.
func (r ReadRequest) SetSinkTO(v uint64) { binary.BigEndian.PutUint64(r[4:], v) }

// SetSourceSTag sets the steering tag of the responder's memory.
func (r ReadRequest) SetSourceSTag(v uint32) { binary.BigEndian.PutUint32(r[16:], v) }

// SetSourceTO sets the offset in the responder's memory.
func (r ReadRequest) SetSourceTO(v uint64) { binary.BigEndian.PutUint64(r[20:], v) }

// SetOp sets the operation.
func (r AtomicRequest) SetOp(o AtomicOp) { binary.BigEndian.PutUint32(r, uint32(o&0x0f)) }

// SetIdentifier sets the request identifier.
func (r AtomicRequest) SetIdentifier(v uint32) { binary.BigEndian.PutUint32(r[4:], v) }

// SetIdentifier sets the request identifier.
func (r AtomicResponse) SetIdentifier(v uint32) { binary.BigEndian.PutUint32(r, v) }

// SetMask sets the add or swap mask.
func (r AtomicRequest) SetMask(v uint64) { binary.BigEndian.PutUint64(r[28:], v) }

// SetCompareMask sets the compare mask.
func (r AtomicRequest) SetCompareMask(v uint64) { binary.BigEndian.PutUint64(r[44:], v) }
