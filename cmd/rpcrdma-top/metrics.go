package main

import (
	"sort"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// maxLabels bounds the operations that metrics distinguish: a peer may invent any number of programs. The
// rest is "other".
const maxLabels = 64

// maxConnectionLabels bounds the connections that have metrics of their own, for the same reason.
const maxConnectionLabels = 64

// latencyBuckets are the upper bounds of the histogram, in seconds.
var latencyBuckets = []float64{
	10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 200e-3, 500e-3, 1, 2, 5, 10, 30, 60,
}

// metric describes one of the metrics.
type metric struct {
	name, help string
	labels     []string
	kind       prometheus.ValueType // 0 for the histogram
	desc       *prometheus.Desc
}

// Places in the list of metrics.
const (
	mTransactions = iota
	mErrors
	mUnfinished
	mMessageBytes
	mRDMABytes
	mLatency
	mPhases
	mInFlight
	mStuck
	mOldest
	mCreditsUsed
	mCreditsGranted
	mConnections
	mConnectionsEnded
	mPackets
	mWireBytes
	mWireEvents
	mEvicted
	mUndecodable
	mMalformed
	mDropped
	mLastPacket
	mConnTransactions
	mConnErrors
	mConnLatency
	mConnBytes
	mConnEvents
	mConnCreditsUsed
	mConnCreditsGranted
	mConnStuck
	mConnNotListed
	mBuild
)

// connectionLabels label each metric of a connection: its number, the addresses of its ends, and the tunnel that they are in.
var connectionLabels = []string{"connection", "client", "server", "network"}

var metricList = []metric{
	mTransactions:     {name: "rpcrdma_transactions_total", help: "RPC transactions that have ended.", labels: []string{"operation"}, kind: prometheus.CounterValue},
	mErrors:           {name: "rpcrdma_transaction_errors_total", help: "Transactions whose status is a failure.", labels: []string{"operation"}, kind: prometheus.CounterValue},
	mUnfinished:       {name: "rpcrdma_transactions_unfinished_total", help: "Transactions that were not seen whole: no_reply, no_call or incomplete.", labels: []string{"operation", "state"}, kind: prometheus.CounterValue},
	mMessageBytes:     {name: "rpcrdma_message_bytes_total", help: "Bytes of RPC messages, what travels in chunks included; direction is call or reply.", labels: []string{"operation", "direction"}, kind: prometheus.CounterValue},
	mRDMABytes:        {name: "rpcrdma_rdma_bytes_total", help: "Payload moved by RDMA for chunks; kind is read or write.", labels: []string{"operation", "kind"}, kind: prometheus.CounterValue},
	mLatency:          {name: "rpcrdma_latency_seconds", help: "Time from the first packet of the call to the last packet of the reply.", labels: []string{"operation"}},
	mPhases:           {name: "rpcrdma_phase_seconds_total", help: "Time that transactions spent in each phase of their latency; unknown: the capture does not tell.", labels: []string{"operation", "phase"}, kind: prometheus.CounterValue},
	mInFlight:         {name: "rpcrdma_in_flight_calls", help: "Calls without a reply.", kind: prometheus.GaugeValue},
	mStuck:            {name: "rpcrdma_stuck_calls", help: "Calls without a reply and without any packet for longer than --stuck.", kind: prometheus.GaugeValue},
	mOldest:           {name: "rpcrdma_oldest_call_age_seconds", help: "Age of the oldest call without a reply; 0 without any.", kind: prometheus.GaugeValue},
	mCreditsUsed:      {name: "rpcrdma_credits_used", help: "Calls in flight on the connection that uses the largest share of its credits.", kind: prometheus.GaugeValue},
	mCreditsGranted:   {name: "rpcrdma_credits_granted", help: "Credits granted on that connection.", kind: prometheus.GaugeValue},
	mConnections:      {name: "rpcrdma_connections", help: "Connections that carry RPC and have not ended.", labels: []string{"fabric"}, kind: prometheus.GaugeValue},
	mConnectionsEnded: {name: "rpcrdma_connections_ended_total", help: "Connections that carried RPC and have ended.", kind: prometheus.CounterValue},
	mPackets:          {name: "rpcrdma_packets_total", help: "Packets captured.", kind: prometheus.CounterValue},
	mWireBytes:        {name: "rpcrdma_wire_bytes_total", help: "Bytes of the packets captured, as on the wire.", kind: prometheus.CounterValue},
	mWireEvents:       {name: "rpcrdma_wire_events_total", help: "Troubles on the wire, in packets: retransmit, nak, rnr_nak, cnp, ecn, bad_crc, gap (gaps of TCP in bytes).", labels: []string{"event"}, kind: prometheus.CounterValue},
	mEvicted:          {name: "rpcrdma_evicted_calls_total", help: "Open calls given up for lack of memory.", kind: prometheus.CounterValue},
	mUndecodable:      {name: "rpcrdma_undecodable_packets_total", help: "Packets with damaged or cut headers.", kind: prometheus.CounterValue},
	mMalformed:        {name: "rpcrdma_malformed_headers_total", help: "Sends whose RPC-over-RDMA header cannot be decoded; fault is short, version, type, list, count, error_code or contradicts.", labels: []string{"fault"}, kind: prometheus.CounterValue},
	mDropped:          {name: "rpcrdma_capture_dropped_packets_total", help: "Packets that the system could not deliver in time; only where it counts them.", kind: prometheus.CounterValue},
	mLastPacket:       {name: "rpcrdma_last_packet_timestamp_seconds", help: "Time stamp of the latest packet, seconds since 1970.", kind: prometheus.GaugeValue},

	mConnTransactions:   {name: "rpcrdma_connection_transactions_total", help: "RPC transactions of the connection that have ended.", labels: connectionLabels, kind: prometheus.CounterValue},
	mConnErrors:         {name: "rpcrdma_connection_errors_total", help: "Transactions of the connection whose status is a failure.", labels: connectionLabels, kind: prometheus.CounterValue},
	mConnLatency:        {name: "rpcrdma_connection_latency_seconds_total", help: "Sum of the latencies of the connection.", labels: connectionLabels, kind: prometheus.CounterValue},
	mConnBytes:          {name: "rpcrdma_connection_message_bytes_total", help: "Bytes of RPC messages on the connection, chunks included.", labels: connectionLabels, kind: prometheus.CounterValue},
	mConnEvents:         {name: "rpcrdma_connection_wire_events_total", help: "Troubles on the wire, of both ends of the connection, by event as in rpcrdma_wire_events_total.", labels: append(connectionLabels[:len(connectionLabels):len(connectionLabels)], "event"), kind: prometheus.CounterValue},
	mConnCreditsUsed:    {name: "rpcrdma_connection_credits_used", help: "Calls in flight on the connection.", labels: connectionLabels, kind: prometheus.GaugeValue},
	mConnCreditsGranted: {name: "rpcrdma_connection_credits_granted", help: "Credits granted by the latest reply on the connection; 0 if none is known.", labels: connectionLabels, kind: prometheus.GaugeValue},
	mConnStuck:          {name: "rpcrdma_connection_stuck_calls", help: "Stuck calls of the connection.", labels: connectionLabels, kind: prometheus.GaugeValue},
	mConnNotListed:      {name: "rpcrdma_connections_not_listed", help: "Connections beyond the first 64, which have no separate metrics.", kind: prometheus.GaugeValue},
	mBuild:              {name: "rpcrdma_build_info", help: "Always 1; the labels tell what the program was built from.", labels: []string{"version", "commit", "goversion"}, kind: prometheus.GaugeValue},
}

func init() {
	for i := range metricList {
		x := &metricList[i]
		x.desc = prometheus.NewDesc(x.name, x.help, x.labels, nil)
	}
}

// latest is where snapshots are.
type latest interface{ Latest() *monitor.Snapshot }

// collector makes metrics of the newest snapshot.
type collector struct{ from latest }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for i := range metricList {
		ch <- metricList[i].desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	put := func(i int, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(metricList[i].desc, metricList[i].kind, v, labels...)
	}
	version, commit, goVersion := cli.Build()
	put(mBuild, 1, version, commit, goVersion)
	s := c.from.Latest()
	if s == nil {
		return
	}
	for _, g := range byOperation(s.Groups) {
		op := g.name
		put(mTransactions, float64(g.count), op)
		put(mErrors, float64(g.errors), op)
		put(mUnfinished, float64(g.noReply), op, "no_reply")
		put(mUnfinished, float64(g.noCall), op, "no_call")
		put(mUnfinished, float64(g.incomplete), op, "incomplete")
		put(mMessageBytes, float64(g.call), op, "call")
		put(mMessageBytes, float64(g.reply), op, "reply")
		put(mRDMABytes, float64(g.read), op, "read")
		put(mRDMABytes, float64(g.write), op, "write")
		for p := range transaction.Parts() {
			put(mPhases, float64(g.phases[p])/1e9, op, p.String())
		}
		put(mPhases, float64(g.undivided)/1e9, op, "unknown")
		buckets := make(map[float64]uint64, len(latencyBuckets))
		sum := uint64(0)
		for i, le := range latencyBuckets {
			sum += g.buckets[i]
			buckets[le] = sum
		}
		ch <- prometheus.MustNewConstHistogram(metricList[mLatency].desc, g.timed, float64(g.sum)/1e9, buckets, op)
	}
	put(mInFlight, float64(s.Open))
	put(mStuck, float64(s.Stuck))
	put(mOldest, float64(s.Oldest)/1e9)
	used, granted, _ := credits(s)
	put(mCreditsUsed, float64(used))
	put(mCreditsGranted, float64(granted))
	open := map[string]int{"rocev2": 0, "iwarp": 0, "tcp": 0}
	for i := range s.Connections {
		if x := &s.Connections[i]; x.State == "open" && !s.Ended {
			open[x.Fabric]++
		}
	}
	for f, n := range open {
		put(mConnections, float64(n), f)
	}
	put(mConnectionsEnded, float64(s.EndedConns))
	put(mPackets, float64(s.Decoder.Packets))
	put(mWireBytes, float64(s.Decoder.Bytes))
	h := &s.Health
	for _, x := range wireEvents(h) {
		put(mWireEvents, float64(x.n), x.name)
	}
	connectionMetrics(s, put)
	put(mEvicted, float64(s.Orphans.Evicted))
	put(mUndecodable, float64(s.Decoder.Undecodable))
	for f := rpcrdma.NoFault + 1; f < rpcrdma.Faults; f++ {
		put(mMalformed, float64(s.Orphans.Malformed.Counts[f]), f.Code())
	}
	if s.HasDrops {
		put(mDropped, float64(s.Drops))
	}
	put(mLastPacket, float64(s.Decoder.Last.Time)/1e9)
}

// wireEvent is how often one kind of trouble was seen.
type wireEvent struct {
	name string
	n    uint64
}

func wireEvents(h *monitor.Health) []wireEvent {
	return []wireEvent{
		{"retransmit", h.Retransmits}, {"nak", h.NAKs}, {"rnr_nak", h.RNRs}, {"cnp", h.CNPs}, {"ecn", h.ECN}, {"bad_crc", h.BadCRC}, {"gap", h.Gaps},
	}
}

// connectionMetrics makes the metrics of single connections. The list has open ones first, by number, so that those
// within the limit stay the same.
func connectionMetrics(s *monitor.Snapshot, put func(i int, v float64, labels ...string)) {
	listed := make(map[int]bool)
	for i := range s.Connections {
		x := &s.Connections[i]
		// Prometheus refuses all metrics if the same one is there twice.
		if len(listed) == maxConnectionLabels || listed[x.ID] {
			continue
		}
		listed[x.ID] = true
		used, stuck := x.Used, x.Stuck
		if x.State != "open" {
			used, stuck = 0, 0
		}
		network := "" // which to Prometheus is no label at all
		if x.Tunnel != nil {
			network = text.NetworkName(x.Tunnel)
		}
		labels := []string{strconv.Itoa(x.ID), x.Client.Address, x.Server.Address, network}
		put(mConnTransactions, float64(x.Count), labels...)
		put(mConnErrors, float64(x.Errors), labels...)
		put(mConnLatency, float64(x.Time)/1e9, labels...)
		put(mConnBytes, float64(x.Bytes), labels...)
		a, b := &x.Client, &x.Server
		for _, e := range wireEvents(&monitor.Health{
			Retransmits: a.Retransmits + b.Retransmits, NAKs: a.NAKs + b.NAKs, RNRs: a.RNRs + b.RNRs, CNPs: a.CNPs + b.CNPs,
			ECN: a.ECN + b.ECN, Gaps: a.Gaps + b.Gaps, BadCRC: a.BadCRC + b.BadCRC,
		}) {
			put(mConnEvents, float64(e.n), append(labels, e.name)...)
		}
		put(mConnCreditsUsed, float64(used), labels...)
		put(mConnCreditsGranted, float64(x.Granted), labels...)
		put(mConnStuck, float64(stuck), labels...)
	}
	put(mConnNotListed, float64(len(s.Connections)-len(listed)+s.ConnsRest))
}

// operationTotals holds the totals of one label.
type operationTotals struct {
	name                        string
	count, errors               uint64
	noReply, noCall, incomplete uint64
	call, reply, read, write    uint64
	timed                       uint64
	sum                         int64
	phases                      [transaction.NumParts]int64
	undivided                   uint64
	buckets                     []uint64 // as latencyBuckets; what is above is left out
}

// byOperation sums groups up by label.
func byOperation(groups []*latency.Group) []*operationTotals {
	var out []*operationTotals
	by := make(map[string]*operationTotals)
	for _, g := range groups {
		// What is not a word is nobody's vocabulary.
		name := strings.ToValidUTF8(strings.Join(g.Key, " "), "?")
		x := by[name]
		if x == nil && len(by) >= maxLabels-1 {
			name = "other"
			x = by[name]
		}
		if x == nil {
			x = &operationTotals{name: name, buckets: make([]uint64, len(latencyBuckets))}
			by[name] = x
			out = append(out, x)
		}
		x.count += g.Count
		x.errors += g.Errors
		x.noReply += g.NoReply
		x.noCall += g.NoCall
		x.incomplete += g.Incomplete
		x.call += g.CallBytes
		x.reply += g.ReplyBytes
		x.read += g.ReadBytes
		x.write += g.WriteBytes
		x.timed += g.Latency.Count
		x.sum += g.Latency.Sum
		for p := range transaction.Parts() {
			x.phases[p] += g.Phase(p).Sum
		}
		x.undivided += g.UndividedTime
		for v, n := range g.Latency.Buckets() {
			i := sort.Search(len(latencyBuckets), func(i int) bool { return latencyBuckets[i]*1e9 >= float64(v) })
			if i < len(latencyBuckets) {
				x.buckets[i] += n
			}
		}
	}
	return out
}
