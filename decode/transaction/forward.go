package transaction

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// named reads the program from the call, and settles the direction.
func (tx *Transaction) named() {
	if b := tx.Call.Payload; len(b) >= 24 && binary.BigEndian.Uint32(b[4:]) == 0 {
		tx.Program = binary.BigEndian.Uint32(b[12:])
		tx.Version = binary.BigEndian.Uint32(b[16:])
		tx.Procedure = binary.BigEndian.Uint32(b[20:])
		tx.Named = true
	}
	c := tx.Connection
	side := forwardSide(c)
	if side == unknownSide {
		h := &tx.Call.Header
		if !tx.Named && len(h.Reads)+len(h.Call) == 0 {
			// A reply alone may as well be one to a callback. It most likely is not.
			if k := of(c); k.likely == 0 {
				k.likely = uint8(tx.From) + 1
			}
			return
		}
		side = tx.From
		if tx.Named && Callback(tx.Program) && c.Fabric != rdma.UDP && c.Fabric != rdma.TCP {
			// Only a forward call can have come before it.
			side = tx.From.Other()
		}
		setForwardSide(c, side)
	}
	tx.Backward = tx.From != side
}

const unknownSide = 2

// forwardSide is the side that sends forward calls, kept with the connection.
func forwardSide(c *rdma.Connection) rdma.Side {
	if k, ok := c.Upper.(*conn); ok && k.forward != 0 {
		return rdma.Side(k.forward - 1)
	}
	if c.Setup[0].Seen() {
		return 0
	}
	if c.Fabric == rdma.IWARP {
		// The server listens at the port of NFS/RDMA, which each segment shows.
		first, second := rdma.CarriesRPC(c.Fabric, c.Ends[0].Port), rdma.CarriesRPC(c.Fabric, c.Ends[1].Port)
		switch {
		case second && !first:
			return 0
		case first && !second:
			return 1
		}
	}
	return unknownSide
}

func setForwardSide(c *rdma.Connection, s rdma.Side) { of(c).forward = uint8(s) + 1 }

// Callback reports whether a program number is in the transient range
// (RFC 5531, section 8.4), from which NFSv4 clients take that of their
// callback service.
func Callback(p uint32) bool { return p >= 0x40000000 && p < 0x60000000 }
