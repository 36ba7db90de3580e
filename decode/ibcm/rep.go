package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const (
	localID  = 0 // in all messages from here on but SIDR
	remoteID = 4

	repQKey      = 8
	repQPN       = 12
	repEECN      = 16
	repPSN       = 20
	repResources = 24
	repDepth     = 25
	repCAGUID    = 28
	repPrivate   = 36
)

var (
	repAckDelay    = bits{26, 3, 5}
	repFailover    = bits{26, 1, 2}
	repFlowControl = bits{26, 0, 1}
	repRNRRetry    = bits{27, 5, 3}
	repSRQ         = bits{27, 4, 1}
)

// REP accepts a REQ.
type REP []byte

// IsValid reports whether r is whole.
func (r REP) IsValid() bool { return len(r) >= DataSize }

// LocalID is the communication id that the sender chose.
func (r REP) LocalID() uint32 { return wire.Get32(r, localID) }

// RemoteID is the LocalID of the REQ.
func (r REP) RemoteID() uint32 { return wire.Get32(r, remoteID) }

// LocalQKey is the sender's queue key (RD).
func (r REP) LocalQKey() uint32 { return wire.Get32(r, repQKey) }

// LocalQPN is the sender's queue pair number, 24 bits.
func (r REP) LocalQPN() uint32 { return wire.Get24(r, repQPN) }

// LocalEECN is the sender's end-to-end context (RD), or its queue pair number
// for XRC, 24 bits.
func (r REP) LocalEECN() uint32 { return wire.Get24(r, repEECN) }

// StartingPSN is the PSN that the sender expects in the first packet to it.
func (r REP) StartingPSN() uint32 { return wire.Get24(r, repPSN) }

// ResponderResources is how many RDMA Reads and atomics the sender answers at
// once.
func (r REP) ResponderResources() uint8 { return wire.Get8(r, repResources) }

// InitiatorDepth is how many RDMA Reads and atomics the sender starts at once.
func (r REP) InitiatorDepth() uint8 { return wire.Get8(r, repDepth) }

// TargetAckDelay is the exponent (see Timeout) of how long the sender may take
// to acknowledge a packet.
func (r REP) TargetAckDelay() uint8 { return repAckDelay.get(r) }

// FailoverAccepted says what became of the alternate path: 0 accepted.
func (r REP) FailoverAccepted() uint8 { return repFailover.get(r) }

// FlowControl says that the sender's adapter has end-to-end flow control.
func (r REP) FlowControl() bool { return repFlowControl.is(r) }

// RNRRetryCount is how often the receiver shall repeat after RNR NAKs; 7 is
// without end.
func (r REP) RNRRetryCount() uint8 { return repRNRRetry.get(r) }

// SRQ says that the sender uses a shared receive queue.
func (r REP) SRQ() bool { return repSRQ.is(r) }

// LocalCAGUID identifies the sender's adapter.
func (r REP) LocalCAGUID() uint64 { return wire.Get64(r, repCAGUID) }

// Private is the private data, 196 bytes, all of it the consumer's.
func (r REP) Private() []byte { return area(r, repPrivate, DataSize) }

// SetIDs sets the communication ids: the sender's and that of the REQ.
func (r REP) SetIDs(local, remote uint32) { putIDs(r, local, remote) }

// SetLocalQKey sets the queue key.
func (r REP) SetLocalQKey(v uint32) { wire.Put32(r, repQKey, v) }

// SetLocalQPN sets the queue pair number, 24 bits.
func (r REP) SetLocalQPN(v uint32) { wire.Put24(r, repQPN, v) }

// SetLocalEECN sets the end-to-end context, 24 bits.
func (r REP) SetLocalEECN(v uint32) { wire.Put24(r, repEECN, v) }

// SetStartingPSN sets the first PSN that the sender expects, 24 bits.
func (r REP) SetStartingPSN(v uint32) { wire.Put24(r, repPSN, v) }

// SetResponderResources sets the number of RDMA Reads that are answered at
// once.
func (r REP) SetResponderResources(v uint8) { wire.Put8(r, repResources, v) }

// SetInitiatorDepth sets the number of RDMA Reads that are started at once.
func (r REP) SetInitiatorDepth(v uint8) { wire.Put8(r, repDepth, v) }

// SetTargetAckDelay sets the exponent of the delay of acknowledgements.
func (r REP) SetTargetAckDelay(v uint8) { repAckDelay.put(r, v) }

// SetFailoverAccepted sets what became of the alternate path.
func (r REP) SetFailoverAccepted(v uint8) { repFailover.put(r, v) }

// SetFlowControl sets the end-to-end flow control bit.
func (r REP) SetFlowControl(on bool) { repFlowControl.set(r, on) }

// SetRNRRetryCount sets how often packets are repeated after RNR NAKs, up to 7.
func (r REP) SetRNRRetryCount(v uint8) { repRNRRetry.put(r, v) }

// SetSRQ sets the bit of a shared receive queue.
func (r REP) SetSRQ(on bool) { repSRQ.set(r, on) }

// SetLocalCAGUID sets the adapter's identity.
func (r REP) SetLocalCAGUID(v uint64) { wire.Put64(r, repCAGUID, v) }

// SetPrivate fills the private data in, with zeros after v.
func (r REP) SetPrivate(v []byte) { putArea(r, repPrivate, DataSize, v) }

func putIDs(b []byte, local, remote uint32) {
	wire.Put32(b, localID, local)
	wire.Put32(b, remoteID, remote)
}
