package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// transaction sends a transaction.
func (x *exporter) transaction(ctx context.Context, r *record) {
	if x.tracer != nil {
		x.span(identify(ctx, r), r)
	}
	if x.measures != nil {
		x.measures.add(ctx, r)
	}
}

// span makes the span of a transaction, and those of its phases.
func (x *exporter) span(ctx context.Context, r *record) {
	ctx, s := x.tracer.Start(ctx, name(r), trace.WithTimestamp(r.Time), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes(r)...))
	if r.failed() {
		s.SetStatus(codes.Error, failure(r))
	}
	end := r.Time
	if l := r.Latency; l != nil {
		for _, p := range l.phases() {
			if p.ns <= 0 {
				continue // phases of no length, and those of clocks that went back
			}
			_, child := x.tracer.Start(ctx, p.name, trace.WithTimestamp(end), trace.WithAttributes(attribute.String("rpcrdma.phase", p.name)))
			end = end.Add(time.Duration(p.ns))
			child.End(trace.WithTimestamp(end))
		}
		end = r.Time.Add(time.Duration(max(l.Total, 0)))
	}
	s.End(trace.WithTimestamp(end))
}

// name names a span by program and operation, of which there are few.
func name(r *record) string {
	if r.Program == "" {
		return "rpc"
	}
	if r.Group == "" {
		return r.Program
	}
	return r.Program + "/" + r.Group
}

// failure names what went wrong, from a small set.
func failure(r *record) string {
	if r.State == "no_reply" {
		return "no_reply"
	}
	return r.Status
}

// attributes follow the semantic conventions of RPC, ONC RPC, client, server, file and network where these have a name; the others
// begin with rpcrdma. The table of attributes says what they are.
func attributes(r *record) []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("rpc.system.name", "onc_rpc"),
		attribute.String("rpc.method", name(r)),
		attribute.String("network.transport", transport(r.Fabric)),
	}
	if r.failed() {
		list = append(list, attribute.String("error.type", failure(r)))
	}
	for _, f := range fields.All() {
		if !f.In(fields.OTLP) {
			continue
		}
		key := f.Attribute
		if key == "" {
			key = "rpcrdma." + f.Name
		}
		if a, ok := attributeOf(key, f.Several, valuesAt(nil, r.values, f.Name)); ok {
			list = append(list, a)
		}
	}
	return list
}

// valuesAt appends the values of an object under a name, whose parts between dots are keys. Indexes of arrays are not part of names.
func valuesAt(list []any, at any, name string) []any {
	switch at := at.(type) {
	case []any:
		for _, x := range at {
			list = valuesAt(list, x, name)
		}
	case map[string]any:
		if name != "" {
			key, rest, _ := strings.Cut(name, ".")
			return valuesAt(list, at[key], rest)
		}
	case nil:
	default:
		if name == "" {
			return append(list, at)
		}
	}
	return list
}

// attributeOf returns the attribute for the values of an ndjson key, if there are any and OTLP can hold them.
func attributeOf(key string, several bool, list []any) (attribute.KeyValue, bool) {
	if len(list) == 0 {
		return attribute.KeyValue{}, false
	}
	if several {
		var all []string
		for _, x := range list {
			all = append(all, printable.Text(fmt.Sprint(x)))
		}
		return attribute.StringSlice(key, all), true
	}
	switch x := list[0].(type) {
	case string:
		return attribute.String(key, printable.Text(x)), true
	case bool:
		return attribute.Bool(key, x), true
	case json.Number:
		n, err := x.Int64() // OTLP has no unsigned 64-bit attributes
		return attribute.Int64(key, n), err == nil
	}
	return attribute.KeyValue{}, false
}

// transport is tcp or udp, on which the fabric runs; RoCEv1 and InfiniBand run on neither.
func transport(fabric string) string {
	switch fabric {
	case "rocev2", "udp":
		return "udp"
	case "iwarp", "tcp":
		return "tcp"
	}
	return fabric
}
