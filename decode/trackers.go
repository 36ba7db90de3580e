package decode

// Trackers side by side: connections are divided by the pair of their hosts into groups, each with a tracker
// of its own. What a group's tracker finds depends on the packets of the group alone; how many goroutines the
// groups are spread over makes no difference. What all groups share is decided outside of them, in the order of
// the capture:
//
//	sort: tunnels, fragments, clock ──► groups ──► merge: numbers of connections, order of transactions, memory
//
// See docs/design/0075-trackers-side-by-side.md.

// leastGrouped is the least memory that is divided among groups. Tests change it.
var leastGrouped = 16 << 20

// Trackers is how many trackers Run uses side by side: 0 means one for everything. That is so without
// Options.Trackers; with Observers that have to be told in the order of the capture (of more than closed connections), and
// Attribute, Ended and Withdrawn of transactions; with limits on the number of connections
// or calls, which are limits on all of them together; and with less than 16 MiB of Memory.
func (d *Decoder) Trackers() int {
	o := &d.opt
	t := &o.Transactions
	switch {
	case o.Trackers <= 0, d.memory.budget.Limit() < leastGrouped,
		d.observer.ordered(), t.Attribute != nil, t.Ended != nil, t.Withdrawn != nil,
		t.Open > 0, t.Held > 0, o.RoCE.Connections > 0, o.RoCE.Assembly > 0, o.TCP.Connections > 0:
		return 0
	}
	return min(o.Trackers, maxGroups)
}
