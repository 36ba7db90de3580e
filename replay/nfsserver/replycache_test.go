package nfsserver_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// kept is a server whose replies are kept: the text that came, and a count.
func kept(opt nfsserver.Options) *fixture {
	f := newFixture(opt)
	for _, version := range []uint32{1, 2} {
		f.Register(nfsserver.Program{
			Name: "kept", Number: program + 1, Version: version, NewState: func() any { return new(text) },
			Procedures: []nfsserver.Procedure{{Name: "ECHO", Cached: true, Do: func(c *nfsserver.Call) {
				if t := c.State.(*text); c.Decode(t) {
					c.AddData(t.in(c))
					c.Out = xdr.AppendUint32(c.Out, f.counted.Add(1))
					c.Send()
				}
			}}},
		})
	}
	return f
}

// A reply that is given again goes into the chunks of the call that it is given to.
func TestRepliesInChunks(t *testing.T) {
	f := kept(nfsserver.Options{})
	for _, n := range []int{1, 100, 1024, 1025, 70_001} {
		want := bytes.Repeat([]byte("abcdefg"), n)[:n]
		for i, room := range []int{0, n, 0, n + 3, n + 1000} {
			cl := f.client(nfstest.NewDirect(f)) // each on a connection of its own
			cl.Program, cl.Version, cl.XID = program+1, 1, uint32(n)
			call := &transport.Call{Message: transport.Message{Stream: inline(string(want)).Append(cl.Header(0))}}
			if room > 0 {
				call.Results = [][]byte{make([]byte, room)}
			}
			if err := cl.Doer.Do(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			if room > 0 {
				if len(call.Reply.Items) != 1 || !bytes.Equal(call.Reply.Items[0].Data, want) || len(call.Reply.Stream) != 32 {
					t.Errorf("%d bytes, reply %d: %d items, a stream of %d", n, i, len(call.Reply.Items), len(call.Reply.Stream))
				}
			} else if whole := call.Reply.Stream; len(whole) != 32+(n+3)&^3 || !bytes.Equal(whole[28:28+n], want) {
				t.Errorf("%d bytes, reply %d: %d", n, i, len(whole))
			}
		}
		// A chunk that is too small is the new call's error, not the reply's.
		cl := f.client(nfstest.NewDirect(f))
		cl.Program, cl.Version, cl.XID = program+1, 1, uint32(n)
		call := &transport.Call{Message: transport.Message{Stream: inline(string(want)).Append(cl.Header(0))}, Results: [][]byte{make([]byte, n-1)}}
		if err := cl.Doer.Do(t.Context(), call); n > 1 && !errors.Is(err, transport.ErrTooLong) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if f.counted.Load() != 5 {
		t.Errorf("%d calls were executed", f.counted.Load())
	}
	// A version of a program is not another.
	cl := f.client(nfstest.NewDirect(f))
	cl.Program, cl.Version, cl.XID = program+1, 2, 1
	if err := cl.Call(t.Context(), 0, inline("a"), &counted{}, nil, nil); err != nil || f.counted.Load() != 6 {
		t.Errorf("%v, %d calls were executed", err, f.counted.Load())
	}
}

// counted is a text and a number.
type counted struct {
	text
	n uint32
}

func (c *counted) Decode(r *xdr.Reader)   { c.text.Decode(r); c.n = r.Uint32() }
func (c *counted) Append(b []byte) []byte { return xdr.AppendUint32(c.text.Append(b), c.n) }
func (c *counted) EncodedSize() int       { return c.text.EncodedSize() + 4 }

// Neither the number of replies nor their bytes exceed the limits, whoever sends what.
// What was given up is counted, and a source that stays within its share loses nothing.
func TestRepliesAreBounded(t *testing.T) {
	const room = 256 << 10
	f := kept(nfsserver.Options{Replies: 100, ReplyBytes: room})
	do := func(addr netip.Addr, xid uint32, n int) uint32 {
		t.Helper()
		d := nfstest.NewDirect(f)
		d.Name.Remote = netip.AddrPortFrom(addr, uint16(xid))
		cl := f.client(d)
		cl.Program, cl.Version, cl.XID = program+1, 1, xid
		call := &transport.Call{Message: transport.Message{Stream: inline(string(make([]byte, n))).Append(cl.Header(0))}}
		if err := d.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		st := f.Stats().Replies
		if st.Entries > 100 || st.Bytes > room+512 || st.Bytes < 0 {
			t.Fatalf("%+v", st)
		}
		return binary.BigEndian.Uint32(call.Reply.Stream[len(call.Reply.Stream)-4:])
	}
	modest := netip.MustParseAddr("192.0.2.77")
	var first []uint32
	for i := range uint32(5) {
		first = append(first, do(modest, i+1, 100))
	}
	for i := range uint32(600) {
		// Few large replies, many small ones, one address and many.
		n := []int{0, 8, 2000, 20_000, 31_000}[i%5]
		do(netip.AddrFrom4([4]byte{198, 51, byte(100 + i%3), byte(i / 100)}), i+1, n)
		do(netip.MustParseAddr("203.0.113.1"), i+1, n)
	}
	if st := f.Stats().Replies; st.Evicted < 1000 || st.Unkept != 0 {
		t.Errorf("%+v", st)
	}
	for i := range uint32(5) {
		if got := do(modest, i+1, 100); got != first[i] {
			t.Errorf("call %d was executed again", i)
		}
	}
	// What is too large to be kept is said to be.
	a := do(modest, 50, room/8)
	if b := do(modest, 50, room/8); a == b || f.Stats().Replies.Unkept != 2 {
		t.Errorf("%d, %d, %+v", a, b, f.Stats().Replies)
	}
}

func BenchmarkKeptReply(b *testing.B) {
	f := kept(nfsserver.Options{})
	cl := f.client(nil)
	cl.Program, cl.Version = program+1, 1
	x := &bare{call: transport.Message{Stream: inline("hello").Append(cl.Header(0))}}
	b.ReportAllocs()
	xid := uint32(0)
	for b.Loop() {
		xid++
		binary.BigEndian.PutUint32(x.call.Stream, xid)
		f.ServeRPC(x)
	}
}
