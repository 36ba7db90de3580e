// Package results shows as text what analyses of many transactions have found:
// reports of latency and their comparison, the kernels' records beside the wire,
// findings of checks. Package text shows a single transaction.
package results

import "github.com/rpcrdma/toolkit/analyze/text"

// safe is text from a capture or a file that can be shown on a terminal.
func safe(s string) string { return text.SafeString(s) }
