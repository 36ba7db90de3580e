package ibcm

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
)

const (
	reqLocalID       = 0
	reqServiceID     = 8
	reqCAGUID        = 16
	reqQKey          = 28
	reqQPN           = 32
	reqResources     = 35
	reqEECN          = 36
	reqDepth         = 39
	reqRemoteEECN    = 40
	reqPSN           = 44
	reqPKey          = 48
	reqPrimaryPath   = 52
	reqAlternatePath = 96
	reqPrivate       = 140
)

var (
	reqRemoteTimeout = bits{43, 3, 5}
	reqTransport     = bits{43, 1, 2}
	reqFlowControl   = bits{43, 0, 1}
	reqLocalTimeout  = bits{47, 3, 5}
	reqRetry         = bits{47, 0, 3}
	reqMTU           = bits{50, 4, 4}
	reqRDC           = bits{50, 3, 1}
	reqRNRRetry      = bits{50, 0, 3}
	reqMaxCMRetries  = bits{51, 4, 4}
	reqSRQ           = bits{51, 3, 1}
	reqExtended      = bits{51, 0, 3}
)

// REQ asks for a connection.
type REQ []byte

// IsValid reports whether r is whole.
func (r REQ) IsValid() bool { return len(r) >= DataSize }

// LocalID is the communication id that the sender chose.
func (r REQ) LocalID() uint32 { return wire.Get32(r, reqLocalID) }

// ServiceID is what the sender wants to be connected with.
func (r REQ) ServiceID() ServiceID { return ServiceID(wire.Get64(r, reqServiceID)) }

// LocalCAGUID identifies the sender's adapter.
func (r REQ) LocalCAGUID() uint64 { return wire.Get64(r, reqCAGUID) }

// LocalQKey is the sender's queue key (RD).
func (r REQ) LocalQKey() uint32 { return wire.Get32(r, reqQKey) }

// LocalQPN is the sender's queue pair number, 24 bits.
func (r REQ) LocalQPN() uint32 { return wire.Get24(r, reqQPN) }

// ResponderResources is how many RDMA Reads and atomics the sender answers at
// once.
func (r REQ) ResponderResources() uint8 { return wire.Get8(r, reqResources) }

// LocalEECN is the sender's end-to-end context (RD), 24 bits.
func (r REQ) LocalEECN() uint32 { return wire.Get24(r, reqEECN) }

// InitiatorDepth is how many RDMA Reads and atomics the sender starts at once.
func (r REQ) InitiatorDepth() uint8 { return wire.Get8(r, reqDepth) }

// RemoteEECN is the receiver's end-to-end context (RD), 24 bits.
func (r REQ) RemoteEECN() uint32 { return wire.Get24(r, reqRemoteEECN) }

// RemoteResponseTimeout is the exponent (see Timeout) of how long the
// receiver may take to answer.
func (r REQ) RemoteResponseTimeout() uint8 { return reqRemoteTimeout.get(r) }

// Transport is the service of the connection.
func (r REQ) Transport() Transport {
	t := reqTransport.get(r)
	if t == transportCodeExtended && reqExtended.get(r) == extendedXRC {
		return TransportXRC
	}
	return Transport(t)
}

// FlowControl says that the sender's adapter has end-to-end flow control.
func (r REQ) FlowControl() bool { return reqFlowControl.is(r) }

// StartingPSN is the PSN that the sender expects in the first packet to it.
func (r REQ) StartingPSN() uint32 { return wire.Get24(r, reqPSN) }

// LocalResponseTimeout is the exponent (see Timeout) of how long the sender
// may take to answer.
func (r REQ) LocalResponseTimeout() uint8 { return reqLocalTimeout.get(r) }

// RetryCount is how often the receiver shall repeat packets.
func (r REQ) RetryCount() uint8 { return reqRetry.get(r) }

// PKey is the partition key.
func (r REQ) PKey() uint16 { return wire.Get16(r, reqPKey) }

// PathMTU is the code of the path MTU; see MTUBytes.
func (r REQ) PathMTU() uint8 { return reqMTU.get(r) }

// RDCExists says that the reliable datagram channel exists already.
func (r REQ) RDCExists() bool { return reqRDC.is(r) }

// RNRRetryCount is how often the receiver shall repeat after RNR NAKs; 7 is
// without end.
func (r REQ) RNRRetryCount() uint8 { return reqRNRRetry.get(r) }

// MaxCMRetries is how often either side may repeat these messages.
func (r REQ) MaxCMRetries() uint8 { return reqMaxCMRetries.get(r) }

// SRQ says that the sender uses a shared receive queue.
func (r REQ) SRQ() bool { return reqSRQ.is(r) }

// Primary is the path to use.
func (r REQ) Primary() Path { return Path(area(r, reqPrimaryPath, reqPrimaryPath+PathSize)) }

// Alternate is the path to migrate to; all zeros if there is none.
func (r REQ) Alternate() Path { return Path(area(r, reqAlternatePath, reqAlternatePath+PathSize)) }

// Private is the private data, 92 bytes.
func (r REQ) Private() []byte { return area(r, reqPrivate, DataSize) }

// IPHeader is the header that starts the private data if the service is IP
// addressed.
func (r REQ) IPHeader() IPHeader { return IPHeader(area(r, reqPrivate, reqPrivate+IPHeaderSize)) }

