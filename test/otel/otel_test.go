//go:build otel && linux

package otel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// exported is what is compared of the collector's files, in the JSON of OTLP.
type exported struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				TraceID, SpanID, ParentSpanID string
				Name                          string
				StartTimeUnixNano             string
			}
		}
	}
	ResourceMetrics []struct {
		ScopeMetrics []struct {
			Metrics []struct {
				Name      string
				Histogram struct{ DataPoints []struct{ Count string } }
			}
		}
	}
}

// reserve finds an address for a server that is started later. A socket keeps the port until the test ends: it does not
// listen, so that the server may, and the kernel gives the port to nobody else.
func reserve(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})); err != nil {
		t.Fatal(err)
	}
	a, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", a.(*syscall.SockaddrInet4).Port)
}

// TestCollector: every transaction of a capture arrives as a span, once, with its phases; the metrics count them.
func TestCollector(t *testing.T) {
	collector, otlp, dump := os.Getenv("OTEL_COLLECTOR"), os.Getenv("RPCRDMA_OTLP"), os.Getenv("RPCRDMA_DUMP")
	if collector == "" || otlp == "" || dump == "" {
		t.Fatal("run test/otel/run")
	}
	dir := t.TempDir()
	address := reserve(t)
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {file/t: {path: %q}, file/m: {path: %q}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [file/t]}, metrics: {receivers: [otlp], exporters: [file/m]}}
`, address, dir+"/traces", dir+"/metrics"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	c := exec.Command(collector, "--config", "file:"+config)
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	listing, err := exec.Command(dump, "-T", "ndjson", "../../samples/rocev2-nfs41-recall.pcap").Output()
	if err != nil {
		t.Fatal(err)
	}
	// The exporter tries again until the collector listens.
	send := exec.Command(otlp, "--endpoint", "http://"+address, "--metrics", "1h")
	send.Stdin = bytes.NewReader(listing)
	if b, err := send.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, b, &log)
	}
	_ = c.Process.Signal(os.Interrupt)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &log)
	}
	spans, roots, calls := map[string]bool{}, 0, 0
	for _, name := range []string{"traces", "metrics"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var x exported
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			for _, r := range x.ResourceSpans {
				for _, s := range r.ScopeSpans {
					for _, span := range s.Spans {
						if spans[span.TraceID+span.SpanID] {
							t.Errorf("%s twice", span.Name)
						}
						if spans[span.TraceID+span.SpanID] = true; span.ParentSpanID == "" {
							roots++
						}
					}
				}
			}
			for _, r := range x.ResourceMetrics {
				for _, s := range r.ScopeMetrics {
					for _, m := range s.Metrics {
						for _, p := range m.Histogram.DataPoints {
							var n int
							fmt.Sscan(p.Count, &n)
							calls += n
						}
					}
				}
			}
		}
	}
	if n := bytes.Count(listing, []byte("\n")); roots != n || calls != n {
		t.Errorf("%d spans and %d calls of %d transactions: %s", roots, calls, n, &log)
	}
	t.Logf("%d spans, of them %d transactions", len(spans), roots)
}
