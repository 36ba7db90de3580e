package live

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestMetrics adds up two summaries.
func TestMetrics(t *testing.T) {
	m := &Metrics{Tap: "nfs-7", Waiting: func() int { return 3 }, Dropped: func() uint64 { return 4 }}
	now := time.Unix(1700000000, 0)
	for n := range 2 {
		s := &Summary{Packets: uint64(10 * (1 - n)), Lost: 2, Counts: Counts{Transactions: 5, Errors: 1, Time: 7e9}, Heat: []HeatBand{{Band: 3, Count: 5}}}
		m.Add(s, now.Add(time.Duration(n)*time.Minute))
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(m)
	list, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range list {
		x := f.GetMetric()[0]
		got[f.GetName()] = x.GetCounter().GetValue() + x.GetGauge().GetValue() + float64(x.GetHistogram().GetSampleCount())
	}
	for name, want := range map[string]float64{
		"transactions_total": 10, "transaction_errors_total": 2, "packets_total": 10, "packets_lost_total": 4, "latency_seconds": 10,
		"last_packet_timestamp_seconds": 1700000000, "summaries_waiting": 3, "summaries_dropped_total": 4,
	} {
		if got["rpcrdma_agent_"+name] != want {
			t.Errorf("%s: %v, want %v", name, got["rpcrdma_agent_"+name], want)
		}
	}
	if problems, err := promlint.NewWithMetricFamilies(list).Lint(); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	// Documents name what is served.
	const docs = "../../../../docs/"
	ch := make(chan *prometheus.Desc, 100)
	m.Describe(ch)
	close(ch)
	var served []string
	for d := range ch {
		served = append(served, regexp.MustCompile(`rpcrdma_\w+`).FindString(d.String()))
	}
	served = append(served, WorkerUnits, WorkerBusy)
	for _, file := range []string{"reference/rpcrdma-fleet-metrics.md", "prometheus/rpcrdma-fleet.rules.yml", "grafana/rpcrdma-fleet.json"} {
		b, err := os.ReadFile(docs + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`rpcrdma_(agent|worker)_\w+`).FindAllString(string(b), -1) {
			if !slices.Contains(served, strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")) {
				t.Errorf("%s: %s is not served", file, name)
			}
		}
		for _, name := range served {
			if file == "reference/rpcrdma-fleet-metrics.md" && !strings.Contains(string(b), "`"+name+"`") {
				t.Errorf("%s does not have %s", file, name)
			}
		}
	}
}
