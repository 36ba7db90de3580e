package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// exporter sends what it is given.
type exporter struct {
	tracer   trace.Tracer
	spans    *sdk.TracerProvider
	metrics  *metric.MeterProvider
	measures *measures

	sent, lost atomic.Uint64
	mu         sync.Mutex
	first      error // what went wrong first
	notes      *cli.Problems
}

// newExporter connects to nothing yet: the collector is asked when there is something to send.
func newExporter(ctx context.Context, o *options, notes *cli.Problems) (*exporter, error) {
	x := &exporter{notes: notes}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(x.failed))
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "nfs-rdma")),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, &cli.UsageError{Err: fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)}
	}
	if o.service != "" {
		if res, err = resource.Merge(res, resource.NewSchemaless(attribute.String("service.name", o.service))); err != nil {
			return nil, err
		}
	}
	if !o.noSpans {
		if err := x.traces(ctx, o, res); err != nil {
			return nil, err
		}
	}
	if o.metrics > 0 {
		return x, x.measure(ctx, o, res)
	}
	return x, nil
}

// traces prepares the way of spans. The queue blocks: a file is read as fast as the collector takes it.
func (x *exporter) traces(ctx context.Context, o *options, res *resource.Resource) error {
	var opts []otlptracehttp.Option
	if u := o.url("traces"); u != "" {
		opts = append(opts, otlptracehttp.WithEndpointURL(u))
	}
	opts = append(opts, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: 500 * time.Millisecond, MaxInterval: 5 * time.Second, MaxElapsedTime: o.wait,
	}))
	client, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = 4096
	x.spans = sdk.NewTracerProvider(
		sdk.WithBatcher(&counted{SpanExporter: client, x: x, wait: o.wait}, sdk.WithBlocking(), sdk.WithBatchTimeout(time.Second), sdk.WithExportTimeout(o.wait+10*time.Second)),
		sdk.WithResource(res), sdk.WithIDGenerator(ids{}), sdk.WithRawSpanLimits(limits), sdk.WithSampler(sdk.AlwaysSample()))
	x.tracer = x.spans.Tracer("github.com/rpcrdma/toolkit", trace.WithInstrumentationVersion(cli.Version()))
	return nil
}

// measure prepares the way of metrics.
func (x *exporter) measure(ctx context.Context, o *options, res *resource.Resource) error {
	var opts []otlpmetrichttp.Option
	if u := o.url("metrics"); u != "" {
		opts = append(opts, otlpmetrichttp.WithEndpointURL(u))
	}
	client, err := otlpmetrichttp.New(ctx, opts...)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	x.metrics = metric.NewMeterProvider(metric.WithResource(res), metric.WithCardinalityLimit(2000),
		metric.WithReader(metric.NewPeriodicReader(client, metric.WithInterval(o.metrics))))
	x.measures, err = newMeasures(x.metrics.Meter("github.com/rpcrdma/toolkit"))
	return err
}

// maxReason is how much is shown of an error, which has what the collector says.
const maxReason = 500

// failed hears of every error of the exporters: of collectors that cannot be reached, and of what they reject.
func (x *exporter) failed(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.first == nil {
		x.first = err
		x.notes.Printf("%.*s", maxReason, err)
	}
}

// close sends what is left, for at most so long.
func (x *exporter) close(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait+5*time.Second)
	defer cancel()
	if x.spans != nil {
		if err := x.spans.Shutdown(ctx); err != nil {
			x.failed(err)
		}
	}
	if x.metrics != nil {
		if err := x.metrics.Shutdown(ctx); err != nil {
			x.failed(err)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.first != nil {
		return errors.New("not everything was sent")
	}
	return nil
}

// counted counts the spans that an exporter sends, and those that it does not.
type counted struct {
	sdk.SpanExporter
	x    *exporter
	wait time.Duration
}

// unreachable tells whether nobody answered.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// ExportSpans tries again while the collector cannot be reached; the exporter itself does so only when the
// collector answers that it is busy.
func (c *counted) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	start, pause := time.Now(), 100*time.Millisecond
	err := c.SpanExporter.ExportSpans(ctx, spans)
	for unreachable(err) && time.Since(start)+pause < c.wait && ctx.Err() == nil {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, 5*time.Second)
		err = c.SpanExporter.ExportSpans(ctx, spans)
	}
	lost := uint64(0)
	if err != nil {
		lost = rejected(err, uint64(len(spans)))
	}
	c.x.lost.Add(lost)
	c.x.sent.Add(uint64(len(spans)) - lost)
	return err
}

// partly matches what the exporter says when a collector has taken some spans of a request. It has no exported type for that. The collector's
// own words stand in front of it.
var partly = regexp.MustCompile(`(?s).*\((\d+) spans rejected\)$`)

// rejected is how many of the spans of a request an error has cost.
func rejected(err error, all uint64) uint64 {
	if m := partly.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.ParseUint(m[1], 10, 64); err == nil {
			return min(n, all)
		}
	}
	return all
}

// ids makes the IDs of spans of what the context carries, so that the same transaction always has the same.
type ids struct{}

// identity is what a context carries: a transaction, and how many of its spans were made.
type identity struct {
	hash  [sha256.Size]byte
	spans byte
}

type identityKey struct{}

// identify makes the identity of a transaction: what tells it from all others.
func identify(ctx context.Context, r *record) context.Context {
	h := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%08x|%d", r.ConnectionKey, r.Direction, r.XID, r.Time.UnixNano()))
	return context.WithValue(ctx, identityKey{}, &identity{hash: h})
}

func (ids) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	id, ok := ctx.Value(identityKey{}).(*identity)
	if !ok {
		panic("a span without a transaction")
	}
	copy(t[:], id.hash[:16])
	return t, id.next()
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, s := ids{}.NewIDs(ctx)
	return s
}

// next is the ID of the next span. An ID must not be zero.
func (id *identity) next() (s trace.SpanID) {
	n := binary.BigEndian.Uint64(id.hash[16:24]) + uint64(id.spans)
	id.spans++
	binary.BigEndian.PutUint64(s[:], max(n, 1))
	return s
}
