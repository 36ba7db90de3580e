package decode

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Class is what a packet turned out to be.
type Class uint8

// Classes of packets. Each packet of an input is of one.
const (
	ClassRDMA     Class = iota + 1 // of RoCE or InfiniBand: Kind.Fabric tells which
	ClassIWARP                     // of a TCP connection with iWARP
	ClassRPC                       // of RPC over TCP or UDP
	ClassTCP                       // other TCP: Kind.Port is the port of the service
	ClassUDP                       // other UDP
	ClassFragment                  // an IP fragment that did not complete a datagram
	ClassUnknown                   // Kind.Unknown names what is not decoded
	ClassDamaged                   // Kind.Problem says why its headers could not be decoded
	ClassOther                     // of a kind beyond the limit of kinds that are distinguished
	ClassKernel                    // trace events of a kernel
)

// Kind is what packets of an Account have in common.
type Kind struct {
	Class   Class
	Fabric  rdma.Fabric     // ClassRDMA, ClassRPC
	Port    uint16          // ClassTCP, ClassUDP: the port with a name, else the lower one
	Tunnel  link.TunnelType // the outermost wrapping
	Unknown link.Unknown    // also of a wrapping of type Unnamed, in which the packet was found Skipped bytes further in
	Skipped uint16
	Problem Problem
}

// Problem says why the headers of a packet could not be decoded: one of the fields is
// set, or none.
type Problem struct {
	Link link.Problem // up to the transport protocol
	RoCE roce.Problem
}

// String is the problem in plain English; empty if there is none.
func (p Problem) String() string {
	if p.Link != link.NoProblem {
		return p.Link.String()
	}
	return p.RoCE.String()
}

// Count is a Kind with its packets and their bytes on the wire.
type Count struct {
	Kind
	Packets, Bytes uint64
}

// Service identifies the service of connections without RPC, as announced in their setup.
type Service struct {
	Fabric      rdma.Fabric
	Port        uint16 // of IP-CM or TCP; 0 if there is none
	ID          uint64 // service id of the connection management; 0 on iWARP
	Connections int
}

// Account says what became of every packet: the numbers of Kinds add up to
// Packets.
type Account struct {
	Packets      uint64
	Transactions uint64
	Kinds        []Count   // the most frequent first
	Services     []Service // of connections without a transaction; the most frequent first
	// Malformed are the Sends of RPC-over-RDMA whose transport headers cannot be decoded.
	Malformed transaction.Malformed
}

const (
	// maxKinds bounds the kinds that are distinguished: ports and protocols are chosen by senders.
	maxKinds = 256
	// maxServices bounds the services.
	maxServices = 64
)

// account counts packets by kind.
type account struct {
	fast, fastBytes uint64 // packets of RoCEv2 on the fast path
	kinds           map[Kind]*Count
	last            *Count
	services        map[Service]int
}

func (a *account) add(k Kind, bytes uint32) *Count {
	c := a.last
	if c == nil || c.Kind != k {
		if c = a.kinds[k]; c == nil {
			if len(a.kinds) >= maxKinds {
				k = Kind{Class: ClassOther}
				c = a.kinds[k]
			}
			if c == nil {
				if a.kinds == nil {
					a.kinds = make(map[Kind]*Count)
				}
				c = &Count{Kind: k}
				a.kinds[k] = c
			}
		}
		a.last = c
	}
	c.Packets++
	c.Bytes += uint64(bytes)
	return c
}

// tcp is the kind of a TCP segment of a connection, nil if it has none; known is what is known of the
// connection. Packets from before a connection was recognised later count as its kind.
func (a *account) tcp(k Kind, c *tcpConn, known *rdma.Connection, bytes uint32) Kind {
	if known == nil {
		if c != nil {
			c.early++
			c.earlyBytes += uint64(bytes)
		}
		return k
	}
	of := Kind{Class: ClassRPC, Fabric: rdma.TCP, Tunnel: k.Tunnel}
	if known.Fabric == rdma.IWARP {
		of = Kind{Class: ClassIWARP, Tunnel: k.Tunnel}
	}
	if c != nil && c.early > 0 {
		from := a.kinds[k]
		if from != nil && from.Packets >= c.early && from.Bytes >= c.earlyBytes { // else beyond the limit of kinds
			from.Packets -= c.early
			from.Bytes -= c.earlyBytes
			to := a.add(of, 0)
			to.Packets += c.early - 1 // add has counted one
			to.Bytes += c.earlyBytes
			if from.Packets == 0 {
				delete(a.kinds, k)
				a.last = nil
			}
		}
		c.early, c.earlyBytes = 0, 0
	}
	return of
}

// servicePort is the port of the service: the one with a name, since clients of NFS have low ports, too; else the lower one.
func servicePort(f *link.Frame) uint16 {
	low, high := min(f.SrcPort, f.DstPort), max(f.SrcPort, f.DstPort)
	if rdma.ServiceName(low) == "" && rdma.ServiceName(high) != "" {
		return high
	}
	return low
}

