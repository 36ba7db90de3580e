// Package nfs3 is NFS version 3 (RFC 1813): its types, their XDR, and the
// table of its procedures.
package nfs3

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package nfs3 -o nfs3_gen.go nfs3.x
