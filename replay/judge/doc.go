// Package judge compares the reply of a live server with the captured one and gives a
// verdict with its reasons (package verdict).
//
// A reply passes three stages. The first finds what differs: the outcome of the RPC
// layer and the status (status.go), each field (results.go, compare.go, fields.go),
// directory listings across several replies (listing.go), data (data.go), the use of
// chunks (data.go). The second asks whether something outside the server explains the differences
// (explain.go). The third remembers what this call has changed or failed to change, for later
// calls (history.go).
package judge
