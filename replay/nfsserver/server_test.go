package nfsserver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// text is a message of one opaque.
type text struct{ xdr.Data }

func (t *text) Decode(r *xdr.Reader)        { t.Data = r.Data(0) }
func (t *text) Append(b []byte) []byte      { return xdr.AppendData(b, t.Data) }
func (t *text) EncodedSize() int            { return xdr.SizeData(t.Data) }
func (t *text) Walk(v xdr.Visitor)          { v.Data("text", t.Data) }
func inline(s string) *text                 { return &text{xdr.Data{Length: uint32(len(s)), Inline: []byte(s)}} }
func (t *text) in(c *nfsserver.Call) []byte { b, _ := c.Bytes(t.Data); return b }

const (
	program = 0x20000123
	null    = 0
	echo    = 1
	count   = 2 // not idempotent
	wait    = 3 // not idempotent, answers when it may
	drop    = 4
	double  = 5 // the text twice, both apart
)

// fixture is a server of a program for tests.
type fixture struct {
	*nfsserver.Server
	counted atomic.Uint32
	waiting chan *nfsserver.Call
	creds   chan store.Cred
}

func newFixture(opt nfsserver.Options) *fixture {
	f := &fixture{Server: nfsserver.New(opt), waiting: make(chan *nfsserver.Call, 10)}
	p := nfsserver.Program{Name: "test", Number: program, NewState: func() any { return new(text) }}
	p.Procedures = []nfsserver.Procedure{
		null: {Name: "NULL", Do: func(c *nfsserver.Call) { c.Send() }},
		echo: {Name: "ECHO", Do: func(c *nfsserver.Call) {
			if t := c.State.(*text); c.Decode(t) {
				if f.creds != nil {
					cred := c.Cred
					cred.GIDs = append([]uint32(nil), cred.GIDs...)
					f.creds <- cred
				}
				c.AddData(t.in(c))
				c.Send()
			}
		}},
		count: {Name: "COUNT", Cached: true, Do: func(c *nfsserver.Call) {
			if t := c.State.(*text); c.Decode(t) {
				c.Out = xdr.AppendUint32(c.Out, f.counted.Add(1))
				c.Send()
			}
		}},
		wait: {Name: "WAIT", Cached: true, Do: func(c *nfsserver.Call) { f.waiting <- c }},
		drop: {Name: "DROP", Cached: true, Do: func(c *nfsserver.Call) { f.counted.Add(1); c.Drop() }},
		double: {Name: "DOUBLE", Do: func(c *nfsserver.Call) {
			if t := c.State.(*text); c.Decode(t) {
				c.AddData(t.in(c))
				at := c.Len()
				c.AddData([]byte("to be taken back, and long enough"))
				c.Undo(at)
				c.AddData(t.in(c))
				c.Out = xdr.AppendUint32(c.Out, uint32(c.Items()))
				c.Send()
			}
		}},
		6: {Name: "none"},
	}
	for _, v := range []uint32{3, 5} {
		p.Version = v
		f.Register(p)
	}
	return f
}

func (f *fixture) client(d nfstest.Doer) *nfstest.Client {
	return &nfstest.Client{Doer: d, Program: program, Version: 3, Cred: nfstest.Sys(1, 2, 3, 4)}
}

