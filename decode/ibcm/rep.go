package ibcm

import "github.com/rpcrdma/toolkit/decode/internal/wire"

const (
	localID  = 0 // in all messages from here on but SIDR
	remoteID = 4

	repQPN       = 12
	repPSN       = 20
	repResources = 24
	repDepth     = 25
	repCAGUID    = 28
	repPrivate   = 36
)

var (
	repAckDelay = bits{26, 3, 5}
	repRNRRetry = bits{27, 5, 3}
)

// REP accepts a REQ.
type REP []byte

// LocalQPN is the sender's queue pair number, 24 bits.
func (r REP) LocalQPN() uint32 { return wire.Get24(r, repQPN) }

// StartingPSN is the PSN that the sender expects in the first packet to it.
func (r REP) StartingPSN() uint32 { return wire.Get24(r, repPSN) }

// ResponderResources is how many RDMA Reads and atomics the sender answers at
// once.
func (r REP) ResponderResources() uint8 { return wire.Get8(r, repResources) }

// InitiatorDepth is how many RDMA Reads and atomics the sender starts at once.
func (r REP) InitiatorDepth() uint8 { return wire.Get8(r, repDepth) }

// RNRRetryCount is how often the receiver shall repeat after RNR NAKs; 7 is
// without end.
func (r REP) RNRRetryCount() uint8 { return repRNRRetry.get(r) }

// LocalCAGUID identifies the sender's adapter.
func (r REP) LocalCAGUID() uint64 { return wire.Get64(r, repCAGUID) }

// Private is the private data, 196 bytes, all of it the consumer's.
func (r REP) Private() []byte { return area(r, repPrivate, DataSize) }

// SetIDs sets the communication ids: the sender's and that of the REQ.
func (r REP) SetIDs(local, remote uint32) { putIDs(r, local, remote) }

// SetLocalQPN sets the queue pair number, 24 bits.
func (r REP) SetLocalQPN(v uint32) { wire.Put24(r, repQPN, v) }

// SetStartingPSN sets the first PSN that the sender expects, 24 bits.
func (r REP) SetStartingPSN(v uint32) { wire.Put24(r, repPSN, v) }

// SetResponderResources sets the number of RDMA Reads that are answered at
// once.
func (r REP) SetResponderResources(v uint8) { wire.Put8(r, repResources, v) }

// SetInitiatorDepth sets the number of RDMA Reads that are started at once.
func (r REP) SetInitiatorDepth(v uint8) { wire.Put8(r, repDepth, v) }

// SetTargetAckDelay sets the exponent of the delay of acknowledgements.
func (r REP) SetTargetAckDelay(v uint8) { repAckDelay.put(r, v) }

// SetRNRRetryCount sets how often packets are repeated after RNR NAKs, up to 7.
func (r REP) SetRNRRetryCount(v uint8) { repRNRRetry.put(r, v) }

// SetLocalCAGUID sets the adapter's identity.
func (r REP) SetLocalCAGUID(v uint64) { wire.Put64(r, repCAGUID, v) }

// SetPrivate fills the private data in, with zeros after v.
func (r REP) SetPrivate(v []byte) { putArea(r, repPrivate, DataSize, v) }

func putIDs(b []byte, local, remote uint32) {
	wire.Put32(b, localID, local)
	wire.Put32(b, remoteID, remote)
}
