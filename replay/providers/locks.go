package providers

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/portmapd"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/udprpc"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// callbackTime bounds what a client takes to accept a connection, and to answer.
const callbackTime = 5 * time.Second

// DialClient connects to a client's rpcbind, lock manager or status monitor (portmap.Dial).
func DialClient(ctx context.Context, network string, at netip.AddrPort) (transport.Requester, error) {
	if network == "udp" {
		return udprpc.Dial(ctx, at.String(), udprpc.Options{Timeout: callbackTime, MaxCalls: 1})
	}
	return tcprpc.Dial(ctx, at.String(), tcprpc.Options{
		MaxRecord: udprpc.MaxMessage, MaxCalls: 1, DialTimeout: callbackTime, Timeout: callbackTime, RecordTimeout: callbackTime, ReplyTimeout: callbackTime,
	})
}

// ListenLocks serves the lock manager and the status monitor of h over UDP.
func ListenLocks(ctx context.Context, at netip.AddrPort, h transport.Handler, t verbs.Tap) (Listener, error) {
	l, err := udprpc.Listen(ctx, at.String(), only(h, nlm.NLM_PROG, nsm.SM_PROG), udprpc.Options{Tap: t})
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	return l, nil
}

// only passes the calls of some programs on: others are not meant for UDP, where nobody knows
// who calls, and a reply may be larger than the call.
func only(h transport.Handler, programs ...uint32) transport.Handler {
	return transport.HandlerFunc(func(x transport.Exchange) {
		b := x.Call().Stream
		m, ok := oncrpc.Peek(b)
		for _, p := range programs {
			if ok && m.Program == p {
				h.ServeRPC(x)
				return
			}
		}
		if !ok {
			x.Drop()
			return
		}
		r := oncrpc.Reply{XID: m.XID, Stat: oncrpc.Accepted, Accept: oncrpc.ProgUnavail}
		x.Reply(&transport.Message{Stream: r.Append(nil)})
	})
}

// Portmapper tells clients where the programs of a server are.
type Portmapper struct {
	rpc  *nfsserver.Server
	list []Listener
}

// Portmap serves a port mapper at an address, over TCP and UDP, that knows the programs of
// the built-in server: at a port over TCP, and the lock manager at one over UDP; 0 is none.
func Portmap(ctx context.Context, at netip.AddrPort, tcp, udp uint16, o Options) (*Portmapper, error) {
	p := &Portmapper{rpc: nfsserver.New(nfsserver.Options{Replies: -1})}
	for _, prog := range portmapd.Programs(services(tcp, udp)) {
		p.rpc.Register(prog)
	}
	to := o.TCP
	to.Tap, to.Budget, to.MaxRecord = o.Tap, o.Budget, udprpc.MaxMessage
	l, err := tcprpc.Listen(ctx, at.String(), p.rpc, to)
	if err != nil {
		return nil, fmt.Errorf("port mapper: %w", err)
	}
	p.list = append(p.list, l)
	u, err := udprpc.Listen(ctx, l.Addr().String(), p.rpc, udprpc.Options{Tap: o.Tap})
	if err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("port mapper: %w", err)
	}
	p.list = append(p.list, u)
	return p, nil
}

// services lists what the built-in server serves.
func services(tcp, udp uint16) (list []portmapd.Service) {
	add := func(network string, port uint16, program uint32, versions ...uint32) {
		for _, v := range versions {
			if port != 0 {
				list = append(list, portmapd.Service{Program: program, Version: v, Network: network, Port: port})
			}
		}
	}
	add("tcp", tcp, 100003, 3, 4)
	add("tcp", tcp, 100005, 3)
	add("tcp", tcp, 100227, 3)
	for network, port := range map[string]uint16{"tcp": tcp, "udp": udp} {
		add(network, port, nlm.NLM_PROG, nlm.NLM_VERS, nlm.NLM_VERSX, nlm.NLM4_VERS)
		add(network, port, nsm.SM_PROG, nsm.SM_VERS)
	}
	return list
}

// PortPortmap is the port of rpcbind.
const PortPortmap = rpcbind.PMAP_PORT

// Addr is where it listens.
func (p *Portmapper) Addr() netip.AddrPort { return p.list[0].Addr() }

// Close ends it.
func (p *Portmapper) Close() error {
	for _, l := range p.list {
		_ = l.Close()
	}
	p.rpc.Close()
	return nil
}
