// Package verbstest is what every provider of package verbs has to get right,
// as tests that the provider's own tests run, and benchmarks that measure it
// next to a bare socket.
package verbstest

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Options name the provider under test.
type Options struct {
	// New makes the provider that listens. The suite closes it.
	New func(t testing.TB) verbs.Provider
	// NewPeer makes the provider that dials; nil lets one provider do both.
	NewPeer func(t testing.TB) verbs.Provider
	// Listen is the address to listen at; zero is a port of 127.0.0.1 that the
	// provider chooses.
	Listen netip.AddrPort
	// Cycles is how many connections are made and closed in the test for
	// leaks; 0 is 1000.
	Cycles int
	// Megabytes is the size of the largest transfer in MiB; 0 is 4.
	Megabytes int
	// Foreign says that a device of others does the requests. Not all give the
	// statuses of the specifications, keep to the depths that were asked for,
	// or refuse all that they should: the first two are not tested then, of the
	// third only what no device gets wrong.
	Foreign bool
	// Hang bounds one test; 0 is five minutes.
	Hang time.Duration
}

// Run runs the suite.
func Run(t *testing.T, o Options) {
	if !o.Listen.IsValid() {
		o.Listen = netip.MustParseAddrPort("127.0.0.1:0")
	}
	if o.Cycles == 0 {
		o.Cycles = 1000
	}
	if o.Megabytes == 0 {
		o.Megabytes = 4
	}
	// The same tests, with less repetition: what costs time under the race
	// detector is bytes.
	if testing.Short() {
		o.Cycles, o.Megabytes = min(o.Cycles, 50), 1
	}
	if o.Hang == 0 {
		o.Hang = 5 * time.Minute
	}
	for _, c := range []struct {
		name string
		f    func(*testing.T, *pair)
	}{
		{"PrivateData", testPrivateData},
		{"Reject", testReject},
		{"DialNobody", testDialNobody},
		{"DialGivesUp", testDialGivesUp},
		{"AcceptGivesUp", testAcceptGivesUp},
		{"Depths", testDepths},
		{"Sends", testSends},
		{"SendLists", testSendLists},
		{"BothWays", testBothWays},
		{"ServerSpeaksFirst", testServerSpeaksFirst},
		{"SendInvalidate", testSendInvalidate},
		{"SendInvalidateUnknown", testSendInvalidateUnknown},
		{"Write", testWrite},
		{"Read", testRead},
		{"ChosenOffset", testChosenOffset},
		{"ManyReads", testManyReads},
		{"Fence", testFence},
		{"ReadsAndWritesCross", testCross},
		{"Unsignaled", testUnsignaled},
		{"Reuse", testReuse},
		{"QueueFull", testQueueFull},
		{"TooLong", testTooLong},
		{"Refused", testRefused},
		{"HandleOfOther", testHandleOfOther},
		{"Deregister", testDeregister},
		{"DeregisterBusy", testDeregisterBusy},
		{"Windows", testWindows},
		{"ReceiveTooSmall", testReceiveTooSmall},
		{"NoReceive", testNoReceive},
		{"Disconnect", testDisconnect},
		{"DisconnectDrains", testDisconnectDrains},
		{"CloseFlushes", testCloseFlushes},
		{"CloseBusy", testCloseBusy},
		{"ProviderClose", testProviderClose},
		{"ConcurrentPosts", testConcurrentPosts},
		{"Cycles", testCycles},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, o)
			c.f(t, p)
		})
	}
}

// pair is two providers, a listener of one of them, and the connections that
// a test made between them.
type pair struct {
	o              Options
	server, client verbs.Provider
	listener       verbs.Listener
	ctx            context.Context // ends when the test has hung
}

func newPair(t testing.TB, o Options) *pair {
	t.Helper()
	p := &pair{o: o, server: o.New(t)}
	p.client = p.server
	if o.NewPeer != nil {
		p.client = o.NewPeer(t)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.ctx = ctx
	// A wait that never ends is cut short by closing the providers, so that the
	// test says where it was.
	watchdog := time.AfterFunc(o.Hang, func() {
		t.Errorf("nothing more has happened for %v", o.Hang)
		cancel()
		p.close()
	})
	t.Cleanup(func() {
		watchdog.Stop()
		cancel()
		p.close()
	})
	l, err := p.server.Listen(ctx, o.Listen)
	if err != nil {
		t.Fatalf("Listen(%v): %v", o.Listen, err)
	}
	p.listener = l
	return p
}

func (p *pair) close() {
	p.client.Close()
	if p.server != p.client {
		p.server.Close()
	}
}

// connect makes a connection. Both sides have the same parameters but for the
// receives.
func (p *pair) connect(t testing.TB, params verbs.Params) (client, server *end) {
	t.Helper()
	return p.connectWith(t, params, params)
}

func (p *pair) connectWith(t testing.TB, dial, accept verbs.Params) (client, server *end) {
	t.Helper()
	type result struct {
		c   verbs.Conn
		err error
	}
	accepted := make(chan result, 1)
	go func() {
		r, err := p.listener.Accept(p.ctx)
		if err != nil {
			accepted <- result{nil, err}
			return
		}
		c, err := r.Accept(p.ctx, accept)
		accepted <- result{c, err}
	}()
	c, err := p.client.Dial(p.ctx, p.listener.Addr(), dial)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	r := <-accepted
	if r.err != nil {
		t.Fatalf("Accept: %v", r.err)
	}
	client = &end{Conn: c, provider: p.client, name: "client", foreign: p.o.Foreign}
	server = &end{Conn: r.c, provider: p.server, name: "server", foreign: p.o.Foreign}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server
}
