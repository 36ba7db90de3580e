package main

import (
	"slices"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// inputProblems reports what is wrong with the files and packets. stopped means that the command did not want
// all of the input: the reader may be ahead then, and problems after the last packet wanted do not matter.
//
// r is not nil if the input continues another one, whose problems were reported then.
func inputProblems(n *cli.Problems, in *input, d *decode.Decoder, stopped bool, r *resume) {
	list, total := in.Problems()
	if stopped && len(in.names) == 1 {
		last := r.since(d.Stats()).Packets
		list = slices.DeleteFunc(list, func(p *capture.Problem) bool { return p.Packet > last })
		total = len(list)
	}
	o := outcome{
		Total: total, Stats: r.since(d.Stats()), Cut: in.cut.Load(), Account: d.Account(), Evicted: r.orphans(d.Orphans()).Evicted, Stopped: stopped,
		Malformed: r.orphans(d.Orphans()).Malformed,
	}
	n.Selected(in.span)
	n.CapturedTwice(in.Reader)
	o.print(n, list)
}

// outcome is what is to be told of an input beside its transactions, and its problems. It consists of plain values, so
// that an index can keep it.
type outcome struct {
	Total   int // problems
	Stats   decode.Stats
	Cut     uint64 // packets
	Account decode.Account
	Evicted uint64 // calls
	// Malformed are the Sends with headers that cannot be decoded.
	Malformed transaction.Malformed
	Stopped   bool
}

// timeless reports whether the latencies that were found say nothing: simple packet blocks of pcapng have no times, nor have
// the files of some converters.
func (o *outcome) timeless() bool {
	return o.Stats.Packets > 1 && o.Stats.First.Time == o.Stats.Last.Time && o.Account.Transactions > 0 && !o.Stopped
}

func (o *outcome) print(n *cli.Problems, list []*capture.Problem) {
	st := &o.Stats
	n.Files(list, o.Total, st)
	if !o.Stopped {
		n.Snapped(o.Cut)
	}
	if g := &st.OneWay; g.Count > 0 && !o.Stopped {
		were := "were"
		if g.Count == 1 {
			were = "was"
		}
		n.Printf("note: %s %s captured in one direction only; the first begins with packet %d", units.Plural(g.Count, "connection"), were, g.First)
	}
	if o.timeless() {
		n.Printf("note: the first and the last of %s have the same time: a capture without times does not tell how long anything took", units.Plural(st.Packets, "packet"))
	}
	n.Backwards(st)
	n.Headers(&o.Malformed)
	n.Packets(st, o.Total)
	if a := &o.Account; a.Packets > 0 && a.Transactions == 0 && !o.Stopped {
		n.Printf("note: no transactions: %s", text.Account(nil, a, 12))
		if len(a.Services) > 0 {
			n.Printf("note: 'rpcrdma-dump operations' lists RDMA of other protocols, 'rpcrdma-dump report --view fabric' shows their losses and congestion")
		}
	}
	n.GivenUp(o.Evicted, st, cli.LimitFlags)
}
