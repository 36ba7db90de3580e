package ibcm

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
)

const (
	reqLocalID       = 0
	reqServiceID     = 8
	reqCAGUID        = 16
	reqQPN           = 32
	reqResources     = 35
	reqDepth         = 39
	reqPSN           = 44
	reqPKey          = 48
	reqPrimaryPath   = 52
	reqAlternatePath = 96
	reqPrivate       = 140
)

var (
	reqRemoteTimeout = bits{43, 3, 5}
	reqTransport     = bits{43, 1, 2}
	reqLocalTimeout  = bits{47, 3, 5}
	reqRetry         = bits{47, 0, 3}
	reqMTU           = bits{50, 4, 4}
	reqRNRRetry      = bits{50, 0, 3}
	reqMaxCMRetries  = bits{51, 4, 4}
	reqExtended      = bits{51, 0, 3}
)

// REQ asks for a connection.
type REQ []byte

// ServiceID is what the sender wants to be connected with.
func (r REQ) ServiceID() ServiceID { return ServiceID(wire.Get64(r, reqServiceID)) }

// LocalCAGUID identifies the sender's adapter.
func (r REQ) LocalCAGUID() uint64 { return wire.Get64(r, reqCAGUID) }

// LocalQPN is the sender's queue pair number, 24 bits.
func (r REQ) LocalQPN() uint32 { return wire.Get24(r, reqQPN) }

// ResponderResources is how many RDMA Reads and atomics the sender answers at
// once.
func (r REQ) ResponderResources() uint8 { return wire.Get8(r, reqResources) }

// InitiatorDepth is how many RDMA Reads and atomics the sender starts at once.
func (r REQ) InitiatorDepth() uint8 { return wire.Get8(r, reqDepth) }

// Transport is the service of the connection.
func (r REQ) Transport() Transport {
	t := reqTransport.get(r)
	if t == transportCodeExtended && reqExtended.get(r) == extendedXRC {
		return TransportXRC
	}
	return Transport(t)
}

// StartingPSN is the PSN that the sender expects in the first packet to it.
func (r REQ) StartingPSN() uint32 { return wire.Get24(r, reqPSN) }

// RetryCount is how often the receiver shall repeat packets.
func (r REQ) RetryCount() uint8 { return reqRetry.get(r) }

// PKey is the partition key.
func (r REQ) PKey() uint16 { return wire.Get16(r, reqPKey) }

// PathMTU is the code of the path MTU; see MTUBytes.
func (r REQ) PathMTU() uint8 { return reqMTU.get(r) }

// RNRRetryCount is how often the receiver shall repeat after RNR NAKs; 7 is
// without end.
func (r REQ) RNRRetryCount() uint8 { return reqRNRRetry.get(r) }

// Primary is the path to use.
func (r REQ) Primary() Path { return Path(area(r, reqPrimaryPath, reqPrimaryPath+PathSize)) }

// Private is the private data, 92 bytes.
func (r REQ) Private() []byte { return area(r, reqPrivate, DataSize) }

// IPHeader is the header that starts the private data if the service is IP
// addressed.
func (r REQ) IPHeader() IPHeader { return IPHeader(area(r, reqPrivate, reqPrivate+IPHeaderSize)) }

// SetLocalID sets the communication id.
func (r REQ) SetLocalID(v uint32) { wire.Put32(r, reqLocalID, v) }

// SetServiceID sets the service id.
func (r REQ) SetServiceID(v ServiceID) { wire.Put64(r, reqServiceID, uint64(v)) }

// SetLocalCAGUID sets the adapter's identity.
func (r REQ) SetLocalCAGUID(v uint64) { wire.Put64(r, reqCAGUID, v) }

// SetLocalQPN sets the queue pair number, 24 bits.
func (r REQ) SetLocalQPN(v uint32) { wire.Put24(r, reqQPN, v) }

// SetResponderResources sets the number of RDMA Reads that are answered at
// once.
func (r REQ) SetResponderResources(v uint8) { wire.Put8(r, reqResources, v) }

