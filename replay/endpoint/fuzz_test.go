package endpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// sends are the messages of a sample's transactions, one of each layout.
func sends(t testing.TB, reply bool) (list [][]byte) {
	seen := map[string]bool{}
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap"} {
		r, err := capture.Open([]string{filepath.Join("../../samples", name)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			m := &tx.Call
			if reply {
				m = &tx.Reply
			}
			if k := m.Header.Key(); m.Transport && !m.Cut && !seen[k] && len(m.Raw()) < 1000 {
				seen[k] = true
				list = append(list, bytes.Clone(m.Raw()))
			}
		})
		if err := errors.Join(d.Run(r), r.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) < 4 {
		t.Fatalf("%d messages", len(list))
	}
	return list
}

// pointed is a message whose chunks are memory that is open: what it asks for
// can be done.
func pointed(b []byte, g verbs.Region, n uint32) []byte {
	var h rpcrdma.Header
	if h.Decode(b, len(b)) != nil {
		return b
	}
	at := uint32(0)
	point := func(s *rpcrdma.Segment) {
		s.Handle, s.Offset = g.Handle, g.Offset+uint64(at)
		s.Length = min(s.Length, 512)
		at = (at + 512) % (n - 512)
	}
	for i := range h.Reads {
		point(&h.Reads[i].Segment)
	}
	for _, w := range h.Writes {
		for i := range w {
			point(&w[i])
		}
	}
	for i := range h.Reply {
		point(&h.Reply[i])
	}
	return append(h.Append(nil), h.Payload...)
}

// fuzzOptions are what how chooses.
func fuzzOptions(how byte) (loop.Options, Options) {
	o := Options{MaxMessage: 1 << 16, Timeout: time.Minute}
	if how&1 != 0 {
		o.Model = ReadRead
	}
	if how&2 != 0 {
		o.Dialect = rpcrdma.DialectSolaris
	}
	return loop.Options{Async: how&4 != 0}, o
}

const (
	fuzzBufs   = 8
	fuzzMemory = 8 << 10
)

// fuzzPeer dials with few receives and some memory that is open.
func fuzzPeer(t testing.TB, p verbs.Provider, at netip.AddrPort, memory []byte) (*raw, verbs.Region) {
	r := new(raw)
	var params verbs.Params
	params.RNRRetryCount = 7
	for i := range fuzzBufs {
		r.bufs = append(r.bufs, memory[fuzzMemory+i*1024:][:1024:1024])
		params.Recvs = append(params.Recvs, verbs.RecvRequest{ID: uint64(i), Buffer: r.bufs[i]})
	}
	c, err := p.Dial(t.Context(), at, params)
	if err != nil {
		t.Fatal(err)
	}
	r.Conn = c
	g, err := c.Register(memory[:fuzzMemory], verbs.RemoteRead|verbs.RemoteWrite, verbs.OffsetAny)
	if err != nil {
		t.Fatal(err)
	}
	return r, g
}

