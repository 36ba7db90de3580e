// Package auto chooses a verbs provider and explains the choice.
//
// An RDMA device of the system is preferred, if the program can use it and it reaches
// the peer. Otherwise it is a soft provider: RoCEv2 if its UDP port is free, iWARP if
// the peer listens at a TCP port.
package auto

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs/rdma"
	"github.com/rpcrdma/toolkit/replay/verbs/rocev2"
)

// Names are the names that New accepts.
var Names = []string{"auto", "rdma", "rocev2", "iwarp"}

// Options holds the options of all providers. Only those of the chosen one are used.
type Options struct {
	RDMA   rdma.Options
	RoCEv2 rocev2.Options
	IWARP  iwarp.Options
}

// Purpose says what the provider is for: to reach Remote, or else to listen at Local.
type Purpose struct {
	Remote, Local netip.AddrPort
}

// Report is a choice and its reasons.
type Report struct {
	Provider string   // "rdma", "rocev2", "iwarp"
	Findings []string // what was examined, with the result, in words
	Reason   string   // why this provider was chosen, in words
}

// String returns the report in lines of text.
func (r *Report) String() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s\n", f)
	}
	fmt.Fprintf(&b, "provider %s: %s\n", r.Provider, r.Reason)
	return b.String()
}

func (r *Report) found(format string, args ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

func (r *Report) choose(name, format string, args ...any) {
	r.Provider, r.Reason = name, fmt.Sprintf(format, args...)
}

// New makes the provider with the given name; "auto" is the one that Probe chooses. The
// report is useful even with an error.
func New(ctx context.Context, name string, p Purpose, o Options) (verbs.Provider, *Report, error) {
	r := &Report{Provider: name, Reason: "as asked"}
	if name == "auto" {
		r = Probe(ctx, p, o)
	}
	var v verbs.Provider
	var err error
	switch r.Provider {
	case "rdma":
		v, err = rdma.New(o.RDMA)
	case "rocev2":
		v, err = value(rocev2.New(o.RoCEv2))
	case "iwarp":
		v, err = value(iwarp.New(o.IWARP))
	default:
		err = fmt.Errorf("auto: no provider %q, only %s", name, strings.Join(Names, ", "))
	}
	if err != nil {
		return nil, r, err
	}
	return v, r, nil
}

// value keeps a nil pointer to a provider from becoming an interface that is not nil.
func value[P verbs.Provider](p P, err error) (verbs.Provider, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// system is what Probe needs to know about the system.
type system struct {
	rdma func() rdma.Report
	// route returns the interface for a purpose, and its address.
	route func(Purpose) (string, netip.Addr, error)
	// udp returns why the UDP port cannot be used.
	udp func(netip.Addr, uint16) error
	// tcp returns why the peer does not accept a TCP connection.
	tcp func(context.Context, netip.AddrPort) error
}

// Probe examines devices, routes and ports. It sends nothing, except that it opens a TCP
// connection to a peer that no RDMA device can reach.
func Probe(ctx context.Context, p Purpose, o Options) *Report {
	return probe(ctx, p, o, system{rdma: rdma.Probe, route: route, udp: udpPort, tcp: tcpPort})
}

func probe(ctx context.Context, p Purpose, o Options, s system) *Report {
	r := new(Report)
	dev, local, err := s.route(p)
	switch {
	case err != nil:
		r.found("route: %v", err)
	case p.Remote.IsValid():
		r.found("route: %v is reached over %s from %v", p.Remote.Addr(), dev, local)
	case dev == "":
		r.found("address: all interfaces")
	default:
		r.found("address: %v is on %s", local, dev)
	}

	d := s.rdma()
	if d.Missing != "" {
		r.found("rdma: %s", strings.TrimPrefix(d.Missing, "rdma: "))
	}
	for i := range d.Devices {
		x := &d.Devices[i]
		state := "is up"
		if !x.Active {
			state = "is down"
		}
		r.found("rdma: device %s (%s) on %s %s", x.Name, x.Fabric, strings.Join(x.Netdevs, ", "), state)
		if d.Missing == "" && x.Active && r.Provider == "" && (dev == "" || x.Fabric == "infiniband" || slices.Contains(x.Netdevs, dev)) {
			r.choose("rdma", "device %s can do it", x.Name)
		}
	}
	if r.Provider != "" {
		return r
	}
	if len(d.Devices) > 0 && d.Missing == "" {
		r.found("rdma: no device that is up is on %s", dev)
	}

	port := o.RoCEv2.Port
	if port == 0 {
		port = 4791
	}
	free := s.udp(local, port)
	if free == nil {
		r.found("rocev2: UDP port %d is free", port)
	} else {
		r.found("rocev2: UDP port %d is not free: %v", port, free)
	}
	if !p.Remote.IsValid() {
		if free == nil {
			r.choose("rocev2", "no RDMA device, and its port is free")
		} else {
			r.choose("iwarp", "no RDMA device, and the port of RoCEv2 is not free")
		}
		return r
	}
	switch err := s.tcp(ctx, p.Remote); {
	case err == nil:
		r.found("iwarp: the peer takes TCP connections at port %d", p.Remote.Port())
		r.choose("iwarp", "no RDMA device, and the peer listens at TCP port %d, as only iWARP does", p.Remote.Port())
	case free == nil:
		r.found("iwarp: no TCP connection to port %d: %v", p.Remote.Port(), err)
		r.choose("rocev2", "no RDMA device, its port is free, and the peer does not listen for iWARP")
	default:
		r.found("iwarp: no TCP connection to port %d: %v", p.Remote.Port(), err)
		r.choose("iwarp", "no RDMA device, and the port of RoCEv2 is not free")
	}
	return r
}

// route connects a UDP socket to find the route, which sends nothing.
func route(p Purpose) (string, netip.Addr, error) {
	local := p.Local.Addr()
	if p.Remote.IsValid() {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Remote.Addr(), 9)))
		if err != nil {
			return "", netip.Addr{}, err
		}
		defer c.Close()
		local = c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	}
	if !local.IsValid() || local.IsUnspecified() {
		return "", local, nil
	}
	list, err := net.Interfaces()
	if err != nil {
		return "", local, err
	}
	for i := range list {
		addrs, err := list[i].Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, err := netip.ParsePrefix(a.String()); err == nil && n.Addr().WithZone("") == local.WithZone("") {
				return list[i].Name, local, nil
			}
		}
	}
	return "", local, fmt.Errorf("no interface has the address %v", local)
}

func udpPort(local netip.Addr, port uint16) error {
	if !local.IsValid() {
		local = netip.IPv4Unspecified()
	}
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, port)))
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return errors.New("taken by the kernel's rdma_rxe, or by another program")
		}
		return err
	}
	return c.Close()
}

// patience is how long a peer may take to accept a TCP connection.
const patience = 2 * time.Second

func tcpPort(ctx context.Context, a netip.AddrPort) error {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(ctx, "tcp", a.String())
	if err != nil {
		return err
	}
	return c.Close()
}
