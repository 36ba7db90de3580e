package endpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// raw is a peer that sends what it likes.
type raw struct {
	verbs.Conn
	bufs [][]byte
	got  []verbs.Completion
}

const rawBufs = 64

func (r *raw) params() verbs.Params {
	p := verbs.Params{RNRRetryCount: 7}
	for i := range rawBufs {
		r.bufs = append(r.bufs, make([]byte, 4096))
		p.Recvs = append(p.Recvs, verbs.RecvRequest{ID: uint64(i), Buffer: r.bufs[i]})
	}
	return p
}

func dialRaw(t testing.TB, p verbs.Provider, at netip.AddrPort) *raw {
	t.Helper()
	r := new(raw)
	c, err := p.Dial(t.Context(), at, r.params())
	if err != nil {
		t.Fatal(err)
	}
	r.Conn = c
	t.Cleanup(func() { _ = c.Close() })
	return r
}

func (r *raw) send(t testing.TB, b []byte) bool {
	t.Helper()
	return r.Post(verbs.WorkRequest{ID: math.MaxUint64, Op: verbs.OpSend, Signaled: true, Local: [][]byte{b}}) == nil
}

// receive waits for a message; nil is the end of the connection.
func (r *raw) receive() []byte {
	for {
		for len(r.got) > 0 {
			d := r.got[0]
			r.got = r.got[1:]
			if d.Op == verbs.OpRecv && d.Status == verbs.StatusSuccess {
				b := append([]byte(nil), r.bufs[d.ID][:d.Length]...)
				_ = r.PostRecv(verbs.RecvRequest{ID: d.ID, Buffer: r.bufs[d.ID]})
				return b
			}
		}
		var batch [16]verbs.Completion
		r.got = append(r.got, batch[:r.Poll(batch[:])]...)
		if len(r.got) == 0 && r.Wait() != nil {
			return nil
		}
	}
}

