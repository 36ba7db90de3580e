// Package mount is the MOUNT protocol, versions 1 to 3 (RFC 1094 appendix A, RFC 1813 appendix I): its types, their XDR, and the
// tables of its procedures.
package mount

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package mount -o mount_gen.go mount.x
