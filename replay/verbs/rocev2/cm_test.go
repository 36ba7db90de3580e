package rocev2

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// attribute is the kind of a message of connection management, 0 for other
// packets.
func attribute(packet []byte) ibcm.Attribute {
	if roce.BTH(packet).DestQP() != 1 {
		return 0
	}
	return ibcm.MAD(packet[roce.BTHSize+roce.DETHSize:]).Attribute()
}

// forgetful loses the first packets of each kind.
type forgetful struct {
	mu   sync.Mutex
	lose map[ibcm.Attribute]int
	sent map[ibcm.Attribute]int
}

func (f *forgetful) packet(p []byte, pass func([]byte)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := attribute(p)
	f.sent[a]++
	if f.lose[a] > 0 {
		f.lose[a]--
		return
	}
	pass(p)
}

func (f *forgetful) count(a ibcm.Attribute) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[a]
}

func TestLostSetup(t *testing.T) {
	for _, lost := range []ibcm.Attribute{ibcm.AttributeREQ, ibcm.AttributeREP, ibcm.AttributeRTU, ibcm.AttributeDREQ, ibcm.AttributeDREP, ibcm.AttributeREJ} {
		t.Run(lost.String(), func(t *testing.T) {
			fs := &forgetful{lose: map[ibcm.Attribute]int{lost: 2}, sent: map[ibcm.Attribute]int{}}
			fc := &forgetful{lose: map[ibcm.Attribute]int{lost: 2}, sent: map[ibcm.Attribute]int{}}
			server := provider(t, Options{Outgoing: fs.packet, CMTimeout: 5 * time.Millisecond})
			client := provider(t, Options{Outgoing: fc.packet, CMTimeout: 5 * time.Millisecond, Local: address(t)})
			at := netip.AddrPortFrom(address(t), 0)
			if lost == ibcm.AttributeREJ {
				l, err := server.Listen(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() {
					r, err := l.Accept(context.Background())
					if err == nil {
						err = r.Reject([]byte("no"))
					}
					done <- err
				}()
				var refused *verbs.RejectError
				if _, err = client.Dial(t.Context(), l.Addr(), verbs.Params{}); !errors.As(err, &refused) || !bytes.HasPrefix(refused.PrivateData, []byte("no")) {
					t.Errorf("Dial: %v", err)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				// Requests that are repeated on a busy machine get more of them.
				if n := fs.count(ibcm.AttributeREJ); n < 3 {
					t.Errorf("%d rejections, of which 2 were lost", n)
				}
				return
			}
			s, c := connect(t, server, client, at, verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: make([]byte, 10)}}}, verbs.Params{})
			post(t, c, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{make([]byte, 10)}})
			wait(t, c, 1)
			wait(t, s, 1)
			if err := c.Disconnect(t.Context()); err != nil {
				t.Error(err)
			}
			if err := s.Wait(); !errors.Is(err, verbs.ErrDisconnected) {
				t.Error(err)
			}
			if n := fs.count(lost) + fc.count(lost); n < 3 {
				t.Errorf("%d messages, of which 2 were lost", n)
			}
		})
	}
}

// A packet on the connection stands for an RTU that was lost.
func TestPacketImpliesRTU(t *testing.T) {
	fc := &forgetful{lose: map[ibcm.Attribute]int{ibcm.AttributeRTU: 1 << 30}, sent: map[ibcm.Attribute]int{}}
	server := provider(t, Options{CMTimeout: time.Hour})
	client := provider(t, Options{Outgoing: fc.packet, Local: address(t)})
	l, err := server.Listen(t.Context(), netip.AddrPortFrom(address(t), 0))
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			_, err = r.Accept(context.Background(), verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: make([]byte, 10)}}})
		}
		accepted <- err
	}()
	c, err := client.Dial(t.Context(), l.Addr(), verbs.Params{})
	if err != nil {
		t.Fatal(err)
	}
	post(t, c.(*Conn), verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{make([]byte, 10)}})
	wait(t, c.(*Conn), 1)
	if err := <-accepted; err != nil {
		t.Error(err)
	}
}

