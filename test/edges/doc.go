// Package edges compares what is decoded of a part of a capture with what is
// decoded of the whole: a capture may begin in the middle of a connection, and
// end there. Its tests cut every sample at several places; RPCRDMA_CAPTURES=DIR
// adds captures of your own. docs/edges.md has the result.
package edges
