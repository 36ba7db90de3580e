package prometheus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const (
	rulesFile = "../../docs/prometheus/rpcrdma.rules.yml"
	dashboard = "../../docs/grafana/rpcrdma-top.json"
	sample    = "../../samples/rocev2-nfs3-basic.pcap.zst"
	packets   = 5183 // of the sample
)

var promql = parser.NewParser(parser.Options{})

// scrape starts rpcrdma-top on a capture that does not end, and reads what it serves once it has seen all packets: until
// then, some metrics have no series yet.
func scrape(t *testing.T) []byte {
	t.Helper()
	top := os.Getenv("RPCRDMA_TOP")
	if top == "" {
		t.Fatal("RPCRDMA_TOP is not set: use test/prometheus/run")
	}
	capture, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(top, "-r", "-", "--batch", "0", "--speed", "max", "--listen", "127.0.0.1:0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	go func() { _, _ = stdin.Write(capture) }()
	line, err := bufio.NewReader(stderr).ReadString('\n')
	address := regexp.MustCompile(`http://\S+`).FindString(line)
	if err != nil || address == "" {
		t.Fatalf("%q %v", line, err)
	}
	all := fmt.Appendf(nil, "\nrpcrdma_packets_total %d\n", packets)
	for deadline := time.Now().Add(5 * time.Minute); ; {
		r, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, all) {
			return b
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all %d packets within five minutes:\n%s", packets, b)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// series are names with the names of their labels.
func parse(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	series := make(map[string][]string)
	helped, typed := make(map[string]bool), make(map[string]bool)
	p := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch entry {
		case textparse.EntryHelp:
			name, _ := p.Help()
			helped[string(name)] = true
		case textparse.EntryType:
			name, _ := p.Type()
			typed[string(name)] = true
		case textparse.EntrySeries:
			var l labels.Labels
			p.Labels(&l)
			l.Range(func(x labels.Label) {
				if name := l.Get(labels.MetricName); !slices.Contains(series[name], x.Name) {
					series[name] = append(series[name], x.Name)
				}
			})
		}
	}
	if len(series) < 20 || len(helped) != len(typed) {
		t.Errorf("%d series, %d helps, %d types", len(series), len(helped), len(typed))
	}
	// Not there without a source that counts them.
	series["rpcrdma_capture_dropped_packets_total"] = []string{}
	return series
}

// uses checks that an expression uses only metrics and labels that are served.
func uses(t *testing.T, where, text string, series map[string][]string) {
	t.Helper()
	e, err := promql.ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	for _, selector := range parser.ExtractSelectors(e) {
		name := ""
		for _, m := range selector {
			if m.Name == labels.MetricName {
				name = m.Value
			}
		}
		known := series[name]
		if known == nil && name != "up" {
			t.Errorf("%s: %s is not served", where, name)
		}
		for _, m := range selector {
			if m.Name != labels.MetricName && m.Name != "instance" && m.Name != "job" && !slices.Contains(known, m.Name) {
				t.Errorf("%s: %s has no label %s", where, name, m.Name)
			}
		}
	}
}

func rules(t *testing.T, file string) (list []rulefmt.Rule, errs []error) {
	t.Helper()
	groups, errs := rulefmt.ParseFile(file, false, model.LegacyValidation, promql, slog.New(slog.DiscardHandler))
	if groups != nil {
		for _, g := range groups.Groups {
			list = append(list, g.Rules...)
		}
	}
	return list, errs
}

// TestFleet parses every expression of the rules and of the dashboard of a fleet. That their metrics exist is a test of the fleet.
func TestFleet(t *testing.T) {
	list, errs := rules(t, "../../docs/prometheus/rpcrdma-fleet.rules.yml")
	if len(errs) > 0 || len(list) < 8 {
		t.Errorf("%d rules, %v", len(list), errs)
	}
	b, err := os.ReadFile("../../docs/grafana/rpcrdma-fleet.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(b, &d); err != nil || len(d.Panels) < 10 {
		t.Fatal(len(d.Panels), err)
	}
	for _, p := range d.Panels {
		text := strings.NewReplacer("$__rate_interval", "5m", "$tap", ".*").Replace(p.Targets[0].Expr)
		if _, err := promql.ParseExpr(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestServed parses what is served as Prometheus does, and every expression of the rules and of the dashboard.
func TestServed(t *testing.T) {
	series := parse(t, scrape(t))
	list, errs := rules(t, rulesFile)
	for _, err := range errs {
		t.Error(err)
	}
	if len(list) < 5 {
		t.Errorf("%d rules", len(list))
	}
	for _, r := range list {
		uses(t, r.Alert, r.Expr, series)
	}
	b, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Templating struct {
			List []struct{ Name, Type, AllValue string }
		}
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("$__rate_interval", "5m", "$__range", "5m", "$instance", ".*", "$job", ".*")
	for _, p := range d.Panels {
		if p.Description == "" {
			t.Errorf("%s: no description", p.Title)
		}
		for _, x := range p.Targets {
			uses(t, p.Title, replace.Replace(x.Expr), series)
			chosen(t, p.Title, replace.Replace(x.Expr))
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" && v.AllValue != ".+" {
			t.Errorf("variable %s: allValue is %q, not .+: \"All\" would list every value in each query", v.Name, v.AllValue)
		}
	}
}

// chosen wants each metric of a query to follow the choices of job and instance, as Grafana's dashboard-linter does.
func chosen(t *testing.T, where, text string) {
	t.Helper()
	e, err := promql.ParseExpr(text)
	if err != nil {
		return // uses has reported it
	}
	for _, selector := range parser.ExtractSelectors(e) {
		for _, want := range []string{"job", "instance"} {
			if !slices.ContainsFunc(selector, func(m *labels.Matcher) bool { return m.Name == want && m.Type == labels.MatchRegexp }) {
				t.Errorf("%s: %v does not choose by %s", where, selector, want)
			}
		}
	}
}

// TestAlerts wants each alert to fire for what it is about, and not for what is normal.
func TestAlerts(t *testing.T) {
	for _, c := range []struct{ alert, fires, quiet string }{
		{"RPCRDMASlowTransactions",
			`rpcrdma_latency_seconds_bucket{operation="READ",le="0.1"} 0+540x20
			rpcrdma_latency_seconds_count{operation="READ"} 0+600x20`,
			`rpcrdma_latency_seconds_bucket{operation="READ",le="0.1"} 0+599x20
			rpcrdma_latency_seconds_count{operation="READ"} 0+600x20
			rpcrdma_latency_seconds_bucket{operation="RARE",le="0.1"} 0+0x20
			rpcrdma_latency_seconds_count{operation="RARE"} 0+1x20`},
		{"RPCRDMAErrors",
			`rpcrdma_transaction_errors_total{operation="WRITE"} 0+90x20
			rpcrdma_transactions_total{operation="WRITE"} 0+100x20`,
			`rpcrdma_transaction_errors_total{operation="LOOKUP"} 0+40x20
			rpcrdma_transactions_total{operation="LOOKUP"} 0+100x20`},
		{"RPCRDMAStuckCalls", `rpcrdma_stuck_calls 2x20`, `rpcrdma_stuck_calls 0x20`},
		{"RPCRDMACreditsExhausted",
			`rpcrdma_connection_credits_used{connection="1",client="a",server="b"} 32x20
			rpcrdma_connection_credits_granted{connection="1",client="a",server="b"} 32x20`,
			`rpcrdma_connection_credits_used{connection="1",client="a",server="b"} 31x20
			rpcrdma_connection_credits_granted{connection="1",client="a",server="b"} 32x20
			rpcrdma_connection_credits_used{connection="2",client="a",server="b"} 3x20
			rpcrdma_connection_credits_granted{connection="2",client="a",server="b"} 0x20`},
		{"RPCRDMARetransmissions",
			`rpcrdma_wire_events_total{event="retransmit"} 0+100x20
			rpcrdma_packets_total 0+10000x20`,
			`rpcrdma_wire_events_total{event="retransmit"} 0+1x20
			rpcrdma_wire_events_total{event="cnp"} 0+1000x20
			rpcrdma_packets_total 0+10000x20`},
		{"RPCRDMAReceiverNotReady",
			`rpcrdma_connection_wire_events_total{connection="1",client="a",server="b",event="rnr_nak"} 0+120x20`,
			`rpcrdma_connection_wire_events_total{connection="1",client="a",server="b",event="rnr_nak"} 0+1x20`},
		{"RPCRDMACongestion", `rpcrdma_wire_events_total{event="cnp"} 0+60000x20`, `rpcrdma_wire_events_total{event="cnp"} 0+60x20`},
		{"RPCRDMACaptureDrops",
			`rpcrdma_capture_dropped_packets_total 0+100x20
			rpcrdma_packets_total 0+10000x20`,
			`rpcrdma_capture_dropped_packets_total 0+0x20
			rpcrdma_packets_total 0+10000x20`},
		{"RPCRDMANoPackets",
			`rpcrdma_last_packet_timestamp_seconds 1x20
			rpcrdma_packets_total 5x20`,
			`rpcrdma_last_packet_timestamp_seconds 0+60x20
			rpcrdma_packets_total 0+5x20`},
		{"RPCRDMANotRunning",
			`up{instance="a:9400"} 1x5 0x15
			rpcrdma_build_info{instance="a:9400",version="v1"} 1x5`,
			`up{instance="a:9400"} 1x20
			rpcrdma_build_info{instance="a:9400",version="v1"} 1x20
			up{instance="other"} 0x20`},
	} {
		list, _ := rules(t, rulesFile)
		i := slices.IndexFunc(list, func(r rulefmt.Rule) bool { return r.Alert == c.alert })
		if i < 0 {
			t.Errorf("there is no alert %s", c.alert)
			continue
		}
		for _, x := range []struct {
			data string
			want int
		}{{c.fires, 1}, {c.quiet, 0}} {
			storage := promqltest.LoadedStorage(t, "load 1m\n  "+x.data+"\n")
			engine := promqltest.NewTestEngine(t, false, 0, 10000)
			q, err := engine.NewInstantQuery(t.Context(), storage, nil, list[i].Expr, time.Unix(20*60, 0))
			if err != nil {
				t.Fatalf("%s: %v", c.alert, err)
			}
			v, err := q.Exec(t.Context()).Vector()
			if err != nil || len(v) != x.want {
				t.Errorf("%s fires %d times, want %d (%v): %v", c.alert, len(v), x.want, err, v)
			}
			q.Close()
		}
	}
	list, _ := rules(t, rulesFile)
	if len(list) != 10 {
		t.Errorf("%d alerts, 10 are tested", len(list))
	}
}

// TestMistakes wants mistakes in rules to be found.
func TestMistakes(t *testing.T) {
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"expr: rpcrdma_stuck_calls > 0", "expr: rpcrdma_stuck_calls >"}, {"for: 2m", "for: soon"}, {"labels: {severity: critical}", "label: {severity: critical}"},
		{"{{ $labels.client }}", "{{ $labels.client"},
	} {
		broken := strings.Replace(string(text), change[0], change[1], 1)
		if broken == string(text) {
			t.Fatalf("the rules have no %q", change[0])
		}
		file := t.TempDir() + "/rules.yml"
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs := rules(t, file); len(errs) == 0 {
			t.Errorf("%q is not noticed", change[1])
		}
	}
}