// kindOf is the kind of a packet that belongs to no connection of interest.
func kindOf(f *link.Frame) Kind {
	k := Kind{Unknown: f.Unknown.Kind(), Problem: Problem{Link: f.Problem}}
	k.within(f)
	switch {
	case f.Problem != link.NoProblem:
		k.Class = ClassDamaged
	case f.Proto == link.TCP:
		k.Class, k.Port = ClassTCP, servicePort(f)
	case f.Proto == link.UDP:
		k.Class, k.Port = ClassUDP, servicePort(f)
	case f.Proto == link.Fragment:
		k.Class = ClassFragment
	default:
		k.Class = ClassUnknown
	}
	return k
}

// within takes the outermost wrapping of a frame.
func (k *Kind) within(f *link.Frame) {
	if o := f.Outermost(); o != nil {
		if k.Tunnel = o.Type; o.Type == link.Unnamed {
			k.Unknown, k.Skipped = o.Within, o.Skipped
		}
	}
}

// closed records the service of a connection that ended without RPC.
func (a *account) closed(c *rdma.Connection) {
	if c.MergedInto != nil || transaction.CallsOf(c).Ended > 0 || c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
		return
	}
	s := Service{Fabric: c.Fabric, ID: c.Setup[0].ServiceID, Port: c.Ends[1].Port}
	if s.ID == 0 && s.Port == 0 || c.Fabric == rdma.IWARP && !c.Setup[0].Seen() {
		return
	}
	if a.services == nil {
		a.services = make(map[Service]int)
	}
	if _, ok := a.services[s]; ok || len(a.services) < maxServices {
		a.services[s]++
	}
}

// merge adds what another account has counted, within the same limits. Which kinds are beyond them does not depend
// on the order of maps.
func (a *account) merge(o *account) {
	a.fast += o.fast
	a.fastBytes += o.fastBytes
	kinds := slices.Collect(maps.Values(o.kinds))
	slices.SortFunc(kinds, func(x, y *Count) int { return compareKinds(&x.Kind, &y.Kind) })
	for _, c := range kinds {
		to := a.add(c.Kind, 0)
		to.Packets += c.Packets - 1 // add has counted one
		to.Bytes += c.Bytes
	}
	services := slices.SortedFunc(maps.Keys(o.services), compareServices)
	for _, s := range services {
		if a.services == nil {
			a.services = make(map[Service]int)
		}
		if _, ok := a.services[s]; ok || len(a.services) < maxServices {
			a.services[s] += o.services[s]
		}
	}
}

// compareKinds orders kinds by what is shown of them, as package account orders those of merged accounts.
func compareKinds(x, y *Kind) int {
	return cmp.Or(cmp.Compare(x.Class, y.Class), cmp.Compare(x.Fabric, y.Fabric),
		cmp.Compare(x.Port, y.Port), cmp.Compare(x.Tunnel.String(), y.Tunnel.String()),
		cmp.Compare(x.Unknown.String(), y.Unknown.String()), cmp.Compare(x.Problem.String(), y.Problem.String()),
		cmp.Compare(x.Unknown.Layer, y.Unknown.Layer), cmp.Compare(x.Unknown.Value, y.Unknown.Value), cmp.Compare(x.Skipped, y.Skipped),
		cmp.Compare(x.Problem.Link, y.Problem.Link), cmp.Compare(x.Problem.RoCE, y.Problem.RoCE))
}

func compareServices(x, y Service) int {
	return cmp.Or(cmp.Compare(x.Fabric, y.Fabric), cmp.Compare(x.Port, y.Port), cmp.Compare(x.ID, y.ID))
}

// Account returns what became of the packets so far.
func (d *Decoder) Account() Account {
	a := Account{Packets: d.stats.Packets, Transactions: d.stats.Transactions, Malformed: d.Orphans().Malformed}
	tally := &d.tally
	if d.groups != nil {
		tally = new(account)
		tally.merge(&d.tally)
		for g := range d.groups.all() {
			a.Transactions += g.d.stats.Transactions
			tally.merge(&g.d.tally)
		}
	}
	for _, c := range tally.kinds {
		a.Kinds = append(a.Kinds, *c)
	}
	if tally.fast > 0 {
		k := Kind{Class: ClassRDMA, Fabric: rdma.RoCEv2}
		i := slices.IndexFunc(a.Kinds, func(c Count) bool { return c.Kind == k })
		if i < 0 {
			i = len(a.Kinds)
			a.Kinds = append(a.Kinds, Count{Kind: k})
		}
		a.Kinds[i].Packets += tally.fast
		a.Kinds[i].Bytes += tally.fastBytes
	}
	slices.SortFunc(a.Kinds, func(x, y Count) int {
		return cmp.Or(cmp.Compare(y.Packets, x.Packets), compareKinds(&x.Kind, &y.Kind))
	})
	for s, n := range tally.services {
		s.Connections = n
		a.Services = append(a.Services, s)
	}
	slices.SortFunc(a.Services, func(x, y Service) int {
		return cmp.Or(cmp.Compare(y.Connections, x.Connections), compareServices(x, y))
	})
	return a
}
