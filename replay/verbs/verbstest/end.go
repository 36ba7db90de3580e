package verbstest

import (
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
	for _, v := range b {
		if v != 0 {
			t.Fatalf("Alloc(%d) is not zero", n)
		}
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

// fill writes a pattern that differs from place to place and from seed to
// seed, and is never zero.
func fill(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x>>24) | 1
	}
}

// filled says where b differs from what fill has written; -1 is nowhere.
func filled(b []byte, seed int) int {
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		if b[i] != byte(x>>24)|1 {
			return i
		}
	}
	return -1
}

// changed says where b is not v; -1 is nowhere.
func changed(b []byte, v byte) int {
	for i := range b {
		if b[i] != v {
			return i
		}
	}
	return -1
}

func set(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func one(b []byte) [][]byte { return [][]byte{b} }
