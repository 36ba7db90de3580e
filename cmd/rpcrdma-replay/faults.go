package main

import (
	"errors"
	"fmt"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/replay/fault"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

const faultsLong = `Faults are written SELECTOR:ACTION. The selector is xid=0xHEX (as captured, in
run; of the call, in serve), op=N (of the plan), call=N (the N-th call), every=N
or all:

  delay=TIME   the call is sent, or answered, so much later
  drop[=TIME]  the reply is thrown away; run sends the call again after TIME
               (100ms), with its XID, and serve leaves that to the client
  disconnect   the connection ends, after the call or instead of a reply
  credits=N    N is asked for, or granted, in the credit field (RDMA)
  err_chunk    the answer is RDMA_ERROR, ERR_CHUNK (serve and builtin)
  rnr=N        only N receives are posted (RDMA, no selector)`

// faultPlan holds the faults of a run: the client's, and those of the built-in server.
type faultPlan struct {
	client, server *fault.Plan
	ours, theirs   []string // as they were written
}

func parseFaultSpecs(list []string) ([]fault.Spec, error) {
	var out []fault.Spec
	for _, s := range list {
		f, err := fault.Parse(s)
		if err != nil {
			return nil, cli.Usagef("--fault: %v", err)
		}
		out = append(out, f)
	}
	return out, nil
}

// parseFaults parses the faults of run. Faults that only a server can inject go to the built-in one.
func parseFaults(list []string) (*faultPlan, error) {
	specs, err := parseFaultSpecs(list)
	if err != nil {
		return nil, err
	}
	var ours, theirs []fault.Spec
	p := &faultPlan{}
	for i, s := range specs {
		if s.Action == fault.ErrChunk {
			if s.Op != 0 || s.HasXID {
				return nil, cli.Usagef("--fault: err_chunk is injected by the server, which knows neither ops nor captured XIDs: use call, every or all")
			}
			theirs, p.theirs = append(theirs, s), append(p.theirs, list[i])
		} else {
			ours, p.ours = append(ours, s), append(p.ours, list[i])
		}
	}
	p.client, p.server = fault.New(ours), fault.New(theirs)
	return p, nil
}

// resolve finds the ops of captured XIDs.
func (f *faultPlan) resolve(w *workload.Workload) error {
	var failed error
	err := f.client.Resolve(func(xid uint32) int {
		id, err := w.Find(xid)
		failed = errors.Join(failed, err)
		return id
	})
	return errors.Join(failed, err)
}

// arm prepares the fabric of the client's side.
func (f *faultPlan) arm(o *providers.Options) {
	if f.client != nil {
		o.Wrapped = f.client.Provider
	}
}

func (f *faultPlan) wrap(h transport.Handler) transport.Handler { return f.server.Handler(h) }

func (f *faultPlan) requester(r transport.Requester) transport.Requester {
	return f.client.Requester(r, run.OpOf)
}

// check reports faults that a fabric cannot inject.
func (f *faultPlan) check(fabric string, builtin bool) error {
	if fabric == "tcp" && (f.client.Wants(fault.Credits, fault.RNR, fault.Disconnect) || f.server.Wants(fault.ErrChunk)) {
		return cli.Usagef("--fault: credits, rnr, disconnect and err_chunk need RDMA")
	}
	if f.server != nil && !builtin {
		return cli.Usagef("--fault: err_chunk is injected by the server: use it with the command serve, or with builtin")
	}
	return nil
}

// note says which faults were injected, and which were not.
func (f *faultPlan) note(r *report.Report) {
	for _, p := range []*fault.Plan{f.client, f.server} {
		for _, a := range []fault.Action{fault.Delay, fault.Drop, fault.Disconnect, fault.Credits, fault.ErrChunk, fault.RNR} {
			if n := p.Done()[a]; n > 0 {
				r.Notes = append(r.Notes, fmt.Sprintf("fault injected: %s, %d times", a, n))
			}
		}
	}
	for _, i := range f.client.Unused() {
		r.Notes = append(r.Notes, unused(f.ours[i]))
	}
	for _, i := range f.server.Unused() {
		r.Notes = append(r.Notes, unused(f.theirs[i]))
	}
}

// unused says that a fault found nothing to apply to.
func unused(written string) string { return fmt.Sprintf("fault not injected: no call was %s", written) }