func TestErrors(t *testing.T) {
	f := newFixture(nfsserver.Options{})
	d := nfstest.NewDirect(f)
	gss := oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: (&oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSInit, Service: oncrpc.ServiceNone}).Append(nil)}
	header := func(h oncrpc.Call) []byte { h.XID = 77; return h.Append(nil) }
	good := oncrpc.Call{RPCVersion: 2, Program: program, Version: 3, Procedure: echo, Cred: nfstest.Sys(0, 0)}
	with := func(change func(h *oncrpc.Call)) []byte { h := good; change(&h); return header(h) }
	for name, c := range map[string]struct {
		call []byte
		want oncrpc.Reply
	}{
		"RPC version":        {with(func(h *oncrpc.Call) { h.RPCVersion = 3 }), oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.RPCMismatch, Low: 2, High: 2}},
		"program":            {with(func(h *oncrpc.Call) { h.Program++ }), oncrpc.Reply{Accept: oncrpc.ProgUnavail}},
		"version":            {with(func(h *oncrpc.Call) { h.Version = 4 }), oncrpc.Reply{Accept: oncrpc.ProgMismatch, Low: 3, High: 5}},
		"procedure":          {with(func(h *oncrpc.Call) { h.Procedure = 7 }), oncrpc.Reply{Accept: oncrpc.ProcUnavail}},
		"no procedure":       {with(func(h *oncrpc.Call) { h.Procedure = 6 }), oncrpc.Reply{Accept: oncrpc.ProcUnavail}},
		"huge procedure":     {with(func(h *oncrpc.Call) { h.Procedure = 1<<32 - 1 }), oncrpc.Reply{Accept: oncrpc.ProcUnavail}},
		"no arguments":       {header(good), oncrpc.Reply{Accept: oncrpc.GarbageArgs}},
		"arguments too long": {append(header(good), 0, 0, 0, 0, 1, 2, 3, 4), oncrpc.Reply{Accept: oncrpc.GarbageArgs}},
		"cut header":         {header(good)[:30], oncrpc.Reply{Accept: oncrpc.GarbageArgs}},
		"very short":         {header(good)[:8], oncrpc.Reply{Accept: oncrpc.GarbageArgs}},
		"GSS":                {with(func(h *oncrpc.Call) { h.Cred = gss }), oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: oncrpc.AuthBadCred}},
		"TLS":                {with(func(h *oncrpc.Call) { h.Cred = oncrpc.Auth{Flavor: oncrpc.AuthTLS} }), oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: oncrpc.AuthBadCred}},
		"bad AUTH_SYS":       {with(func(h *oncrpc.Call) { h.Cred.Body = h.Cred.Body[:10] }), oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: oncrpc.AuthBadCred}},
		"bad verifier":       {with(func(h *oncrpc.Call) { h.Verf.Flavor = oncrpc.AuthSys }), oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: oncrpc.AuthBadVerf}},
	} {
		call := &transport.Call{Message: transport.Message{Stream: c.call}}
		if err := d.Do(t.Context(), call); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.want.XID = 77
		if want := c.want.Append(nil); !bytes.Equal(call.Reply.Stream, want) {
			t.Errorf("%s: got %x, want %x", name, call.Reply.Stream, want)
		}
	}
	for name, b := range map[string][]byte{"empty": nil, "short": header(good)[:7], "a reply": (&oncrpc.Reply{}).Append(nil)} {
		call := &transport.Call{Message: transport.Message{Stream: b}}
		if err := d.Do(t.Context(), call); err != nfstest.ErrDropped {
			t.Errorf("%s: %v", name, err)
		}
	}
	if st := f.Stats(); st.Failed != st.Calls || st.Calls == 0 {
		t.Errorf("%+v", st)
	}
}