// SetInitiatorDepth sets the number of RDMA Reads that are started at once.
func (r REQ) SetInitiatorDepth(v uint8) { wire.Put8(r, reqDepth, v) }

// SetRemoteResponseTimeout sets the exponent of the receiver's time to answer.
func (r REQ) SetRemoteResponseTimeout(v uint8) { reqRemoteTimeout.put(r, v) }

// SetTransport sets the service of the connection.
func (r REQ) SetTransport(t Transport) {
	code, extended := uint8(t), uint8(0)
	if t == TransportXRC {
		code, extended = transportCodeExtended, extendedXRC
	}
	reqTransport.put(r, code)
	reqExtended.put(r, extended)
}

// SetStartingPSN sets the first PSN that the sender expects, 24 bits.
func (r REQ) SetStartingPSN(v uint32) { wire.Put24(r, reqPSN, v) }

// SetLocalResponseTimeout sets the exponent of the sender's time to answer.
func (r REQ) SetLocalResponseTimeout(v uint8) { reqLocalTimeout.put(r, v) }

// SetRetryCount sets how often packets are repeated, up to 7.
func (r REQ) SetRetryCount(v uint8) { reqRetry.put(r, v) }

// SetPKey sets the partition key.
func (r REQ) SetPKey(v uint16) { wire.Put16(r, reqPKey, v) }

// SetPathMTU sets the code of the path MTU; see MTUCode.
func (r REQ) SetPathMTU(code uint8) { reqMTU.put(r, code) }

// SetRNRRetryCount sets how often packets are repeated after RNR NAKs, up to 7.
func (r REQ) SetRNRRetryCount(v uint8) { reqRNRRetry.put(r, v) }

// SetMaxCMRetries sets how often messages are repeated, up to 15.
func (r REQ) SetMaxCMRetries(v uint8) { reqMaxCMRetries.put(r, v) }

// SetIP fills the private data of an IP addressed service in: the addresses
// and the consumer's data, up to 56 bytes.
func (r REQ) SetIP(src netip.AddrPort, dst netip.Addr, consumer []byte) {
	r.IPHeader().Set(src, dst)
	putArea(r, reqPrivate+IPHeaderSize, DataSize, consumer)
}

// PathSize is the size of a path in a REQ, in bytes.
const PathSize = 44

const (
	pathLocalLID  = 0
	pathRemoteLID = 2
	pathLocalGID  = 4
	pathRemoteGID = 20
	pathHopLimit  = 41
)

var (
	pathAckTimeout = bits{43, 3, 5}
)

// Path is the primary or alternate path of a REQ. Local is the side of the
// REQ's sender.
type Path []byte

// LocalGID is the sender's address.
func (p Path) LocalGID() netip.Addr { return getGID(p, pathLocalGID) }

// RemoteGID is the receiver's address.
func (p Path) RemoteGID() netip.Addr { return getGID(p, pathRemoteGID) }

// AckTimeout is the exponent (see Timeout) of how long the receiver shall
// wait for an acknowledgement.
func (p Path) AckTimeout() uint8 { return pathAckTimeout.get(p) }

// SetLIDs sets the ports.
func (p Path) SetLIDs(local, remote uint16) {
	wire.Put16(p, pathLocalLID, local)
	wire.Put16(p, pathRemoteLID, remote)
}

// SetGIDs sets the addresses; IPv4 as ::ffff:a.b.c.d.
func (p Path) SetGIDs(local, remote netip.Addr) {
	putGID(p, pathLocalGID, local)
	putGID(p, pathRemoteGID, remote)
}

// SetHopLimit sets the hop limit.
func (p Path) SetHopLimit(v uint8) { wire.Put8(p, pathHopLimit, v) }

// SetAckTimeout sets the exponent of the wait for an acknowledgement.
func (p Path) SetAckTimeout(v uint8) { pathAckTimeout.put(p, v) }
