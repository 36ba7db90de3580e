package run_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// TestNoReclaimComplete: a client whose RECLAIM_COMPLETE the capture lacks may open files all the same.
func TestNoReclaimComplete(t *testing.T) {
	for _, c := range []struct {
		name string
		lack bool
		note int
	}{
		{"as captured", false, 0},
		{"without", true, 1},
	} {
		w := load(t, sample(t, "rocev2-nfs41-mixed-load"), planner.Options{})
		found := 0
		for _, o := range w.Ops {
			if k := o.Compound; k != nil && k.Ops[len(k.Ops)-1].Op == uint32(nfs4.OP_RECLAIM_COMPLETE) {
				if found++; c.lack {
					k.Ops, o.Expect = k.Ops[:1], nil
				}
			}
		}
		o, _ := rig(t, providers.Options{Name: "tcp"}, "4.1")
		o.Timing = run.Fast
		r, err := run.Run(t.Context(), w, o)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := r.Text(&text); err != nil || found != 1 || !r.Explained() || strings.Count(text.String(), "RECLAIM_COMPLETE") < c.note || c.note == 0 && strings.Contains(text.String(), "note:") {
			t.Errorf("%s: %v, found %d\n%s", c.name, err, found, &text)
		}
		if r.Retried > 40 {
			t.Errorf("%s: calls were sent again %d times", c.name, r.Retried) // one call asks for the end of the grace period, not all
		}
	}
}

// TestDelegationsLeft: delegations that the plan leaves behind with the last session of a client are returned, so that the
// read-back need not wait until they are revoked.
func TestDelegationsLeft(t *testing.T) {
	w := load(t, sample(t, "rocev2-nfs42-basic"), planner.Options{})
	left, ended := 0, 0
	for _, o := range w.Ops {
		if o.Compound == nil {
			continue
		}
		last := len(o.Compound.Ops) - 1
		switch nfs4.NfsOpnum4(o.Compound.Ops[last].Op) {
		case nfs4.OP_DELEGRETURN:
			o.Compound.Ops, o.Expect = o.Compound.Ops[:last], nil
			left++
		case nfs4.OP_DESTROY_SESSION:
			ended++
		}
	}
	o, _ := rig(t, providers.Options{Name: "tcp"}, "4.2")
	o.Timing, o.VerifyFiles = run.Fast, true
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := run.Run(ctx, w, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Explained() {
		t.Errorf("DESTROY_CLIENTID of a client with delegations: %v %+v", r.Totals, r.Mismatches)
	}
	if b := r.ReadBack; left == 0 || ended == 0 || b == nil || b.Ended != "" || len(b.Wrong) > 0 {
		t.Errorf("%d delegations left, %d sessions ended: %+v", left, ended, b)
	}
}

// hasty is a server that recalls the first delegation before its reply to the OPEN is on the way.
type hasty struct {
	transport.Handler
	change func(handle []byte) // by somebody else
	once   sync.Once
	late   atomic.Bool
}

func (h *hasty) ServeRPC(x transport.Exchange) { h.Handler.ServeRPC(hastyReply{x, h}) }

type hastyReply struct {
	transport.Exchange
	h *hasty
}

func (x hastyReply) Reply(m *transport.Message) {
	var head oncrpc.Reply
	var res nfs4.CompoundRes
	var r xdr.Reader
	hold := false
	if len(compoundArgs(x.Exchange).Ops) > 0 && head.Decode(m.Stream, len(m.Stream)) == nil {
		r.Reset(m.Stream[head.Size():], len(m.Stream)-head.Size())
		res.Decode(&r)
	}
	for i := range res.Ops {
		open, ok := res.Ops[i].Body.(*nfs4.OPEN4res)
		if !ok || open.Resok4.Delegation.DelegationType != nfs4.OPEN_DELEGATE_READ || i+1 >= len(res.Ops) {
			continue
		}
		if fh, ok := res.Ops[i+1].Body.(*nfs4.GETFH4res); ok && fh.Status == nfs4.NFS4_OK {
			handle := bytes.Clone(fh.Resok4.Object)
			x.h.once.Do(func() {
				hold = true
				x.h.late.Store(true)
				go x.h.change(handle)
			})
		}
	}
	if !hold {
		x.Exchange.Reply(m)
		return
	}
	kept := *m
	time.AfterFunc(200*time.Millisecond, func() { x.Exchange.Reply(&kept) })
}

// TestEarlyRecall: a recall that overtakes the reply with the delegation is not forgotten.
func TestEarlyRecall(t *testing.T) {
	w := load(t, sample(t, "iwarp-nfs40-basic"), planner.Options{})
	h := &hasty{}
	o, _ := rigOf(t, providers.Options{Name: "tcp"}, "4.0", func(to transport.Handler) transport.Handler {
		h.Handler = to
		return h
	})
	o.Timing = run.Fast
	changed := make(chan error, 1)
	fs := look(t, o)
	h.change = func(handle []byte) {
		mode := uint32(0o644)
		changed <- fs.Setattr(t.Context(), handle, client.SetAttr{Mode: &mode})
	}
	r, err := run.Run(within(t), w, o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || !h.late.Load() || strings.Contains(text.String(), "was not sent") {
		t.Errorf("%v, held %v\n%s", err, h.late.Load(), &text)
	}
	select {
	case err := <-changed:
		if err != nil {
			t.Log(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("somebody else still waits for the delegation")
	}
}
