// Package edges compares the decoded parts of a capture with the decoded whole, since a
// capture may begin and end in the middle of a connection. Its tests cut every sample at several places; RPCRDMA_CAPTURES=DIR
// adds captures of your own. tables.md has the result.
package edges
