// Package selfcheck compares what a run says it did with what the dissector reads in
// the packets of the same run: the same calls, operations and statuses have to come
// out.
package selfcheck
