package run

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// In NFSv4.0 a server calls its client on a connection of its own, at the
// address that SETCLIENTID has brought (RFC 7530, sections 3.3.3 and 16.33), and
// gives no delegation before a CB_NULL has been answered there (section 10.4).

// listenBack answers callbacks of NFSv4.0 for the captures in which they made a
// difference.
func (e *engine) listenBack(ctx context.Context) {
	if e.back != nil || len(e.all) == 0 || !e.load.delegates40() {
		return
	}
	at := e.all[0].req.Peer().Local.Addr().Unmap()
	if !at.IsValid() {
		return
	}
	s, err := tcprpc.Listen(ctx, netip.AddrPortFrom(at, 0).String(), backchannel{backward{e}}, tcprpc.Options{MaxRecord: 64 << 10, MaxCalls: 16, MaxConnections: 16})
	if err != nil {
		e.record.note("no delegations of NFSv4.0: %v", err)
		return
	}
	e.back, e.backAt = s, s.Addr()
	e.guard.Callback(e.universal())
}

// delegates40 reports whether a client of NFSv4.0 was given a delegation.
func (w *Workload) delegates40() bool {
	for i := range w.Tables.States {
		s := &w.Tables.States[i]
		if s.Kind == plan.DelegationState && s.Client > 0 && w.Tables.Clients[s.Client-1].Minor == 0 {
			return true
		}
	}
	return false
}

// appendLocation appends a cb_location: where we listen, or an address that
// cannot be reached, which keeps the server from giving delegations.
func (e *engine) appendLocation(dst []byte) []byte {
	network, at := "tcp", []byte("0.0.0.0.0.0")
	if e.back != nil {
		if e.backAt.Addr().Is6() {
			network = "tcp6"
		}
		at = e.universal()
	}
	return xdr.AppendOpaque(xdr.AppendOpaque(dst, []byte(network)), at)
}

// universal is where we listen, as a universal address (RFC 5665, sections 5.2.3.3
// and 5.2.3.4).
func (e *engine) universal() []byte {
	return fmt.Appendf(nil, "%s.%d.%d", e.backAt.Addr(), e.backAt.Port()>>8, e.backAt.Port()&0xff)
}

// awaitsProbe reports whether an op whose reply is there is to wait for a
// CB_NULL.
func (e *engine) awaitsProbe(f *flight, res xdr.Message) bool {
	c, ok := res.(*nfs4.CompoundRes)
	if e.back == nil || e.unprobed || !ok || c.Status != nfs4.NFS4_OK || f.op.Compound == nil || f.op.Compound.Minor != 0 {
		return false
	}
	for i := range f.op.Compound.Ops {
		if nfs4.NfsOpnum4(f.op.Compound.Ops[i].Op) == nfs4.OP_SETCLIENTID_CONFIRM {
			return true
		}
	}
	return false
}

// awaitProbe keeps a call from being over until the server has tried our
// address, or has not for some time. A server that did not is not waited for
// again.
func (e *engine) awaitProbe(f *flight) {
	e.mu.Lock()
	tried := e.probes
	e.mu.Unlock()
	if e.confirmed++; tried >= e.confirmed {
		e.end(f)
		return
	}
	e.probing = append(e.probing, f)
	until := e.confirmed
	time.AfterFunc(e.opt.CallbackWait, func() {
		e.mu.Lock()
		if e.probes < until {
			e.probes, e.late = until, true
		}
		e.mu.Unlock()
		e.poke()
	})
}

// probed ends the calls that have waited for CB_NULL.
func (e *engine) probed() {
	if len(e.probing) == 0 {
		return
	}
	if e.stopping != "" {
		for _, f := range e.probing {
			e.end(f)
		}
		e.probing = nil
		return
	}
	e.mu.Lock()
	tried, late := e.probes, e.late
	e.mu.Unlock()
	e.unprobed = e.unprobed || late
	for len(e.probing) > 0 && tried > e.confirmed-len(e.probing) {
		f := e.probing[0]
		e.probing = e.probing[1:]
		e.end(f)
	}
}

// backchannel answers calls of the server on connections that it has made.
type backchannel struct{ backward }

// ServeRPC counts CB_NULLs.
func (b backchannel) ServeRPC(x transport.Exchange) {
	var h oncrpc.Call
	s := x.Call().Stream
	null := h.Decode(s, len(s)) == nil && h.Procedure == 0
	b.backward.ServeRPC(x)
	if null {
		b.e.mu.Lock()
		b.e.probes++
		b.e.mu.Unlock()
		b.e.poke()
	}
}

// closeBack ends the listener.
func (e *engine) closeBack() {
	if e.back != nil {
		_ = e.back.Close()
	}
}
