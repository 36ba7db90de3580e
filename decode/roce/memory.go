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

// Used is what the tracker holds, in bytes.
func (t *Tracker) Used() int { return t.used }

// Connections is how many are followed.
func (t *Tracker) Connections() int { return len(t.all) }

// Evicted is how many connections were evicted because there were too many, or because they held too much
// memory.
func (t *Tracker) Evicted() uint64 { return t.evicted }

// add accounts for n more bytes of c, or of no connection.
func (t *Tracker) add(c *connection, n int) {
	t.used += n
	if c != nil {
		c.size += n
	}
	if t.limits.Memory != nil {
		t.limits.Memory.Add(n)
	}
}

func (t *Tracker) fits(n int) bool { return t.limits.Memory == nil || t.limits.Memory.Fits(n) }

// sets accounts for the memory of a flow's PSN sets after they may have grown.
func (t *Tracker) sets(fl *flow) {
	if n := cap(fl.missing.r) + cap(fl.headless.r) + cap(fl.gone.r) + cap(fl.respMissing.r); n != fl.ranges {
		t.add(fl.c, (n-fl.ranges)*rangeSize)
		fl.ranges = n
	}
}

// gathered accounts for the memory of a Send in progress after it may have grown.
func (t *Tracker) gathered(a *assembly) {
	if n := assemblySize + cap(a.buf) + cap(a.parts)*partSize; n != a.size {
		t.add(nil, n-a.size)
		a.size = n
	}
}

// glance is how many connections are compared when one is evicted.
const glance = 8

// Evict frees something: packets kept for later, or one of the next connections of the clock, the largest of
// those unused for a round. It returns false if there is nothing to free.
func (t *Tracker) Evict(ref rdma.Ref) bool {
	t.epoch++
	if len(t.spare) > 0 {
		for i, a := range t.spare {
			t.add(nil, -a.size)
			t.spare[i] = nil
		}
		t.spare = t.spare[:0]
		return true
	}
	var victim *connection
	worth := 0
	for range min(glance, len(t.all)) {
		if t.hand++; t.hand >= len(t.all) {
			t.hand = 0
		}
		c := t.all[t.hand]
		weight := c.size
		if !c.used {
			weight *= 16
		}
		c.used = false
		if victim == nil || weight > worth {
			victim, worth = c, weight
		}
	}
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
