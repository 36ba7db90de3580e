package auto

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs/rdma"
)

func TestChoice(t *testing.T) {
	remote := Purpose{Remote: netip.MustParseAddrPort("192.0.2.1:20049")}
	local := Purpose{Local: netip.MustParseAddrPort("192.0.2.2:20049")}
	rxe := rdma.Device{Name: "rxe0", Fabric: "rocev2", Netdevs: []string{"eth0"}, Active: true}
	down, other, ib := rxe, rxe, rxe
	down.Active = false
	other.Netdevs = []string{"eth7"}
	ib.Fabric, ib.Netdevs = "infiniband", []string{"ib0"}
	taken, refused := errors.New("taken"), errors.New("refused")
	for _, c := range []struct {
		name     string
		p        Purpose
		devices  []rdma.Device
		missing  string
		udp, tcp error
		want     string
		says     string
	}{
		{"device on the way", remote, []rdma.Device{rxe}, "", nil, nil, "rdma", "device rxe0 (rocev2) on eth0 is up"},
		{"InfiniBand", remote, []rdma.Device{ib}, "", nil, nil, "rdma", "device rxe0 can do it"},
		{"second device", remote, []rdma.Device{other, rxe}, "", nil, nil, "rdma", "eth7"},
		{"device is down", remote, []rdma.Device{down}, "", nil, refused, "rocev2", "is down"},
		{"device elsewhere", remote, []rdma.Device{other}, "", nil, refused, "rocev2", "no device that is up is on eth0"},
		{"not built", remote, nil, "rdma: built without", nil, refused, "rocev2", "built without"},
		{"peer listens for iWARP", remote, nil, "x", nil, nil, "iwarp", "the peer takes TCP connections at port 20049"},
		{"rxe has the port", remote, nil, "x", taken, refused, "iwarp", "UDP port 4791 is not free: taken"},
		{"listen", local, nil, "x", nil, nil, "rocev2", "UDP port 4791 is free"},
		{"listen, port taken", local, nil, "x", taken, nil, "iwarp", "not free"},
		{"listen, device", local, []rdma.Device{rxe}, "", taken, nil, "rdma", "192.0.2.2 is on eth0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := probe(t.Context(), c.p, Options{}, system{
				rdma:  func() rdma.Report { return rdma.Report{Devices: c.devices, Missing: c.missing} },
				route: func(Purpose) (string, netip.Addr, error) { return "eth0", netip.MustParseAddr("192.0.2.2"), nil },
				udp:   func(netip.Addr, uint16) error { return c.udp },
				tcp:   func(context.Context, netip.AddrPort) error { return c.tcp },
			})
			if r.Provider != c.want || r.Reason == "" {
				t.Errorf("%q for %q, want %s", r.Provider, r.Reason, c.want)
			}
			if !strings.Contains(r.String(), c.says) {
				t.Errorf("%q is not in\n%s", c.says, r)
			}
		})
	}
}

// TestSystem asks the system that the test runs on.
func TestSystem(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := netip.MustParseAddrPort(l.Addr().String())
	dev, local, err := route(Purpose{Remote: addr})
	if err != nil || dev == "" || local != addr.Addr() {
		t.Errorf("127.0.0.1 is reached over %q from %v: %v", dev, local, err)
	}
	if _, _, err := route(Purpose{Local: netip.MustParseAddrPort("192.0.2.77:0")}); err == nil {
		t.Error("an address of others was found")
	}
	if err := tcpPort(t.Context(), addr); err != nil {
		t.Error(err)
	}
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if err := udpPort(addr.Addr(), u.LocalAddr().(*net.UDPAddr).AddrPort().Port()); err == nil {
		t.Error("a port in use is free")
	}
	if err := udpPort(addr.Addr(), 0); err != nil {
		t.Error(err)
	}
}

func TestNew(t *testing.T) {
	for _, name := range []string{"rocev2", "iwarp"} {
		p, r, err := New(t.Context(), name, Purpose{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Name() != name || r.Provider != name {
			t.Errorf("asked for %s, got %s: %s", name, p.Name(), r)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := New(t.Context(), "tcp", Purpose{}, Options{}); err == nil || !strings.Contains(err.Error(), "rocev2") {
		t.Errorf("tcp: %v", err)
	}
	r := Probe(t.Context(), Purpose{Local: netip.MustParseAddrPort("127.0.0.1:0")}, Options{})
	if !slices.Contains(Names, r.Provider) || len(r.Findings) == 0 {
		t.Errorf("%s", r)
	}
}
