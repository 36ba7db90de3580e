package decode

import (
	"iter"
	"net/netip"
	"sync"

	"github.com/rpcrdma/toolkit/decode/roce"
)

const (
	// maxGroups is how many groups there are. Pairs of hosts go to them in turn, in the order in which they
	// appear.
	maxGroups = 64
	// maxPairs bounds the pairs of hosts that are remembered. Those beyond are divided by their addresses.
	maxPairs = 1 << 16
)

// groups are the trackers, and what they share.
type groups struct {
	list  [maxGroups]*group
	of    map[hostPair]uint16 // numbers of groups, from 1
	next  int                 // the group of the next pair
	fast  roce.FastDecoder    // finds the hosts of most packets
	full  full                // one that is another
	limit int                 // bytes that all groups may hold together
	count uint64              // batches that were sorted
	// Batch n begins with what was settled when the batch was merged that is len(settled) older: with settled[n % len(settled)].
	settled []settled
	begin   sync.Mutex // of Options.Group
}

// settledBefore is what a batch begins with, and where to settle what a later one does.
func (g *groups) settledBefore(j *grouped) *settled { return &g.settled[j.n%uint64(len(g.settled))] }

// hostPair are two addresses in ascending order.
type hostPair struct{ low, high netip.Addr }

// all iterates over the groups that have had packets.
func (g *groups) all() iter.Seq[*group] {
	return func(yield func(*group) bool) {
		if g == nil {
			return
		}
		for _, x := range &g.list {
			if x != nil && !yield(x) {
				return
			}
		}
	}
}

// group finds the group of two hosts.
func (g *groups) group(src, dst netip.Addr) uint16 {
	key := hostPair{src, dst}
	if dst.Less(src) {
		key = hostPair{dst, src}
	}
	n := g.of[key]
	if n == 0 {
		if len(g.of) >= maxPairs {
			return 1 + key.spread()
		}
		n = uint16(g.next) + 1
		g.next = (g.next + 1) % maxGroups
		g.of[key] = n
	}
	return n
}

// spread is a number below maxGroups. It depends on nothing but the addresses.
func (k *hostPair) spread() uint16 {
	h := uint32(2166136261) // FNV-1a
	for _, a := range [...]netip.Addr{k.low, k.high} {
		for _, b := range a.As16() {
			h = (h ^ uint32(b)) * 16777619
		}
	}
	return uint16(h>>16^h) % maxGroups
}
