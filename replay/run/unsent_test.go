package run_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// TestTooLong: a call that this endpoint cannot lay out is not sent, rather than lost, and explains what follows from that.
func TestTooLong(t *testing.T) {
	w := load(t, sample(t, "iwarp-nfs40-basic"), planner.Options{})
	o, _ := rig(t, providers.Options{Name: "iwarp", Endpoint: endpoint.Options{SegmentSize: 4096}}, "4.0")
	o.Timing = run.Fast
	r, err := run.Run(t.Context(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || r.Totals["not sent"] != 3 || r.Totals["lost"] != 0 || !strings.Contains(text.String(), "the message is too long") || r.Totals["different"]+r.Totals["worse"] != 0 {
		t.Errorf("%v\n%s", err, &text)
	}
}

// losing loses the replies to some READs that the server has executed.
type losing struct {
	transport.Handler
	n atomic.Int32
}

func (h *losing) ServeRPC(x transport.Exchange) {
	args := compoundArgs(x)
	for i := range args.Ops {
		if args.Ops[i].Number == uint32(nfs4.OP_READ) && h.n.Add(1)%10 == 0 {
			x = lostReply{x}
		}
	}
	h.Handler.ServeRPC(x)
}

type lostReply struct{ transport.Exchange }

func (x lostReply) Reply(*transport.Message) {
	x.Disconnect()
	x.Drop()
}

// TestUnkept: a call that is sent again after a reconnect, and whose reply the session has not kept, is sent as a new one.
func TestUnkept(t *testing.T) {
	w := load(t, sample(t, "rocev2-nfs41-mixed-load"), planner.Options{})
	var h losing
	o, _ := rigOf(t, providers.Options{Name: "tcp", TCP: tcprpc.Options{Reconnect: true, BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond}}, "4.1", func(to transport.Handler) transport.Handler {
		h.Handler = to
		return &h
	})
	o.Timing = run.Fast
	r, err := run.Run(t.Context(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || !r.Explained() || !strings.Contains(text.String(), "the server had not kept its reply") {
		t.Errorf("%v, %d READs\n%s", err, h.n.Load(), &text)
	}
}
