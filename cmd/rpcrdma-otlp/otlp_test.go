package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
	"github.com/rpcrdma/toolkit/internal/testtools/formattest"
	"github.com/rpcrdma/toolkit/internal/testtools/programs"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"rpcrdma-otlp": main}) }

// collector is one that keeps what it is sent.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   map[string]*tracepb.Span // by ID
	twice   int
	metrics map[string]*metricspb.Metric
	service string
	answers []int // status of the first requests; 0 is success
	reject  int64
}

func newCollector(t *testing.T) *collector {
	c := &collector{spans: map[string]*tracepb.Span{}, metrics: map[string]*metricspb.Metric{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(in)
			if err != nil {
				t.Error(err)
				return
			}
			in = z
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
			return
		}
		if len(c.answers) > 0 {
			status := c.answers[0]
			if c.answers = c.answers[1:]; status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		switch r.URL.Path {
		case "/v1/traces":
			var req collectortrace.ExportTraceServiceRequest
			if err := proto.Unmarshal(b, &req); err != nil {
				t.Error(err)
			}
			for _, rs := range req.ResourceSpans {
				for _, a := range rs.Resource.Attributes {
					if a.Key == "service.name" {
						c.service = a.Value.GetStringValue()
					}
				}
				for _, ss := range rs.ScopeSpans {
					for _, s := range ss.Spans {
						id := string(s.TraceId) + string(s.SpanId)
						if c.spans[id] != nil {
							c.twice++
						}
						c.spans[id] = s
					}
				}
			}
			if c.reject > 0 {
				b, err := proto.Marshal(&collectortrace.ExportTraceServiceResponse{PartialSuccess: &collectortrace.ExportTracePartialSuccess{RejectedSpans: c.reject, ErrorMessage: "too old"}})
				if err != nil {
					t.Error(err)
				}
				_, _ = w.Write(b)
			}
		case "/v1/metrics":
			var req collectormetrics.ExportMetricsServiceRequest
			if err := proto.Unmarshal(b, &req); err != nil {
				t.Error(err)
			}
			for _, rm := range req.ResourceMetrics {
				for _, sm := range rm.ScopeMetrics {
					for _, m := range sm.Metrics {
						c.metrics[m.Name] = m
					}
				}
			}
		default:
			t.Errorf("unexpected path %s", r.URL.Path)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// listings are the ndjson of samples, by their names.
var listings = map[string]string{}

// listing is the ndjson of a sample.
func listing(t *testing.T, name string) string {
	t.Helper()
	if text, ok := listings[name]; ok {
		return text
	}
	dir := t.TempDir()
	if err := programs.Build(dir, "./cmd/rpcrdma-dump"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "rpcrdma-dump"), "-T", "ndjson", filepath.Join("../../samples", name))
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	listings[name] = string(b)
	return listings[name]
}

// send runs the program.
func send(in string, args ...string) (status int, diag string) {
	var err bytes.Buffer
	status = run(args, &cli.Streams{In: strings.NewReader(in), Out: io.Discard, Err: &err})
	return status, err.String()
}

func valueOf(s *tracepb.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			if v := a.Value.GetStringValue(); v != "" {
				return v
			}
			return fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return ""
}

// TestSpans compares all spans of two captures with their listing: every transaction once, with its names, times
// and status, and with phases that follow each other and fill it.
func TestSpans(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs40-basic.pcap.zst"} {
		c := newCollector(t)
		in := listing(t, name)
		if status, diag := send(in, "--endpoint", c.URL+"/", "--service", "lab"); status != 0 {
			t.Fatalf("status %d: %s", status, diag)
		}
		if c.service != "lab" || c.twice > 0 {
			t.Errorf("service %q, %d spans twice", c.service, c.twice)
		}
		children := map[string][]*tracepb.Span{}
		roots := map[string]*tracepb.Span{}
		for _, s := range c.spans {
			if len(s.ParentSpanId) == 0 {
				roots[valueOf(s, "rpcrdma.connection")+valueOf(s, "rpcrdma.direction")+valueOf(s, "rpcrdma.xid")+fmt.Sprint(s.StartTimeUnixNano)] = s
			} else {
				children[hex.EncodeToString(s.ParentSpanId)] = append(children[hex.EncodeToString(s.ParentSpanId)], s)
			}
		}
		lines := 0
		for line := range strings.Lines(in) {
			r, err := parse([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			lines++
			s := roots[r.ConnectionKey+r.Direction+fmt.Sprint(r.XID)+fmt.Sprint(r.Time.UnixNano())]
			if s == nil {
				t.Fatalf("%s: no span of %s", name, line)
			}
			if s.Name != r.Program+"/"+r.Group || valueOf(s, "rpcrdma.status") != r.Status || valueOf(s, "server.address") != r.Server ||
				valueOf(s, "onc_rpc.procedure.name") != r.Procedure || valueOf(s, "rpc.system.name") != "onc_rpc" {
				t.Errorf("%v\nof %s", s, line)
			}
			if bad := !strings.HasSuffix(r.Status, "_OK") && r.Status != "SUCCESS"; bad != (s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR) {
				t.Errorf("%v\nof %s", s.Status, line)
			}
			var sum uint64
			for _, p := range children[hex.EncodeToString(s.SpanId)] {
				if p.StartTimeUnixNano < s.StartTimeUnixNano || p.EndTimeUnixNano > s.EndTimeUnixNano || !bytes.Equal(p.TraceId, s.TraceId) {
					t.Errorf("phase %v outside of %v", p, s)
				}
				sum += p.EndTimeUnixNano - p.StartTimeUnixNano
			}
			if r.Latency == nil {
				if s.EndTimeUnixNano != s.StartTimeUnixNano {
					t.Errorf("%v has a length", s)
				}
			} else if total := s.EndTimeUnixNano - s.StartTimeUnixNano; total != uint64(r.Latency.Total) || sum != total {
				t.Errorf("%d ns, phases %d ns, want %d", total, sum, r.Latency.Total)
			}
		}
		if len(roots) != lines || lines < 40 {
			t.Errorf("%d spans of %d transactions", len(roots), lines)
		}
		// Sending them again adds none.
		n := len(c.spans)
		if status, diag := send(in, "--endpoint", c.URL); status != 0 || len(c.spans) != n || c.twice != n {
			t.Errorf("status %d: %s: %d spans, then %d, %d of them again", status, diag, n, len(c.spans), c.twice)
		}
	}
}

// TestAttributes compares the attributes of spans with ndjson: the same values, and no others.
func TestAttributes(t *testing.T) {
	names := map[string]string{} // without one for what is besides the table
	for _, f := range fields.All() {
		names["rpcrdma."+f.Name] = f.Name
	}
	for _, f := range fields.All() {
		if f.Attribute != "" {
			names[f.Attribute] = f.Name
		}
	}
	seen := map[string]bool{}
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap", "iwarp-nfs40-basic.pcap.zst"} {
		c := newCollector(t)
		in := listing(t, name)
		if status, diag := send(in, "--endpoint", c.URL); status != 0 {
			t.Fatalf("status %d: %s", status, diag)
		}
		found := map[string]formattest.Transaction{}
		for _, span := range c.spans {
			s := formattest.Transaction{}
			for _, a := range span.Attributes {
				s.Add(cmp.Or(names[a.Key], a.Key), plain(a.Value))
			}
			if len(span.ParentSpanId) == 0 {
				found[s.Key()] = s
			}
		}
		want := formattest.Read([]byte(in))
		formattest.Compare(t, name, fields.OTLP, formattest.InOrder(found, want), want, []string{"rpc.system.name", "rpc.method", "network.transport", "error.type"}, seen)
	}
	if len(seen) < 25 {
		t.Errorf("the samples have %d attributes only", len(seen))
	}
}

func plain(v *commonpb.AnyValue) any {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	case *commonpb.AnyValue_ArrayValue:
		var list []any
		for _, x := range v.ArrayValue.Values {
			list = append(list, plain(x))
		}
		return list
	}
	return nil
}

// TestMetrics compares what is counted with the listing.
func TestMetrics(t *testing.T) {
	c := newCollector(t)
	in := listing(t, "rocev2-nfs41-recall.pcap")
	if status, diag := send(in, "--endpoint", c.URL, "--metrics", "1h", "--no-spans"); status != 0 {
		t.Fatalf("status %d: %s", status, diag)
	}
	if len(c.spans) > 0 {
		t.Error("spans were sent")
	}
	var calls, want uint64
	var seconds, total float64
	for line := range strings.Lines(in) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Latency != nil {
			want++
			total += float64(r.Latency.Total) / 1e9
		}
	}
	for _, p := range c.metrics["rpc.client.call.duration"].GetHistogram().GetDataPoints() {
		calls += p.Count
		seconds += p.GetSum()
	}
	if calls != want || seconds < total*.999999 || seconds > total*1.000001 {
		t.Errorf("%d calls in %g s, want %d in %g s", calls, seconds, want, total)
	}
}

// TestTrouble: what is not accepted is told, and so is what cannot be read.
func TestTrouble(t *testing.T) {
	line, _, _ := strings.Cut(listing(t, "rocev2-nfs41-recall.pcap"), "\n")
	line += "\n"
	gone := newCollector(t)
	gone.Close()
	for _, c := range []struct {
		name    string
		in      string
		answers []int
		reject  int64
		args    []string
		status  int
		says    string
	}{
		{name: "retry", in: line, answers: []int{503, 429}, status: 0, says: "0 not accepted"},
		{name: "refused", in: line, answers: []int{400}, status: 1, says: "400"},
		{name: "partly rejected", in: line, reject: 2, status: 1, says: "too old"},
		{name: "some of them", in: line, reject: 1, status: 1, says: "1 span sent, 1 not accepted"},
		{name: "unreachable", in: line, args: []string{"--endpoint", gone.URL, "--wait", "100ms"}, status: 1, says: "not accepted"},
		{name: "no JSON", in: line + "hello\n" + line, status: 3, says: "line 2"},
		{name: "another schema", in: "{\"schema\":\"rpcrdma.report/1\"}\n" + line, status: 3, says: "rpcrdma.report/1"},
		{name: "cut", in: line + line[:100], status: 3, says: "1 line of the input skipped"},
		{name: "endless line", in: strings.Repeat("x", maxLine+10) + "\n" + line, status: 3, says: "longer than"},
		{name: "nothing to do", args: []string{"--no-spans"}, status: 2, says: "--metrics"},
		{name: "no URL", args: []string{"--endpoint", "localhost:4318"}, status: 2, says: "http://"},
		{name: "no file", args: []string{"/no/such/file"}, status: 1, says: "open /no/such/file"},
		{name: "no command", args: []string{"mna", "pages"}, status: 2, says: "did you mean 'man'?"},
		{name: "a capture", in: "\xd4\xc3\xb2\xa1\x02\x00\x04\x00", status: 3, says: "what rpcrdma-dump -T ndjson prints"},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := newCollector(t)
			to.answers, to.reject = c.answers, c.reject
			args := c.args
			if !strings.Contains(strings.Join(args, " "), "--endpoint") {
				args = append([]string{"--endpoint", to.URL}, args...)
			}
			status, diag := send(c.in, args...)
			if status != c.status || !strings.Contains(diag, c.says) {
				t.Errorf("status %d, want %d: %s", status, c.status, diag)
			}
			if c.status == 3 && strings.Contains(c.in, line) && len(to.spans) == 0 {
				t.Error("the good lines were not sent")
			}
		})
	}
}

