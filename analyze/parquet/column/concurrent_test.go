package column

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/leak"
)

// TestConcurrent writes the same files with pages that are encoded while rows are added, whatever was written before, and whether that was
// closed or not.
func TestConcurrent(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 4))
	add := func(c *columns, list []record) {
		t.Helper()
		for i := range list {
			if err := c.add(&list[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	ended := leak.Goroutines(t)
	rounds := 100
	if testing.Short() {
		rounds = 25
	}
	for range rounds {
		opt := Options{Rows: 1 + rng.IntN(200), PageRows: 1 + rng.IntN(20), Dictionary: 1 + rng.IntN(2000)}
		var one, other bytes.Buffer
		a := newColumns(&one, opt)
		opt.Concurrent = true
		b := newColumns(io.Discard, opt)
		add(b, some(rng, rng.IntN(100)))
		if rng.IntN(2) == 0 {
			if err := b.f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		b.f.Reset(&other)
		list := some(rng, rng.IntN(300))
		for _, c := range []*columns{a, b} {
			add(c, list)
			if err := c.f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(one.Bytes(), other.Bytes()) {
			t.Fatalf("%+v: %d and %d bytes, which differ", opt, one.Len(), other.Len())
		}
	}
	ended()
}

// gate is a codec that waits until it may compress.
type gate struct {
	Codec
	open  chan bool
	calls atomic.Int64
}

func (g *gate) Encode(dst, src []byte) ([]byte, error) {
	g.calls.Add(1)
	<-g.open
	return g.Codec.Encode(dst, src)
}

// TestPageUnderWay fills a page while the one before is encoded; the next one has to wait for that. A writer that is abandoned leaves no
// goroutine, nor does one whose file is broken.
func TestPageUnderWay(t *testing.T) {
	before, ended := runtime.NumGoroutine(), leak.Goroutines(t)
	var opt Options
	opt.defaults()
	g := &gate{Codec: opt.Codec, open: make(chan bool)}
	c := newColumns(broken{}, Options{PageRows: 10, Codec: g, Concurrent: true})
	list := some(rand.New(rand.NewPCG(1, 1)), 20)
	for i := range list[:19] {
		if err := c.add(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	for g.calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before+1 {
		t.Errorf("%d goroutines more", n-before)
	}
	added := make(chan error)
	go func() { added <- c.add(&list[19]) }()
	select {
	case err := <-added:
		t.Fatalf("two pages are under way (%v)", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(g.open)
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	ended() // the last page is encoded, though nobody asks for it
	if err := c.f.Close(); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
	if err := c.add(&list[0]); err != nil {
		t.Errorf("error %v: a row is no page", err)
	}
	if err := c.f.Close(); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
	ended()
}

// TestCloseWaits closes a file while a page is encoded.
func TestCloseWaits(t *testing.T) {
	for _, broke := range []bool{false, true} {
		var opt Options
		opt.defaults()
		g := &gate{Codec: opt.Codec, open: make(chan bool)}
		c := newColumns(io.Discard, Options{PageRows: 10, Codec: g, Concurrent: true})
		list := some(rand.New(rand.NewPCG(1, 1)), 10)
		for i := range list {
			if err := c.add(&list[i]); err != nil {
				t.Fatal(err)
			}
		}
		var want error
		if broke {
			c.f.err, want = errBroken, errBroken
		}
		closed := make(chan error)
		go func() { closed <- c.f.Close() }()
		select {
		case <-closed:
			t.Fatal("it did not wait")
		case <-time.After(20 * time.Millisecond):
		}
		close(g.open)
		if err := <-closed; !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

// TestOneRoom lets pages without a goroutine have one room only.
func TestOneRoom(t *testing.T) {
	c := newColumns(io.Discard, Options{PageRows: 10})
	list := some(rand.New(rand.NewPCG(1, 1)), 35)
	before := runtime.NumGoroutine()
	for i := range list {
		if err := c.add(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if cap(c.n.v) == 0 || cap(c.n.turned.v) != 0 || cap(c.word.at) == 0 || cap(c.word.turned.at) != 0 || cap(c.at.def.list) == 0 || cap(c.at.turned.def.list) != 0 {
		t.Error("there are two rooms")
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines more", n-before)
	}
}
