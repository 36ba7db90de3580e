package rocev2

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// notified reports whether the poller of the runtime has anything to be told.
func notified(t *testing.T, w *waiter) bool {
	t.Helper()
	var n int
	var err error
	if e := w.raw.Control(func(fd uintptr) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
	return n > 0
}

func testUDP(t *testing.T) *udp {
	t.Helper()
	u, err := openUDP(netip.AddrPortFrom(address(t), 4791), 1<<16, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.close() }) //nolint:errcheck // it may be closed already
	return u
}

func (u *udp) at(t *testing.T) netip.AddrPort {
	t.Helper()
	var a unix.Sockaddr
	var err error
	if e := u.raw.Control(func(fd uintptr) { a, err = unix.Getsockname(int(fd)) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	v4 := a.(*unix.SockaddrInet4)
	return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), uint16(v4.Port))
}

// TestWaiter has datagrams arrive before, while and after somebody waits for them. The poller of the runtime is told of
// one that somebody waits for, and of no other.
func TestWaiter(t *testing.T) {
	a, b := testUDP(t), testUDP(t)
	to := b.at(t)
	send := func() {
		t.Helper()
		if err := a.sendOne([]byte("datagram"), to); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(block bool, want int) {
		t.Helper()
		if n, err := b.recv(block); n != want || err != nil {
			t.Fatalf("%d datagrams, %v; want %d", n, err, want)
		}
	}
	for range 3 {
		receive(false, 0)
		send()
		if notified(t, b.waiter) {
			t.Fatal("the poller is told of a datagram that nobody waits for")
		}
		receive(true, 1) // one that is there

		send()
		if err := b.waiter.wait(); err != nil { // one that arrived before the wait
			t.Fatal(err)
		}
		if notified(t, b.waiter) {
			t.Fatal("the poller is still told after the wait")
		}
		send()
		if notified(t, b.waiter) {
			t.Fatal("the poller is told after the wait")
		}
		receive(true, 2)

		done := make(chan error)
		go func() { done <- b.waiter.wait() }()
		send() // one that arrives sooner or later
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		receive(true, 1)
	}
}

// TestWaiterClosed closes a socket while somebody waits.
func TestWaiterClosed(t *testing.T) {
	u := testUDP(t)
	done := make(chan error)
	go func() {
		_, err := u.recv(true)
		done <- err
	}()
	if err := u.close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(time.Minute):
		t.Fatal("still waiting")
	}
	if _, err := u.recv(true); err == nil {
		t.Error("a closed socket can be read")
	}
	if err := u.sendOne([]byte("datagram"), netip.MustParseAddrPort("127.0.0.1:4791")); err == nil {
		t.Error("a closed socket can send")
	}
}

// TestSocketAllocations waits, sends and receives.
func TestSocketAllocations(t *testing.T) {
	a, b := testUDP(t), testUDP(t)
	to, packet := b.at(t), []byte("datagram")
	if n := testing.AllocsPerRun(100, func() {
		if err := a.sendOne(packet, to); err != nil {
			t.Fatal(err)
		}
		if err := b.waiter.wait(); err != nil {
			t.Fatal(err)
		}
		if n, err := b.recv(false); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}); n > allowedAllocations {
		t.Errorf("%v allocations", n)
	}
}
