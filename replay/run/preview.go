package run

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Preview says what a run would do, without a connection.
func Preview(out io.Writer, w *Workload, opt Options, server string) error {
	opt = opt.withDefaults()
	if err := w.nothing(); err != nil {
		return err
	}
	p := &printer{w: out}
	var prepared Prepared
	for i := range w.Tables.Objects {
		o := &w.Tables.Objects[i]
		if o.Base || o.Origin != plan.Before || !w.below(i+1) {
			continue
		}
		switch typeOf(o.Type) {
		case 2:
			prepared.Directories++
		case 1:
			prepared.Files++
			if o.Size <= maxFull && w.Tables.Header.Payload != plan.Sparse {
				prepared.Bytes += o.Size
			} else {
				prepared.Sparse++
			}
		default:
			prepared.Others++
		}
	}
	p.f("server %s, directory %s\n", server, opt.Directory)
	switch {
	case opt.Prepare && opt.Write:
		p.f("make there: %s, %s, %s, %s of data", count(prepared.Directories, "directory"), count(prepared.Files, "file"), count(prepared.Others, "other object"), bytesText(prepared.Bytes))
		if opt.Clones > 1 {
			p.f(", %d times", opt.Clones)
		}
		p.f("\n")
	case opt.Prepare:
		p.f("make nothing there, since --write is missing\n")
	default:
		p.f("expect the files there\n")
	}
	if opt.PrepareOnly {
		return p.err
	}
	type kind struct{ n, modify, unsafe int }
	kinds := map[string]*kind{}
	rehearse := newRehearsal(w, opt)
	send, refuse := 0, 0
	reasons := map[string]int{}
	for _, o := range w.Ops {
		k := kinds[OpName(o)]
		if k == nil {
			k = &kind{}
			kinds[OpName(o)] = k
		}
		k.n++
		err := rehearse.op(o)
		if o.Modifies && !opt.Write {
			err = &guard.Refused{Reason: guard.ReadOnly}
		}
		refused := guarded(err)
		if o.Modifies || refused != nil && refused.Reason == guard.ReadOnly {
			k.modify++
		}
		if err != nil {
			k.unsafe++
			refuse++
			reasons[err.Error()]++
		} else {
			send++
		}
	}
	p.f("send %s", count(send*opt.Clones, "call"))
	if opt.Timing == AsCaptured {
		p.f(" within %s", round(time.Duration(float64(w.Tables.Header.Duration)/opt.Speed)))
	}
	p.f(", timing %s", opt.Timing)
	if opt.Timing == AsCaptured && opt.Speed != 1 {
		p.f(" at %g times the speed", opt.Speed)
	}
	p.f("\n")
	if refuse > 0 {
		p.f("not send %s:\n", count(refuse*opt.Clones, "call"))
		for why, n := range reasons {
			p.f("  %6d  %s\n", n, why)
		}
	}
	if len(w.Skips) > 0 {
		p.f("%d transactions of the capture are not in the plan\n", len(w.Skips))
	}
	p.impossible(w.Impossible())
	rows := [][]string{{"OPERATION", "CALLS", "CHANGE SOMETHING", "NOT SENT"}}
	names := make([]string, 0, len(kinds))
	for n := range kinds {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(kinds[b].n, kinds[a].n), cmp.Compare(a, b)) })
	for _, n := range names {
		k := kinds[n]
		rows = append(rows, []string{n, fmt.Sprint(k.n), fmt.Sprint(k.modify), fmt.Sprint(k.unsafe)})
	}
	p.f("\n")
	p.table(1, rows)
	return p.err
}

// Knows says where an address occurs in the capture; empty if it does not.
func (w *Workload) Knows(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	same := func(s string) bool {
		if b, err := netip.ParseAddr(s); err == nil {
			return b.Unmap().WithZone("") == a
		}
		if b, err := netip.ParseAddrPort(s); err == nil {
			return b.Addr().Unmap().WithZone("") == a
		}
		return hostOf(s) == a.String()
	}
	for i := range w.Tables.Servers {
		if same(w.Tables.Servers[i].Addr) {
			return "as a server"
		}
	}
	for i := range w.Tables.Connections {
		c := &w.Tables.Connections[i]
		if same(c.Client) {
			return "as a client"
		}
		if same(c.Address) {
			return "as a server"
		}
	}
	return ""
}

// NeedsAbove reports whether the plan walks to its base from directories above
// it.
func (w *Workload) NeedsAbove() bool {
	if slices.ContainsFunc(w.Tables.Objects, func(o plan.Object) bool { return o.Origin == plan.Above }) {
		return true
	}
	for _, o := range w.Ops {
		if o.Compound == nil {
			continue
		}
		for i := range o.Compound.Ops {
			if nfs4.NfsOpnum4(o.Compound.Ops[i].Op) == nfs4.OP_PUTROOTFH {
				return true
			}
		}
	}
	return false
}
