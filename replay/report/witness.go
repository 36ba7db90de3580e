package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Witness collects what a run says it did, and compares it with what the dissector reads in the
// packets of the same run: the same calls, operations and statuses have to come out. Its Observe
// goes into the run's Options.
type Witness struct {
	// Unwrap opens what Kerberos has protected; it may be nil.
	Unwrap rpc.Unwrapper

	calls map[uint32][]witnessed // by live XID
	n     int
}

type witnessed struct {
	what   string
	ops    string
	status string
	seen   bool
}

// is reports whether the call was sent as these operations. Where the server gave an open in place of a delegation, the run closes it instead of
// returning the delegation.
func (c *witnessed) is(sig string) bool {
	return c.ops == sig || strings.ReplaceAll(c.ops, " DELEGRETURN", " CLOSE") == sig
}

// NewWitness returns an empty Witness.
func NewWitness() *Witness { return &Witness{calls: map[uint32][]witnessed{}} }

// Observe notes a call that is over.
func (w *Witness) Observe(o *Outcome) {
	if o.XID == 0 || o.Replied.IsZero() || o.Status == "" {
		return
	}
	w.calls[o.XID] = append(w.calls[o.XID], witnessed{what: o.Op.What, ops: signature(o.Op), status: o.Status})
	w.n++
}

// signature names the procedure or the operations of an op.
func signature(o *plan.Op) string {
	if o.Compound == nil {
		return procedure(o.Program, o.Version, o.Procedure)
	}
	names := []string{fmt.Sprintf("4.%d", o.Compound.Minor)}
	for i := range o.Compound.Ops {
		names = append(names, nfs4.OpName(o.Compound.Ops[i].Op))
	}
	return operations(names)
}

// signatureOf is the signature of a transaction.
func signatureOf(v *rpc.View) string {
	ops := v.Operations()
	if len(ops) == 0 {
		return procedure(v.Tx.Program, v.Tx.Version, v.Tx.Procedure)
	}
	minor, _ := v.MinorVersion()
	names := []string{fmt.Sprintf("4.%d", minor)}
	for i := range ops {
		names = append(names, ops[i].Name)
	}
	return operations(names)
}

func procedure(program, version, proc uint32) string {
	return fmt.Sprintf("%d/%d/%d", program, version, proc)
}

// operations joins names of operations. The run may have sent PUTFH in place of PUTROOTFH.
func operations(names []string) string {
	return strings.ReplaceAll(strings.Join(names, " "), "PUTROOTFH", "PUTFH")
}

// Knows reports whether a call of the run had this XID. Other calls belong to the
// preparation.
func (w *Witness) Knows(xid uint32) bool { return len(w.calls[xid]) > 0 }

// Check decodes a capture of the run's packets and compares. The decoder may hold
// at most memory bytes, 0 for its default.
func (w *Witness) Check(r capture.Reader, memory int) (*SelfCheck, error) {
	s := &SelfCheck{Calls: w.n}
	detail := func(format string, args ...any) {
		if len(s.Details) < 20 {
			s.Details = append(s.Details, fmt.Sprintf(format, args...))
		}
	}
	view := rpc.View{Unwrap: w.Unwrap}
	d := decode.New(decode.Options{Memory: memory}, func(tx *transaction.Transaction) {
		view.Set(tx)
		s.Transactions++
		if tx.Backward {
			return
		}
		list := w.calls[tx.XID]
		sig := signatureOf(&view)
		i := slices.IndexFunc(list, func(c witnessed) bool { return !c.seen && c.is(sig) })
		if i < 0 {
			if i = slices.IndexFunc(list, func(c witnessed) bool { return !c.seen }); i < 0 {
				return // a call of the preparation, or one that the plan does not have
			}
		}
		list[i].seen = true
		if tx.State != transaction.Complete {
			s.Incomplete++
			detail("%s (XID %08x): the dissector lacks a part: %s", list[i].what, tx.XID, tx.State)
			return
		}
		if got := view.Status(); !list[i].is(sig) || list[i].status != got {
			s.Different++
			detail("%s (XID %08x): %s %s, sent as %s %s", list[i].what, tx.XID, sig, got, list[i].ops, list[i].status)
			return
		}
		s.Same++
	})
	err := d.Run(r)
	for xid, list := range w.calls {
		for i := range list {
			if !list[i].seen {
				s.Missing++
				detail("%s (XID %08x) is not in the packets", list[i].what, xid)
			}
		}
	}
	slices.Sort(s.Details)
	return s, err
}
