// Package journal writes transactions as entries for the journal of systemd.
//
// An entry is one datagram of the native protocol: fields, each with a name of capital letters and one value.
// MESSAGE is the line of the listing, PRIORITY rates the outcome, and RPCRDMA_XID, RPCRDMA_CLIENT and so on
// hold the fields of the display filter under its names. Sending the datagram is up to the caller.
package journal
