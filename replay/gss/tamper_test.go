package gss_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/internal/testtools/krbtest"
	"github.com/rpcrdma/toolkit/replay/gss"
	"github.com/rpcrdma/toolkit/replay/gss/accept"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// direct is a Requester without a transport: calls go to a handler, and replies through
// mangle.
type direct struct {
	transport.Requester // any other use panics
	h                   transport.Handler
	mangle              func(reply []byte) []byte
	calls               int
}

type directExchange struct {
	transport.Exchange
	call  transport.Message
	reply chan []byte
}

func (x *directExchange) Call() *transport.Message { return &x.call }
func (x *directExchange) Peer() transport.Peer     { return transport.Peer{} }
func (x *directExchange) MaxResult(int) uint32     { return 0 }
func (x *directExchange) Drop()                    { x.reply <- nil }
func (x *directExchange) Reply(m *transport.Message) {
	b := m.AppendWhole(nil)
	if m.Release != nil {
		m.Release()
	}
	x.reply <- b
}

func (d *direct) Close() error { return nil }

func (d *direct) Do(_ context.Context, c *transport.Call) error {
	d.calls++
	x := &directExchange{reply: make(chan []byte, 1)}
	x.call.Stream = c.AppendWhole(nil)
	binary.BigEndian.PutUint32(x.call.Stream, c.XID)
	d.h.ServeRPC(x)
	b := <-x.reply
	if b == nil {
		c.Err = transport.ErrTimeout
		return c.Err
	}
	c.Reply = transport.Message{Stream: d.mangle(b)}
	return nil
}

// echo replies with the arguments.
var echo = transport.HandlerFunc(func(x transport.Exchange) {
	m := x.Call()
	var h oncrpc.Call
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil {
		panic(err)
	}
	r := oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}
	x.Reply(&transport.Message{Stream: append(r.Append(nil), h.Payload...)})
})

func plainCall(args []byte) *transport.Call {
	h := oncrpc.Call{RPCVersion: 2, Program: 100003, Version: 3, Procedure: 1}
	return &transport.Call{Message: transport.Message{Stream: append(h.Append(nil), args...)}, MaxReply: 500}
}

func intact(b []byte) []byte { return b }

