package iwarp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/verbstest"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// provider makes a Provider that the test closes.
func provider(t testing.TB, o Options) *Provider {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func with(o Options) func(testing.TB) verbs.Provider {
	return func(t testing.TB) verbs.Provider { return provider(t, o) }
}

func TestConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Options{New: with(Options{})})
}

// TestVariants runs the suite over what can be negotiated.
func TestVariants(t *testing.T) {
	quick := verbstest.Options{Cycles: 20, Megabytes: 1}
	if testing.Short() {
		quick.Cycles = 5
	}
	for _, c := range []struct {
		name         string
		server, dial Options
		listen       string
	}{
		{name: "CRC", server: Options{CRC: CRCOn}},
		{name: "CRC of the dialing side", dial: Options{CRC: CRCOn}},
		{name: "markers to the server", server: Options{Markers: true, CRC: CRCOn}},
		{name: "markers to the client", dial: Options{Markers: true}},
		{name: "small ULPDUs", server: Options{MaxULPDU: 512}, dial: Options{MaxULPDU: 1462, CRC: CRCOn}},
		{name: "large ULPDUs", server: Options{MaxULPDU: 65535}, dial: Options{MaxULPDU: 65534}},
		{name: "RTR Read", server: Options{RTR: RTRRead}},
		{name: "RTR Send", dial: Options{RTR: RTRSend}, server: Options{RTR: RTRSend}},
		{name: "IPv6", listen: "[::1]:0"},
		{name: "in small pieces", dial: Options{Wrap: pieces}, server: Options{Wrap: pieces, CRC: CRCOn}},
		{name: "link", dial: Options{Link: verbs.Link{Delay: 200 * time.Microsecond, Bandwidth: 20e9}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := quick
			o.New, o.NewPeer = with(c.server), with(c.dial)
			if c.listen != "" {
				o.Listen = netip.MustParseAddrPort(c.listen)
			}
			verbstest.Run(t, o)
		})
	}
}

// pieces cuts what goes through a connection where no boundary is.
func pieces(c net.Conn) net.Conn { return &pieceConn{TCPConn: c.(*net.TCPConn)} }

type pieceConn struct {
	*net.TCPConn
	r, w int
}

func (p *pieceConn) Read(b []byte) (int, error) {
	p.r = (p.r*31 + 7) % 4099
	return p.TCPConn.Read(b[:min(len(b), p.r+1)])
}

func (p *pieceConn) Write(b []byte) (int, error) {
	total := 0
	for len(b) > 0 {
		p.w = (p.w*17 + 5) % 3001
		n, err := p.TCPConn.Write(b[:min(len(b), p.w+1)])
		total += n
		if err != nil {
			return total, err
		}
		b = b[n:]
	}
	return total, nil
}

func BenchmarkProvider(b *testing.B) {
	verbstest.Bench(b, verbstest.Options{New: with(Options{})}, verbstest.TCP)
}

func BenchmarkCRC(b *testing.B) {
	verbstest.Bench(b, verbstest.Options{New: with(Options{CRC: CRCOn})}, verbstest.TCP)
}

// TestAllocs: on the steady path nothing is allocated, for Sends, Writes and
// Reads of both sides together.
func TestAllocs(t *testing.T) {
	p := provider(t, Options{})
	c, s := connect(t, p, p, "127.0.0.1:0", recvs(4, 100))
	mem := make([]byte, 100000)
	r, err := s.Register(mem, verbs.RemoteRead|verbs.RemoteWrite, 0)
	if err != nil {
		t.Fatal(err)
	}
	small, large := [][]byte{make([]byte, 64)}, [][]byte{make([]byte, 100000)}
	wrs := []verbs.WorkRequest{
		{Op: verbs.OpWrite, Handle: r.Handle, Local: large},
		{Op: verbs.OpSend, Local: small},
		{Op: verbs.OpRead, Handle: r.Handle, Local: large, Signaled: true},
	}
	recv := []verbs.RecvRequest{{Buffer: make([]byte, 100)}}
	done := make([]verbs.Completion, 4)
	wait := func(x verbs.Conn, op verbs.Op) {
		for {
			for _, d := range done[:x.Poll(done)] {
				if d.Status != verbs.StatusSuccess {
					t.Fatalf("%+v", d)
				}
				if d.Op == op {
					return
				}
			}
			if err := x.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := testing.AllocsPerRun(300, func() {
		if err := c.Post(wrs...); err != nil {
			t.Fatal(err)
		}
		wait(s, verbs.OpRecv)
		if err := s.PostRecv(recv...); err != nil {
			t.Fatal(err)
		}
		wait(c, verbs.OpRead)
	}); n > allowedAllocations {
		t.Errorf("%v allocations for a Write, a Send and a Read", n)
	}
}
