// Package monitor holds the state of a live view: what passes through a decoder now, and what has passed
// since the beginning.
//
// A [Model] owns a decode.Decoder and is fed with packets. A [Snapshot] is its state at one time; it shares
// nothing with the Model and never changes. A [Feed] runs a Model on its own goroutine: it paces a capture,
// closes intervals, and publishes the newest Snapshot for a user interface, a table printer or a metrics
// server. None of these can delay decoding.
//
// Totals and percentiles are computed by package latency. Intervals are lengths of capture time, whatever the
// speed of the replay.
//
// # Bounds
//
// Memory does not depend on how long a Model runs: see the constants in limits.go.
package monitor