// TestInterrupted: after a signal, what is still written to standard input is sent, and so is all that was read before.
func TestInterrupted(t *testing.T) {
	c := newCollector(t)
	all := strings.SplitAfter(listing(t, "rocev2-nfs41-recall.pcap"), "\n")
	roots := func() (n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.spans {
			if len(s.ParentSpanId) == 0 {
				n++
			}
		}
		return n
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := clitest.Start(t, in, clitest.Binary(t, "rpcrdma-otlp"), "--endpoint", c.URL)
	in.Close()
	write := func(lines []string) {
		if _, err := out.WriteString(strings.Join(lines, "")); err != nil {
			t.Fatal(err)
		}
	}
	write(all[:10])
	p.Until(t, "spans", func() bool { return roots() == 10 })
	write(all[10:20])
	p.Signal(t, os.Interrupt)
	write(all[20:30])
	out.Close()
	if code, by := p.Wait(t); code != 0 || by != 0 || roots() != 30 || !strings.Contains(p.Stderr.String(), "30 transactions read") {
		t.Errorf("status %d, signal %v, %d spans of transactions: %s", code, by, roots(), p.Stderr.String())
	}
}

// TestRecord: what is not a failure, and which network an address belongs to.
func TestRecord(t *testing.T) {
	for _, c := range []struct {
		line   string
		failed bool
		tunnel string
	}{
		{`{"status":"NFS3_OK","tunnel":{"type":"vxlan","id":0,"outer_client":"198.51.100.1"}}`, false, "vxlan 0"},
		{`{"status":"stat_succ","program":"nsm","tunnel":{"type":"ipip"}}`, false, "ipip"},
		{`{"status":"stat_fail","program":"nsm"}`, true, ""},
		{`{"status":"NLM4_GRANTED"}`, false, ""},
		{`{"status":"NLM4_DENIED"}`, true, ""},
		{`{"status":"","state":"no_reply"}`, true, ""},
		{`{"status":"","state":"incomplete"}`, false, ""},
	} {
		r, err := parse([]byte(`{"schema":"` + schema + `",` + c.line[1:]))
		if err != nil {
			t.Fatal(err)
		}
		tunnel := ""
		for _, a := range attributes(r) {
			switch a.Key {
			case "rpcrdma.tunnel.type":
				tunnel = a.Value.AsString()
			case "rpcrdma.tunnel.id":
				tunnel += fmt.Sprint(" ", a.Value.AsInt64())
			}
		}
		if r.failed() != c.failed || tunnel != c.tunnel {
			t.Errorf("%s: failed %v, tunnel %q", c.line, r.failed(), tunnel)
		}
	}
}

// TestFiles: files are read in their order, "-" among them, whatever they are called.
func TestFiles(t *testing.T) {
	all := strings.SplitAfter(listing(t, "rocev2-nfs41-recall.pcap"), "\n")
	want := len(all) - 1
	dir := t.TempDir()
	var names []string
	for i, lines := range [][]string{all[:10], all[20:]} {
		names = append(names, filepath.Join(dir, []string{"first.ndjson", "second"}[i]))
		if err := os.WriteFile(names[i], []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newCollector(t)
	status, diag := send(strings.Join(all[10:20], ""), "--endpoint", c.URL, names[0], "-", names[1])
	if status != 0 || !strings.Contains(diag, fmt.Sprintf("%d transactions read", want)) {
		t.Errorf("status %d: %s", status, diag)
	}
	t.Chdir(dir)
	if status, diag := send("", "--endpoint", c.URL, "second"); status != 0 || !strings.Contains(diag, fmt.Sprintf("%d transactions read", want-20)) {
		t.Errorf("status %d: %s", status, diag)
	}
}

// TestHostile: no line makes the program panic or send what is not UTF-8.
func TestHostile(t *testing.T) {
	c := newCollector(t)
	base := `{"schema":"rpcrdma.transaction/1","time":"2026-11-21T05:32:23Z","program":%s,"file":{"path":%s,"offset":18446744073709551615},"latency_ns":{"total":%d,"server":%d},"status":"NFS3_OK"}` + "\n"
	in := fmt.Sprintf(base, `"nfs"`, "\"a\xff\\u202e\"", 1, 1) + fmt.Sprintf(base, `""`, `"`+strings.Repeat("n", 100_000)+`"`, -5, -7) +
		fmt.Sprintf(base, `"nfs"`, `""`, int64(1)<<62, int64(1)<<62)
	if status, diag := send(in, "--endpoint", c.URL); status != 0 {
		t.Errorf("status %d: %s", status, diag)
	}
	for _, s := range c.spans {
		if len(valueOf(s, "file.path")) > 4096 || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
	}
}
