package rocev2

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/verbs"
	verbstap "github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// operations lists what a decoder saw.
type operations struct {
	ops   []string
	bytes map[string][]byte
	bad   []string
}

// Observer returns what a Decoder tells it.
func (o *operations) Observer() decode.Observer {
	return decode.Observer{Send: o.Send, OpStart: o.OpStart, OpData: o.OpData, Event: o.Event}
}

func (o *operations) Send(_ *rdma.Connection, s *rdma.Send) {
	o.ops = append(o.ops, fmt.Sprintf("send from %d: %d bytes, invalidate %v %#x", s.From, s.Length, s.Invalidates, s.Handle))
	if s.Again > 0 {
		o.bad = append(o.bad, fmt.Sprintf("%d packets of a Send again", s.Again))
	}
}
func (o *operations) OpStart(_ *rdma.Connection, op *rdma.Op, _ rdma.Ref) {
	o.ops = append(o.ops, opLine(op))
}
func (o *operations) OpData(_ *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	o.bytes[opLine(op)] = append(o.bytes[opLine(op)], f.Data...)
	if f.Again {
		o.bad = append(o.bad, "a fragment again")
	}
}
func (o *operations) Event(_ *rdma.Connection, from rdma.Side, e rdma.Event, v uint32, _ rdma.Ref) {
	o.bad = append(o.bad, fmt.Sprintf("event %v %d from %d", e, v, from))
}

func opLine(op *rdma.Op) string {
	return fmt.Sprintf("%v from %d: %#x @%#x %d bytes", op.Kind, op.From, op.Handle, op.Offset, op.Length)
}

// conns is a connection between two providers, with a Conn at each.
func connect(t testing.TB, server, client *Provider, at netip.AddrPort, sp, cp verbs.Params) (s, c *Conn) {
	t.Helper()
	l, err := server.Listen(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			var x verbs.Conn
			if x, err = r.Accept(context.Background(), sp); err == nil {
				s = x.(*Conn)
			}
		}
		done <- err
	}()
	x, err := client.Dial(context.Background(), l.Addr(), cp)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return s, x.(*Conn)
}

