package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/metrics"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// at is a snapshot that stays.
type at struct{ s *monitor.Snapshot }

func (a at) Latest() *monitor.Snapshot { return a.s }

func ended(t testing.TB, sample string) *monitor.Snapshot {
	s := newScript(t, sample, monitor.Options{Groups: true})
	s.run(1 << 40)
	return s.snap
}

// TestMetrics checks what is served against totals, and against the conventions
// of Prometheus.
func TestMetrics(t *testing.T) {
	snap := ended(t, "rocev2-nfs3-basic.pcap.zst")
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collector{at{snap}})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	var count, calls, bytes float64
	names := make(map[string]bool)
	for _, f := range families {
		names[f.GetName()] = true
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "rpcrdma_transactions_total":
				count += m.GetCounter().GetValue()
			case "rpcrdma_message_bytes_total":
				bytes += m.GetCounter().GetValue()
			case "rpcrdma_latency_seconds":
				h := m.GetHistogram()
				calls += float64(h.GetSampleCount())
				last := uint64(0)
				for _, b := range h.GetBucket() {
					if b.GetCumulativeCount() < last {
						t.Error("the buckets of a histogram are not cumulative")
					}
					last = b.GetCumulativeCount()
				}
				if last > h.GetSampleCount() {
					t.Error("more in the buckets than in all")
				}
			case "rpcrdma_packets_total":
				if v := m.GetCounter().GetValue(); v != float64(snap.Decoder.Packets) {
					t.Errorf("%v packets", v)
				}
			}
		}
	}
	if x := snap.Total; count != float64(x.Count) || calls != float64(x.Latency.Count) || bytes != float64(x.CallBytes+x.ReplyBytes) {
		t.Errorf("%v transactions, %v latencies, %v bytes; want %d, %d, %d", count, calls, bytes, x.Count, x.Latency.Count, x.CallBytes+x.ReplyBytes)
	}
	for _, m := range metricList {
		if m.name != "rpcrdma_capture_dropped_packets_total" && !names[m.name] {
			t.Errorf("%s is not served", m.name)
		}
	}
	drops := *snap
	drops.HasDrops, drops.Drops = true, 7
	for _, x := range []struct {
		snap  *monitor.Snapshot
		drops float64
	}{{&drops, 7}, {monitor.New(monitor.Options{Groups: true}).Snapshot(), 0}} { // nothing has come yet to the other
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(collector{at{x.snap}})
		families, err := r.Gather()
		if err != nil {
			t.Error(err)
		}
		got := 0.0
		for _, f := range families {
			if f.GetName() == metricList[mDropped].name {
				got = f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		if got != x.drops {
			t.Errorf("%v packets dropped, want %v", got, x.drops)
		}
	}
}

// TestLabels wants bounded labels, whatever programs are called.
func TestLabels(t *testing.T) {
	var groups []*latency.Group
	for i := range 1000 {
		groups = append(groups, &latency.Group{Key: []string{"v" + number(uint64(i)) + " \xff\n\""}, Counts: latency.Counts{Count: 1}, Latency: &latency.Distribution{}})
	}
	list := byOperation(groups)
	if len(list) != maxLabels {
		t.Fatalf("%d labels", len(list))
	}
	sum := uint64(0)
	for _, x := range list {
		sum += x.count
	}
	if sum != 1000 || !slices.ContainsFunc(list, func(x *operationTotals) bool { return x.name == "other" && x.count == 1000-maxLabels+1 }) {
		t.Errorf("%d transactions", sum)
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collector{at{&monitor.Snapshot{Groups: groups}}})
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
}

// TestConnectionLabels wants metrics of a bounded number of connections, and the others to be counted.
func TestConnectionLabels(t *testing.T) {
	snap := &monitor.Snapshot{}
	for i := range 100 {
		snap.Connections = append(snap.Connections, monitor.Connection{
			ID: i + 1, Tally: monitor.Tally{Count: 3}, Client: monitor.Peer{Address: "192.0.2.1", Retransmits: 2}, Server: monitor.Peer{Address: "192.0.2.2", Retransmits: 5},
		})
	}
	// One that has ended holds no credits, and one that is in the list again is not served twice.
	snap.Connections[0].State, snap.Connections[0].Used, snap.Connections[0].Stuck = "closed", 7, 7
	snap.Connections[1].State, snap.Connections[1].Used = "open", 5
	snap.Connections[2].ID = 2
	snap.Connections[3].Tunnel = &rdma.Tunnel{Type: "vxlan", HasID: true, ID: 7}
	snap.ConnsRest = 1000 // which have ended, and are not in the list any more
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collector{at{snap}})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	networks := make(map[string]int)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "network" && f.GetName() == metricList[mConnTransactions].name {
					networks[l.GetValue()]++
				}
			}
			if f.GetName() == metricList[mConnEvents].name && m.GetLabel()[2].GetValue() != "retransmit" { // connection, client, event, server
				continue
			}
			got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for i, want := range map[int]float64{mConnTransactions: 3 * maxConnectionLabels, mConnEvents: 7 * maxConnectionLabels, mConnNotListed: 1100 - maxConnectionLabels, mBuild: 1, mConnCreditsUsed: 5, mConnStuck: 0} {
		if n := got[metricList[i].name]; n != want {
			t.Errorf("%s: %v, want %v", metricList[i].name, n, want)
		}
	}
	if networks["vxlan 7"] != 1 || networks[""] != maxConnectionLabels-1 {
		t.Errorf("networks %v", networks)
	}
}

