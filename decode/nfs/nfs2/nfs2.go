// Package nfs2 is NFS version 2 (RFC 1094): its types, their XDR, and the
// tables of its procedures.
package nfs2

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package nfs2 -o nfs2_gen.go nfs2.x
