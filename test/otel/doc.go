// Package otel sends transactions to a real OpenTelemetry collector, and compares what it received: test/otel/run.
package otel
