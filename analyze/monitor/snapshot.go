package monitor

import (
	"time"

	"github.com/rpcrdma/toolkit/analyze/adapter"
	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Snapshot is the state of a Model at one time. It never changes.
type Snapshot struct {
	Time     int64 // of the capture, ns since 1970; 0 before the first packet
	First    int64 // first packet
	Interval time.Duration
	Filter   string // expression that selects transactions
	Since    int64  // what is counted came after this time, ns since 1970
	Ended    bool   // the input has ended
	Err      error  // why, if not the end of the input

	// The decoder: everything seen, whatever the filter.
	Decoder  decode.Stats
	Orphans  transaction.Stats
	Health   Health
	Drops    uint64 // packets that the system failed to deliver
	HasDrops bool   // the source counts drops

	// Now is the latest complete interval, if there is one; at the end of the input the last one, complete or
	// not.
	Now     Slot
	HasNow  bool
	NowSpan time.Duration // length of Now
	Packets uint64        // in Now
	Wire    uint64        // bytes on the wire in Now
	Ops     []Operation
	Total   *latency.Group // of all operations; nil before the first packet
	History []Slot         // oldest first; the last is Now

	Open    int   // calls without a reply
	Unacked int   // replies without an acknowledgement
	Stuck   int   // stuck calls among Open
	Oldest  int64 // age of the oldest open call, ns
	Rows    []Row // open ones, oldest first, then ended ones, latest first
	Beyond  int   // open transactions that are not in Rows

	// Why is the diagnosis of all calls, WhyNow of those that ended in the latest complete interval, both without the filter. They
	// are nil until a call has ended.
	Why, WhyNow *diagnosis.Report
	WhyBeyond   uint64 // calls that Why leaves out for lack of memory
	WhyLeft     uint64 // calls that WhyNow leaves out

	// Fabric are connections of RDMA, with or without RPC, those in trouble first.
	Fabric     []FabricRow
	FabricRest int // that are not in the list
	// Adapters are counters of RDMA ports, if the kernel's events are the source: those of trouble first.
	Adapters []adapter.Total
	Alarms   int // connections that have passed a threshold in the latest interval

	Over   []Alarm           // thresholds that were passed in the latest interval, by a connection or by all transactions
	Raised [NumAlarms]Raised // since the beginning

	// Sessions are NFSv4.1 sessions, and clients of versions without them, whatever the filter.
	Sessions     []session.Use
	SessionsRest int // that are not in the list

	Connections []Connection
	EndedConns  int // ended connections, listed or not
	ConnsRest   int // ended connections that are not in the list
	Files       []Usage
	FilesRest   int   // files that are not in the list
	FilesTime   int64 // sum of the latencies of all files, listed or not, ns
	FilesNow    int   // files with transactions in the latest interval, listed or not
	FilesGone   Usage
	Clients     []Usage
	ClientsRest int
	ClientsTime int64
	ClientsNow  int
	ClientsGone Usage

	// Groups are the totals by operation of all transactions, whatever the filter; only with Options.Groups.
	Groups []*latency.Group

	Detail *Detail // what Watch requested
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
	Total  *latency.Group // nil if it shares its figures with other operations
	Now    Point
	Data   uint64 // moved by RDMA in the interval
	Errors uint64 // in the interval
	Time   int64  // sum of latencies in the interval, ns
	Max    int64  // of the interval
	Parts  Times
	Points []Point // parallel to Snapshot.History
}

// Detail is one transaction in full.
type Detail struct {
	Row   Row
	Found bool   // false: it is no longer kept
	Text  string // ladder and tree
}

// Rate converts a count of the latest interval to a rate per second.
func (s *Snapshot) Rate(n uint64) float64 {
	if s.NowSpan <= 0 {
		return 0
	}
	return float64(n) / s.NowSpan.Seconds()
}

// InFlight is the mean number of calls in flight in the latest interval: the latencies of those that ended in
// it, divided by its length (Little's law).
func (s *Snapshot) InFlight() float64 {
	if s.NowSpan <= 0 {
		return 0
	}
	return float64(s.Now.Time) / float64(s.NowSpan)
}
