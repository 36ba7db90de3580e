// Package nlm is the Network Lock Manager protocol, versions 1, 3 and 4 (X/Open XNFS, RFC 1813 appendix II): its types, their XDR, and the
// tables of its procedures.
package nlm

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package nlm -o nlm_gen.go nlm.x
