// Package rpcbind is the port mapper and rpcbind, versions 2, 3 and 4 (RFC 1833): its types, their XDR, and the
// tables of its procedures.
package rpcbind

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package rpcbind -o rpcbind_gen.go rpcbind.x
