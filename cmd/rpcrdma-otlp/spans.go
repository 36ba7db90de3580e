package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

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

// attributes follow the semantic conventions of RPC, ONC RPC, client, server and network where these have a
// name; the others begin with rpcrdma.
func attributes(r *record) []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("rpc.system.name", "onc_rpc"),
		attribute.String("rpc.method", name(r)),
		attribute.String("onc_rpc.program.name", r.Program),
		attribute.Int("onc_rpc.version", r.Version),
		attribute.String("onc_rpc.procedure.name", r.Procedure),
		attribute.String("client.address", r.Client),
		attribute.String("server.address", r.Server),
		attribute.String("network.transport", transport(r.Fabric)),
		attribute.String("rpcrdma.fabric", r.Fabric),
		attribute.String("rpcrdma.connection", r.ConnectionKey),
		attribute.Int64("rpcrdma.xid", int64(r.XID)),
		attribute.String("rpcrdma.direction", r.Direction),
		attribute.String("rpcrdma.operation", r.Operation),
		attribute.String("rpcrdma.status", r.Status),
		attribute.String("rpcrdma.state", r.State),
		attribute.Int64("rpcrdma.call.size", r.CallBytes),
		attribute.Int64("rpcrdma.reply.size", r.ReplyBytes),
		attribute.Int64("rpcrdma.read.size", r.ReadBytes),
		attribute.Int64("rpcrdma.write.size", r.WriteBytes),
	}
	if r.failed() {
		list = append(list, attribute.String("error.type", failure(r)))
	}
	if r.MinorVersion != nil {
		list = append(list, attribute.Int("rpcrdma.nfs.minor_version", *r.MinorVersion))
	}
	if t := r.Tunnel; t != nil {
		list = append(list, attribute.String("rpcrdma.tunnel.type", t.Type))
		if t.ID != nil {
			list = append(list, attribute.Int64("rpcrdma.tunnel.id", int64(*t.ID)))
		}
	}
	if r.Retransmits > 0 {
		list = append(list, attribute.Int("rpcrdma.retransmitted_packets", r.Retransmits))
	}
	if len(r.NoteCodes) > 0 {
		list = append(list, attribute.StringSlice("rpcrdma.notes", r.NoteCodes))
	}
	for key, frame := range map[string]*int{"rpcrdma.call.frame": r.CallFrame, "rpcrdma.reply.frame": r.ReplyFrame} {
		if frame != nil {
			list = append(list, attribute.Int(key, *frame))
		}
	}
	if f := r.File; f != nil {
		if f.Path != "" {
			list = append(list, attribute.String("file.path", printable.Text(f.Path)))
		} else if f.Name != "" {
			list = append(list, attribute.String("file.name", printable.Text(f.Name)))
		}
		if f.Offset != nil && *f.Offset <= 1<<63-1 {
			list = append(list, attribute.Int64("rpcrdma.file.offset", int64(*f.Offset)))
		}
		if f.Count != nil && *f.Count <= 1<<63-1 {
			list = append(list, attribute.Int64("rpcrdma.file.count", int64(*f.Count)))
		}
	}
	return list
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
