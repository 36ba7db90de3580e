package fault_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/fault"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/transport"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]fault.Spec{
		"xid=0xab:delay=10ms":    {Action: fault.Delay, Time: 10 * time.Millisecond, XID: 0xab, HasXID: true},
		"op=3:drop":              {Action: fault.Drop, Time: 100 * time.Millisecond, Op: 3},
		"op=3:drop=1s":           {Action: fault.Drop, Time: time.Second, Op: 3},
		"op=3:drop=2":            {Action: fault.Drop, Time: 2 * time.Second, Op: 3},
		"op=3:delay=0.5":         {Action: fault.Delay, Time: 500 * time.Millisecond, Op: 3},
		"call=5:disconnect":      {Action: fault.Disconnect, Call: 5},
		"every=2:credits=1":      {Action: fault.Credits, Number: 1, Every: 2},
		"all:err_chunk":          {Action: fault.ErrChunk, Every: 1},
		"rnr=4":                  {Action: fault.RNR, Number: 4, Every: 1},
		"xid=138a9383:err_chunk": {Action: fault.ErrChunk, XID: 0x138a9383, HasXID: true},
	} {
		got, err := fault.Parse(s)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "op=0:drop", "op=x:drop", "op=1:fly", "op=1:delay", "op=1:delay=-1s", "xid=g:drop", "all:credits=0",
		"op=1:rnr=2", "all:disconnect=1", "rnr=x", "every=0:drop", "what=1:drop",
		"all:credits=4294967296", "rnr=99999999999"} {
		if f, err := fault.Parse(s); err == nil {
			t.Errorf("%q became %+v", s, f)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("xid=0xab:delay=10ms")
	f.Add("rnr=4")
	f.Fuzz(func(t *testing.T, s string) {
		if spec, err := fault.Parse(s); err == nil && spec.Action.String() == "" {
			t.Error("an action without a name")
		}
	})
}

// rig joins a client and a server with faults on either side.
func rig(t *testing.T, fabric string, ours, theirs *fault.Plan) (client.RPC, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	o := providers.Options{Name: fabric, Endpoint: endpoint.Options{Reconnect: true, BackoffMin: time.Millisecond, RNRRetryCount: 7}, Wrapped: ours.Provider}
	server, clients, at, err := providers.Pair(o, func(o *providers.Options) { o.Wrapped = theirs.Provider })
	if err != nil {
		t.Fatal(err)
	}
	s := providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{})
	l, err := server.Listen(ctx, at, theirs.Handler(s))
	if err != nil {
		t.Fatal(err)
	}
	r, err := clients.Dial(ctx, l.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), clients.Close(), server.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return client.RPC{Requester: ours.Requester(r, nil)}, ctx
}

// start makes calls with Start, n of them, and returns their errors.
func start(ctx context.Context, t *testing.T, r client.RPC, n int) []error {
	t.Helper()
	out := make([]error, n)
	done := make(chan int, n)
	calls := make([]client.Call, n)
	for i := range calls {
		c := &calls[i]
		c.MaxReply = 128
		c.Build(client.Procedure{Program: 100003, Version: 3}, r.Cred, void{})
		c.Done = func(c *transport.Call) { out[i] = c.Err; done <- i }
		r.Requester.Start(&c.Call)
	}
	for range n {
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
	return out
}

func parse(t *testing.T, specs ...string) *fault.Plan {
	t.Helper()
	var out []fault.Spec
	for _, s := range specs {
		f, err := fault.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return fault.New(out)
}

// TestRecovery makes calls through faults that both ends get over.
func TestRecovery(t *testing.T) {
	for _, fabric := range []string{"iwarp", "rocev2"} {
		for _, c := range []struct {
			name, ours, theirs string
			want               fault.Action
		}{
			{"delay of calls", "every=5:delay=5ms", "", fault.Delay},
			{"delay of replies", "", "every=5:delay=5ms", fault.Delay},
			{"lost replies", "every=7:drop=5ms", "", fault.Drop},
			{"client hangs up", "call=20:disconnect", "", fault.Disconnect},
			{"server hangs up", "", "call=20:disconnect", fault.Disconnect},
			{"fewer credits asked", "every=3:credits=1", "", fault.Credits},
			{"fewer credits granted", "", "every=3:credits=1", fault.Credits},
		} {
			t.Run(fabric+"/"+c.name, func(t *testing.T) {
				var ours, theirs *fault.Plan
				if c.ours != "" {
					ours = parse(t, c.ours)
				}
				if c.theirs != "" {
					theirs = parse(t, c.theirs)
				}
				r, ctx := rig(t, fabric, ours, theirs)
				for i, err := range start(ctx, t, r, 60) {
					if err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				}
				if ours.Done()[c.want]+theirs.Done()[c.want] == 0 {
					t.Errorf("no %s was injected", c.want)
				}
			})
		}
	}
}

// TestRefused answers a call with ERR_CHUNK: that call fails, and no other.
func TestRefused(t *testing.T) {
	p := parse(t, "call=3:err_chunk")
	r, ctx := rig(t, "iwarp", nil, p)
	for i := range 6 {
		err := start(ctx, t, r, 1)[0]
		var remote *endpoint.RemoteError
		if (i == 2) != errors.As(err, &remote) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if p.Done()[fault.ErrChunk] != 1 {
		t.Errorf("%v", p.Done())
	}
}

// TestNotReady posts one receive where eight calls come at once: RoCEv2 tells
// the sender to come again.
func TestNotReady(t *testing.T) {
	p := parse(t, "rnr=1")
	r, ctx := rig(t, "rocev2", nil, p)
	for i, err := range start(ctx, t, r, 40) {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if p.Done()[fault.RNR] == 0 {
		t.Error("no receive was held back")
	}
}

// void has no arguments.
type void = xdr.Void