// TestTamperedReplies flips each bit of replies: the client must not accept any results that the
// server has not sent.
func TestTamperedReplies(t *testing.T) {
	realm := krbtest.New(t, krb5.AES128SHA1)
	d := &direct{h: accept.New(echo, accept.Options{Keytab: realm.Keytab()}), mangle: intact}
	args := []byte("sixteen bytes ok")
	for sec, service := range services {
		r, err := gss.New(t.Context(), d, gss.Options{Service: service, Tickets: realm.Tickets("alice"), Program: 100003, Version: 3})
		if err != nil {
			t.Fatal(err)
		}
		for bit, size := 0, 1; bit < 8*size; bit++ {
			c := plainCall(args)
			d.mangle = func(b []byte) []byte {
				b[bit/8] ^= 1 << (bit % 8)
				size = len(b)
				return b
			}
			err := r.Do(t.Context(), c)
			d.mangle = intact
			var h oncrpc.Reply
			switch {
			case err != nil:
			case h.Decode(c.Reply.Stream, len(c.Reply.Stream)) != nil || !h.Succeeded():
			case service == oncrpc.ServiceNone && bit/8 >= size-len(args): // not protected
			case bytes.Equal(h.Payload, args): // the padding of an opaque, or a rotation by nothing
			default:
				t.Fatalf("%s: bit %d of %d bytes flipped, and taken: %q", sec, bit, size, h.Payload)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSwappedReplies gives a client the reply to another of its calls.
func TestSwappedReplies(t *testing.T) {
	realm := krbtest.New(t, krb5.AES256SHA1)
	d := &direct{h: accept.New(echo, accept.Options{Keytab: realm.Keytab()}), mangle: intact}
	for sec, service := range services {
		r, err := gss.New(t.Context(), d, gss.Options{Service: service, Tickets: realm.Tickets("alice"), Program: 100003, Version: 3})
		if err != nil {
			t.Fatal(err)
		}
		var old []byte
		d.mangle = func(b []byte) []byte { old = slices.Clone(b); return b }
		if err := r.Do(t.Context(), plainCall([]byte("the first ok"))); err != nil {
			t.Fatal(err)
		}
		d.mangle = func(b []byte) []byte { return append(slices.Clone(b[:4]), old[4:]...) } // with its XID
		if err := r.Do(t.Context(), plainCall([]byte("the other ok"))); !errors.Is(err, transport.ErrBadReply) {
			t.Errorf("%s: %v", sec, err)
		}
		// The verifier of one reply, the results of the other.
		if service != oncrpc.ServiceNone {
			d.mangle = func(b []byte) []byte {
				var h oncrpc.Reply
				_ = h.Decode(b, len(b))
				return append(slices.Clone(b[:h.Size()]), old[h.Size():]...)
			}
			if err := r.Do(t.Context(), plainCall([]byte("the other ok"))); !errors.Is(err, transport.ErrBadReply) {
				t.Errorf("%s: %v", sec, err)
			}
		}
		d.mangle = intact
	}
}

// TestHostileServer creates contexts with a server that does not have the key, or denies every
// call.
func TestHostileServer(t *testing.T) {
	realm := krbtest.New(t, krb5.AES256SHA1)
	d := &direct{h: accept.New(echo, accept.Options{Keytab: realm.Keytab()})}
	open := func() (*gss.Requester, error) {
		return gss.New(t.Context(), d, gss.Options{Service: oncrpc.ServicePrivacy, Tickets: realm.Tickets("alice"), Program: 100003, Version: 3})
	}
	for name, mangle := range map[string]func(r *oncrpc.Reply, res *oncrpc.GSSInitResult){
		"no token":         func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Token = nil },
		"damaged token":    func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Token[len(res.Token)-1] ^= 1 },
		"another window":   func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Window++ },
		"no window":        func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Window = 0 },
		"no verifier":      func(r *oncrpc.Reply, _ *oncrpc.GSSInitResult) { r.Verf = oncrpc.Auth{} },
		"no handle":        func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Handle = nil },
		"a long handle":    func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Handle = make([]byte, 500) },
		"an error":         func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Major = 13 << 16 },
		"more and more":    func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Major = 1 },
		"failure":          func(r *oncrpc.Reply, _ *oncrpc.GSSInitResult) { r.Accept = oncrpc.SystemErr },
		"another's ticket": func(_ *oncrpc.Reply, res *oncrpc.GSSInitResult) { res.Token = bytes.Repeat([]byte{0x60, 0x20}, 40) },
	} {
		d.calls = 0
		d.mangle = func(b []byte) []byte {
			var h oncrpc.Reply
			var res oncrpc.GSSInitResult
			if h.Decode(b, len(b)) != nil || !h.Succeeded() || !res.Decode(h.Payload) {
				return b
			}
			mangle(&h, &res)
			return res.Append(h.Append(nil))
		}
		if _, err := open(); err == nil || d.calls > 5 {
			t.Errorf("%s: %v after %d calls", name, err, d.calls)
		}
	}
	d.mangle = intact
	r, err := open()
	if err != nil {
		t.Fatal(err)
	}
	d.calls = 0
	d.mangle = func(b []byte) []byte {
		var h oncrpc.Reply
		var res oncrpc.GSSInitResult
		if h.Decode(b, len(b)) == nil && res.Decode(h.Payload) && len(res.Token) > 0 {
			return b // contexts can be created again
		}
		deny := oncrpc.Reply{XID: binary.BigEndian.Uint32(b), Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: oncrpc.AuthGSSCtxProblem}
		return deny.Append(nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := plainCall(nil)
	if err := r.Do(ctx, c); err != nil || d.calls > 6 {
		t.Errorf("%v after %d calls", err, d.calls)
	}
	if h := (&oncrpc.Reply{}); h.Decode(c.Reply.Stream, len(c.Reply.Stream)) != nil || h.AuthStat != oncrpc.AuthGSSCtxProblem {
		t.Errorf("%v", h)
	}
}
