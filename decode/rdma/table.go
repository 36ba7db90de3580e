package rdma

// Numbers hands out connection numbers: 1, 2, … in order of the first packet.
// All trackers of one decoder share it.
type Numbers struct{ last int }

// New makes a numbered connection whose first packet is ref.
func (n *Numbers) New(f Fabric, ref Ref) *Connection {
	n.last++
	return &Connection{ID: n.last, Fabric: f, First: ref, Last: ref}
}

// Resolve follows MergedInto to the connection that c is part of.
func (c *Connection) Resolve() *Connection {
	for c.MergedInto != nil {
		c = c.MergedInto
	}
	return c
}

// NoTap is the capture point of a direction before its first packet.
const NoTap = -1

const (
	// tapPatience is how many packets another capture point must show of a
	// direction, without one from the point that is followed between them,
	// before the direction is followed there.
	tapPatience = 64
	// tapSilence is how long the point that is followed must have shown
	// nothing besides, in nanoseconds, if it has shown anything before: where
	// two captures with different clocks were merged, one is ahead by many
	// packets for no other reason.
	tapSilence = 1e9
)

// TapFilter picks the capture point at which one direction of a connection is
// followed. Captures of both ends that were merged, or of several interfaces,
// show a packet more than once; all times of a transaction must come from one
// point, and a copy is not a retransmission.
type TapFilter struct {
	tap     int32    // followed now
	waiting int32    // packets seen elsewhere since the last one from tap
	last    int64    // time of the last packet from tap
	shown   bool     // there was one
	copies  [2]int32 // where the last copies were seen
	// Elsewhere counts packets that were left out as copies.
	Elsewhere uint64
}

// Follow sets the capture point.
func (t *TapFilter) Follow(tap int32) { t.tap, t.waiting, t.shown = tap, 0, false }

// Tap is the capture point that is followed.
func (t *TapFilter) Tap() int32 { return t.tap }

// Shown reports whether the direction is followed at tap and was seen there.
func (t *TapFilter) Shown(tap int32) bool { return t.shown && t.tap == tap }

// Alone prepares for a packet captured at tap of a direction of which the followed point has shown nothing.
// opposite is the filter of the other direction, nil if unknown. Where no copies of the other direction have
// been seen at tap, each direction has its own tap, and this one is followed where it shows. Where a second
// point shows both, it has shown the other direction first: an answer comes after what it answers, at every
// point.
func (t *TapFilter) Alone(tap int32, opposite *TapFilter) {
	if t.tap != tap && !t.shown && (opposite == nil || !opposite.Copied(tap)) {
		t.Follow(NoTap)
	}
}

// Left notes that the points a and b show copies of what is followed elsewhere, since what they show is cut.
func (t *TapFilter) Left(a, b int32) {
	t.copies = [2]int32{a, b}
	t.Elsewhere++
}

// Copied reports whether copies were left out that tap has shown, as far as is
// remembered: of the last two points with copies.
func (t *TapFilter) Copied(tap int32) bool {
	return t.Elsewhere > 0 && (t.copies[0] == tap || t.copies[1] == tap)
}

// Sole reports whether the direction has been seen where it is followed, and nowhere else at the same time. Several
// points may then each show a part of it: a packet from another point that continues the stream exactly is no copy,
// and the caller lets it Follow.
func (t *TapFilter) Sole() bool { return t.shown && t.Elsewhere == 0 }

// Accept reports whether a packet captured at tap, at the time now, belongs to the followed stream. preferred
// is where the connection's first packet was captured.
func (t *TapFilter) Accept(tap, preferred int32, now int64) bool {
	if tap == t.tap {
		t.Took(now)
		return true
	}
	return t.other(tap, preferred, now)
}

// Took is Accept for a packet that was captured at Tap.
func (t *TapFilter) Took(now int64) { t.waiting, t.last, t.shown = 0, now, true }

func (t *TapFilter) other(tap, preferred int32, now int64) bool {
	t.waiting = min(t.waiting+1, tapPatience+1)
	silence := now - t.last
	if t.tap == NoTap || tap == preferred ||
		t.waiting > tapPatience && (!t.shown || silence > tapSilence || silence < -tapSilence) {
		t.Follow(tap)
		t.last, t.shown = now, true
		return true
	}
	if t.Elsewhere == 0 {
		t.copies = [2]int32{tap, tap}
	} else if t.copies[0] != tap {
		t.copies = [2]int32{tap, t.copies[0]}
	}
	t.Elsewhere++
	return false
}

// Count is how many numbers have been handed out.
func (n *Numbers) Count() int { return n.last }

// Assign numbers a connection that has no number yet.
func (n *Numbers) Assign(c *Connection) {
	if c.ID == 0 {
		n.last++
		c.ID = n.last
	}
}
