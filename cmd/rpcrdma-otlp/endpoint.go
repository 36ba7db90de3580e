package main

import (
	"net/url"
	"os"
	"strings"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// Variables that name the collector (OpenTelemetry Protocol Exporter, Endpoint URLs for OTLP/HTTP).
const (
	endpointVar     = "OTEL_EXPORTER_OTLP_ENDPOINT"
	defaultEndpoint = "http://localhost:4318"
)

func endpointVarOf(signal string) string {
	return "OTEL_EXPORTER_OTLP_" + strings.ToUpper(signal) + "_ENDPOINT"
}

// url is where a signal goes: traces or metrics. It is empty if a variable names the place, since the exporter reads that itself.
// Without a variable, url is the specification's default, which is http. The exporter's own default is https, and a local collector
// seldom speaks TLS.
func (o *options) url(signal string) string {
	switch {
	case o.endpoint != "":
		return o.endpoint + "/v1/" + signal
	case os.Getenv(endpointVar) != "" || os.Getenv(endpointVarOf(signal)) != "":
		return ""
	}
	return defaultEndpoint + "/v1/" + signal
}

// checkEndpoint refuses what is not a URL of a collector: the exporter would send to localhost instead.
func checkEndpoint(name, value string) error {
	if value == "" {
		return nil
	}
	if u, err := url.Parse(value); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return cli.Usagef("%s is a URL such as http://localhost:4318, not %q", name, value)
	}
	return nil
}
