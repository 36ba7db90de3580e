// Package portmapd answers the questions that clients ask a port mapper (RFC 1833): at which
// port this server has a program. Nobody can register anything.
package portmapd

import (
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/portmap"
)

// Service is a version of a program at a port.
type Service struct {
	Program, Version uint32
	Network          string // "tcp" or "udp"
	Port             uint16
}

type server struct{ list []Service }

type form struct {
	mapping rpcbind.Mapping
	rpcb    rpcbind.Rpcb
}

// Programs are the versions of the port mapper, as programs of an RPC server.
func Programs(list []Service) []nfsserver.Program {
	s := &server{list}
	state := func() any { return new(form) }
	v2 := nfsserver.Program{Name: "portmap", Number: rpcbind.PMAP_PROG, Version: rpcbind.PMAP_VERS, NewState: state, Procedures: []nfsserver.Procedure{
		rpcbind.PMAPPROC_NULL:    {Name: "NULL", Do: nfsserver.Null, Inline: true},
		rpcbind.PMAPPROC_GETPORT: {Name: "GETPORT", Do: s.getport},
		rpcbind.PMAPPROC_DUMP:    {Name: "DUMP", Do: s.dump},
	}}
	out := []nfsserver.Program{v2}
	for _, version := range []uint32{rpcbind.RPCBVERS, rpcbind.RPCBVERS4} {
		out = append(out, nfsserver.Program{Name: "rpcbind", Number: rpcbind.RPCBPROG, Version: version, NewState: state, Procedures: []nfsserver.Procedure{
			rpcbind.RPCBPROC_NULL:    {Name: "NULL", Do: nfsserver.Null, Inline: true},
			rpcbind.RPCBPROC_GETADDR: {Name: "GETADDR", Do: s.getaddr},
		}})
	}
	return out
}

// find returns the port of a program. As with others, one that is there in another version
// counts: the call tells which versions there are.
func (s *server) find(program, version uint32, network string) uint16 {
	has := func(exact bool) int {
		return slices.IndexFunc(s.list, func(x Service) bool {
			return x.Program == program && x.Network == network && (!exact || x.Version == version)
		})
	}
	for _, exact := range []bool{true, false} {
		if i := has(exact); i >= 0 {
			return s.list[i].Port
		}
	}
	return 0
}

func (s *server) getport(c *nfsserver.Call) {
	m := &c.State.(*form).mapping
	if !c.Decode(m) {
		return
	}
	network := ""
	switch rpcbind.Ipproto(m.Prot) {
	case rpcbind.IPPROTO_TCP:
		network = "tcp"
	case rpcbind.IPPROTO_UDP:
		network = "udp"
	}
	c.Out = xdr.AppendUint32(c.Out, uint32(s.find(m.Prog, m.Vers, network)))
	c.Send()
}

// dump lists all. Over UDP, where the sender of a call may be another one than it says, no reply
// is much longer than its call.
func (s *server) dump(c *nfsserver.Call) {
	if c.Peer().Transport == "udp" {
		c.Fail(oncrpc.ProcUnavail)
		return
	}
	if c.Args.Remaining() != 0 {
		c.Fail(oncrpc.GarbageArgs)
		return
	}
	for _, x := range s.list {
		prot := rpcbind.IPPROTO_TCP
		if x.Network == "udp" {
			prot = rpcbind.IPPROTO_UDP
		}
		c.Out = xdr.AppendBool(c.Out, true)
		c.Out = (&rpcbind.Mapping{Prog: x.Program, Vers: x.Version, Prot: uint32(prot), Port: uint32(x.Port)}).Append(c.Out)
	}
	c.Out = xdr.AppendBool(c.Out, false)
	c.Send()
}

func (s *server) getaddr(c *nfsserver.Call) {
	a := &c.State.(*form).rpcb
	if !c.Decode(a) {
		return
	}
	network := string(a.RNetid)
	switch network {
	case "tcp6":
		network = "tcp"
	case "udp6":
		network = "udp"
	}
	at := ""
	if port := s.find(a.RProg, a.RVers, network); port != 0 {
		at = portmap.Universal(netip.AddrPortFrom(c.Peer().Local.Addr(), port))
	}
	c.Out = xdr.AppendOpaque(c.Out, []byte(at))
	c.Send()
}
