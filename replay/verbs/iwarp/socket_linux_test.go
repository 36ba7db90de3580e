package iwarp

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// TestSameHost tells connections within this host from others.
func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		local, remote string
		same          bool
	}{
		{"127.0.0.1:1", "127.0.0.1:2", true},
		{"127.0.0.1:1", "127.0.0.2:2", true},
		{"[::1]:1", "[::1]:2", true},
		{"192.0.2.1:1", "192.0.2.1:2", true},
		{"192.0.2.1:1", "[::ffff:192.0.2.1]:2", true},
		{"192.0.2.1:1", "192.0.2.2:2", false},
		{"[2001:db8::1]:1", "[2001:db8::2]:1", false},
		{"[fe80::1%1]:1", "[fe80::1%2]:1", false},
	} {
		local, remote := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.local)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.remote))
		if got := sameHost(local, remote); got != c.same {
			t.Errorf("%s to %s: %v", c.local, c.remote, got)
		}
	}
	if sameHost(&net.UnixAddr{}, &net.UnixAddr{}) {
		t.Error("addresses that are none of TCP")
	}
}

// TestNearBuffer compares the send buffers of both ends of a connection within this host with what the kernel gives a
// socket that asks for as much.
func TestNearBuffer(t *testing.T) {
	plain, err := net.ListenTCP("tcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	rc, err := plain.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := rc.Control(func(fd uintptr) {
		if err := syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, nearBuffer); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := sendBuffer(t, rc)
	p, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, s := connect(t, p, p, "127.0.0.1:0", recvs(1, 64))
	defer c.Close()
	defer s.Close()
	for _, e := range []verbs.Conn{c, s} {
		if got := sendBuffer(t, e.(*conn).s.raw.rc); got != want {
			t.Errorf("a send buffer of %d bytes, want %d", got, want)
		}
	}
}

func sendBuffer(t *testing.T, rc syscall.RawConn) (size int) {
	t.Helper()
	if err := rc.Control(func(fd uintptr) {
		var err error
		if size, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return size
}

// TestAsk: nobody asks during a write, and a write waits for whoever asks, but not for ever.
func TestAsk(t *testing.T) {
	a, b := net.Pipe()
	_ = a.Close()
	_ = b.Close()
	if newRawSocket(a) != nil {
		t.Error("a pipe is not a socket")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	r := newRawSocket(c)
	calls := 0
	once := func(uintptr) bool {
		calls++
		if !r.reading.Load() {
			t.Error("a write would not see it")
		}
		return true
	}
	r.writing.Store(true)
	if asked, err := r.ask(once); asked || err != nil || calls != 0 {
		t.Errorf("during a write: asked %t, %v, %d calls", asked, err, calls)
	}
	r.writing.Store(false)
	if asked, err := r.ask(once); !asked || err != nil || calls != 1 {
		t.Errorf("asked %t, %v, %d calls", asked, err, calls)
	}
	if r.reading.Load() {
		t.Error("it asks for ever")
	}

	r.reading.Store(true) // a long read
	if err := r.rc.Write(func(fd uintptr) bool {
		n, again, err := r.writev(fd, [][]byte{[]byte("some "), []byte("bytes")})
		if n != 10 || again || err != nil {
			t.Errorf("%d bytes, again %t, %v", n, again, err)
		}
		return true
	}); err != nil {
		t.Error(err)
	}
	r.reading.Store(false)
	if r.writing.Load() {
		t.Error("it writes for ever")
	}

	_ = c.Close()
	if asked, err := r.ask(once); !asked || err == nil || r.reading.Load() {
		t.Errorf("of a closed socket: asked %t, %v, still %t", asked, err, r.reading.Load())
	}
}

// BenchmarkEmpty asks a socket that has nothing: for one piece of memory, and for two, which takes readv.
func BenchmarkEmpty(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	r := newRawSocket(c)
	for name, bufs := range map[string][][]byte{"one": {make([]byte, rxBuffer)}, "two": {make([]byte, rxBuffer), make([]byte, 1)}} {
		b.Run(name, func(b *testing.B) {
			if err := r.rc.Read(func(fd uintptr) bool {
				for b.Loop() {
					if _, again, err := r.readv(fd, bufs); !again || err != nil {
						b.Fatal(again, err)
					}
				}
				return true
			}); err != nil {
				b.Fatal(err)
			}
		})
	}
}
