package loop

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/verbstest"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

func TestConformance(t *testing.T) {
	for name, opts := range map[string]Options{
		"direct": {},
		"async":  {Async: true},
		"least":  {Async: true, OwnMemory: true, NoOffsets: true, NoWindows: true, NoInvalidate: true, MaxSGE: 1},
	} {
		t.Run(name, func(t *testing.T) {
			verbstest.Run(t, verbstest.Options{
				New:    func(testing.TB) verbs.Provider { return New(opts) },
				Cycles: 300,
			})
		})
	}
}

func TestTwoProviders(t *testing.T) {
	var n Network
	verbstest.Run(t, verbstest.Options{
		New:     func(testing.TB) verbs.Provider { return New(Options{Network: &n}) },
		NewPeer: func(testing.TB) verbs.Provider { return New(Options{Network: &n, Async: true}) },
		Cycles:  100,
	})
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		want  verbs.Status
	}{
		{Fault{Delay: time.Millisecond}, verbs.StatusSuccess},
		{Fault{Status: verbs.StatusRemoteOperation}, verbs.StatusRemoteOperation},
		{Fault{Disconnect: true}, verbs.StatusFlushed},
	} {
		for _, async := range []bool{false, true} {
			p := New(Options{Async: async, Fault: func(e Event) Fault {
				if e.Dialed && e.Number == 1 {
					return c.fault
				}
				return Fault{}
			}})
			l, err := p.Listen(t.Context(), loopback())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				r, err := l.Accept(t.Context())
				if err != nil {
					return
				}
				_, _ = r.Accept(t.Context(), verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: make([]byte, 10)}, {Buffer: make([]byte, 10)}}})
			}()
			conn, err := p.Dial(t.Context(), l.Addr(), verbs.Params{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				if err := conn.Post(verbs.WorkRequest{ID: uint64(i), Signaled: true, Local: [][]byte{make([]byte, 5)}}); err != nil {
					t.Fatal(err)
				}
			}
			var got []verbs.Status
			for len(got) < 2 && conn.Wait() == nil {
				var done [4]verbs.Completion
				for _, d := range done[:conn.Poll(done[:])] {
					got = append(got, d.Status)
				}
			}
			if len(got) != 2 || got[0] != verbs.StatusSuccess || got[1] != c.want {
				t.Errorf("%+v: %v", c.fault, got)
			}
			_ = p.Close()
		}
	}
}

func loopback() (a netip.AddrPort) { return a }
