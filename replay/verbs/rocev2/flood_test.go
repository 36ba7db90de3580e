package rocev2

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// accept takes connections of a listener until the test ends.
func accept(t *testing.T, l verbs.Listener) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			_, _ = r.Accept(context.Background(), verbs.Params{})
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// A flood of requests that nobody confirms costs a bounded table, and a peer that
// means it connects meanwhile: from another address, and from that of the flood.
func TestFlood(t *testing.T) {
	a := address(t)
	p := provider(t, Options{HalfOpen: 64, Backlog: 4})
	l := answering(t, p, netip.AddrPortFrom(a, 20049), verbs.Params{})
	accept(t, l)
	r := newRawPeer(t, a)
	for i := range uint32(200) {
		r.req(1<<20|i, 1<<20|i, 20049, nil)
		r.answer()
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 4096)
		for i := uint32(1); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			r.req(i, i&0xffffff, 20049, nil)
			if i%8 == 0 { // at the pace of the answers
				r.conn.SetReadDeadline(time.Now().Add(time.Millisecond)) //nolint:errcheck // the read will tell
				for {
					if _, _, err := r.conn.ReadFromUDPAddrPort(buf); err != nil {
						break
					}
				}
			}
		}
	})
	client := provider(t, Options{Local: address(t), CMTimeout: 20 * time.Millisecond})
	for range 20 {
		c, err := client.Dial(t.Context(), l.Addr(), verbs.Params{})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	close(stop)
	wg.Wait()
	if s := p.Stats(); s.HalfOpen > 64 || s.Evicted == 0 {
		t.Errorf("%+v", s)
	}
	p.cm.mu.Lock()
	defer p.cm.mu.Unlock()
	if n, m, k := len(p.cm.half.byID), len(p.cm.half.byQPN), len(p.cm.half.byRequest); n != p.cm.half.table.Len() || m != n || k != n {
		t.Errorf("%d embryos, %d by id, %d by queue pair, %d by request", p.cm.half.table.Len(), n, m, k)
	}
}

// What is half-open is forgotten, and a copy of a request gets the same answer
// until then.
func TestHalfOpen(t *testing.T) {
	a := address(t)
	p := provider(t, Options{HalfOpenTime: time.Hour})
	answering(t, p, netip.AddrPortFrom(a, 20049), verbs.Params{PrivateData: []byte("terms")})
	r := newRawPeer(t, a)
	r.req(1, 2, 20049, nil)
	first := r.answer()
	r.req(1, 2, 20049, nil)
	again := r.answer()
	if first.Attribute != ibcm.AttributeREP || string(first.Data) != string(again.Data) || first.TransactionID != again.TransactionID {
		t.Errorf("%v, then %v", first, again)
	}
	p.cm.mu.Lock()
	n := p.cm.half.expire(time.Now().Add(time.Hour))
	ids := len(p.cm.ids)
	p.cm.mu.Unlock()
	if n != 1 || ids != 0 {
		t.Errorf("%d requests were half-open; %d have more than an embryo", n, ids)
	}
	// The RTU comes too late: the peer learns of it.
	r.send(ibcm.AttributeRTU, 1, func(d []byte) { ibcm.RTU(d).SetIDs(1, first.LocalID) })
	if m := r.answer(); m.Attribute != ibcm.AttributeREJ || m.Reason != ibcm.ReasonInvalidCommID || m.RemoteID != 1 || m.LocalID != first.LocalID {
		t.Errorf("%v for %v", m.Attribute, m.Reason)
	}
}

