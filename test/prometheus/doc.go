// Package prometheus checks what rpcrdma-top serves, the alert rules and the
// dashboard with the parsers and the query engine of Prometheus. It is a module of
// its own, because Prometheus brings more along than everything else together. See
// run.
package prometheus
