package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/work"
)

// workerMetrics count what a worker does. It is a prometheus.Collector.
type workerMetrics struct {
	mu           sync.Mutex
	done, failed int
	since        time.Time // when the unit in work was begun; zero if there is none
}

var (
	workerUnits = prometheus.NewDesc(live.WorkerUnits, "Attempts at units that have ended; result is done or failed.", []string{"result"}, nil)
	workerBusy  = prometheus.NewDesc(live.WorkerBusy, "How long the unit in work has been decoded; 0 if there is none.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *workerMetrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m *workerMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	busy := 0.0
	if !m.since.IsZero() {
		busy = time.Since(m.since).Seconds()
	}
	ch <- prometheus.MustNewConstMetric(workerUnits, prometheus.CounterValue, float64(m.done), "done")
	ch <- prometheus.MustNewConstMetric(workerUnits, prometheus.CounterValue, float64(m.failed), "failed")
	ch <- prometheus.MustNewConstMetric(workerBusy, prometheus.GaugeValue, busy)
	ch <- live.Build()
}

// counted is decode, counted.
func (m *workerMetrics) counted(decode work.Decode) work.Decode {
	return func(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, progress func(queue.Progress)) error {
		m.mu.Lock()
		m.since = time.Now()
		m.mu.Unlock()
		err := decode(ctx, u, in, out, progress)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.since = time.Time{}
		switch {
		case err == nil:
			m.done++
		case ctx.Err() == nil: // otherwise another worker goes on
			m.failed++
		}
		return err
	}
}
