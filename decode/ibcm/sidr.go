package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const (
	sidrRequestID  = 0
	sidrPKey       = 4
	sidrServiceID  = 8
	sidrPrivate    = 16
	sidrStatus     = 4
	sidrInfoLength = 5
	sidrQPN        = 8
	sidrRepService = 12
	sidrQKey       = 20
	sidrInfo       = 24
	sidrRepPrivate = 96
)

// SIDRREQ asks for the queue pair of a datagram service.
type SIDRREQ []byte

// IsValid reports whether s is whole.
func (s SIDRREQ) IsValid() bool { return len(s) >= DataSize }

// RequestID is chosen by the sender and echoed in the reply.
func (s SIDRREQ) RequestID() uint32 { return wire.Get32(s, sidrRequestID) }

// PKey is the partition key.
func (s SIDRREQ) PKey() uint16 { return wire.Get16(s, sidrPKey) }

// ServiceID is the service in question.
func (s SIDRREQ) ServiceID() ServiceID { return ServiceID(wire.Get64(s, sidrServiceID)) }

// Private is the private data, 216 bytes.
func (s SIDRREQ) Private() []byte { return area(s, sidrPrivate, DataSize) }

// IPHeader is the header that starts the private data if the service is IP
// addressed.
func (s SIDRREQ) IPHeader() IPHeader {
	return IPHeader(area(s, sidrPrivate, sidrPrivate+IPHeaderSize))
}

// SetRequestID sets the request id.
func (s SIDRREQ) SetRequestID(v uint32) { wire.Put32(s, sidrRequestID, v) }

// SetPKey sets the partition key.
func (s SIDRREQ) SetPKey(v uint16) { wire.Put16(s, sidrPKey, v) }

// SetServiceID sets the service id.
func (s SIDRREQ) SetServiceID(v ServiceID) { wire.Put64(s, sidrServiceID, uint64(v)) }

// SetPrivate fills the private data in, with zeros after v.
func (s SIDRREQ) SetPrivate(v []byte) { putArea(s, sidrPrivate, DataSize, v) }

// SIDRREP answers a SIDRREQ.
type SIDRREP []byte

// IsValid reports whether s is whole.
func (s SIDRREP) IsValid() bool { return len(s) >= DataSize }

// RequestID is the request ID of the request.
func (s SIDRREP) RequestID() uint32 { return wire.Get32(s, sidrRequestID) }

// Status is 0 if the queue pair is given; 1 not supported, 2 rejected, 3 no
// queue pair, 4 redirected, 5 version not supported.
func (s SIDRREP) Status() uint8 { return wire.Get8(s, sidrStatus) }

// QPN is the queue pair number of the service, 24 bits.
func (s SIDRREP) QPN() uint32 { return wire.Get24(s, sidrQPN) }

// ServiceID is the service ID of the request.
func (s SIDRREP) ServiceID() ServiceID { return ServiceID(wire.Get64(s, sidrRepService)) }

// QKey is the queue key of the service.
func (s SIDRREP) QKey() uint32 { return wire.Get32(s, sidrQKey) }

// Info is additional information that depends on the status, up to 72 bytes.
func (s SIDRREP) Info() []byte {
	return area(s, sidrInfo, min(sidrInfo+int(wire.Get8(s, sidrInfoLength)), sidrRepPrivate))
}

// Private is the private data, 136 bytes.
func (s SIDRREP) Private() []byte { return area(s, sidrRepPrivate, DataSize) }

// SetRequestID sets the request id.
func (s SIDRREP) SetRequestID(v uint32) { wire.Put32(s, sidrRequestID, v) }

// SetStatus sets the status.
func (s SIDRREP) SetStatus(v uint8) { wire.Put8(s, sidrStatus, v) }

// SetQPN sets the queue pair number, 24 bits.
func (s SIDRREP) SetQPN(v uint32) { wire.Put24(s, sidrQPN, v) }

// SetServiceID sets the service id.
func (s SIDRREP) SetServiceID(v ServiceID) { wire.Put64(s, sidrRepService, uint64(v)) }

// SetQKey sets the queue key.
func (s SIDRREP) SetQKey(v uint32) { wire.Put32(s, sidrQKey, v) }

// SetInfo sets the additional information, up to 72 bytes.
func (s SIDRREP) SetInfo(v []byte) {
	v = v[:min(len(v), sidrRepPrivate-sidrInfo)]
	wire.Put8(s, sidrInfoLength, uint8(len(v)))
	putArea(s, sidrInfo, sidrRepPrivate, v)
}

// SetPrivate fills the private data in, with zeros after v.
func (s SIDRREP) SetPrivate(v []byte) { putArea(s, sidrRepPrivate, DataSize, v) }