// wait returns n completions, all of which have to be good.
func wait(t testing.TB, c *Conn, n int) (got []verbs.Completion) {
	t.Helper()
	var buf [16]verbs.Completion
	for len(got) < n {
		k := c.Poll(buf[:min(len(buf), n-len(got))])
		if k == 0 {
			if err := c.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		for _, x := range buf[:k] {
			if x.Status != verbs.StatusSuccess {
				t.Fatalf("%+v: %v", x, c.Err())
			}
			got = append(got, x)
		}
	}
	return got
}

// A capture of what a session sends and receives decodes without a fault, and
// holds what was posted, at each end.
func TestCaptureDecodes(t *testing.T) {
	for _, tt := range []struct {
		name           string
		addr           netip.Addr
		offload, atTop bool
		mtu            int
	}{
		{"offload, seen by the server", address(t), true, false, 4096},
		{"offload, seen by the client", address(t), true, true, 1024},
		{"one by one", address(t), false, true, 1024},
		{"small", address(t), true, true, 256},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var file bytes.Buffer
			w := verbstap.NewWriter(capture.NewWriter(&file, capture.WriterOptions{}))
			// Nothing is lost, so nothing is to be repeated, however slow the
			// machine is.
			so := Options{MTU: tt.mtu, NoOffload: !tt.offload, CheckICRC: ICRCOwnID, RepeatAfter: time.Minute, AckTimeout: time.Minute, CMTimeout: time.Minute}
			co := so
			co.Local = address(t)
			if tt.atTop {
				co.Tap = w
			} else {
				so.Tap = w
			}
			server, client := provider(t, so), provider(t, co)
			in, note := make([]byte, 70000), make([]byte, 3000)
			s, c := connect(t, server, client, netip.AddrPortFrom(tt.addr, 0),
				verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: in}, {Buffer: in}}, PrivateData: []byte("server")},
				verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: note}}, PrivateData: []byte("client")})
			if got := c.Info(); got.MTU != tt.mtu || !bytes.HasPrefix(got.PrivateData, []byte("server")) {
				t.Errorf("%+v", got)
			}
			source, sink := make([]byte, 50001), make([]byte, 50000)
			for i := range source {
				source[i] = byte(i * i >> 3)
			}
			r, err := c.Register(source, verbs.RemoteRead, 0x1234567800000000)
			if err != nil {
				t.Fatal(err)
			}
			wr, err := c.Register(sink, verbs.RemoteWrite, verbs.OffsetAny)
			if err != nil {
				t.Fatal(err)
			}
			post(t, c, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{source[:101]}})
			wait(t, c, 1)
			wait(t, s, 1)
			pulled := make([]byte, len(source)-1)
			post(t, s, verbs.WorkRequest{Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset + 1, Local: [][]byte{pulled}})
			wait(t, s, 1)
			post(t, s,
				verbs.WorkRequest{Op: verbs.OpWrite, Handle: wr.Handle, Offset: wr.Offset + 7, Local: [][]byte{pulled[:20000], pulled[20000:20003]}},
				verbs.WorkRequest{Op: verbs.OpWrite, Handle: wr.Handle, Offset: wr.Offset + 40000, Local: [][]byte{pulled[:8192]}},
				verbs.WorkRequest{Op: verbs.OpSendInvalidate, Signaled: true, Handle: wr.Handle, Local: [][]byte{pulled[:2999]}})
			wait(t, s, 1)
			if x := wait(t, c, 1)[0]; !x.Invalidated || x.Handle != wr.Handle || x.Length != 2999 {
				t.Errorf("%+v", x)
			}
			post(t, c, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{source}})
			wait(t, c, 1)
			wait(t, s, 1)
			if err := c.Disconnect(context.Background()); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(pulled, source[1:]) || !bytes.Equal(sink[7:20010], pulled[:20003]) || !bytes.Equal(sink[40000:48192], pulled[:8192]) {
				t.Fatal("wrong bytes")
			}
			client.Close()
			server.Close()
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}

			o := &operations{bytes: make(map[string][]byte)}
			rd, err := capture.NewReader(&file, "tap", capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var connection *rdma.Connection
			d := decode.New(decode.Options{Observers: []decode.Observer{o.Observer(), {Closed: func(c *rdma.Connection) { connection = c }, Packet: func(v *decode.PacketView) {
				for i := range v.RoCE {
					if p := v.RoCE[i].Problem; p != roce.NoProblem {
						t.Errorf("packet %d: %s", v.Packet.Number, p)
					}
				}
			}}}}, func(*transaction.Transaction) {})
			if err := d.Run(rd); err != nil {
				t.Fatal(err)
			}
			d.Flush()
			st := d.Stats()
			if st.BadICRC+st.NotChecked+st.Undecodable+st.Other+st.Fragments != 0 || st.GoodICRC != w.Packets() || st.Packets != w.Packets() || st.Connections != 1 {
				t.Errorf("%+v of %d packets", st, w.Packets())
			}
			if connection == nil {
				t.Fatal("no connection")
			}
			// The side that the setup was sent from is 0 at whichever end.
			cl, sv := rdma.Side(0), rdma.Side(1)
			read := fmt.Sprintf("%v from %d: %#x @%#x %d bytes", rdma.Read, sv, r.Handle, r.Offset+1, len(pulled))
			write1 := fmt.Sprintf("%v from %d: %#x @%#x %d bytes", rdma.Write, sv, wr.Handle, wr.Offset+7, 20003)
			write2 := fmt.Sprintf("%v from %d: %#x @%#x %d bytes", rdma.Write, sv, wr.Handle, wr.Offset+40000, 8192)
			want := []string{
				fmt.Sprintf("send from %d: 101 bytes, invalidate false 0x0", cl), read, write1, write2,
				fmt.Sprintf("send from %d: 2999 bytes, invalidate true %#x", sv, wr.Handle),
				fmt.Sprintf("send from %d: 50001 bytes, invalidate false 0x0", cl),
			}
			if fmt.Sprint(o.ops) != fmt.Sprint(want) {
				t.Errorf("operations\n%q, want\n%q", o.ops, want)
			}
			if !bytes.Equal(o.bytes[read], pulled) || !bytes.Equal(o.bytes[write1], pulled[:20003]) || !bytes.Equal(o.bytes[write2], pulled[:8192]) {
				t.Error("the capture has other bytes")
			}
			if len(o.bad) > 0 {
				t.Error(o.bad)
			}
			for side, n := range connection.Sent {
				if n.Retransmitted+n.NAKs+n.RNRs+n.Gaps+n.BadCRC != 0 {
					t.Errorf("side %d: %+v", side, n)
				}
			}
			if !strings.HasPrefix(connection.Terminated, "disconnect re") {
				t.Errorf("terminated: %q", connection.Terminated)
			}
			if int(connection.MTU) != tt.mtu {
				t.Errorf("path MTU %d", connection.MTU)
			}
		})
	}
}

func post(t testing.TB, c *Conn, wrs ...verbs.WorkRequest) {
	t.Helper()
	if err := c.Post(wrs...); err != nil {
		t.Fatal(err)
	}
}

// checkTap checks the headers and ICRCs of packets as decode computes them.
type checkTap struct {
	mu   sync.Mutex
	n    int
	fail string
}

func (c *checkTap) Packet(_ time.Time, ip []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	end := len(ip) - roce.ICRCSize
	if end < 48 || ip[0]>>4 != 6 || int(binary.BigEndian.Uint16(ip[4:])) != len(ip)-40 || int(binary.BigEndian.Uint16(ip[44:])) != len(ip)-40 {
		c.fail = "no IPv6 packet, or its lengths are wrong"
		return
	}
	if sum, ok := roce.ICRC(link.UDP, ip[:40], ip[40:48], ip[48:end]); !ok || sum != binary.LittleEndian.Uint32(ip[end:]) {
		c.fail = "wrong ICRC"
	}
}

func TestIPv6Packets(t *testing.T) {
	a := netip.IPv6Loopback()
	w := new(checkTap)
	so := Options{Port: freePort(t, a), Symmetric: true, Tap: w}
	co := Options{Port: freePort(t, a), Symmetric: true, PeerPort: so.Port}
	in := make([]byte, 100000)
	s, c := connect(t, provider(t, so), provider(t, co), netip.AddrPortFrom(a, 0), verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: in}}}, verbs.Params{})
	post(t, c, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{make([]byte, 99999)}})
	wait(t, c, 1)
	wait(t, s, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != "" || w.n < 25 {
		t.Errorf("%d packets: %s", w.n, w.fail)
	}
}
