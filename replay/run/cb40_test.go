package run_test

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// prober acts like an NFSv4.0 server that gives delegations: when it confirms a client, it tries
// the client's callback address.
type prober struct {
	transport.Handler
	silent bool
	sent   atomic.Int32 // CB_NULLs
	tried  chan error
	opened chan struct{}
	at     netip.AddrPort
	opens  int // that came after the confirmation
	early  int // of these, those that came before a CB_NULL was sent
}

// compoundArgs is what a call asks for, if it is a COMPOUND.
func compoundArgs(x transport.Exchange) (args nfs4.CompoundArgs) {
	s := x.Call().Stream
	var h oncrpc.Call
	var r xdr.Reader
	if h.Decode(s, len(s)) == nil && h.Procedure == 1 {
		r.Reset(s[h.Size():], len(s)-h.Size())
		args.Decode(&r)
	}
	return args
}

func (p *prober) ServeRPC(x transport.Exchange) {
	args := compoundArgs(x)
	for i := range args.Ops {
		switch a := args.Ops[i].Body.(type) {
		case *nfs4.SETCLIENTID4args:
			p.at = universal(string(a.Callback.CbLocation.NaRAddr))
			// The server behind does not get the address, or it would call, too.
			for i := range a.Callback.CbLocation.NaRAddr {
				a.Callback.CbLocation.NaRAddr[i] = '0'
			}
		case *nfs4.SETCLIENTID_CONFIRM4args:
			if p.at.Port() != 0 && !p.silent {
				go func(at netip.AddrPort) { p.tried <- p.null(at) }(p.at)
			}
		}
	}
	if p.at.Port() != 0 && slices.ContainsFunc(args.Ops, func(o nfs4.Op) bool { return o.Number == uint32(nfs4.OP_OPEN) }) {
		if p.opens++; p.sent.Load() == 0 {
			p.early++
		}
		select {
		case p.opened <- struct{}{}:
		default:
		}
	}
	p.Handler.ServeRPC(x)
}

// universal reads an address whose last two parts are the port.
func universal(s string) netip.AddrPort {
	parts := strings.Split(s, ".")
	if len(parts) != 6 {
		return netip.AddrPort{}
	}
	ip, _ := netip.ParseAddr(strings.Join(parts[:4], "."))
	high, _ := strconv.ParseUint(parts[4], 10, 8)
	low, _ := strconv.ParseUint(parts[5], 10, 8)
	return netip.AddrPortFrom(ip, uint16(high<<8|low))
}

// null sends CB_NULL.
func (p *prober) null(at netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := tcprpc.Dial(ctx, at.String(), tcprpc.Options{})
	if err != nil {
		return err
	}
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: 0x40000000, Version: 1}
	// A client that does not wait has time to show it.
	select {
	case <-p.opened:
	case <-time.After(50 * time.Millisecond):
	}
	p.sent.Add(1)
	err = c.Do(ctx, &transport.Call{Message: transport.Message{Stream: h.Append(nil)}})
	_ = c.Close()
	return err
}

// TestCallback40: an NFSv4.0 server reaches a client at the address that it is given, and nothing
// is opened before it has tried or had time to.
func TestCallback40(t *testing.T) {
	w := load(t, "../../samples/iwarp-nfs40-basic.pcap.zst", planner.Options{})
	for _, silent := range []bool{false, true} {
		p := &prober{silent: silent, tried: make(chan error, 16), opened: make(chan struct{}, 1)}
		o, hangUp := rigOf(t, providers.Options{Name: "tcp"}, w.Version(), func(h transport.Handler) transport.Handler {
			p.Handler = h
			return p
		})
		o.Timing, o.CallbackWait = run.Fast, time.Minute
		if silent {
			o.CallbackWait = time.Millisecond
		}
		r, err := run.Run(within(t), w, o)
		if err != nil {
			t.Fatal(err)
		}
		hangUp()
		if !r.Explained() || p.opens == 0 {
			t.Errorf("%v, %d opens, callbacks to %v", r.Totals, p.opens, p.at)
		}
		if silent {
			continue
		}
		if p.early > 0 || p.sent.Load() == 0 {
			t.Errorf("%d of %d opens came before CB_NULL; %d were sent", p.early, p.opens, p.sent.Load())
		}
		for range p.sent.Load() {
			if err := <-p.tried; err != nil {
				t.Error(err)
			}
		}
	}
}
