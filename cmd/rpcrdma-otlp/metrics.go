package main

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// measures are the instruments.
type measures struct {
	duration metric.Float64Histogram
	bytes    metric.Int64Counter
	retrans  metric.Int64Counter
	open     metric.Int64Counter
}

func newMeasures(m metric.Meter) (*measures, error) {
	x := &measures{}
	var err error
	if x.duration, err = m.Float64Histogram("rpc.client.call.duration", metric.WithUnit("s"),
		metric.WithDescription("First packet of the call to last packet of the reply"),
		metric.WithExplicitBucketBoundaries(50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10)); err != nil {
		return nil, err
	}
	if x.bytes, err = m.Int64Counter("rpcrdma.rdma.io", metric.WithUnit("By"),
		metric.WithDescription("Payload of the RDMA Reads and Writes of transactions")); err != nil {
		return nil, err
	}
	if x.retrans, err = m.Int64Counter("rpcrdma.retransmitted_packets", metric.WithUnit("{packet}"),
		metric.WithDescription("Packets of transactions that were seen again")); err != nil {
		return nil, err
	}
	x.open, err = m.Int64Counter("rpcrdma.unanswered", metric.WithUnit("{transaction}"),
		metric.WithDescription("Transactions without a latency: call or reply were not captured"))
	return x, err
}

// add counts a transaction. Labels have few values: no file, no client, no XID.
func (x *measures) add(ctx context.Context, r *record) {
	labels := []attribute.KeyValue{
		attribute.String("rpc.system.name", "onc_rpc"),
		attribute.String("rpc.method", name(r)),
		attribute.String("server.address", r.Server),
		attribute.String("rpcrdma.fabric", r.Fabric),
	}
	if r.failed() {
		labels = append(labels, attribute.String("error.type", failure(r)))
	}
	set := metric.WithAttributeSet(attribute.NewSet(labels...))
	if r.Latency != nil {
		x.duration.Record(ctx, float64(max(r.Latency.Total, 0))/1e9, set)
	} else {
		x.open.Add(ctx, 1, set)
	}
	if r.Retransmits > 0 {
		x.retrans.Add(ctx, int64(r.Retransmits), set)
	}
	for way, n := range map[string]int64{"read": r.ReadBytes, "write": r.WriteBytes} {
		if n > 0 {
			x.bytes.Add(ctx, n, set, metric.WithAttributes(attribute.String("rpcrdma.io.direction", way)))
		}
	}
}
