package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const (
	sidrServiceID  = 8
	sidrPrivate    = 16
	sidrQPN        = 8
	sidrRepService = 12
	sidrRepPrivate = 96
)

// SIDRREQ asks for the queue pair of a datagram service.
type SIDRREQ []byte

// ServiceID is the service in question.
func (s SIDRREQ) ServiceID() ServiceID { return ServiceID(wire.Get64(s, sidrServiceID)) }

// Private is the private data, 216 bytes.
func (s SIDRREQ) Private() []byte { return area(s, sidrPrivate, DataSize) }

// SIDRREP answers a SIDRREQ.
type SIDRREP []byte

// QPN is the queue pair number of the service, 24 bits.
func (s SIDRREP) QPN() uint32 { return wire.Get24(s, sidrQPN) }

// ServiceID is the service ID of the request.
func (s SIDRREP) ServiceID() ServiceID { return ServiceID(wire.Get64(s, sidrRepService)) }

// Private is the private data, 136 bytes.
func (s SIDRREP) Private() []byte { return area(s, sidrRepPrivate, DataSize) }
