package latency

// AutoIntervals is the largest number of intervals of a time series whose length was not given.
const AutoIntervals = 160

// Limits on what a capture could grow without bound. The report's notes say which of them were reached.
const (
	maxGroups      = 1024 // groups; all later ones count as "other"
	maxStatuses    = 32   // statuses distinguished in one group
	maxLabel       = 256  // bytes of one part of a group's name
	maxSlots       = 512  // intervals of a time series
	maxAutoSlots   = AutoIntervals
	maxConnections = 1024    // connections whose calls in flight are followed
	maxAudited     = 4096    // connections whose setup is kept
	maxEvents      = 1 << 16 // pending ends of calls and Reads, over all connections
	maxLevel       = 1024    // calls or Reads in flight distinguished
	maxXIDs        = 32      // transactions listed for each kind of trouble
	maxTop         = 10000   // slowest transactions
	maxDrawn       = 100     // the same, with drawings
	maxThresholds  = 8       // inline thresholds to try
	exactValues    = 256     // values kept as they are
	exactSlot      = 64      // the same, in an interval of a time series
)
