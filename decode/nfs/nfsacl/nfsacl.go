// Package nfsacl is the NFS ACL side protocol, versions 2 and 3, as Solaris and Linux speak it: its types, their XDR, and the
// tables of its procedures.
package nfsacl

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package nfsacl -o nfsacl_gen.go nfsacl.x