// TestConnectionSums wants the connections of a capture to add up to all.
func TestConnectionSums(t *testing.T) {
	snap := ended(t, "rocev2-nfs3-basic.pcap.zst")
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collector{at{snap}})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sum[f.GetName()] += m.GetCounter().GetValue()
		}
	}
	for one, all := range map[int]int{mConnTransactions: mTransactions, mConnErrors: mErrors, mConnBytes: mMessageBytes} {
		if a, b := sum[metricList[one].name], sum[metricList[all].name]; a != b || one == mConnTransactions && a == 0 {
			t.Errorf("%s: %v, %s: %v", metricList[one].name, a, metricList[all].name, b)
		}
	}
}

// TestHTTP asks as Prometheus does.
func TestHTTP(t *testing.T) {
	m, err := metrics.Listen("rpcrdma-top", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := httptest.NewServer(m.Handler(collector{at{ended(t, "rocev2-nfs41-recall.pcap")}}))
	defer s.Close()
	for path, want := range map[string]string{"/metrics": `rpcrdma_transactions_total{operation="nfs4.1 READ"}`, "/": "/metrics"} {
		r, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Errorf("%s: %d %v\n%s", path, r.StatusCode, err, b)
		}
	}
	r, err := http.Get(s.URL + "/else")
	if err != nil || r.StatusCode != 404 {
		t.Errorf("%v %v", r.StatusCode, err)
	}
}

// TestNames: on loopback, requests under another name are refused, since that name may be a stranger's.
func TestNames(t *testing.T) {
	m, err := metrics.Listen("rpcrdma-top", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h := m.Handler(collector{at{ended(t, "rocev2-nfs41-recall.pcap")}})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:9100": 200, "LOCALHOST.": 200, "127.0.0.1:9100": 200, "127.9.9.9": 200, "[::1]:9100": 200, "::1": 200,
		"evil.example": 403, "evil.example:9100": 403, "localhost.evil.example": 403, "192.0.2.1:9100": 403, "": 403, "[::1": 200,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
}

// TestListen wants an address without a host to be on this host only.
func TestListen(t *testing.T) {
	m, err := metrics.Listen("rpcrdma-top", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	host, _, err := net.SplitHostPort(m.Addr())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		t.Errorf("listens on %s", m.Addr())
	}
	if _, err := metrics.Listen("rpcrdma-top", "nonsense"); cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("%v", err)
	}
	if _, err := metrics.Listen("rpcrdma-top", m.Addr()); cli.ExitCode(err) != cli.ExitFailure {
		t.Errorf("an address that is taken: %v", err)
	}
}

// TestDashboard wants each metric of the dashboard to exist, and each metric
// to be in the dashboard and in the documentation.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../../docs/grafana/rpcrdma-top.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	known := make(map[string]*metric)
	for i := range metricList {
		m := &metricList[i]
		known[m.name] = m
		if m.kind == 0 {
			known[m.name+"_bucket"], known[m.name+"_sum"], known[m.name+"_count"] = m, m, m
		}
	}
	used := make(map[string]bool)
	label := regexp.MustCompile(`(\w+)(?:=~|!=|=)"`)
	name := regexp.MustCompile(`rpcrdma_\w+`)
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			found := name.FindAllString(x.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%s: no metric in %s", p.Title, x.Expr)
			}
			for _, n := range found {
				m := known[n]
				if m == nil {
					t.Errorf("%s: there is no metric %s", p.Title, n)
					continue
				}
				used[m.name] = true
				for _, l := range label.FindAllStringSubmatch(x.Expr, -1) {
					if l[1] != "instance" && l[1] != "job" && !slices.Contains(m.labels, l[1]) {
						t.Errorf("%s: %s has no label %s", p.Title, n, l[1])
					}
				}
			}
		}
	}
	doc, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metricList {
		if !used[m.name] {
			t.Errorf("%s is not in the dashboard", m.name)
		}
		if !strings.Contains(string(doc), "`"+m.name+"`") {
			t.Errorf("%s is not documented", m.name)
		}
	}
	for _, n := range name.FindAllString(string(doc), -1) {
		if known[n] == nil {
			t.Errorf("%s is documented, and does not exist", n)
		}
	}
}