func TestCredentials(t *testing.T) {
	sys := nfstest.Sys(0, 0, 0, 5)
	for name, c := range map[string]struct {
		opt  nfsserver.Options
		cred oncrpc.Auth
		want store.Cred
	}{
		"none":         {nfsserver.Options{}, oncrpc.Auth{}, store.Cred{UID: 65534, GID: 65534}},
		"none, own":    {nfsserver.Options{AnonUID: 7, AnonGID: 8}, oncrpc.Auth{}, store.Cred{UID: 7, GID: 8}},
		"root":         {nfsserver.Options{}, sys, store.Cred{GIDs: []uint32{0, 5}}},
		"root squash":  {nfsserver.Options{Squash: nfsserver.RootSquash}, sys, store.Cred{UID: 65534, GID: 65534}},
		"root's group": {nfsserver.Options{Squash: nfsserver.RootSquash}, nfstest.Sys(4, 0, 0, 5), store.Cred{UID: 4, GID: 65534, GIDs: []uint32{65534, 5}}},
		"all squash":   {nfsserver.Options{Squash: nfsserver.AllSquash, AnonUID: 9, AnonGID: 9}, nfstest.Sys(4, 4), store.Cred{UID: 9, GID: 9}},
	} {
		f := newFixture(c.opt)
		f.creds = make(chan store.Cred, 1)
		cl := f.client(nfstest.NewDirect(f))
		cl.Cred = c.cred
		if err := cl.Call(t.Context(), echo, inline("x"), new(text), nil, nil); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := <-f.creds
		if got.UID != c.want.UID || got.GID != c.want.GID || len(got.GIDs) != len(c.want.GIDs) || len(got.GIDs) > 0 && got.GIDs[0] != c.want.GIDs[0] {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestItems sends texts of all sizes, inline and apart, in both directions.
func TestItems(t *testing.T) {
	f := newFixture(nfsserver.Options{})
	cl := f.client(nfstest.NewDirect(f))
	for _, n := range []int{0, 1, 3, 4, 1023, 1025, 100_001} {
		want := bytes.Repeat([]byte("abcdefg"), n)[:n]
		for _, apart := range []bool{false, true} {
			for _, chunk := range []bool{false, true} {
				args, data := &text{xdr.Data{Length: uint32(n), Inline: want}}, []byte(nil)
				if apart {
					args, data = &text{xdr.Data{Length: uint32(n), Chunk: 1}}, want
				}
				var result []byte
				if chunk {
					result = make([]byte, n+5)
				}
				res := new(text)
				if err := cl.Call(t.Context(), echo, args, res, data, result); err != nil {
					t.Fatalf("%d bytes: %v", n, err)
				}
				got := res.Inline
				if res.Chunk != 0 {
					got = result[:res.Length]
				}
				if !bytes.Equal(got, want) || chunk && n > 0 && res.Chunk != 1 {
					t.Errorf("%d bytes, apart %v, chunk %v: got %d, %+v", n, apart, chunk, len(got), res.Chunk)
				}
			}
		}
		// Two items in one reply.
		call := &transport.Call{}
		call.Stream = inline(string(want)).Append(cl.Header(double))
		if err := cl.Doer.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		body := xdr.AppendOpaque(xdr.AppendOpaque(nil, want), want)
		items := uint32(0)
		if n > 1024 {
			items = 2
		}
		if body = xdr.AppendUint32(body, items); !bytes.Equal(call.Reply.Stream[24:], body) {
			t.Errorf("%d bytes: two items are not in place", n)
		}
	}
	// A call that says more of its item than came.
	err := cl.Call(t.Context(), echo, &text{xdr.Data{Length: 100, Chunk: 1}}, new(text), make([]byte, 10), nil)
	if failed := new(nfstest.Failed); !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
}

func TestDuplicates(t *testing.T) {
	f := newFixture(nfsserver.Options{Replies: 4})
	d := nfstest.NewDirect(f)
	cl := f.client(d)
	do := func(cl *nfstest.Client, xid uint32, s string) uint32 {
		t.Helper()
		cl.XID = xid
		call := &transport.Call{Message: transport.Message{Stream: inline(s).Append(cl.Header(count))}}
		if err := cl.Doer.Do(t.Context(), call); err != nil || len(call.Reply.Stream) != 28 {
			t.Fatalf("%x, %v", call.Reply.Stream, err)
		}
		if got := binary.BigEndian.Uint32(call.Reply.Stream); got != xid {
			t.Errorf("XID %d", got)
		}
		return binary.BigEndian.Uint32(call.Reply.Stream[24:])
	}
	again := f.client(nfstest.NewDirect(f)) // the same client on another connection
	another := nfstest.NewDirect(f)
	another.Name.Remote = netip.MustParseAddrPort("192.0.2.9:99")
	stranger := f.client(another)
	for i, c := range []struct {
		cl   *nfstest.Client
		xid  uint32
		s    string
		want uint32
	}{
		{cl, 10, "a", 1}, {cl, 10, "a", 1}, {again, 10, "a", 1}, {cl, 10, "b", 2}, {stranger, 10, "a", 3}, {cl, 11, "a", 4},
		{cl, 10, "a", 1}, {cl, 12, "a", 5}, {cl, 10, "b", 2}, {cl, 10, "a", 6}, // too many since
	} {
		if got := do(c.cl, c.xid, c.s); got != c.want {
			t.Errorf("call %d: %d, want %d", i, got, c.want)
		}
	}
	// Another user of the same client is not told what the first one was.
	user := f.client(d)
	user.Cred = nfstest.Sys(7, 7)
	other := f.client(d)
	other.Cred = nfstest.Sys(8, 7)
	if a, b, c := do(user, 13, "a"), do(other, 13, "a"), do(user, 13, "a"); a == b || a != c {
		t.Errorf("%d, %d, %d", a, b, c)
	}
	// A flood pushes out its own replies, and leaves others theirs.
	f2 := newFixture(nfsserver.Options{Replies: 40})
	victim, flood := f2.client(nfstest.NewDirect(f2)), nfstest.NewDirect(f2)
	flood.Name.Remote = netip.MustParseAddrPort("[2001:db8::1]:99")
	attacker := f2.client(flood)
	var first []uint32
	for i := range uint32(10) {
		first = append(first, do(victim, i+1, "mine"))
	}
	for i := range uint32(1000) {
		flood.Name.Remote = netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 13, 0xb8, 15: byte(i)}), 99)
		do(attacker, i+1, "flood")
	}
	for i := range uint32(10) {
		if got := do(victim, i+1, "mine"); got != first[i] {
			t.Errorf("call %d was done again", i)
		}
	}
	// A duplicate of a call that is worked at waits for its reply.
	message := append((&oncrpc.Call{XID: 99, RPCVersion: 2, Program: program, Version: 3, Procedure: wait}).Append(nil), "argument"...)
	var waiting []*recorder
	for range 12 {
		x := &recorder{bare: bare{call: transport.Message{Stream: message}}}
		f.ServeRPC(x)
		waiting = append(waiting, x)
	}
	c := <-f.waiting
	c.Out = append(c.Out, "done"...)
	c.Send()
	replies, drops := 0, 0
	for _, x := range waiting {
		drops += x.drops
		if replies += len(x.replies); len(x.replies)+x.drops != 1 || x.drops == 0 && x.replies[0][24:] != "done" {
			t.Errorf("%q, %d drops", x.replies, x.drops)
		}
	}
	if replies != 9 || drops != 3 {
		t.Errorf("%d replies, %d drops", replies, drops)
	}
	// A call that was dropped is done again.
	before := f.counted.Load()
	for range 2 {
		cl.XID = 50
		if err := cl.Call(t.Context(), drop, xdr.Void{}, xdr.Void{}, nil, nil); err != nfstest.ErrDropped {
			t.Errorf("got %v", err)
		}
	}
	if got := f.counted.Load() - before; got != 2 {
		t.Errorf("done %d times", got)
	}
	// None are kept.
	f = newFixture(nfsserver.Options{Replies: -1})
	cl = f.client(nfstest.NewDirect(f))
	if do(cl, 1, "a") != 1 || do(cl, 1, "a") != 2 {
		t.Error("kept a reply")
	}
}

