package ibcm

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
)

const (
	lapQPN       = 12
	lapLocalLID  = 20
	lapRemoteLID = 22
	lapLocalGID  = 24
	lapRemoteGID = 40
	lapFlowLabel = 56
	lapTClass    = 59
	lapHopLimit  = 60
	lapPrivate   = 64

	aprInfoLength = 8
	aprStatus     = 9
	aprInfo       = 12
	aprPrivate    = 84
)

var (
	lapTimeout     = bits{15, 3, 5}
	lapRate        = bits{61, 0, 6}
	lapSL          = bits{62, 4, 4}
	lapSubnetLocal = bits{62, 3, 1}
	lapAckTimeout  = bits{63, 3, 5}
)

// LAP proposes an alternate path for a connection.
type LAP []byte

// IsValid reports whether l is whole.
func (l LAP) IsValid() bool { return len(l) >= DataSize }

// LocalID is the communication id of the sender.
func (l LAP) LocalID() uint32 { return wire.Get32(l, localID) }

// RemoteID is the communication id of the receiver.
func (l LAP) RemoteID() uint32 { return wire.Get32(l, remoteID) }

// RemoteQPN is the receiver's queue pair number, 24 bits.
func (l LAP) RemoteQPN() uint32 { return wire.Get24(l, lapQPN) }

// RemoteResponseTimeout is the exponent (see Timeout) of how long the
// receiver may take to answer.
func (l LAP) RemoteResponseTimeout() uint8 { return lapTimeout.get(l) }

// LocalLID is the sender's port.
func (l LAP) LocalLID() uint16 { return wire.Get16(l, lapLocalLID) }

// RemoteLID is the receiver's port.
func (l LAP) RemoteLID() uint16 { return wire.Get16(l, lapRemoteLID) }

// LocalGID is the sender's address.
func (l LAP) LocalGID() netip.Addr { return getGID(l, lapLocalGID) }

// RemoteGID is the receiver's address.
func (l LAP) RemoteGID() netip.Addr { return getGID(l, lapRemoteGID) }

// FlowLabel is the flow label, 20 bits.
func (l LAP) FlowLabel() uint32 { return get20(l, lapFlowLabel) }

// TrafficClass is the traffic class.
func (l LAP) TrafficClass() uint8 { return wire.Get8(l, lapTClass) }

// HopLimit is the hop limit.
func (l LAP) HopLimit() uint8 { return wire.Get8(l, lapHopLimit) }

// PacketRate is the code of the rate of injection.
func (l LAP) PacketRate() uint8 { return lapRate.get(l) }

// SL is the service level.
func (l LAP) SL() uint8 { return lapSL.get(l) }

// SubnetLocal says that the path does not leave the subnet.
func (l LAP) SubnetLocal() bool { return lapSubnetLocal.is(l) }

// AckTimeout is the exponent (see Timeout) of the wait for an acknowledgement.
func (l LAP) AckTimeout() uint8 { return lapAckTimeout.get(l) }

// Private is the private data, 168 bytes.
func (l LAP) Private() []byte { return area(l, lapPrivate, DataSize) }

// SetIDs sets the communication ids.
func (l LAP) SetIDs(local, remote uint32) { putIDs(l, local, remote) }

// SetRemoteQPN sets the receiver's queue pair number, 24 bits.
func (l LAP) SetRemoteQPN(v uint32) { wire.Put24(l, lapQPN, v) }

// SetRemoteResponseTimeout sets the exponent of the receiver's time to answer.
func (l LAP) SetRemoteResponseTimeout(v uint8) { lapTimeout.put(l, v) }

// SetLIDs sets the ports.
func (l LAP) SetLIDs(local, remote uint16) {
	wire.Put16(l, lapLocalLID, local)
	wire.Put16(l, lapRemoteLID, remote)
}

// SetGIDs sets the addresses; IPv4 as ::ffff:a.b.c.d.
func (l LAP) SetGIDs(local, remote netip.Addr) {
	putGID(l, lapLocalGID, local)
	putGID(l, lapRemoteGID, remote)
}

// SetFlowLabel sets the flow label, 20 bits.
func (l LAP) SetFlowLabel(v uint32) { put20(l, lapFlowLabel, v) }

// SetTrafficClass sets the traffic class.
func (l LAP) SetTrafficClass(v uint8) { wire.Put8(l, lapTClass, v) }

// SetHopLimit sets the hop limit.
func (l LAP) SetHopLimit(v uint8) { wire.Put8(l, lapHopLimit, v) }

// SetPacketRate sets the code of the rate of injection.
func (l LAP) SetPacketRate(v uint8) { lapRate.put(l, v) }

// SetSL sets the service level.
func (l LAP) SetSL(v uint8) { lapSL.put(l, v) }

// SetSubnetLocal sets the bit of a path within the subnet.
func (l LAP) SetSubnetLocal(on bool) { lapSubnetLocal.set(l, on) }

// SetAckTimeout sets the exponent of the wait for an acknowledgement.
func (l LAP) SetAckTimeout(v uint8) { lapAckTimeout.put(l, v) }

// SetPrivate fills the private data in, with zeros after v.
func (l LAP) SetPrivate(v []byte) { putArea(l, lapPrivate, DataSize, v) }

// APR answers a LAP.
type APR []byte

// IsValid reports whether a is whole.
func (a APR) IsValid() bool { return len(a) >= DataSize }

// LocalID is the communication id of the sender.
func (a APR) LocalID() uint32 { return wire.Get32(a, localID) }

// RemoteID is the communication id of the receiver.
func (a APR) RemoteID() uint32 { return wire.Get32(a, remoteID) }

// Status is 0 if the path is accepted.
func (a APR) Status() uint8 { return wire.Get8(a, aprStatus) }

// Info is additional information that depends on the status, up to 72 bytes.
func (a APR) Info() []byte {
	return area(a, aprInfo, min(aprInfo+int(wire.Get8(a, aprInfoLength)), aprPrivate))
}

// Private is the private data, 148 bytes.
func (a APR) Private() []byte { return area(a, aprPrivate, DataSize) }

// SetIDs sets the communication ids.
func (a APR) SetIDs(local, remote uint32) { putIDs(a, local, remote) }

// SetStatus sets the status.
func (a APR) SetStatus(v uint8) { wire.Put8(a, aprStatus, v) }

// SetInfo sets the additional information, up to 72 bytes.
func (a APR) SetInfo(v []byte) {
	v = v[:min(len(v), aprPrivate-aprInfo)]
	wire.Put8(a, aprInfoLength, uint8(len(v)))
	putArea(a, aprInfo, aprPrivate, v)
}

// SetPrivate fills the private data in, with zeros after v.
func (a APR) SetPrivate(v []byte) { putArea(a, aprPrivate, DataSize, v) }
