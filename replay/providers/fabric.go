package providers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs/rdma"
	"github.com/rpcrdma/toolkit/replay/verbs/rocev2"
)

// Ports of NFS (IANA).
const (
	PortRDMA = 20049 // nfsrdma
	PortTCP  = 2049  // nfs
)

// kinds are the kinds of fabrics. A new one is a row here, and an entry of preferred.
var kinds = []struct {
	name string
	open func(o *Options) (verbs.Provider, error) // nil: no provider, RPC over TCP
}{
	{"rocev2", openRoCEv2},
	{"iwarp", openIWARP},
	{"rdma", openRDMA},
	{"tcp", nil},
}

// preferred is the order in which Choose tries the fabrics.
var preferred = []string{"rdma", "rocev2", "iwarp", "tcp"}

// Fabrics are the names of the kinds of fabrics.
var Fabrics = func() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}()

// Options of a Fabric.
type Options struct {
	// Name is one of Fabrics.
	Name string
	// Endpoint is used over RDMA.
	Endpoint endpoint.Options
	// TCP is used over TCP. Its Tap and Link are set from the fields below.
	TCP tcprpc.Options
	// Budget limits what all connections of listeners hold together, over all fabrics
	// that share it. If it is nil each listener has its own.
	Budget *budget.Budget
	// PeerTimeout is how long a listener waits for a peer to finish a record, or to
	// receive what is sent to it; 0 is 30 seconds.
	PeerTimeout time.Duration
	// Tap sees the packets that a soft provider or TCP sends and receives.
	Tap verbs.Tap
	// Link models a network in the sending sides of soft providers and of TCP.
	Link verbs.Link
	// Local are the addresses to dial from, which take turns. rocev2 has one.
	Local []netip.Addr
	// UDPPort is the port of the rocev2 provider; 0 is 4791. PeerUDPPort is the port of
	// its peers.
	UDPPort, PeerUDPPort uint16
	// MTU is the path MTU of rocev2, and the payload of an FPDU of iwarp, in bytes; 0 is the largest.
	MTU int
	// CRC asks for CRCs on iWARP.
	CRC bool
	// Outgoing is called with each packet that rocev2 sends (rocev2.Options); Wrap puts
	// something between an iWARP connection and its socket. Both inject faults.
	Outgoing func(packet []byte, pass func([]byte))
	Wrap     func(net.Conn) net.Conn
	// Wrapped, if set, may put something between endpoints and the provider.
	Wrapped func(verbs.Provider) verbs.Provider
}

// Fabric makes connections of one kind.
type Fabric struct {
	opt      Options
	provider verbs.Provider // nil over TCP

	mu        sync.Mutex
	listeners []interface{ Close() error }
}

// Open makes a fabric.
func Open(o Options) (*Fabric, error) {
	f := &Fabric{opt: o}
	if o.Budget != nil {
		f.opt.TCP.Budget, f.opt.Endpoint.Budget = o.Budget, o.Budget
	}
	if o.PeerTimeout > 0 {
		f.opt.TCP.RecordTimeout, f.opt.TCP.ReplyTimeout, f.opt.Endpoint.PeerTimeout = o.PeerTimeout, o.PeerTimeout, o.PeerTimeout
	}
	at := slices.Index(Fabrics, o.Name)
	if at < 0 {
		return nil, fmt.Errorf("unknown fabric %q: it is one of %s", o.Name, strings.Join(Fabrics, ", "))
	}
	if open := kinds[at].open; open != nil {
		var err error
		if f.provider, err = open(&o); err != nil {
			return nil, err
		}
	} else {
		f.opt.TCP.Tap, f.opt.TCP.Link = o.Tap, o.Link
		if f.opt.TCP.Dial == nil {
			f.opt.TCP.Dial = o.dialer()
		}
	}
	if o.Wrapped != nil && f.provider != nil {
		f.provider = o.Wrapped(f.provider)
	}
	return f, nil
}

func openRoCEv2(o *Options) (verbs.Provider, error) {
	var local netip.Addr
	if len(o.Local) > 0 {
		local = o.Local[0]
	}
	if len(o.Local) > 1 {
		return nil, errors.New("rocev2 dials from one address")
	}
	return rocev2.New(rocev2.Options{Local: local, Port: o.UDPPort, PeerPort: o.PeerUDPPort, MTU: o.MTU, Tap: o.Tap, Link: o.Link, Outgoing: o.Outgoing})
}

// dialer dials over TCP from the local addresses in turn; it is nil if the system chooses them.
func (o *Options) dialer() func(ctx context.Context, address string) (net.Conn, error) {
	if len(o.Local) == 0 {
		return nil
	}
	list := o.Local
	var n atomic.Uint64
	return func(ctx context.Context, address string) (net.Conn, error) {
		local := list[(n.Add(1)-1)%uint64(len(list))]
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))}
		return d.DialContext(ctx, "tcp", address)
	}
}

func openIWARP(o *Options) (verbs.Provider, error) {
	crc := iwarp.CRCDefault
	if o.CRC {
		crc = iwarp.CRCOn
	}
	return iwarp.New(iwarp.Options{Dial: o.dialer(), MaxULPDU: iwarp.ULPDU(o.MTU), Tap: o.Tap, Link: o.Link, CRC: crc, Wrap: o.Wrap, Stall: o.PeerTimeout})
}

func openRDMA(o *Options) (verbs.Provider, error) {
	if o.Tap != nil {
		return nil, errors.New("packets of the provider rdma are made by the adapter: capture them with rpcrdma-dump capture")
	}
	if o.Link != (verbs.Link{}) {
		return nil, errors.New("the provider rdma has no model of a link")
	}
	if len(o.Local) > 0 {
		return nil, errors.New("the provider rdma connects as the system routes, and not from a given address")
	}
	return rdma.New(rdma.Options{})
}