// Messages that name anything wrongly change nothing.
func TestForged(t *testing.T) {
	server := provider(t, Options{})
	a := address(t)
	l, err := server.Listen(t.Context(), netip.AddrPortFrom(a, 20049))
	if err != nil {
		t.Fatal(err)
	}
	r := newRawPeer(t, a)
	r.req(1, 2, 20049, nil)
	q, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan verbs.Conn, 1)
	go func() {
		c, err := q.Accept(context.Background(), verbs.Params{})
		if err != nil {
			t.Error(err)
		}
		conns <- c
	}()
	rep := r.answer()
	// sync waits until what was sent has been handled.
	other := newRawPeer(t, a)
	sync := func() {
		t.Helper()
		r.send(ibcm.AttributeDREQ, 77, func(d []byte) { ibcm.DREQ(d).SetIDs(0xdead, 0xbeef) })
		for r.answer().TransactionID != 77 {
		}
	}
	r.send(ibcm.AttributeRTU, 1, func(d []byte) { ibcm.RTU(d).SetIDs(1, rep.LocalID^1) })
	r.send(ibcm.AttributeRTU, 1, func(d []byte) { ibcm.RTU(d).SetIDs(9, rep.LocalID) })
	r.send(ibcm.AttributeREJ, 1, func(d []byte) { ibcm.REJ(d).SetIDs(9, rep.LocalID) })
	r.send(ibcm.AttributeREJ, 1, func(d []byte) { ibcm.REJ(d).SetIDs(0, rep.LocalID) })
	other.send(ibcm.AttributeREJ, 1, func(d []byte) { ibcm.REJ(d).SetIDs(1, rep.LocalID) })
	other.send(ibcm.AttributeRTU, 1, func(d []byte) { ibcm.RTU(d).SetIDs(1, rep.LocalID) })
	sync()
	select {
	case <-conns:
		t.Fatal("a forged message has ended the wait for the RTU")
	default:
	}
	r.send(ibcm.AttributeRTU, 1, func(d []byte) { ibcm.RTU(d).SetIDs(1, rep.LocalID) })
	c := <-conns
	for _, qpn := range []uint32{0, 2, rep.QPN ^ 1} {
		r.send(ibcm.AttributeDREQ, 5, func(d []byte) {
			ibcm.DREQ(d).SetIDs(1, rep.LocalID)
			ibcm.DREQ(d).SetRemoteQPN(qpn)
		})
	}
	r.send(ibcm.AttributeDREQ, 5, func(d []byte) {
		ibcm.DREQ(d).SetIDs(8, rep.LocalID)
		ibcm.DREQ(d).SetRemoteQPN(rep.QPN)
	})
	other.send(ibcm.AttributeDREQ, 5, func(d []byte) {
		ibcm.DREQ(d).SetIDs(1, rep.LocalID)
		ibcm.DREQ(d).SetRemoteQPN(rep.QPN)
	})
	r.send(ibcm.AttributeREJ, 1, func(d []byte) {
		ibcm.REJ(d).SetIDs(2, rep.LocalID)
		ibcm.REJ(d).SetReason(ibcm.ReasonInvalidCommID)
	})
	sync()
	if c.State() != verbs.StateRTS {
		t.Fatalf("a forged message has ended the connection: %v", c.Err())
	}
	r.send(ibcm.AttributeDREQ, 6, func(d []byte) {
		ibcm.DREQ(d).SetIDs(1, rep.LocalID)
		ibcm.DREQ(d).SetRemoteQPN(rep.QPN)
	})
	if c.Wait() == nil {
		t.Error("a good DREQ has not ended the connection")
	}
}