// FuzzResponder is a requester that sends four real calls, from one that from
// names on, changed as a program says, with chunks that it has opened. Another
// connection's good call is served after it.
func FuzzResponder(f *testing.F) {
	calls := sends(f, false)
	calls = append(calls,
		append(words(1, 1, 10, 0, 0, 0, 0), rpcCall(1)...),
		append(words(1, 1, 10, 1, 1, 0, 9, 100, 0, 0), words(0, 0, 0)...),
		words(1, 1, 10, 0, 0, 1, 2, 3, 4, 0, 5, 6, 7, 0, 8, 0, 1, 1, 2, 3, 0, 4),
		append(words(1, 0, 0, 1, 0, 8, 9, 0, 0, 0), rpcCall(1)...),
		words(1, 1, 10, 3))
	for from := range uint8(len(calls)) {
		f.Add(from%8, from, []byte{})
	}
	ctx := f.Context()
	// The servers stay: an execution is a connection.
	type rig struct {
		p    *loop.Provider
		s    *Responder
		good *Requester
	}
	var rigs [8]*rig
	memory := make([]byte, fuzzMemory+fuzzBufs*1024)
	f.Cleanup(func() {
		for _, r := range rigs {
			if r != nil {
				_ = errors.Join(r.good.Close(), r.s.Close(), r.p.Close())
			}
		}
	})
	f.Fuzz(func(t *testing.T, how, from uint8, program []byte) {
		r := rigs[how&7]
		if r == nil {
			lo, o := fuzzOptions(how)
			r = &rig{p: loop.New(lo)}
			var err error
			if r.s, err = Listen(ctx, r.p, anywhere, &rpctest.Handler{}, o); err != nil {
				t.Fatal(err)
			}
			if r.good, err = Dial(ctx, r.p, r.s.Addr(), Options{Timeout: time.Minute}); err != nil {
				t.Fatal(err)
			}
			rigs[how&7] = r
		}
		peer, g := fuzzPeer(t, r.p, r.s.Addr(), memory)
		var list [][]byte
		for i := range 4 {
			list = append(list, pointed(calls[(int(from)+i)%len(calls)], g, fuzzMemory))
		}
		for _, b := range mutate.Units(list, program, 1024) {
			if !peer.send(t, b) {
				break
			}
		}
		_ = peer.Close()
		if err := r.good.Do(t.Context(), null()); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzRequester is a responder that answers a call with real replies, changed as
// a program says, under the XID of the call, and then with a good one.
func FuzzRequester(f *testing.F) {
	replies := sends(f, true)
	replies = append(replies,
		words(0, 1, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0),
		words(0, 1, 5, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 9, 10, 0, 0),
		words(0, 1, 5, 4, 2),
		words(0, 1, 5, 1, 1, 0, 7, 100, 0, 0, 0, 0, 0),
		words(0, 0, 0, 1, 0, 100, 7, 0, 0, 0))
	for from := range uint8(len(replies)) {
		f.Add(from%8, from, []byte{})
	}
	type rig struct {
		p    *loop.Provider
		at   netip.AddrPort
		next chan *raw
	}
	var rigs [8]*rig
	ctx := f.Context()
	results := [][]byte{make([]byte, 10000)}
	f.Fuzz(func(t *testing.T, how, from uint8, program []byte) {
		r := rigs[how&7]
		lo, o := fuzzOptions(how)
		if r == nil {
			r = &rig{p: loop.New(lo), next: make(chan *raw)}
			l, err := r.p.Listen(ctx, anywhere)
			if err != nil {
				t.Fatal(err)
			}
			r.at = l.Addr()
			go func() {
				for {
					req, err := l.Accept(ctx)
					if err != nil {
						return
					}
					s := new(raw)
					var params verbs.Params
					for i := range fuzzBufs {
						s.bufs = append(s.bufs, make([]byte, 4096))
						params.Recvs = append(params.Recvs, verbs.RecvRequest{ID: uint64(i), Buffer: s.bufs[i]})
					}
					if s.Conn, err = req.Accept(ctx, params); err != nil {
						return
					}
					r.next <- s
				}
			}()
			rigs[how&7] = r
		}
		c, err := Dial(t.Context(), r.p, r.at, o)
		if err != nil {
			t.Fatal(err)
		}
		server := <-r.next
		call := null()
		call.Results, call.MaxReply = results, 10000
		end := make(chan error, 1)
		call.Done = func(c *transport.Call) { end <- c.Err }
		c.Start(call)
		m := server.receive()
		var h rpcrdma.Header
		_ = h.Decode(m, len(m))
		var list [][]byte
		for i := range 3 {
			b := bytes.Clone(replies[(int(from)+i)%len(replies)])
			copy(b, m[:min(4, len(m))])
			var a rpcrdma.Header
			if a.Decode(b, len(b)) == nil && a.Version == h.Version && len(h.Writes) > 0 && len(a.Writes) > 0 && len(h.Writes[0]) > 0 {
				a.Writes = h.Writes // what the call has offered
				b = append(a.Append(nil), a.Payload...)
			}
			list = append(list, b)
		}
		for _, b := range mutate.Units(list, program, 4096) {
			if !server.send(t, b) {
				break
			}
		}
		server.send(t, append(words(call.XID, binary.BigEndian.Uint32(m[4:]), 5, 0, 0, 0, 0), words(call.XID, 1, 0, 0, 0, 0)...))
		// A Read list of the peer's can make the connection fail; nothing else
		// may keep the call.
		_ = c.Close()
		<-end
		_ = server.Close()
	})
}