// Name is the name of the fabric, as in Options.
func (f *Fabric) Name() string { return f.opt.Name }

// Port is the port of NFS on this fabric.
func (f *Fabric) Port() uint16 {
	if f.provider == nil {
		return PortTCP
	}
	return PortRDMA
}

// Dial connects to a server. change, if set, may change the endpoint's options
// for this connection.
func (f *Fabric) Dial(ctx context.Context, addr netip.AddrPort, change func(*endpoint.Options)) (transport.Requester, error) {
	if f.provider == nil {
		return tcprpc.Dial(ctx, addr.String(), f.opt.TCP)
	}
	o := f.opt.Endpoint
	if change != nil {
		change(&o)
	}
	return endpoint.Dial(ctx, f.provider, addr, o)
}

// Listener is where a fabric accepts connections.
type Listener interface {
	Addr() netip.AddrPort
	Stats() transport.Stats
	Close() error
}

// Listen serves h at an address; port 0 chooses one.
func (f *Fabric) Listen(ctx context.Context, addr netip.AddrPort, h transport.Handler) (Listener, error) {
	var l Listener
	var err error
	if f.provider == nil {
		l, err = tcprpc.Listen(ctx, addr.String(), h, f.opt.TCP)
	} else {
		l, err = endpoint.Listen(ctx, f.provider, addr, h, f.opt.Endpoint)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.opt.Name, err)
	}
	f.mu.Lock()
	f.listeners = append(f.listeners, l)
	f.mu.Unlock()
	return l, nil
}

// Close closes the listeners and the provider.
func (f *Fabric) Close() error {
	f.mu.Lock()
	list := f.listeners
	f.listeners = nil
	f.mu.Unlock()
	var err error
	for _, l := range list {
		err = errors.Join(err, l.Close())
	}
	if f.provider != nil {
		err = errors.Join(err, f.provider.Close())
	}
	return err
}

// Split reads HOST or HOST:PORT, without asking anybody whether there is such a host. An IPv6 address needs
// brackets only before a port. The port is 0 if there is none.
func Split(server string) (host string, port uint16, err error) {
	host = server
	if _, err := netip.ParseAddr(server); err == nil {
		return host, 0, nil
	}
	if at := strings.LastIndexByte(server, ':'); at >= 0 && !strings.HasSuffix(server, "]") {
		host = server[:at]
		n, err := strconv.ParseUint(server[at+1:], 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("%q: %q is not a port: write HOST or HOST:PORT", server, server[at+1:])
		}
		port = uint16(n)
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok {
			if a, err := netip.ParseAddr(inner); err == nil && a.Is6() {
				return inner, port, nil
			}
		}
		return "", 0, fmt.Errorf("%q: %q is not an IPv6 address in brackets", server, host)
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Is4() {
		return host, port, nil
	}
	// No top-level domain is a number (RFC 3696, section 2): what ends in one is an address with a mistake.
	// Resolvers would look for it as a name, and some would find one.
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case host == "":
		return "", 0, fmt.Errorf("%q names no host", server)
	case strings.Contains(host, ":"):
		return "", 0, fmt.Errorf("%q is not an IPv6 address; before a port it is in brackets", host)
	case len(host) > 255 || host[0] == '-' || strings.ContainsFunc(host, notOfHosts):
		return "", 0, fmt.Errorf("%q is neither the name nor the address of a host", host)
	case last != "" && strings.Trim(last, "0123456789") == "":
		return "", 0, fmt.Errorf("%q is not an IPv4 address", host)
	}
	return host, port, nil
}

// notOfHosts reports whether a character cannot be part of a host name, be it of the DNS, of a hosts file, or an
// international one.
func notOfHosts(r rune) bool {
	return r != '.' && r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}

// Resolve finds the address of a server: HOST, HOST:PORT or [ADDRESS]:PORT.
func Resolve(ctx context.Context, server string, port uint16) (netip.AddrPort, error) {
	host, given, err := Split(server)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if given != 0 {
		port = given
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(a.Unmap(), port), nil
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if len(list) == 0 {
		return netip.AddrPort{}, fmt.Errorf("%s has no address", host)
	}
	return netip.AddrPortFrom(list[0].Unmap(), port), nil
}

// Attempt is the outcome of trying one fabric in Choose.
type Attempt struct {
	Name string
	Err  error // nil: a server answers there
}

// Choose tries one fabric after the other with a NULL call, and returns the
// name of the first that answers, with all that was tried.
func Choose(ctx context.Context, server string, version uint32, o Options) (string, []Attempt, error) {
	var tried []Attempt
	for _, name := range preferred {
		o.Name = name
		err := probe(ctx, server, version, o)
		tried = append(tried, Attempt{name, err})
		if err == nil {
			return name, tried, nil
		}
		if ctx.Err() != nil {
			return "", tried, ctx.Err()
		}
	}
	var all []string
	for _, a := range tried {
		all = append(all, fmt.Sprintf("%s: %v", a.Name, a.Err))
	}
	return "", tried, fmt.Errorf("no fabric reaches %s: %s", server, strings.Join(all, "; "))
}

// probeTime bounds an attempt of Choose.
const probeTime = 3 * time.Second

func probe(ctx context.Context, server string, version uint32, o Options) error {
	o.Tap = nil
	f, err := Open(o)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	addr, err := Resolve(ctx, server, f.Port())
	if err != nil {
		return err
	}
	r, err := f.Dial(ctx, addr, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	rpc := client.RPC{Requester: r, Timeout: probeTime}
	return rpc.Null(ctx, version)
}
