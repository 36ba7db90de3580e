// Package latency sums up where the time of many transactions went: counts, errors, bytes and percentiles by
// group, phase by phase; the same over time; how many calls were in flight against the credits granted, and
// RDMA Reads against the depth negotiated; what losses and congestion cost; what chunks offered and used; and
// how connections were set up.
//
// A [Recorder] takes transactions one by one and makes a [Report]; [Compare] compares two reports.
//
// # Percentiles
//
// The p-th percentile of n values is the nearest rank: the ⌈p/100·n⌉-th smallest. Up to 256 values other than
// zero are kept as they are, so that percentiles of small groups are exact. More of them go into a histogram
// of three significant digits, with the buckets of HdrHistogram. There a percentile is the upper end
// of its bucket: at most 1/1024 above the exact value and never below it or above the maximum. Count, sum,
// mean, minimum and maximum are exact always. Latencies over time have two digits (1/128). Should memory run
// short, [Distribution.Precision] says what was left of the digits.
//
// Times are computed for transactions whose call and reply were both captured, and only those
// ([transaction.Transaction.Phases]); the others are counted.
//
// # Bounds
//
// Memory does not depend on the length of the capture. What does not fit is counted, and [Report.Notes] says
// so: see the constants in limits.go.
package latency
