package live

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// Metrics are what an agent has sent since it started, for Prometheus. It is a prometheus.Collector.
type Metrics struct {
	Tap string
	// Waiting and Dropped tell of summaries; Files and Removed, if set, of files of transactions.
	Waiting, Files, Removed func() int
	Dropped                 func() uint64

	mu   sync.Mutex
	sum  Summary // counts since the start
	last Summary
	seen time.Time // when the latest packets were told of
	heat [monitor.HeatBands]uint64
}

// metric is one of the metrics. value returns false where there is none.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	value      func(m *Metrics) (float64, bool)
}

func count(of func(*Summary) uint64) func(*Metrics) (float64, bool) {
	return func(m *Metrics) (float64, bool) { return float64(of(&m.sum)), true }
}

var metricList = []metric{
	{"rpcrdma_agent_transactions_total", "RPC transactions that have ended.", prometheus.CounterValue, count(func(s *Summary) uint64 { return s.Transactions })},
	{"rpcrdma_agent_transaction_errors_total", "Transactions whose status is a failure.", prometheus.CounterValue, count(func(s *Summary) uint64 { return s.Errors })},
	{"rpcrdma_agent_message_bytes_total", "Bytes of RPC messages, what travels in chunks included.", prometheus.CounterValue, count(func(s *Summary) uint64 { return s.Bytes })},
	{"rpcrdma_agent_packets_total", "Packets captured.", prometheus.CounterValue, count(func(s *Summary) uint64 { return s.Packets })},
	{"rpcrdma_agent_packets_lost_total", "Packets that the system could not deliver in time.", prometheus.CounterValue, count(func(s *Summary) uint64 { return s.Lost })},
	{"rpcrdma_agent_packets_missing_total", "Packets (RoCE) or bytes (TCP) that the capture lacks: the mirror has lost them.", prometheus.CounterValue, count(func(s *Summary) uint64 { return s.RDMA.Missing })},
	{"rpcrdma_agent_retransmissions_total", "Packets that were sent again.", prometheus.CounterValue, count(func(s *Summary) uint64 { return s.RDMA.Retransmits })},
	{"rpcrdma_agent_stuck_calls", "Calls without a reply and without any packet for long.", prometheus.GaugeValue, func(m *Metrics) (float64, bool) { return float64(m.last.Open.Stuck), true }},
	{"rpcrdma_agent_alarms", "Alarms that are on.", prometheus.GaugeValue, func(m *Metrics) (float64, bool) { return float64(len(m.last.Over)), true }},
	{"rpcrdma_agent_last_packet_timestamp_seconds", "When packets were seen last, seconds since 1970; 0 if none were seen.", prometheus.GaugeValue, func(m *Metrics) (float64, bool) {
		if m.seen.IsZero() {
			return 0, true
		}
		return float64(m.seen.UnixMilli()) / 1e3, true
	}},
	{"rpcrdma_agent_summaries_waiting", "Summaries that NATS does not have yet.", prometheus.GaugeValue, func(m *Metrics) (float64, bool) { return float64(m.Waiting()), true }},
	{"rpcrdma_agent_summaries_dropped_total", "Summaries that were dropped, as there was no room for them.", prometheus.CounterValue, func(m *Metrics) (float64, bool) { return float64(m.Dropped()), true }},
	{"rpcrdma_agent_files_waiting", "With -w: files of transactions that the store does not have yet.", prometheus.GaugeValue, func(m *Metrics) (float64, bool) {
		if m.Files == nil {
			return 0, false
		}
		return float64(m.Files()), true
	}},
	{"rpcrdma_agent_files_removed_total", "With -w: files of transactions that were removed, as there was no room for them.", prometheus.CounterValue, func(m *Metrics) (float64, bool) {
		if m.Removed == nil {
			return 0, false
		}
		return float64(m.Removed()), true
	}},
}

const (
	latencyName = "rpcrdma_agent_latency_seconds"
	latencyHelp = "Time from the first packet of the call to the last packet of the reply."
	buildName   = "rpcrdma_build_info"
	buildHelp   = "Always 1; the labels tell what the program was built from."
)

// Names of the metrics of a worker.
const (
	WorkerUnits = "rpcrdma_worker_units_total"
	WorkerBusy  = "rpcrdma_worker_unit_seconds"
)

var tapLabel = []string{"tap"}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for i := range metricList {
		ch <- prometheus.NewDesc(metricList[i].name, metricList[i].help, tapLabel, nil)
	}
	ch <- prometheus.NewDesc(latencyName, latencyHelp, tapLabel, nil)
	ch <- prometheus.NewDesc(buildName, buildHelp, buildLabels, nil)
}

var buildLabels = []string{"version", "commit", "goversion"}

// Build is the metric that tells what a program was built from.
func Build() prometheus.Metric {
	version, commit, goVersion := cli.Build()
	return prometheus.MustNewConstMetric(prometheus.NewDesc(buildName, buildHelp, buildLabels, nil), prometheus.GaugeValue, 1, version, commit, goVersion)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range metricList {
		x := &metricList[i]
		if v, ok := x.value(m); ok {
			ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(x.name, x.help, tapLabel, nil), x.kind, v, m.Tap)
		}
	}
	buckets, all := make(map[float64]uint64), uint64(0)
	for band, n := range m.heat {
		if all += n; band+1 < len(m.heat) {
			buckets[float64(monitor.HeatFrom(band+1))/1e9] = all
		}
	}
	ch <- prometheus.MustNewConstHistogram(prometheus.NewDesc(latencyName, latencyHelp, tapLabel, nil), all, float64(m.sum.Time)/1e9, buckets, m.Tap)
	ch <- Build()
}

// Add takes a summary.
func (m *Metrics) Add(s *Summary, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last = *s; s.Packets > 0 {
		m.seen = now
	}
	t := &m.sum
	t.Transactions += s.Transactions
	t.Errors += s.Errors
	t.Bytes += s.Bytes
	t.Time += s.Time
	t.Packets += s.Packets
	t.Lost += s.Lost
	t.RDMA.Missing += s.RDMA.Missing
	t.RDMA.Retransmits += s.RDMA.Retransmits
	for _, h := range s.Heat {
		m.heat[h.Band] += uint64(h.Count)
	}
}