// rawPeer speaks connection management by hand.
type rawPeer struct {
	t    *testing.T
	conn *net.UDPConn
	at   netip.AddrPort
	to   netip.AddrPort
	guid uint64
}

func newRawPeer(t *testing.T, to netip.Addr) *rawPeer {
	a := netip.AddrPortFrom(address(t), 4791)
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(a))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &rawPeer{t: t, conn: c, at: a, to: netip.AddrPortFrom(to, 4791), guid: 0x0200000000000001}
}

func (r *rawPeer) send(a ibcm.Attribute, tid uint64, fill func(d []byte)) {
	r.t.Helper()
	h := roce.Packet{Opcode: roce.UDSendOnly, PKey: roce.DefaultPKey, DestQP: 1, DETH: roce.DETHFields{QKey: roce.GSIQKey, SrcQP: 1}}
	b, mad := ibcm.Append(h.AppendHeaders(nil), a, tid)
	fill(mad.Data())
	if _, err := r.conn.WriteToUDPAddrPort(sealed(r.t, r.at, r.to, 0x1234, true, b), r.to); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rawPeer) req(id, qpn uint32, port uint16, change func(ibcm.REQ)) {
	r.t.Helper()
	r.send(ibcm.AttributeREQ, uint64(id), func(d []byte) {
		q := ibcm.REQ(d)
		q.SetLocalID(id)
		q.SetServiceID(ibcm.IPServiceID(6, port))
		q.SetLocalCAGUID(r.guid)
		q.SetLocalQPN(qpn)
		q.SetPathMTU(3)
		q.SetPKey(roce.DefaultPKey)
		q.SetStartingPSN(77)
		q.Primary().SetGIDs(r.at.Addr(), r.to.Addr())
		q.Primary().SetAckTimeout(14)
		q.SetIP(netip.AddrPortFrom(r.at.Addr(), 1000), r.to.Addr(), []byte("hello"))
		if change != nil {
			change(q)
		}
	})
}

// answer is the next message.
func (r *rawPeer) answer() *ibcm.Message {
	r.t.Helper()
	r.conn.SetReadDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // the read will tell
	b := make([]byte, 5000)
	n, _, err := r.conn.ReadFromUDPAddrPort(b)
	if err != nil {
		r.t.Fatal(err)
	}
	var p roce.Packet
	var m ibcm.Message
	if !roce.Decode(b[:n], n, &p) || p.DestQP != 1 || !ibcm.Decode(p.Payload, p.PayloadLen, &m) {
		r.t.Fatalf("answered by %v %s %s", p.Opcode, p.Problem, m.Problem)
	}
	return &m
}

