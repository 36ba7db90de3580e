package decode

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// ending is a transaction that has ended.
type ending struct {
	tx *transaction.Transaction
	// at is when: 2 n + 1 for packet number n, and 2 n for the beginning of a batch with it. At the end of the capture, it
	// is made of endOf, the phase, and the first packet of the connection or transaction.
	at    uint64
	bytes int // that it holds
	group uint16
}

// event tells of a connection: that the group has numbered another one, or which has ended.
type event struct {
	at    uint64 // as in ending
	group uint16
	c     *rdma.Connection // nil: it was numbered
}

const (
	endOf      = 1 << 63
	phaseShift = 56
	lastPhase  = 3 // in which the connections are gone
	noMark     = ^uint64(0)
)
