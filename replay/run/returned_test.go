package run_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	nfsserver4 "github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// beginning is the first packets of a capture.
type beginning struct {
	capture.Reader
	left int
}

func (b *beginning) Read(batch *capture.Batch) error {
	if b.left == 0 {
		return io.EOF
	}
	err := b.Reader.Read(batch)
	batch.Packets = batch.Packets[:min(len(batch.Packets), b.left)]
	b.left -= len(batch.Packets)
	return err
}

// returning counts the delegations that are returned.
type returning struct {
	transport.Handler
	n atomic.Int32
}

func (h *returning) ServeRPC(x transport.Exchange) {
	args := compoundArgs(x)
	for i := range args.Ops {
		if args.Ops[i].Number == uint32(nfs4.OP_DELEGRETURN) {
			h.n.Add(1)
		}
	}
	h.Handler.ServeRPC(x)
}

// TestDelegationsReturned: if the capture ends before its client returns a delegation, the run returns it. The read-back would wait for
// it as long as a lease.
func TestDelegationsReturned(t *testing.T) {
	file, err := capture.Open([]string{sample(t, "rocev2-nfs42-basic")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := filepath.Join(t.TempDir(), "plan")
	summary, err := planner.Build(context.Background(), &beginning{file, 2700}, out, decode.Options{}, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	planned := summary.Procedures["DELEGRETURN"]
	var h returning
	o, hangUp := rigWith(t, providers.Options{Name: "tcp"}, "4.2", providers.ServerOptions{}, func(to transport.Handler) transport.Handler {
		h.Handler = to
		return &h
	})
	o.Timing, o.CallbackWait, o.Timeout = run.Fast, time.Second, time.Minute
	w := loaded(t, out)
	r, err := run.Run(t.Context(), w, o)
	hangUp()
	if err != nil {
		t.Fatal(err)
	}
	if n := int(h.n.Load()); n <= planned || len(r.Notes) > 0 {
		t.Errorf("%d delegations returned, of them %d by the plan; notes %q", n, planned, r.Notes)
	}
}

// TestOpenOnlyHere: an OPEN that only this server has allowed is undone, and so is the delegation that came with it. The server would
// consider the client busy when it ends.
func TestOpenOnlyHere(t *testing.T) {
	w := load(t, sample(t, "rocev2-nfs42-basic"), planner.Options{})
	var only *plan.Op
	for _, o := range w.Ops {
		if slices.ContainsFunc(o.Binds, func(b plan.Bind) bool { return b.Kind == plan.FieldState && b.State == plan.DelegationState }) {
			only = o
		}
	}
	at := slices.IndexFunc(only.Compound.Ops, func(c plan.CompoundOp) bool { return c.Op == uint32(nfs4.OP_OPEN) })
	only.Binds = nil
	only.Expect = &plan.Expect{Status: uint32(nfs4.NFS4ERR_ACCESS), Ops: append(make([]uint32, at), uint32(nfs4.NFS4ERR_ACCESS))}
	o, _ := rig(t, providers.Options{Name: "tcp"}, "4.2")
	o.Timing = run.Fast
	r, err := run.Run(t.Context(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || r.Totals["different"] != 1 || strings.Contains(text.String(), "CLIENTID_BUSY") || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "attributes") {
		t.Errorf("op %d: %v\n%s", only.ID, err, &text)
	}
}

// spoiling makes the first state id that is not the anonymous one, of those of ALLOCATE and CLONE, one that the server does not know.
type spoiling struct {
	transport.Handler
	spoilt atomic.Bool
}

func (h *spoiling) ServeRPC(x transport.Exchange) {
	args := compoundArgs(x)
	for i := range args.Ops {
		var id nfs4.Stateid4
		switch a := args.Ops[i].Body.(type) {
		case *nfs4.ALLOCATE4args:
			id = a.AaStateid
		case *nfs4.CLONE4args:
			id = a.ClSrcStateid
		}
		if id != (nfs4.Stateid4{}) && h.spoilt.CompareAndSwap(false, true) {
			s := x.Call().Stream
			clear(s[bytes.LastIndex(s, id.Other[:])+4:][:8])
		}
	}
	h.Handler.ServeRPC(x)
}

// TestSubstituteClosed: an open that serves for a delegation which this server has not given may be closed while the call is
// under way. Another state id serves then.
func TestSubstituteClosed(t *testing.T) {
	w := load(t, sample(t, "rocev2-nfs42-basic"), planner.Options{})
	var h spoiling
	o, _ := rigWith(t, providers.Options{Name: "tcp"}, "4.2", providers.ServerOptions{V4: nfsserver4.Options{NoDelegations: true}}, func(to transport.Handler) transport.Handler {
		h.Handler = to
		return &h
	})
	o.Timing = run.Fast
	r, err := run.Run(t.Context(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || !r.Explained() || !h.spoilt.Load() {
		t.Errorf("spoilt: %v, %v\n%s", h.spoilt.Load(), err, &text)
	}
}