func TestRefusals(t *testing.T) {
	a := address(t)
	p := provider(t, Options{Backlog: 4, CMTimeout: time.Hour})
	l, err := p.Listen(t.Context(), netip.AddrPortFrom(a, 20049))
	if err != nil {
		t.Fatal(err)
	}
	r := newRawPeer(t, a)
	for i, tt := range []struct {
		why    ibcm.Reason
		port   uint16
		change func(ibcm.REQ)
	}{
		{ibcm.ReasonInvalidServiceID, 20050, nil},
		{ibcm.ReasonInvalidServiceID, 20049, func(q ibcm.REQ) { q.SetServiceID(ibcm.IPServiceID(17, 20049)) }},
		{ibcm.ReasonInvalidServiceID, 20049, func(q ibcm.REQ) { q.SetServiceID(20049) }},
		{ibcm.ReasonInvalidTransportType, 20049, func(q ibcm.REQ) { q.SetTransport(ibcm.TransportUC) }},
		{ibcm.ReasonInvalidMTU, 20049, func(q ibcm.REQ) { q.SetPathMTU(0) }},
		{ibcm.ReasonInvalidMTU, 20049, func(q ibcm.REQ) { q.SetPathMTU(6) }},
		{ibcm.ReasonInvalidGID, 20049, func(q ibcm.REQ) { q.Primary().SetGIDs(netip.MustParseAddr("127.0.0.1"), r.to.Addr()) }},
		{ibcm.ReasonInvalidGID, 20049, func(q ibcm.REQ) { q.Primary().SetGIDs(r.at.Addr(), netip.MustParseAddr("127.0.0.1")) }},
		{ibcm.ReasonUnsupported, 20049, func(q ibcm.REQ) { clear(q.Private()) }},
	} {
		r.req(uint32(100+i), uint32(200+i), tt.port, tt.change)
		m := r.answer()
		if m.Attribute != ibcm.AttributeREJ || m.Reason != tt.why || m.Rejected != ibcm.RejectedREQ || m.RemoteID != uint32(100+i) || m.TransactionID != uint64(100+i) {
			t.Errorf("%d: %v, %v of %v to %d, want REJ for %v", i, m.Attribute, m.Reason, m.Rejected, m.RemoteID, tt.why)
		}
	}

	// Half-open requests are bounded; a repeated one is told to be patient.
	for i := range 10 {
		r.req(uint32(1000+i), uint32(2000+i), 20049, nil)
	}
	r.req(1000, 2000, 20049, nil)
	if m := r.answer(); m.Attribute != ibcm.AttributeMRA || m.RemoteID != 1000 {
		t.Errorf("%v to %d, want MRA", m.Attribute, m.RemoteID)
	}
	p.cm.mu.Lock()
	if n := len(p.cm.ids); n != 4 {
		t.Errorf("%d half-open connections of 4", n)
	}
	p.cm.mu.Unlock()

	// One is accepted. Its copy gets the same reply.
	q, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if q.RemoteAddr() != netip.AddrPortFrom(r.at.Addr(), 1000) || q.LocalAddr() != l.Addr() || !bytes.HasPrefix(q.PrivateData(), []byte("hello")) {
		t.Errorf("%v %v %q", q.RemoteAddr(), q.LocalAddr(), q.PrivateData())
	}
	accepted := make(chan verbs.Conn, 1)
	go func() {
		c, err := q.Accept(context.Background(), verbs.Params{})
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	rep := r.answer()
	r.req(1000, 2000, 20049, nil)
	again := r.answer()
	if rep.Attribute != ibcm.AttributeREP || rep.RemoteID != 1000 || rep.TransactionID != 1000 || !bytes.Equal(rep.Data, again.Data) {
		t.Errorf("%v, and then %v: %x, %x", rep.Attribute, again.Attribute, rep.Data, again.Data)
	}
	r.send(ibcm.AttributeRTU, 1000, func(d []byte) { ibcm.RTU(d).SetIDs(1000, rep.LocalID) })
	c := <-accepted
	if i := c.Info(); i.RemoteQP != 2000 || i.LocalQP != rep.QPN || i.MTU != 1024 {
		t.Errorf("%+v", i)
	}

	// The same queue pair asks again: it has forgotten the connection.
	r.req(5000, 2000, 20049, nil)
	if m := r.answer(); m.Attribute != ibcm.AttributeREJ || m.Reason != ibcm.ReasonStaleConnection {
		t.Errorf("%v %v", m.Attribute, m.Reason)
	}
	if err := c.Wait(); !errors.Is(err, verbs.ErrDisconnected) {
		t.Errorf("%v", err)
	}
	if m := r.answer(); m.Attribute != ibcm.AttributeDREQ || m.QPN != 2000 {
		t.Errorf("%v", m.Attribute)
	}

	// What nobody knows is answered all the same.
	r.send(ibcm.AttributeDREQ, 9, func(d []byte) { ibcm.DREQ(d).SetIDs(7, 8) })
	if m := r.answer(); m.Attribute != ibcm.AttributeDREP || m.LocalID != 8 || m.RemoteID != 7 || m.TransactionID != 9 {
		t.Errorf("%v %d %d", m.Attribute, m.LocalID, m.RemoteID)
	}
	r.send(ibcm.AttributeREP, 9, func(d []byte) { ibcm.REP(d).SetIDs(7, 8) })
	if m := r.answer(); m.Attribute != ibcm.AttributeREJ || m.Reason != ibcm.ReasonInvalidCommID {
		t.Errorf("%v %v", m.Attribute, m.Reason)
	}
	// The requester gives up before it knows us.
	var guid [8]byte
	binary.BigEndian.PutUint64(guid[:], r.guid)
	r.send(ibcm.AttributeREJ, 1001, func(d []byte) {
		j := ibcm.REJ(d)
		j.SetIDs(1001, 0)
		j.SetReason(ibcm.ReasonTimeout)
		j.SetInfo(guid[:])
	})
	r.send(ibcm.AttributeDREQ, 10, func(d []byte) { ibcm.DREQ(d).SetIDs(7, 8) })
	r.answer() // all before it has been dealt with
	if q, err = l.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := q.(*request).id.remote; got == 1001 {
		t.Error("a request that was withdrawn is handed out")
	}
}

// silent loses everything once it is told to.
type silent struct {
	mu  sync.Mutex
	off bool
}

func (s *silent) packet(p []byte, pass func([]byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.off {
		pass(p)
	}
}

func TestPeerVanishes(t *testing.T) {
	net := new(silent)
	server := provider(t, Options{Outgoing: net.packet})
	client := provider(t, Options{Local: address(t), AckTimeout: 4 * time.Millisecond})
	s, c := connect(t, server, client, netip.AddrPortFrom(address(t), 0), verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: make([]byte, 10)}}}, verbs.Params{RetryCount: 3})
	r, err := s.Register(make([]byte, 100), verbs.RemoteRead, verbs.OffsetAny)
	if err != nil {
		t.Fatal(err)
	}
	net.mu.Lock()
	net.off = true
	net.mu.Unlock()
	post(t, c,
		verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: [][]byte{make([]byte, 50)}},
		verbs.WorkRequest{ID: 2, Op: verbs.OpSend, Local: [][]byte{make([]byte, 10)}})
	var got []verbs.Completion
	var buf [4]verbs.Completion
	for c.Wait() == nil {
		got = append(got, buf[:c.Poll(buf[:])]...)
	}
	if len(got) != 2 || got[0].Status != verbs.StatusRetryExceeded || got[1].Status != verbs.StatusFlushed {
		t.Errorf("%+v", got)
	}
	var failed *verbs.StatusError
	if !errors.As(c.Err(), &failed) || failed.Status != verbs.StatusRetryExceeded {
		t.Error(c.Err())
	}
}