// Consumer is the private data of the consumer: that after the IPHeader, 56
// bytes, if the service is IP addressed; else all, 92 bytes.
func (r REQ) Consumer() []byte {
	if _, _, ok := r.ServiceID().IP(); ok {
		return area(r, reqPrivate+IPHeaderSize, DataSize)
	}
	return r.Private()
}

// SetLocalID sets the communication id.
func (r REQ) SetLocalID(v uint32) { wire.Put32(r, reqLocalID, v) }

// SetServiceID sets the service id.
func (r REQ) SetServiceID(v ServiceID) { wire.Put64(r, reqServiceID, uint64(v)) }

// SetLocalCAGUID sets the adapter's identity.
func (r REQ) SetLocalCAGUID(v uint64) { wire.Put64(r, reqCAGUID, v) }

// SetLocalQKey sets the queue key.
func (r REQ) SetLocalQKey(v uint32) { wire.Put32(r, reqQKey, v) }

// SetLocalQPN sets the queue pair number, 24 bits.
func (r REQ) SetLocalQPN(v uint32) { wire.Put24(r, reqQPN, v) }

// SetResponderResources sets the number of RDMA Reads that are answered at
// once.
func (r REQ) SetResponderResources(v uint8) { wire.Put8(r, reqResources, v) }

// SetLocalEECN sets the sender's end-to-end context, 24 bits.
func (r REQ) SetLocalEECN(v uint32) { wire.Put24(r, reqEECN, v) }

// SetInitiatorDepth sets the number of RDMA Reads that are started at once.
func (r REQ) SetInitiatorDepth(v uint8) { wire.Put8(r, reqDepth, v) }

// SetRemoteEECN sets the receiver's end-to-end context, 24 bits.
func (r REQ) SetRemoteEECN(v uint32) { wire.Put24(r, reqRemoteEECN, v) }

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

// SetFlowControl sets the end-to-end flow control bit.
func (r REQ) SetFlowControl(on bool) { reqFlowControl.set(r, on) }

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

// SetRDCExists sets the bit of an existing reliable datagram channel.
func (r REQ) SetRDCExists(on bool) { reqRDC.set(r, on) }

// SetRNRRetryCount sets how often packets are repeated after RNR NAKs, up to 7.
func (r REQ) SetRNRRetryCount(v uint8) { reqRNRRetry.put(r, v) }

// SetMaxCMRetries sets how often messages are repeated, up to 15.
func (r REQ) SetMaxCMRetries(v uint8) { reqMaxCMRetries.put(r, v) }

// SetSRQ sets the bit of a shared receive queue.
func (r REQ) SetSRQ(on bool) { reqSRQ.set(r, on) }

// SetPrivate fills all of the private data in, with zeros after v.
func (r REQ) SetPrivate(v []byte) { putArea(r, reqPrivate, DataSize, v) }

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
	pathFlowLabel = 36
	pathTClass    = 40
	pathHopLimit  = 41
)

var (
	pathRate        = bits{39, 0, 6}
	pathSL          = bits{42, 4, 4}
	pathSubnetLocal = bits{42, 3, 1}
	pathAckTimeout  = bits{43, 3, 5}
)

// Path is the primary or alternate path of a REQ. Local is the side of the
// REQ's sender.
type Path []byte

// LocalLID is the sender's port; 0xffff on RoCE.
func (p Path) LocalLID() uint16 { return wire.Get16(p, pathLocalLID) }

// RemoteLID is the receiver's port; 0xffff on RoCE.
func (p Path) RemoteLID() uint16 { return wire.Get16(p, pathRemoteLID) }

// LocalGID is the sender's address.
func (p Path) LocalGID() netip.Addr { return getGID(p, pathLocalGID) }

// RemoteGID is the receiver's address.
func (p Path) RemoteGID() netip.Addr { return getGID(p, pathRemoteGID) }

// FlowLabel is the flow label, 20 bits.
func (p Path) FlowLabel() uint32 { return get20(p, pathFlowLabel) }

// PacketRate is the code of the rate of injection.
func (p Path) PacketRate() uint8 { return pathRate.get(p) }

// TrafficClass is the traffic class.
func (p Path) TrafficClass() uint8 { return wire.Get8(p, pathTClass) }

// HopLimit is the hop limit.
func (p Path) HopLimit() uint8 { return wire.Get8(p, pathHopLimit) }

// SL is the service level.
func (p Path) SL() uint8 { return pathSL.get(p) }

// SubnetLocal says that the path does not leave the subnet.
func (p Path) SubnetLocal() bool { return pathSubnetLocal.is(p) }

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

// SetFlowLabel sets the flow label, 20 bits.
func (p Path) SetFlowLabel(v uint32) { put20(p, pathFlowLabel, v) }

// SetPacketRate sets the code of the rate of injection.
func (p Path) SetPacketRate(v uint8) { pathRate.put(p, v) }

// SetTrafficClass sets the traffic class.
func (p Path) SetTrafficClass(v uint8) { wire.Put8(p, pathTClass, v) }

// SetHopLimit sets the hop limit.
func (p Path) SetHopLimit(v uint8) { wire.Put8(p, pathHopLimit, v) }

// SetSL sets the service level.
func (p Path) SetSL(v uint8) { pathSL.put(p, v) }

// SetSubnetLocal sets the bit of a path within the subnet.
func (p Path) SetSubnetLocal(on bool) { pathSubnetLocal.set(p, on) }

// SetAckTimeout sets the exponent of the wait for an acknowledgement.
func (p Path) SetAckTimeout(v uint8) { pathAckTimeout.put(p, v) }
