package live

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// Schema names the format of a Summary.
const Schema = "rpcrdma.live/1"

// Limits of a Summary. Lists are cut to them; Rest says how many were cut off.
const (
	MaxSummary     = 60 << 10 // bytes of JSON: with its subject a message has less than 64 KiB
	maxOperations  = 64
	maxUsages      = 10 // clients, files
	maxConnections = 10
	maxSlowest     = 10
	maxText        = 512
)

// Summary is what one tap saw in one interval. Times are in nanoseconds, those of day
// since 1970.
type Summary struct {
	Schema string `json:"schema"`
	Tap    string `json:"tap"`
	Agent  string `json:"agent"`  // 32 hex digits, new at each start
	Number uint64 `json:"number"` // of the summary, from 1; a gap was dropped by the spool
	Start  int64  `json:"start_ns"`
	Span   int64  `json:"span_ns"`
	End    bool   `json:"end,omitempty"` // the agent's input has ended, and this is the last one

	Packets uint64 `json:"packets"`
	Wire    uint64 `json:"wire_bytes"`
	Lost    uint64 `json:"packets_lost"`      // that the system failed to deliver, in the interval
	Dropped uint64 `json:"summaries_dropped"` // by the agent since its start, as there was no room

	Counts
	P50  int64        `json:"p50_ns"`
	P99  int64        `json:"p99_ns"`
	Heat []HeatBand   `json:"heat"` // latencies; bands without any are left out
	Open OpenCalls    `json:"open"`
	RDMA Fabric       `json:"rdma"`
	Over []string     `json:"alarms"`
	Ops  []Operation  `json:"operations"`
	Slow []Slow       `json:"slowest"`
	Conn []Connection `json:"connections"`
	// Clients and files with the most time.
	Clients []Usage `json:"clients"`
	Files   []Usage `json:"files"`
	Rest    Rest    `json:"not_listed"`
}

// Counts of transactions that ended in the interval.
type Counts struct {
	Transactions uint64 `json:"transactions"`
	Errors       uint64 `json:"errors"`
	Bytes        uint64 `json:"bytes"` // of RPC messages
	Data         uint64 `json:"rdma_bytes"`
	Time         int64  `json:"time_ns"` // sum of latencies
	Max          int64  `json:"max_ns"`
}

// HeatBand counts latencies in a band: see monitor.HeatFrom.
type HeatBand struct {
	Band  int    `json:"band"`
	Count uint32 `json:"count"`
}

// OpenCalls are calls without a reply at the end of the interval.
type OpenCalls struct {
	Calls  int   `json:"calls"`
	Stuck  int   `json:"stuck"`
	Oldest int64 `json:"oldest_ns"`
}

// Fabric is what happened to RDMA in the interval.
type Fabric struct {
	Retransmits uint64 `json:"retransmits"`
	NAKs        uint64 `json:"naks"`
	RNRs        uint64 `json:"rnr_naks"`
	CNPs        uint64 `json:"cnps"`
	Marked      uint64 `json:"ecn_marked"`
	Missing     uint64 `json:"missing"` // packets (RoCE) or bytes (TCP) that the capture lacks
	BadCRC      uint64 `json:"bad_crc"`
	Stalled     int64  `json:"stalled_ns"` // of the connections that the agent lists
}

// Operation is an operation in the interval.
type Operation struct {
	Name string `json:"name"`
	Counts
	P50 int64 `json:"p50_ns"`
	P99 int64 `json:"p99_ns"`
}

// Usage is what one client, or one file, did.
type Usage struct {
	Name string `json:"name"`
	Counts
}

// Connection is a connection.
type Connection struct {
	Fabric string `json:"fabric"`
	Client string `json:"client"`
	Server string `json:"server"`
	State  string `json:"state"`
	Counts
	Stuck int `json:"stuck"`
}

// Slow is a transaction: one of the slowest that ended in the interval, or a stuck one.
type Slow struct {
	XID       uint32 `json:"xid"`
	Client    string `json:"client"`
	Server    string `json:"server"`
	Operation string `json:"operation"`
	Subject   string `json:"subject"`
	Chunks    string `json:"chunks"`
	Start     int64  `json:"start_ns"`
	Latency   int64  `json:"latency_ns"` // of an open one: its age
	Open      bool   `json:"open"`
	Status    string `json:"status"`
}

// Rest counts what the lists do not have.
type Rest struct {
	Operations  int `json:"operations"`
	Connections int `json:"connections"`
	Clients     int `json:"clients"`
	Files       int `json:"files"`
}

// Encode writes a summary. Lists that make it too long are shortened.
func (s *Summary) Encode() ([]byte, error) {
	for {
		b, err := json.Marshal(s)
		if err != nil || len(b) <= MaxSummary {
			return b, err
		}
		if !s.shorten() {
			return nil, fmt.Errorf("a summary of %d bytes cannot be shortened", len(b))
		}
	}
}

