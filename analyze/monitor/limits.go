package monitor

// Limits. What a network can make grow without end stops here.
const (
	maxOperations  = 128      // operations with figures of their own for each interval; all later ones share one
	maxHistory     = 600      // intervals remembered
	maxUsage       = 4096     // files, and clients, of which each has a row; who was idle longest goes
	maxConnections = 8192     // connections followed
	maxEnded       = 64       // connections listed that have ended
	maxOpenRows    = 512      // open transactions listed, oldest first
	maxOpenTried   = 4096     // open transactions tried against a filter
	maxRecent      = 128      // ended transactions that are still listed: the latest,
	maxSlow        = 32       // the slowest,
	maxOdd         = 64       // and those that failed, or were not whole
	maxPage        = 1024     // of a page of all that have ended
	maxHeld        = 16 << 20 // bytes that all of these may hold
	maxDetail      = 4096     // lines of a transaction in full
	maxName        = 512      // bytes of a name of a file
	maxCatchUp     = 1000     // intervals without a packet that are closed one by one
	minVisits      = 512      // open transactions that each interval may look at,
	visitsEach     = 16       // and those for each packet,
	maxVisits      = 1 << 20  // saved up to so many
)