// A Send waits for a receive that is posted late.
func TestReceiverNotReady(t *testing.T) {
	told := make(chan struct{}, 1)
	server := provider(t, Options{RNRTimer: time.Millisecond, Outgoing: func(p []byte, pass func([]byte)) {
		if roce.BTH(p).Opcode() == roce.RCAcknowledge && roce.AETH(p[roce.BTHSize:]).Syndrome().IsRNR() {
			select {
			case told <- struct{}{}:
			default:
			}
		}
		pass(p)
	}})
	client := provider(t, Options{Local: address(t)})
	s, c := connect(t, server, client, netip.AddrPortFrom(address(t), 0), verbs.Params{}, verbs.Params{RNRRetryCount: 7})
	out := []byte("patience")
	for range 5 {
		post(t, c, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{out}}, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{out[:3]}})
	}
	in := make([]byte, 10)
	for i := range 10 {
		<-told
		if err := s.PostRecv(verbs.RecvRequest{Buffer: in}); err != nil {
			t.Fatal(err)
		}
		n := len(out)
		if i%2 == 1 {
			n = 3
		}
		if x := wait(t, s, 1)[0]; int(x.Length) != n || !bytes.Equal(in[:n], out[:n]) {
			t.Errorf("%d: %+v", i, x)
		}
	}
	wait(t, c, 10)
}
