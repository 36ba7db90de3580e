package main

import (
	"strings"
	"testing"
)

func TestEndpoint(t *testing.T) {
	const all, traces = endpointVar, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, c := range []struct {
		flag            string
		variable, value string
		traces, metrics string // "": the exporter reads the variable
	}{
		{"", all, "", "http://localhost:4318/v1/traces", "http://localhost:4318/v1/metrics"},
		{"https://c/x", all, "", "https://c/x/v1/traces", "https://c/x/v1/metrics"},
		{"http://c", all, "http://other", "http://c/v1/traces", "http://c/v1/metrics"},
		{"", all, "http://other", "", ""},
		{"", traces, "http://other/v1/traces", "", "http://localhost:4318/v1/metrics"},
	} {
		t.Run(c.variable+"="+c.value+" "+c.flag, func(t *testing.T) {
			t.Setenv(all, "")
			t.Setenv(traces, "")
			t.Setenv(c.variable, c.value)
			o := &options{endpoint: c.flag}
			if got := o.url("traces"); got != c.traces {
				t.Errorf("traces go to %q, want %q", got, c.traces)
			}
			if got := o.url("metrics"); got != c.metrics {
				t.Errorf("metrics go to %q, want %q", got, c.metrics)
			}
		})
	}
}

// TestBadEndpoint: what a variable says is not ignored.
func TestBadEndpoint(t *testing.T) {
	for _, name := range []string{endpointVar, endpointVarOf("traces"), endpointVarOf("metrics")} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "collector:4318")
			if status, diag := send(""); status != 2 || !strings.Contains(diag, name+" is a URL such as http://localhost:4318") {
				t.Errorf("status %d: %s", status, diag)
			}
		})
	}
}