func TestWorkers(t *testing.T) {
	f := newFixture(nfsserver.Options{Workers: 3})
	d := nfstest.NewDirect(f)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			cl := f.client(d)
			cl.XID = uint32(g+1) << 20
			for range 200 {
				res := new(text)
				if err := cl.Call(t.Context(), echo, inline("hello"), res, nil, nil); err != nil || string(res.Inline) != "hello" {
					t.Errorf("%q, %v", res.Inline, err)
				}
			}
		})
	}
	wg.Wait()
	f.Close()
	f.Close()
	// After the end calls are dropped, or answered if they need no worker.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 50 {
		if err := f.client(d).Call(ctx, echo, inline("x"), new(text), nil, nil); err != nfstest.ErrDropped {
			t.Fatalf("got %v", err)
		}
	}
}

func TestConn(t *testing.T) {
	f := newFixture(nfsserver.Options{})
	type key struct{}
	conns := make(chan *nfsserver.Conn, 10)
	f.Register(nfsserver.Program{Name: "conn", Number: program + 1, Version: 1, Procedures: []nfsserver.Procedure{{Do: func(c *nfsserver.Call) {
		conns <- c.Conn()
		c.Send()
	}}}})
	call := func(d *nfstest.Direct) *nfsserver.Conn {
		cl := &nfstest.Client{Doer: d, Program: program + 1, Version: 1}
		if err := cl.Call(t.Context(), 0, xdr.Void{}, xdr.Void{}, nil, nil); err != nil {
			t.Fatal(err)
		}
		return <-conns
	}
	a, b := nfstest.NewDirect(f), nfstest.NewDirect(f)
	ca, cb := call(a), call(b)
	if ca == cb || call(a) != ca {
		t.Error("connections are mixed up")
	}
	if v := ca.Value(key{}, func() any { return 5 }); v != 5 || ca.Value(key{}, nil) != 5 || cb.Value(key{}, nil) != nil {
		t.Error("values are mixed up")
	}
	ended := 0
	ca.OnClose(func() { ended++ })
	b.Close()
	if ended != 0 {
		t.Error("another connection has ended")
	}
	a.Close()
	ca.OnClose(func() { ended++ })
	if ended != 2 {
		t.Errorf("%d functions were called", ended)
	}
}

// bare is an exchange that costs nothing.
type bare struct{ call transport.Message }

func (x *bare) Call() *transport.Message      { return &x.call }
func (x *bare) Peer() transport.Peer          { return transport.Peer{} }
func (x *bare) MaxResult(int) uint32          { return 0 }
func (x *bare) Reply(m *transport.Message)    { m.Release() }
func (x *bare) Drop()                         {}
func (x *bare) Disconnect()                   {}
func (x *bare) Backward() transport.Requester { return nil }
func (x *bare) OnClose(any, func())           {}

// recorder is an exchange that keeps its replies.
type recorder struct {
	bare
	replies []string
	drops   int
}

func (x *recorder) Reply(m *transport.Message) {
	x.replies = append(x.replies, string(m.AppendWhole(nil)))
	if m.Release != nil {
		m.Release()
	}
}
func (x *recorder) Drop() { x.drops++ }
