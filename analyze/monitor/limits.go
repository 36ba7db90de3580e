package monitor

// Limits on what a network could grow without bound.
const (
	maxOperations      = 128      // operations with their own figures per interval; all later ones share one entry
	maxHistory         = 600      // intervals remembered
	maxUsage           = 4096     // files, and clients, with a row each; the ones idle longest are dropped
	maxConnections     = 8192     // connections followed
	bytesPerConnection = 8 << 10  // of the decoder's memory, at least
	maxEnded           = 64       // ended connections that are listed
	maxOpenRows        = 512      // open transactions listed, oldest first
	maxOpenTried       = 4096     // open transactions matched against a filter
	maxRecent          = 128      // ended transactions still listed: the latest,
	maxSlow            = 32       // the slowest,
	maxOdd             = 64       // and those that failed, or were not whole
	maxPage            = 1024     // of a page of all that have ended
	maxHeld            = 16 << 20 // bytes that all of these may hold
	maxDetail          = 4096     // lines of a transaction shown in full
	maxName            = 512      // bytes of a file name
	maxCatchUp         = 1000     // intervals without packets that are closed one by one
	minVisits          = 512      // open transactions that each interval may examine,
	visitsEach         = 16       // plus this many per packet,
	maxVisits          = 1 << 20  // accumulated up to this limit
)
