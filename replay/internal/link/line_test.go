package link

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// TestExact sends parcels one by one. Each must take the delay, and be no more than
// 50 µs later than a bare sleep of the same length that ran just before: what the
// machine adds to every sleep is not the link's.
func TestExact(t *testing.T) {
	const allowed = 50 * time.Microsecond
	// Others can make a parcel late that the link has sent in time, and on a busy machine most of them. They cannot make one
	// early: a link that is late itself is so each time.
	const tries = 25
	for _, delay := range []time.Duration{100 * time.Microsecond, 200 * time.Microsecond, 1200 * time.Microsecond, 3 * time.Millisecond} {
		for try := 1; ; try++ {
			line, bare := lateness(t, delay)
			if line <= bare+allowed {
				t.Logf("delay %v: %v late, a bare sleep %v", delay, line, bare)
				break
			}
			if try == tries {
				t.Errorf("delay %v: %v late, a bare sleep %v, and no better %d times", delay, line, bare, tries-1)
				break
			}
		}
	}
}

// lateness is how late parcels of a link are, and bare sleeps: each time the last of the best quarter.
func lateness(t *testing.T, delay time.Duration) (line, bare time.Duration) {
	t.Helper()
	const rounds = 40
	arrived := make(chan time.Time)
	l := New(verbs.Link{Delay: delay}, 1<<20, func(struct{}) error {
		arrived <- time.Now()
		return nil
	})
	var lines, bares []time.Duration
	for range rounds {
		at := time.Now()
		nap(delay)
		bares = append(bares, time.Since(at)-delay)
		at = time.Now()
		if err := l.Put(struct{}{}, 1); err != nil {
			t.Fatal(err)
		}
		late := (<-arrived).Sub(at) - delay
		if late < 0 {
			t.Fatalf("delay %v: arrived %v early", delay, -late)
		}
		lines = append(lines, late)
	}
	l.Close()
	<-l.Done()
	slices.Sort(lines)
	slices.Sort(bares)
	return lines[rounds/4], bares[rounds/4]
}

// TestBandwidth sends more than the link can carry at once: parcels follow each other
// at the link's rate.
func TestBandwidth(t *testing.T) {
	model := verbs.Link{Delay: time.Millisecond, Bandwidth: 8e6} // 1 byte per µs
	var got []int
	last := make(chan time.Time, 1)
	l := New(model, 1<<20, func(n int) error {
		if got = append(got, n); n == 9 {
			last <- time.Now()
		}
		return nil
	})
	start := time.Now()
	for n := range 10 {
		if err := l.Put(n, 500); err != nil {
			t.Fatal(err)
		}
	}
	if took, want := (<-last).Sub(start), 6*time.Millisecond; took < want {
		t.Errorf("5000 bytes took %v, want %v at least", took, want)
	}
	l.Close()
	<-l.Done()
	if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("order: %v", got)
	}
	if err := l.Put(10, 1); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestFull: a writer waits at the limit, and Close sets it free.
func TestFull(t *testing.T) {
	l := New(verbs.Link{Delay: time.Hour}, 10, func(int) error { return nil })
	if err := l.Put(0, 11); err != nil {
		t.Fatal(err)
	}
	if n := l.InTransit(); n != 11 {
		t.Errorf("%d bytes in transit, want 11", n)
	}
	stopped := make(chan error)
	go func() { stopped <- l.Put(1, 1) }()
	l.Close()
	l.Close()
	if err := <-stopped; !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	<-l.Done()
}

// TestBroken: an error of the receiver reaches the writer.
func TestBroken(t *testing.T) {
	broken := errors.New("broken")
	l := New(verbs.Link{Delay: time.Microsecond}, 10, func(int) error { return broken })
	if err := l.Put(0, 11); err != nil {
		t.Fatal(err)
	}
	<-l.Done()
	if err := l.Put(1, 1); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	l.End(func() { t.Error("the end of a broken line") })
	l.Close()
}

// halfClosed counts the end of a direction.
type halfClosed struct {
	net.Conn
	ends atomic.Int32
}

func (c *halfClosed) CloseWrite() error {
	c.ends.Add(1)
	return c.Conn.Close()
}

// TestConn: all bytes arrive in order before the direction ends, once.
func TestConn(t *testing.T) {
	near, far := net.Pipe()
	h := &halfClosed{Conn: near}
	c := NewConn(h, verbs.Link{Delay: 200 * time.Microsecond, Bandwidth: 1e9})
	want := bytes.Repeat([]byte("0123456789abcdef"), 20000)
	if n, err := c.Write(want); n != len(want) || err != nil {
		t.Fatal(n, err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte{0}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after the end: %v", err)
	}
	got, err := io.ReadAll(far)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if n := h.ends.Load(); n != 1 {
		t.Errorf("%d ends", n)
	}
	c.Close() //nolint:errcheck // the end
}
