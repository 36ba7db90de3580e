package rpc

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Server stands for an NFS server: its address and the network that it is in. File handles mean something to their
// server only (RFC 8881, section 4.2.1): servers that were cloned, or made by the same steps, give equal ones for other files.
type Server uint64

// ServerOf returns the server whose file handles a transaction has. The server sends callbacks.
func ServerOf(tx *transaction.Transaction) Server {
	c := tx.Connection
	if c == nil {
		return 0
	}
	b := c.Ends[serverSide(tx)].Addr.Unmap().As16()
	x := c.Tenant
	for i := 0; i < len(b); i += 8 {
		x = (x ^ binary.LittleEndian.Uint64(b[i:])) * 0x9e3779b97f4a7c15
		x ^= x >> 29
	}
	return Server(x)
}

func serverSide(tx *transaction.Transaction) uint8 {
	if tx.Backward || transaction.Callback(tx.Program) {
		return uint8(tx.From)
	}
	return uint8(tx.From.Other())
}

// key is what the sums of handles of a server are made with.
func (s Server) key() uint64 { return sumSeeds[0] ^ uint64(s) }

// Of makes the server of a transaction the one whose handles and names are asked for from now on. It returns n, which
// may be nil.
func (n *Names) Of(tx *transaction.Transaction) *Names {
	if n == nil {
		return nil
	}
	c := tx.Connection
	if c == nil {
		return n.At(0)
	}
	if a := &c.Ends[serverSide(tx)].Addr; *a != n.addr || c.Tenant != n.tenant || !a.IsValid() {
		n.At(ServerOf(tx))
		n.addr, n.tenant = *a, c.Tenant
	}
	return n
}

// At is Of for a server that ServerOf has returned.
func (n *Names) At(s Server) *Names {
	if n.server != s {
		n.server, n.dir = s, nil
	}
	n.addr, n.tenant = netip.Addr{}, 0
	return n
}
