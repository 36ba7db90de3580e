package monitor

import (
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Snapshot is what a Model knows at one moment. Nobody changes it.
type Snapshot struct {
	Number   uint64
	Time     int64 // of the capture, ns since 1970; 0 before the first packet
	First    int64 // first packet
	Interval time.Duration
	Filter   string // expression that transactions are chosen by
	Since    int64  // what is counted came after this time, ns since 1970
	Ended    bool   // the input has ended
	Err      error  // why, if it was not its end

	// The decoder: all that was seen, whatever the filter.
	Decoder  decode.Stats
	Orphans  transaction.Stats
	Health   Health
	Drops    uint64 // packets that the system could not deliver in time
	HasDrops bool   // the source counts drops

	// Now is the latest interval that is complete, if there is one; at the end
	// of the input the last one, complete or not.
	Now     Slot
	HasNow  bool
	NowSpan time.Duration // how long it was
	Packets uint64        // in it
	Wire    uint64        // bytes on the wire in it
	Ops     []Operation
	Total   *latency.Group // of all operations; nil before the first packet
	History []Slot         // oldest first; the last is Now

	Open    int   // calls without a reply
	Unacked int   // replies without an acknowledgement
	Stuck   int   // of Open
	Oldest  int64 // age of the oldest of Open, ns
	Rows    []Row // open ones, oldest first, then ended ones, latest first
	Beyond  int   // open ones that are not in Rows

	Connections []Connection
	EndedConns  int // connections that have ended, listed or not
	Files       []Usage
	FilesRest   int // files beside those in the list
	FilesGone   Usage
	Clients     []Usage
	ClientsRest int
	ClientsGone Usage

	// Groups are the totals by operation of all transactions, whatever the
	// filter; only if Options.Groups asks for them.
	Groups []*latency.Group

	Detail *Detail // what Watch asked for
	Speed  float64 // of a replay; 0: as fast as possible
	Paced  bool    // a replay
	Paused bool
	Again  bool   // packets are decoded without regard to speed, up to a time or the end
	Note   string // why the latest wish was not fulfilled; empty: it was

	// Paged says that Rows are, instead of the latest, slowest and failed
	// transactions, those from number PageFrom on in the order of their end, of
	// PageAll that have ended so far.
	Paged             bool
	PageFrom, PageAll uint64
}

// Operation is one operation in total and in the latest interval.
type Operation struct {
	Name   string
	Total  *latency.Group // nil if it shares its figures with others
	Now    Point
	Data   uint64 // moved by RDMA in the interval
	Errors uint64 // in the interval
	Time   int64  // sum of latencies in the interval, ns
	Max    int64  // of the interval
	Parts  [transaction.NumParts]int64
	Points []Point // as Snapshot.History
}

// Detail is one transaction in full.
type Detail struct {
	Row   Row
	Found bool   // false: it is not held any more
	Text  string // ladder and tree
}

// Rate is a count of the latest interval in one second.
func (s *Snapshot) Rate(n uint64) float64 {
	if s.NowSpan <= 0 {
		return 0
	}
	return float64(n) / s.NowSpan.Seconds()
}

// InFlight is how many calls were in flight on average in the latest interval:
// the latencies of those that ended in it, divided by its length (Little's
// law).
func (s *Snapshot) InFlight() float64 {
	if s.NowSpan <= 0 {
		return 0
	}
	return float64(s.Now.Time) / float64(s.NowSpan)
}
