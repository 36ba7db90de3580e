// Package monitor is the state behind a live view: what passes through a decoder right now, and what has
// passed since the beginning.
//
// A [Model] owns a decode.Decoder and is fed with packets; a [Snapshot] is what it knows at one moment,
// shares nothing with it, and never changes. A [Feed] does both on its own goroutine: it paces a capture,
// closes intervals, and leaves the newest Snapshot where a user interface, a table printer or a server of
// metrics finds it. None of them can make decoding wait.
//
// Totals and percentiles are those of package latency. An interval is a length of the capture's time,
// whatever the speed of its replay.
//
// # Bounds
//
// Memory does not depend on how long a Model runs: see the constants in limits.go.
package monitor