// A REP that does not answer the REQ is no REP: it needs the transaction id, which
// only the receiver of the REQ knows.
func TestForgedREP(t *testing.T) {
	a := address(t)
	r := newRawPeer(t, a)
	client := provider(t, Options{Local: a, CMTimeout: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := client.Dial(ctx, netip.AddrPortFrom(r.at.Addr(), 20049), verbs.Params{})
		failed <- err
	}()
	req := r.answer()
	if req.Attribute != ibcm.AttributeREQ {
		t.Fatal(req.Attribute)
	}
	r.send(ibcm.AttributeREP, req.TransactionID^1, func(d []byte) { ibcm.REP(d).SetIDs(5, req.LocalID); ibcm.REP(d).SetLocalQPN(99) })
	if m := r.answer(); m.Attribute != ibcm.AttributeREJ {
		t.Errorf("answered by %v", m.Attribute)
	}
	r.send(ibcm.AttributeREJ, req.TransactionID^1, func(d []byte) { ibcm.REJ(d).SetIDs(5, req.LocalID) })
	r.send(ibcm.AttributeDREQ, 77, func(d []byte) { ibcm.DREQ(d).SetIDs(0xdead, 0xbeef) })
	r.answer()
	select {
	case err := <-failed:
		t.Errorf("a forged message has ended Dial: %v", err)
	default:
	}
	cancel()
	<-failed
}

// Packets far from the PSNs that are due, and acknowledgements of what was not
// sent, do not disturb a connection.
func TestForgedPackets(t *testing.T) {
	server, client := provider(t, Options{CheckICRC: ICRCOff}), provider(t, Options{Local: address(t)})
	in := make([]byte, 64)
	s, c := connect(t, server, client, netip.AddrPortFrom(address(t), 0), verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: in}}}, verbs.Params{})
	forge := func(p roce.Packet) {
		p.PKey, p.DestQP = roce.DefaultPKey, s.qpn
		b := append(p.AppendHeaders(nil), 0, 0, 0, 0)
		// As if it came from the peer's address.
		s.mu.Lock()
		var pkt roce.Packet
		if roce.Decode(b, len(b), &pkt) {
			s.handle(&pkt, time.Now())
		}
		s.mu.Unlock()
	}
	for i := range 50 {
		s.mu.Lock()
		epsn, una := s.epsn, s.una()
		s.mu.Unlock()
		for _, far := range []uint32{1, 1000, 1 << 22, 1<<23 - 1, 1 << 23, 1<<24 - 1} {
			forge(roce.Packet{Opcode: roce.RCSendOnly, PSN: psnAdd(epsn, far)})
			for _, syndrome := range []roce.Syndrome{roce.ACKUnlimited, roce.NAKRemoteAccess, roce.NAKInvalid, roce.RNR(1)} {
				forge(roce.Packet{Opcode: roce.RCAcknowledge, PSN: psnAdd(una, far-1), AETH: roce.AETHFields{Syndrome: syndrome}})
			}
			forge(roce.Packet{Opcode: roce.RCReadResponseOnly, PSN: psnAdd(una, far-1)})
		}
		post(t, c, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{{byte(i), 1, 2, 3}}})
		if x := wait(t, s, 1)[0]; x.Length != 4 || in[0] != byte(i) {
			t.Fatalf("%d: %+v %x", i, x, in[:4])
		}
		if err := s.PostRecv(verbs.RecvRequest{Buffer: in}); err != nil {
			t.Fatal(err)
		}
		wait(t, c, 1)
	}
	if s.State() != verbs.StateRTS || c.State() != verbs.StateRTS {
		t.Errorf("%v, %v", s.Err(), c.Err())
	}
}

// A peer asks for a wait of hours: it does not get it.
func TestAckTimeoutIsBounded(t *testing.T) {
	for e := range uint8(32) {
		if d := ackTimeout(e); d > maxResponse || d <= 0 {
			t.Errorf("exponent %d: %v", e, d)
		}
	}
}

// Numbers on the wire do not follow from those before.
func TestNumbers(t *testing.T) {
	p := provider(t, Options{})
	seen := map[string]map[uint32]bool{"queue pair": {}, "communication id": {}, "R_Key": {}}
	near := 0
	last := map[string]uint32{}
	note := func(what string, n uint32) {
		if seen[what][n] {
			t.Fatalf("%s %#x comes again", what, n)
		}
		seen[what][n] = true
		if d := int32(n - last[what]); d > -256 && d < 256 {
			near++
		}
		last[what] = n
	}
	var m memory
	m.init(p.handles)
	for range 2000 {
		note("queue pair", p.newQPN())
		p.cm.mu.Lock()
		note("communication id", p.cm.newID())
		p.cm.mu.Unlock()
		r, err := m.register(make([]byte, 1), verbs.RemoteRead, verbs.OffsetAny)
		if err != nil {
			t.Fatal(err)
		}
		note("R_Key", r.Handle)
		if err := m.deregister(r.Handle); err != nil {
			t.Fatal(err)
		}
	}
	if near > 10 {
		t.Errorf("%d of 6000 numbers lie beside the one before", near)
	}
}
