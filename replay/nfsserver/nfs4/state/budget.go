package state

// Sizes of state in bytes, including map entries. Measured by TestStateMemory.
const (
	ownerCost     = 384  // an owner, without its name
	replyCost     = 1200 // the last reply to an owner of NFSv4.0: LOCK4denied with a long name
	openCost      = 640  // an open, with its stateid and its file
	lockStateCost = 384  // a lock stateid
	// A delegation, with its stateid, its file, and a CB_RECALL that waits.
	delegationCost = 896
	rangeCost      = 2 * 40 // a byte range; the array grows by doubling
	outsideCost    = 512    // what an Outsider has of a file, and the file
)

// budget is how much more state the limits allow.
type budget struct {
	shares // of Limits.StateBytes
	limits *Limits
	glean  func() bool // makes room
}

// charge counts n bytes of a client's state, if its source has room for them.
func (b *budget) charge(c *Client, n int) bool {
	return b.take(c.source, n) || b.glean() && !c.gone && b.take(c.source, n)
}

// chargeState is charge for an open, a lock stateid or a delegation.
func (b *budget) chargeState(c *Client, n int) bool {
	return len(c.states) < b.limits.Opens && b.charge(c, n)
}

func (b *budget) refund(c *Client, n int) { b.give(c.source, n) }

// fits reports whether n more ranges fit on a file for a source that has have ranges on all
// files, with the given bytes of other state.
func (b *budget) fits(from Source, have int, on *ranges, n, bytes int) bool {
	return have+n <= b.limits.Ranges && len(on.held)+n <= b.limits.FileRanges && b.room(from) >= n*rangeCost+bytes
}

// countRanges counts n more ranges of a source, which fit.
func (b *budget) countRanges(from Source, n int) {
	if n < 0 {
		b.give(from, -n*rangeCost)
	} else {
		b.take(from, n*rangeCost)
	}
}
