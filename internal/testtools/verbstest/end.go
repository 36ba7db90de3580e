package verbstest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// end is one side of a connection, with its completions sorted by queue.
type end struct {
	verbs.Conn
	provider     verbs.Provider
	name         string
	foreign      bool // see Options
	sends, recvs []verbs.Completion
	batch        [32]verbs.Completion
}

// more takes what there is, and waits if there is nothing. It is false when
// there will be nothing again.
func (e *end) more() bool {
	for {
		n := e.Poll(e.batch[:])
		for _, c := range e.batch[:n] {
			if c.Op == verbs.OpRecv {
				e.recvs = append(e.recvs, c)
			} else {
				e.sends = append(e.sends, c)
			}
		}
		if n > 0 {
			return true
		}
		if e.Wait() != nil {
			return false
		}
	}
}

// sent waits for the next completion of the send queue.
func (e *end) sent(t testing.TB) verbs.Completion {
	t.Helper()
	for len(e.sends) == 0 {
		if !e.more() {
			t.Fatalf("%s: no completion of the send queue: %v", e.name, e.Err())
		}
	}
	c := e.sends[0]
	e.sends = e.sends[1:]
	return c
}

// received waits for the next completion of the receive queue.
func (e *end) received(t testing.TB) verbs.Completion {
	t.Helper()
	for len(e.recvs) == 0 {
		if !e.more() {
			t.Fatalf("%s: no completion of the receive queue: %v", e.name, e.Err())
		}
	}
	c := e.recvs[0]
	e.recvs = e.recvs[1:]
	return c
}

// drain takes all completions until the connection's end.
func (e *end) drain() {
	for e.more() {
	}
}

// ok posts requests and waits for the completion of the last, which has to be
// signaled.
func (e *end) ok(t testing.TB, wrs ...verbs.WorkRequest) {
	t.Helper()
	e.post(t, wrs...)
	for i := range wrs {
		if !wrs[i].Signaled {
			continue
		}
		if c := e.sent(t); c.Status != verbs.StatusSuccess || c.ID != wrs[i].ID || c.Op != wrs[i].Op {
			t.Fatalf("%s: %v of request %d: %v, want success of %v of request %d (%v)", e.name, c.Op, c.ID, c.Status, wrs[i].Op, wrs[i].ID, e.Err())
		}
	}
}

func (e *end) post(t testing.TB, wrs ...verbs.WorkRequest) {
	t.Helper()
	if err := e.Post(wrs...); err != nil {
		t.Fatalf("%s: Post: %v", e.name, err)
	}
}

func (e *end) recv(t testing.TB, id uint64, b []byte) {
	t.Helper()
	if err := e.PostRecv(verbs.RecvRequest{ID: id, Buffer: b}); err != nil {
		t.Fatalf("%s: PostRecv: %v", e.name, err)
	}
}

func (e *end) register(t testing.TB, b []byte, a verbs.Access) verbs.Region {
	t.Helper()
	r, err := e.Register(b, a, verbs.OffsetAny)
	if err != nil {
		t.Fatalf("%s: Register: %v", e.name, err)
	}
	if int(r.Length) != len(b) {
		t.Fatalf("%s: region has %d bytes, want %d", e.name, r.Length, len(b))
	}
	return r
}

// alloc is provider memory that lives as long as the provider.
func (e *end) alloc(t testing.TB, n int) []byte { return alloc(t, e.provider, n) }

func alloc(t testing.TB, p verbs.Provider, n int) []byte {
	t.Helper()
	b, err := p.Alloc(n)
	if err != nil {
		t.Fatalf("Alloc(%d): %v", n, err)
	}
	if len(b) != n {
		t.Fatalf("Alloc(%d) has %d bytes", n, len(b))
	}
	if at := changed(b, 0); at >= 0 {
		t.Fatalf("Alloc(%d) is not zero at byte %d", n, at)
	}
	return b
}

// failed waits for the end of the connection, whatever its reason.
func (e *end) failed(t testing.TB) {
	t.Helper()
	e.drain()
	if s := e.State(); s != verbs.StateError {
		t.Errorf("%s: state %v after the end", e.name, s)
	}
	if e.Err() == nil {
		t.Fatalf("%s: ended without an error", e.name)
	}
}

// failedWith is failed with one of the statuses.
func (e *end) failedWith(t testing.TB, want ...verbs.Status) {
	t.Helper()
	e.failed(t)
	if e.foreign {
		return
	}
	var s *verbs.StatusError
	if !errors.As(e.Err(), &s) {
		t.Errorf("%s: ended with %v, want one of %v", e.name, e.Err(), want)
		return
	}
	for _, w := range want {
		if s.Status == w {
			return
		}
	}
	t.Errorf("%s: ended with %v, want one of %v", e.name, s, want)
}

// disconnected waits for the end of the connection, which has to be orderly.
func (e *end) disconnected(t testing.TB) {
	t.Helper()
	e.drain()
	if !errors.Is(e.Err(), verbs.ErrDisconnected) {
		t.Errorf("%s: ended with %v, want %v", e.name, e.Err(), verbs.ErrDisconnected)
	}
}

// piece is how many bytes are written or compared at once: the race detector looks at each access, however long.
const piece = 256

// pattern continues what fill writes, and returns the state after it.
func pattern(b *[piece]byte, x uint32) uint32 {
	for at := 0; at < piece; at += 8 {
		var word uint64
		for range 8 {
			x = x*1664525 + 1013904223
			word = word<<8 | uint64(x>>24) | 1
		}
		binary.BigEndian.PutUint64(b[at:], word)
	}
	return x
}

func seeded(seed int) uint32 { return uint32(seed)*2654435761 + 12345 }

// fill writes a pattern that differs from place to place and from seed to
// seed, and is never zero.
func fill(b []byte, seed int) {
	var p [piece]byte
	for x := seeded(seed); len(b) > 0; {
		x = pattern(&p, x)
		b = b[copy(b, p[:]):]
	}
}

// filled says where b differs from what fill has written; -1 is nowhere.
func filled(b []byte, seed int) int {
	var p [piece]byte
	x := seeded(seed)
	for at := 0; at < len(b); at += piece {
		x = pattern(&p, x)
		if i := differ(b[at:], p[:]); i >= 0 {
			return at + i
		}
	}
	return -1
}

// changed says where b is not v; -1 is nowhere.
func changed(b []byte, v byte) int {
	if len(b) == 0 || b[0] == v && bytes.Equal(b[1:], b[:len(b)-1]) {
		return -1
	}
	for i := range b {
		if b[i] != v {
			return i
		}
	}
	return -1 // it was written meanwhile
}

// differ returns the first index at which b and p differ within their common length; -1 if there is none.
func differ(b, p []byte) int {
	n := min(len(b), len(p))
	if bytes.Equal(b[:n], p[:n]) {
		return -1
	}
	for i := range n {
		if b[i] != p[i] {
			return i
		}
	}
	return -1 // it was written meanwhile
}

func set(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); {
		n += copy(b[n:], b[:n])
	}
}

func one(b []byte) [][]byte { return [][]byte{b} }
