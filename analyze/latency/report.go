package latency

import (
	"iter"
	"math"
	"time"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Schema is the value of the key "schema" of a Report.
const Schema = "rpcrdma.report/1"

// Report is the result of a Recorder. Durations are in nanoseconds, sizes in bytes. It is documented in
// docs/reference/schema.md.
type Report struct {
	Schema string   `json:"schema"`
	Inputs []string `json:"inputs"`
	Filter string   `json:"filter,omitempty"`
	By     []string `json:"by"`
	// Start and End are the times of the first and last packet of the capture; rates refer to the time
	// between them.
	Start   Moment `json:"start"`
	End     Moment `json:"end"`
	Span    Span   `json:"span_ns"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"` // on the wire

	All         *Group       `json:"all"`
	Groups      []*Group     `json:"groups"` // largest total time first; grouped by size alone: smallest first
	Series      Series       `json:"series"`
	Connections []Connection `json:"connections"`
	Slowest     []*Slow      `json:"slowest"`
	working     []*Slow      // SlowestOfWork
	Troubles    []Trouble    `json:"troubles"`
	Notes       []string     `json:"notes"`
	// Account says what became of every packet.
	Account *account.Account `json:"account,omitempty"`
}

// Group summarises the transactions that share a key.
type Group struct {
	Key []string `json:"key"` // one value for each of Report.By
	Counts
	Rate     Rate `json:"per_second"`
	ByteRate Rate `json:"bytes_per_second"` // of RPC messages

	Latency   *Distribution     `json:"latency"`
	Histogram []Bin             `json:"histogram"`
	Phases    map[string]*Share `json:"phases"`

	Chunks ChunkEconomy `json:"chunks"`
	Inline []Inline     `json:"inline"`

	// Lost says what the time was lost to; null if nobody has looked.
	Lost *Lost `json:"lost"`

	phases [transaction.NumPhases]*Share
	size   uint8 // sort order of groups by size
}

// Phase summarises a phase. The result and its Distribution are never nil.
func (g *Group) Phase(p transaction.Phase) *Share {
	if g.phases[p] == nil {
		return &Share{Distribution: &Distribution{}}
	}
	return g.phases[p]
}

// Indexes of Group.Parts that follow those of transaction.Parts.
const (
	PathPart      = int(transaction.NumParts)
	UndividedPart = PathPart + 1
)

// Parts divides the total time: the phases without the path, the path as far as it is known, and the time of transactions whose
// phases are not known.
func (g *Group) Parts() (parts [UndividedPart + 1]int64) {
	for ph := range transaction.Parts() {
		parts[ph] = g.Phase(ph).Sum
	}
	for _, x := range [...]struct {
		phase transaction.Phase
		path  uint64
	}{{transaction.PhasePull, g.PathPull}, {transaction.PhaseServer, g.PathServer}, {transaction.PhasePush, g.PathPush}} {
		n := min(int64(min(x.path, math.MaxInt64)), parts[x.phase])
		parts[x.phase] -= n
		parts[PathPart] += n
	}
	parts[UndividedPart] = int64(min(g.UndividedTime, math.MaxInt64))
	return parts
}

// Share summarises one phase. Transactions without the phase count as zeros.
type Share struct {
	*Distribution
	// Share is the fraction of the total time of all transactions that the phase took, from 0 to 1. PhaseAck
	// is not part of the total, so its share is a ratio to it.
	Share float64 `json:"share"`
}

// Series is what happened over time.
type Series struct {
	Interval int64  `json:"interval_ns"`
	Coarser  bool   `json:"coarser"` // the requested length would have given too many intervals
	Slots    []Slot `json:"intervals"`
}

// Slot is one interval. Calls belong to the interval in which they began.
type Slot struct {
	Start       time.Time `json:"start"`
	Calls       uint64    `json:"calls"`
	Errors      uint64    `json:"errors"`
	Bytes       uint64    `json:"bytes"`      // of RPC messages
	RDMABytes   uint64    `json:"rdma_bytes"` // moved by RDMA Reads and Writes
	Timed       uint64    `json:"timed"`      // with a latency
	Mean        int64     `json:"mean_ns"`
	P50         int64     `json:"p50_ns"`
	P99         int64     `json:"p99_ns"`
	Max         int64     `json:"max_ns"`
	InFlight    float64   `json:"in_flight_mean"`
	MostFlight  int       `json:"in_flight_max"`
	CreditsUsed int       `json:"credits_used_max"`    // calls in flight, on the connection with the most
	Granted     uint32    `json:"credits_granted_min"` // lowest grant to a call that began here
	Retransmits uint64    `json:"retransmits"`
	// Events are the troubles of connections and transactions in the interval, by kind.
	Events map[string]uint64 `json:"events"`

	latency *Distribution
	ran     *ran
	groups  []RanGroup
}

// Latency is the distribution that P50 and P99 come from.
func (s *Slot) Latency() *Distribution { return s.latency }

// Buckets iterates over the values of the distribution in ascending order, with their counts.
func (d *Distribution) Buckets() iter.Seq2[int64, uint64] {
	return func(yield func(value int64, count uint64) bool) {
		for _, b := range d.buckets {
			if !yield(b.value, b.count) {
				return
			}
		}
	}
}

// Trouble is one kind of trouble and what it cost.
type Trouble struct {
	Kind string `json:"kind"`
	// Events counts what was seen on the wire, whether or not a transaction was in progress.
	Events       uint64 `json:"events"`
	Transactions uint64 `json:"transactions"` // affected transactions
	Unfinished   uint64 `json:"unfinished"`   // affected transactions without a latency
	// Mean is the mean latency of the affected transactions. Others is the mean of unaffected transactions of
	// the same groups, with the same weights. Compared counts the affected transactions whose group has
	// unaffected ones. All are 0 if there are none.
	Compared uint64       `json:"compared"`
	Mean     int64        `json:"mean_ns"`
	Others   int64        `json:"others_mean_ns"`
	XIDs     []TroubleXID `json:"xids"` // the first ones
}
