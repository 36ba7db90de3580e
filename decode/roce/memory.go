package roce

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

const (
	// connectionSize is the memory of a connection, with the copy of its description that goes with its
	// transactions, and the entries of two identities.
	connectionSize = int(unsafe.Sizeof(connection{})+2*unsafe.Sizeof(rdma.Connection{})) + 8 +
		2*(int(unsafe.Sizeof(cmID{}))+8+memory.MapEntry)
	// flowSize is the memory of a flow, with its entries among all flows and among those without a peer.
	flowSize        = int(unsafe.Sizeof(flow{})+unsafe.Sizeof(flowKey{})+unsafe.Sizeof(addrPair{})) + 2*(8+memory.MapEntry)
	requestSize     = int(unsafe.Sizeof(request{}))
	assemblySize    = int(unsafe.Sizeof(assembly{})) + 8
	rangeSize       = int(unsafe.Sizeof(psnRange{}))
	earlyPacketSize = int(unsafe.Sizeof(earlyPacket{}))
	partSize        = int(unsafe.Sizeof(rdma.Part{}))
)

// account counts the bytes that are held.
type account struct {
	used   int
	shared *memory.Account // with others; nil: there is no limit
}

// add accounts for n more bytes of c, or of no connection.
func (a *account) add(c *connection, n int) {
	a.used += n
	if c != nil {
		c.size += n
	}
	if a.shared != nil {
		a.shared.Add(n)
	}
}

func (a *account) fits(n int) bool { return a.shared == nil || a.shared.Fits(n) }

// sets accounts for the memory of a flow's PSN sets after they may have grown.
func (a *account) sets(fl *flow) {
	if n := cap(fl.missing.r) + cap(fl.headless.r) + cap(fl.gone.r) + cap(fl.respMissing.r); n != fl.ranges {
		a.add(fl.c, (n-fl.ranges)*rangeSize)
		fl.ranges = n
	}
}

// Differing counts packets of Sends that were seen again with other bytes. The first ones count.
func (t *Tracker) Differing() rdma.Given { return t.messages.differing }

// Used is what the tracker holds, in bytes.
func (t *Tracker) Used() int { return t.account.used }

// Connections is how many are followed.
func (t *Tracker) Connections() int { return len(t.clock.all) }

// Evicted is how many connections were evicted because there were too many, or because they held too much
// memory.
func (t *Tracker) Evicted() uint64 { return t.evicted }

// Evict frees something: packets kept for later, or one of the next connections of the clock, the largest of
// those unused for a round. It returns false if there is nothing to free.
func (t *Tracker) Evict(ref rdma.Ref) bool {
	t.epoch++
	if t.messages.assembler.clear() {
		return true
	}
	victim := t.clock.heaviest()
	if victim == nil {
		return false
	}
	t.giveUp(victim, "evicted: connections hold too much memory", ref)
	return true
}

func (t *Tracker) giveUp(c *connection, why string, ref rdma.Ref) {
	if c.Terminated == "" {
		c.Terminated = why
	}
	t.evicted++
	t.forget(c, ref)
}