func (s *Summary) shorten() bool {
	switch {
	case len(s.Slow) > 0:
		s.Slow = s.Slow[:len(s.Slow)/2]
	case len(s.Files) > 0:
		s.Rest.Files += len(s.Files) - len(s.Files)/2
		s.Files = s.Files[:len(s.Files)/2]
	case len(s.Conn) > 0:
		s.Rest.Connections += len(s.Conn) - len(s.Conn)/2
		s.Conn = s.Conn[:len(s.Conn)/2]
	case len(s.Clients) > 0:
		s.Rest.Clients += len(s.Clients) - len(s.Clients)/2
		s.Clients = s.Clients[:len(s.Clients)/2]
	case len(s.Ops) > 0:
		s.Rest.Operations += len(s.Ops) - len(s.Ops)/2
		s.Ops = s.Ops[:len(s.Ops)/2]
	default:
		return false
	}
	return true
}

// Errors of Decode, which wraps them.
var (
	ErrSchema = errors.New("this is not a summary of this version")
	ErrForm   = errors.New("the summary is malformed")
)

// Decode reads a summary, which may come from anybody who may publish.
func Decode(b []byte) (*Summary, error) {
	if len(b) > MaxSummary {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are accepted", ErrForm, len(b), MaxSummary)
	}
	var version struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if version.Schema != Schema {
		return nil, fmt.Errorf("%w: %q", ErrSchema, cut(version.Schema))
	}
	s := new(Summary)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: data after it", ErrForm)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return s, nil
}

// maxTime bounds times and sums of them, so that adding up those of all taps does not
// overflow.
const maxTime = int64(1) << 52

// maxCount bounds what is added up of all taps in the same way.
const maxCount = uint64(1) << 48

func (s *Summary) check() error {
	if err := layout.CheckTap(s.Tap); err != nil {
		return err
	}
	switch {
	case !layout.IsID(s.Agent):
		return errors.New("agent: 32 hex digits are expected")
	case s.Number == 0:
		return errors.New("number: they begin with 1")
	case s.Start < 0 || s.Start > int64(1)<<62:
		return errors.New("start_ns is out of range")
	case s.Span <= 0 || s.Span > int64(24*time.Hour):
		return errors.New("span_ns is out of range")
	case len(s.Ops) > maxOperations, len(s.Slow) > maxSlowest, len(s.Conn) > maxConnections, len(s.Clients) > maxUsages,
		len(s.Files) > maxUsages, len(s.Heat) > monitor.HeatBands, len(s.Over) > int(monitor.NumAlarms):
		return errors.New("a list is too long")
	case s.Open.Calls < 0, s.Open.Stuck < 0, s.Rest.Operations < 0, s.Rest.Connections < 0, s.Rest.Clients < 0, s.Rest.Files < 0:
		return errors.New("a count is negative")
	}
	last := -1
	for _, h := range s.Heat {
		if h.Band <= last || h.Band >= monitor.HeatBands {
			return errors.New("heat: bands are not in order")
		}
		last = h.Band
	}
	for _, a := range s.Over {
		if _, ok := monitor.ParseAlarm(a); !ok {
			return fmt.Errorf("alarms: %q is none", cut(a))
		}
	}
	times := []int64{s.P50, s.P99, s.Open.Oldest, s.RDMA.Stalled}
	counts := []*Counts{&s.Counts}
	for i := range s.Ops {
		o := &s.Ops[i]
		counts, times = append(counts, &o.Counts), append(times, o.P50, o.P99)
	}
	for i := range s.Conn {
		counts = append(counts, &s.Conn[i].Counts)
	}
	for _, list := range [][]Usage{s.Clients, s.Files} {
		for i := range list {
			counts = append(counts, &list[i].Counts)
		}
	}
	for i := range s.Slow {
		times = append(times, s.Slow[i].Latency)
	}
	for _, c := range counts {
		times = append(times, c.Time, c.Max)
	}
	if s.most(counts) > maxCount {
		return errors.New("a count is out of range")
	}
	for _, t := range times {
		if t < 0 || t > maxTime {
			return errors.New("a time is out of range")
		}
	}
	return nil
}

// most is the greatest count of a summary, whose lists have these counts.
func (s *Summary) most(list []*Counts) uint64 {
	f := &s.RDMA
	n := max(s.Number, s.Packets, s.Wire, s.Lost, s.Dropped, uint64(s.Open.Calls), uint64(s.Open.Stuck),
		f.Retransmits, f.NAKs, f.RNRs, f.CNPs, f.Marked, f.Missing, f.BadCRC)
	for i := range s.Conn {
		n = max(n, uint64(s.Conn[i].Stuck)) // if it is negative, this is more than any count
	}
	for _, c := range list {
		n = max(n, c.Transactions, c.Errors, c.Bytes, c.Data)
	}
	return n
}

// NewAgent makes the name of an agent, which has the form of a unit's ID: files of
// transactions are named after either.
func NewAgent() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// cut shortens a text of a capture or of a peer.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// Lists makes lists that are nil empty: in JSON they are [] then.
func (s *Summary) Lists() {
	fill(&s.Heat)
	fill(&s.Over)
	fill(&s.Ops)
	fill(&s.Slow)
	fill(&s.Conn)
	fill(&s.Clients)
	fill(&s.Files)
}

func fill[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}
