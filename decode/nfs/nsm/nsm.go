// Package nsm is the Network Status Monitor protocol, version 1 (X/Open XNFS): its types, their XDR, and the
// tables of its procedures.
package nsm

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package nsm -o nsm_gen.go nsm.x
