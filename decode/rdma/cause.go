package rdma

// Cause is what time was lost to, as far as the wire shows it.
type Cause uint8

// Causes. Where several hold at once, time counts for the one that stands first,
// CauseRest last of all.
const (
	CauseRest       Cause = iota // none of these: the work itself
	CauseNotReady                // the receiver was not ready: timer of an RNR NAK, or a TCP window of zero
	CauseRecovery                // something was lost, and had not come again
	CauseCongestion              // packets of one transfer came slower than before a CNP, or before a loss had reduced the window of TCP
	CauseReadSlot                // as many RDMA Reads were under way as the setup allows, and more were to come
	CauseUnknown                 // one of these may have held it up; the capture does not tell
	NumCauses       = iota
)

var causeNames = [NumCauses]struct{ long, short string }{
	{"rest", "rest"}, {"receiver_not_ready", "rnr"}, {"recovery", "recovery"}, {"congestion", "congested"}, {"read_slot", "depth"}, {"unknown", "unknown"},
}

// String is the name in the output that programs read: "receiver_not_ready".
func (c Cause) String() string { return causeNames[c].long }

// Short is the name for narrow columns: "rnr".
func (c Cause) Short() string { return causeNames[c].short }