func words(w ...uint32) (b []byte) {
	for _, v := range w {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func rpcCall(xid uint32) []byte {
	b := rpctest.AppendCall(nil, rpctest.Null)
	binary.BigEndian.PutUint32(b, xid)
	return b
}

// TestHostileRequester sends a Responder what breaks the rules, and expects
// the answer that they prescribe, and service as usual afterwards.
func TestHostileRequester(t *testing.T) {
	const xid = 0x1234
	read := func(position, handle, length uint32) []byte { return words(1, position, handle, length, 0, 0) }
	long := func(n int) (b []byte) {
		for range n {
			b = append(b, read(0, 1, 1)...)
		}
		return b
	}
	const silence = 0
	cases := []struct {
		name string
		b    []byte
		want rpcrdma.ErrorCode
		old  bool // the Responder understands version 0, too
	}{
		{name: "empty"},
		{name: "short", b: words(xid)},
		{name: "version only", b: words(xid, 1)},
		{name: "no type", b: words(xid, 1, 1)},
		{name: "version 0", b: append(words(xid, 0, 0, 0), rpcCall(xid)...), want: rpcrdma.ErrVers},
		{name: "version 2", b: append(words(xid, 2, 10, 0, 0, 0, 0), rpcCall(xid)...), want: rpcrdma.ErrVers},
		{name: "version 99", b: words(xid, 99, 10, 0, 0, 0, 0), want: rpcrdma.ErrVers},
		{name: "error of version 99", b: words(xid, 99, 10, 4, 1, 1, 1)},
		{name: "unknown type", b: words(xid, 1, 10, 5, 0, 0, 0), want: rpcrdma.ErrChunk},
		{name: "no lists", b: words(xid, 1, 10, 0), want: rpcrdma.ErrChunk},
		{name: "Read list without end", b: append(words(xid, 1, 10, 0), read(4, 1, 1)...), want: rpcrdma.ErrChunk},
		{name: "Write chunk that is longer than the message", b: words(xid, 1, 10, 0, 0, 1, 0xffffffff, 1, 2, 3), want: rpcrdma.ErrChunk},
		{name: "Reply chunk that is longer than the message", b: words(xid, 1, 10, 0, 0, 0, 1, 0x10000000), want: rpcrdma.ErrChunk},
		{name: "odd position", b: append(append(append(words(xid, 1, 10, 0), read(5, 1, 8)...), words(0, 0, 0)...), rpcCall(xid)...), want: rpcrdma.ErrChunk},
		{name: "position behind the message", b: append(append(append(words(xid, 1, 10, 0), read(4000, 1, 8)...), words(0, 0, 0)...), rpcCall(xid)...), want: rpcrdma.ErrChunk},
		{name: "position zero beside an inline call", b: append(append(append(words(xid, 1, 10, 0), read(0, 1, 8)...), words(0, 0, 0)...), rpcCall(xid)...), want: rpcrdma.ErrChunk},
		{name: "RDMA_NOMSG without position zero", b: words(xid, 1, 10, 1, 0, 0, 0), want: rpcrdma.ErrChunk},
		{name: "chunk bomb", b: append(append(words(xid, 1, 10, 1), read(0, 1, 0xffffffff)...), words(0, 0, 0)...), want: rpcrdma.ErrChunk},
		{name: "bomb of segments", b: append(append(words(xid, 1, 10, 1), long(150)...), words(0, 0, 0)...), want: rpcrdma.ErrChunk},
		{name: "lengths that add up to more than 2^32", b: append(append(append(append(words(xid, 1, 10, 0), read(28, 1, 0xfffffffc)...), read(28, 1, 0xfffffffc)...), words(0, 0, 0)...), rpcCall(xid)...), want: rpcrdma.ErrChunk},
		{name: "no message", b: words(xid, 1, 10, 0, 0, 0, 0), want: rpcrdma.ErrChunk},
		{name: "XIDs that differ", b: append(words(xid, 1, 10, 0, 0, 0, 0), rpcCall(xid+1)...), want: rpcrdma.ErrChunk},
		{name: "RDMA_DONE for nothing", b: words(xid, 1, 10, 3)},
		{name: "RDMA_ERROR for nothing", b: words(xid, 1, 10, 4, 2)},
		{name: "reply to nothing", b: append(words(xid, 1, 10, 0, 0, 0, 0), words(xid, 1, 0, 0, 0, 0)...)},
		{name: "RDMA_DONE of 2003", b: words(xid, 0, 1), old: true},
		{name: "old and short", b: words(xid, 0, 0), old: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newLoop(t, loop.Options{Async: true})
			o := Options{MaxSegments: 20}
			if c.old {
				o.Dialect = rpcrdma.DialectCallaghan
			}
			s, err := Listen(t.Context(), p, anywhere, &rpctest.Handler{}, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			r := dialRaw(t, p, s.Addr())
			for range 100 { // more often than there are credits
				r.send(t, c.b)
				if c.want == silence {
					continue
				}
				var h rpcrdma.Header
				m := r.receive()
				if m == nil {
					t.Fatal(r.Err())
				}
				if err := h.Decode(m, len(m)); err != nil {
					t.Fatal(err)
				}
				if h.Type != rpcrdma.TypeError || h.Error != c.want || h.XID != xid || h.Version != binary.BigEndian.Uint32(c.b[4:]) && h.Version != 1 {
					t.Fatalf("%+v", h)
				}
				if c.want == rpcrdma.ErrVers && (h.Low != 1 || h.High != 1) {
					t.Errorf("versions %d to %d", h.Low, h.High)
				}
			}
			r.send(t, append(words(7, 1, 10, 0, 0, 0, 0), rpcCall(7)...))
			m := r.receive()
			if len(m) < 40 || binary.BigEndian.Uint32(m[28:]) != 7 || binary.BigEndian.Uint32(m[32:]) != uint32(oncrpc.TypeReply) {
				t.Errorf("a good call after it: %x, %v", m, r.Err())
			}
		})
	}
}

// TestBadHandles: RDMA to what the peer has not opened ends its connection and
// nothing else.
func TestBadHandles(t *testing.T) {
	p := newLoop(t, loop.Options{Async: true})
	s, r := start(t, p, nil, Options{}, Options{})
	bad := dialRaw(t, p, s.Addr())
	bad.send(t, append(words(9, 1, 10, 1, 1, 0, 0xbad, 100, 0, 0), words(0, 0, 0)...))
	if m := bad.receive(); m != nil {
		t.Errorf("%x", m)
	}
	var status *verbs.StatusError
	if !errors.As(bad.Err(), &status) {
		t.Error(bad.Err())
	}
	if err := r.Do(t.Context(), null()); err != nil {
		t.Error(err)
	}
}

// TestFlood: a peer that sends beyond its credits loses its connection.
func TestFlood(t *testing.T) {
	p := newLoop(t, loop.Options{Async: true})
	s, r := start(t, p, transport.HandlerFunc(func(x transport.Exchange) {
		if x.Peer().Remote.Port() == 0 {
			return
		}
		if binary.BigEndian.Uint32(x.Call().Stream) < 1000 {
			return // never answered
		}
		rpctest.Answer(x, nil)
	}), Options{Credits: 4, BackwardCredits: 1}, Options{})
	flooder := &raw{}
	params := flooder.params()
	params.RNRRetryCount = 0
	c, err := p.Dial(t.Context(), s.Addr(), params)
	if err != nil {
		t.Fatal(err)
	}
	flooder.Conn = c
	for i := range uint32(1000) {
		if !flooder.send(t, append(words(i, 1, 10, 0, 0, 0, 0), rpcCall(i)...)) {
			break
		}
	}
	if m := flooder.receive(); m != nil {
		t.Errorf("%x", m)
	}
	var status *verbs.StatusError
	if !errors.As(flooder.Err(), &status) || status.Status != verbs.StatusRNRRetryExceeded {
		t.Error(flooder.Err())
	}
	call := null()
	call.XID = 5000
	if err := r.Do(t.Context(), call); err != nil {
		t.Error(err)
	}
}

// rawServer accepts connections for a test to answer calls by hand.
func rawServer(t testing.TB, p verbs.Provider) (at netip.AddrPort, next func() *raw) {
	t.Helper()
	l, err := p.Listen(t.Context(), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan *raw, 1)
	go func() {
		for {
			req, err := l.Accept(t.Context())
			if err != nil {
				return
			}
			r := new(raw)
			if r.Conn, err = req.Accept(t.Context(), r.params()); err != nil {
				return
			}
			conns <- r
		}
	}()
	return l.Addr(), func() *raw { return <-conns }
}

// TestHostileResponder answers a call in ways that break the rules.
func TestHostileResponder(t *testing.T) {
	reply := func(xid uint32) []byte { return words(xid, 1, 0, 0, 0, 0) }
	segments := func(h *rpcrdma.Header, change func(h *rpcrdma.Header)) []byte {
		var c rpcrdma.Header
		c.XID, c.Version, c.Credits, c.Type = h.XID, 1, 5, rpcrdma.TypeMsg
		for _, w := range h.Writes {
			c.Writes = append(c.Writes, append(rpcrdma.WriteChunk(nil), w...))
		}
		if h.HasReply {
			c.Reply, c.HasReply = append(rpcrdma.WriteChunk(nil), h.Reply...), true
		}
		change(&c)
		return c.Append(nil)
	}
	remote := errors.New("RDMA_ERROR")
	for _, c := range []struct {
		name   string
		layout transport.Layout
		answer func(h *rpcrdma.Header) []byte
		want   error // nil: the call succeeds; errSilent: the message is dropped
	}{
		{name: "good", answer: func(h *rpcrdma.Header) []byte { return append(words(h.XID, 1, 5, 0, 0, 0, 0), reply(h.XID)...) }},
		{name: "no credits", answer: func(h *rpcrdma.Header) []byte { return append(words(h.XID, 1, 0, 0, 0, 0, 0), reply(h.XID)...) }},
		{name: "RDMA_MSGP", answer: func(h *rpcrdma.Header) []byte {
			return append(words(h.XID, 1, 5, 2, 0, 0, 0, 0, 0), reply(h.XID)...)
		}},
		{name: "other XID", answer: func(h *rpcrdma.Header) []byte {
			return append(words(h.XID+1, 1, 5, 0, 0, 0, 0), reply(h.XID)...)
		}, want: errSilent},
		{name: "other version", answer: func(h *rpcrdma.Header) []byte {
			return append(words(h.XID, 2, 5, 0, 0, 0, 0), reply(h.XID)...)
		}, want: errSilent},
		{name: "short", answer: func(*rpcrdma.Header) []byte { return words(1) }, want: errSilent},
		{name: "RDMA_DONE", answer: func(h *rpcrdma.Header) []byte { return words(h.XID, 1, 5, 3) }, want: transport.ErrBadReply},
		{name: "unknown type", answer: func(h *rpcrdma.Header) []byte { return words(h.XID, 1, 5, 77) }, want: transport.ErrBadReply},
		{name: "other XID inside", answer: func(h *rpcrdma.Header) []byte {
			return append(words(h.XID, 1, 5, 0, 0, 0, 0), reply(h.XID+1)...)
		}, want: transport.ErrBadReply},
		{name: "ERR_CHUNK", answer: func(h *rpcrdma.Header) []byte { return words(h.XID, 1, 5, 4, 2) }, want: remote},
		{name: "ERR_VERS", answer: func(h *rpcrdma.Header) []byte { return words(h.XID, 1, 5, 4, 1, 3, 4) }, want: remote},
		{name: "Read list", answer: func(h *rpcrdma.Header) []byte {
			return append(words(h.XID, 1, 5, 0, 1, 8, 9, 10, 0, 0, 0, 0, 0), reply(h.XID)...)
		}, want: transport.ErrBadReply},
		{name: "Write chunk not offered", answer: func(h *rpcrdma.Header) []byte {
			return append(words(h.XID, 1, 5, 0, 0, 1, 1, 9, 10, 0, 0, 0, 0), reply(h.XID)...)
		}, want: transport.ErrBadReply},
		{name: "Reply chunk not offered", answer: func(h *rpcrdma.Header) []byte {
			return words(h.XID, 1, 5, 1, 0, 0, 1, 1, 9, 10, 0, 0)
		}, want: transport.ErrBadReply},
		{name: "RDMA_NOMSG without Reply chunk", answer: func(h *rpcrdma.Header) []byte { return words(h.XID, 1, 5, 1, 0, 0, 0) }, want: transport.ErrBadReply},
		{name: "chunk as offered", layout: transport.Layout{Writes: [][]uint32{{100, 100}}}, answer: func(h *rpcrdma.Header) []byte {
			return append(segments(h, func(c *rpcrdma.Header) { c.Writes[0][1].Length = 40 }), reply(h.XID)...)
		}},
		{name: "empty Write list", layout: transport.Layout{Writes: [][]uint32{{100, 100}}}, answer: func(h *rpcrdma.Header) []byte {
			return append(segments(h, func(c *rpcrdma.Header) { c.Writes = nil }), reply(h.XID)...)
		}},
		{name: "more than offered", layout: transport.Layout{Writes: [][]uint32{{100, 100}}}, answer: func(h *rpcrdma.Header) []byte {
			return append(segments(h, func(c *rpcrdma.Header) { c.Writes[0][1].Length = 101 }), reply(h.XID)...)
		}, want: transport.ErrBadReply},
		{name: "hole", layout: transport.Layout{Writes: [][]uint32{{100, 100}}}, answer: func(h *rpcrdma.Header) []byte {
			return append(segments(h, func(c *rpcrdma.Header) { c.Writes[0][0].Length = 99 }), reply(h.XID)...)
		}, want: transport.ErrBadReply},
		{name: "other handle", layout: transport.Layout{Writes: [][]uint32{{100, 100}}}, answer: func(h *rpcrdma.Header) []byte {
			return append(segments(h, func(c *rpcrdma.Header) { c.Writes[0][0].Handle++ }), reply(h.XID)...)
		}, want: transport.ErrBadReply},
		{name: "more segments", layout: transport.Layout{Writes: [][]uint32{{100, 100}}}, answer: func(h *rpcrdma.Header) []byte {
			return append(segments(h, func(c *rpcrdma.Header) { c.Writes[0] = append(c.Writes[0], rpcrdma.Segment{}) }), reply(h.XID)...)
		}, want: transport.ErrBadReply},
		{name: "message and Reply chunk", layout: transport.Layout{Reply: []uint32{100}}, answer: func(h *rpcrdma.Header) []byte {
			return append(segments(h, func(*rpcrdma.Header) {}), reply(h.XID)...)
		}, want: transport.ErrBadReply},
		{name: "empty Reply chunk", layout: transport.Layout{Reply: []uint32{100}}, answer: func(h *rpcrdma.Header) []byte {
			return segments(h, func(c *rpcrdma.Header) { c.Type, c.Reply[0].Length = rpcrdma.TypeNoMsg, 0 })
		}, want: transport.ErrBadReply},
		{name: "Reply chunk of nothing", layout: transport.Layout{Reply: []uint32{100}}, answer: func(h *rpcrdma.Header) []byte {
			return segments(h, func(c *rpcrdma.Header) { c.Type = rpcrdma.TypeNoMsg })
		}, want: transport.ErrBadReply},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newLoop(t, loop.Options{Async: true})
			at, next := rawServer(t, p)
			r, err := Dial(t.Context(), p, at, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() //nolint:errcheck // it never fails
			server := next()
			call := null()
			call.Layout = &c.layout
			mem, err := r.Alloc(200)
			if err != nil {
				t.Fatal(err)
			}
			copy(mem, bytes.Repeat([]byte("A"), 200)) // of an earlier call
			call.Results = [][]byte{mem}
			end := make(chan error, 1)
			var data []byte
			call.Done = func(c *transport.Call) {
				for _, it := range c.Reply.Items {
					data = append(data, it.Data...)
				}
				end <- c.Err
			}
			r.Start(call)
			var h rpcrdma.Header
			m := server.receive()
			if err := h.Decode(m, len(m)); err != nil {
				t.Fatal(err)
			}
			for i := range c.layout.Writes {
				for j, n := range c.layout.Writes[i] {
					if h.Writes[i][j].Length != n {
						t.Fatalf("%s", h.Key())
					}
				}
			}
			server.send(t, c.answer(&h))
			want := c.want
			if want == errSilent {
				server.send(t, append(words(h.XID, 1, 5, 0, 0, 0, 0), reply(h.XID)...))
				want = nil
			}
			switch err := <-end; {
			case c.want == remote:
				var got *RemoteError
				if !errors.As(err, &got) {
					t.Error(err)
				}
			case !errors.Is(err, want):
				t.Errorf("%v, want %v", err, want)
			case bytes.Contains(data, []byte("AAAA")):
				t.Errorf("data of an earlier call: %q", data)
			case err == nil && c.name == "chunk as offered" && len(data) != 140:
				t.Errorf("%d bytes of data", len(data))
			}
			// The connection is as good as before.
			call = null()
			call.Done = func(c *transport.Call) { end <- c.Err }
			r.Start(call)
			m = server.receive()
			if m == nil {
				t.Fatal(server.Err())
			}
			xid := binary.BigEndian.Uint32(m)
			server.send(t, append(words(xid, 1, 5, 0, 0, 0, 0), reply(xid)...))
			if err := <-end; err != nil {
				t.Error(err)
			}
		})
	}
}

var errSilent = errors.New("no end")

// TestFewCredits: calls that were given up keep their credits. If the Responder then grants no more than that, no call could
// ever be sent: the connection ends, and the next one carries the calls.
func TestFewCredits(t *testing.T) {
	for _, reconnect := range []bool{true, false} {
		t.Run(fmt.Sprint(reconnect), func(t *testing.T) {
			p := newLoop(t, loop.Options{Async: true})
			at, next := rawServer(t, p)
			r, err := Dial(t.Context(), p, at, Options{Reconnect: reconnect, BackoffMin: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() //nolint:errcheck // it never fails
			server := next()
			// answer receives a call, and answers it with a grant; 0 is no answer.
			answer := func(grant uint32) {
				m := server.receive()
				if m != nil && grant > 0 {
					xid := binary.BigEndian.Uint32(m)
					server.send(t, append(words(xid, 1, grant, 0, 0, 0, 0), words(xid, 1, 0, 0, 0, 0)...))
				}
			}
			do := func(grant uint32, timeout time.Duration) error {
				call := null()
				call.Timeout = timeout
				end := make(chan error, 1)
				call.Done = func(c *transport.Call) { end <- c.Err }
				r.Start(call)
				answer(grant)
				return <-end
			}
			if err := do(3, time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := do(0, 10*time.Millisecond); !errors.Is(err, transport.ErrTimeout) {
				t.Fatal(err)
			}
			if err := do(1, time.Minute); err != nil {
				t.Fatal(err)
			}
			// One credit, which the call without an answer has.
			stuck := null()
			stuck.Timeout = 10 * time.Millisecond
			if err := r.Do(t.Context(), stuck); !errors.Is(err, transport.ErrTimeout) {
				t.Errorf("without a credit: %v", err)
			}
			limit := time.AfterFunc(5*time.Second, func() {
				t.Error("the connection goes on")
				_ = server.Close()
			})
			if server.receive() != nil {
				t.Fatal("a call beyond the grant")
			}
			limit.Stop()
			if !reconnect {
				return
			}
			server = next()
			if err := do(3, time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}
