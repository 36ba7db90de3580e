package main

import (
	"maps"
	"slices"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// parts are the summaries of groups of hosts: a summary needs no order, so each tracker sums up its own
// transactions (decode.Options.Group).
type parts map[int]*part

type part struct {
	view    rpc.View
	summary *summary
}

// group returns what sums up the transactions of a group.
func (p parts) group(n int) func(*transaction.Transaction) bool {
	x := &part{summary: newSummary()}
	p[n] = x
	return x.add
}

// add leaves to all together what they share, in the order of the capture: security contexts, which clients may use
// from several addresses, and what is said of malformed messages.
func (x *part) add(tx *transaction.Transaction) bool {
	v := &x.view
	v.Set(tx)
	if !v.Clean() && (v.Undecoded() || v.Call().Cred.Flavor == oncrpc.RPCSecGSS) {
		return false
	}
	x.summary.add(v)
	return true
}

// merge adds up the summaries, in the order of the groups.
func (p parts) merge(s *summary) {
	for _, n := range slices.Sorted(maps.Keys(p)) {
		s.merge(p[n].summary)
	}
}
