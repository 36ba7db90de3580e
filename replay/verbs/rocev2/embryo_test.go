package rocev2

import (
	"context"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// answering is a listener that answers requests itself.
func answering(t testing.TB, p *Provider, at netip.AddrPort, params verbs.Params) verbs.Listener {
	t.Helper()
	l, err := p.Listen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.(verbs.Answerer).Answer(params); err != nil {
		t.Fatal(err)
	}
	return l
}

// A connection that the listener has answered works like any other, and what its
// peer sends before the consumer has taken it is not lost.
func TestAnswered(t *testing.T) {
	server, client := provider(t, Options{Log: t.Logf}), provider(t, Options{Local: address(t), Log: t.Logf})
	l := answering(t, server, netip.AddrPortFrom(address(t), 0), verbs.Params{PrivateData: []byte("terms"), ResponderResources: 5, InitiatorDepth: 7})
	back := make([]byte, 10)
	v, err := client.Dial(t.Context(), l.Addr(), verbs.Params{PrivateData: []byte("hello"), ResponderResources: 6, InitiatorDepth: 9, Recvs: []verbs.RecvRequest{{Buffer: back}}})
	if err != nil {
		t.Fatal(err)
	}
	c := v.(*Conn)
	post(t, c, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{[]byte("early")}})
	r, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := make([]byte, 100)
	v, err = r.Accept(context.Background(), verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: in}}})
	if err != nil {
		t.Fatal(err)
	}
	s := v.(*Conn)
	if x := wait(t, s, 1)[0]; string(in[:x.Length]) != "early" {
		t.Errorf("%+v %q", x, in[:x.Length])
	}
	wait(t, c, 1)
	post(t, s, verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{[]byte("back")}})
	wait(t, c, 1)
	wait(t, s, 1)
	si, ci := s.Info(), c.Info()
	if string(ci.PrivateData[:5]) != "terms" || string(si.PrivateData[:5]) != "hello" || si.LocalQP != ci.RemoteQP || si.RemoteQP != ci.LocalQP {
		t.Errorf("%+v, %+v", si, ci)
	}
	if si.ResponderResources != 5 || ci.InitiatorDepth != 5 || si.InitiatorDepth != 6 || ci.ResponderResources != 6 {
		t.Errorf("%d and %d Reads at the server, %d and %d at the client", si.ResponderResources, si.InitiatorDepth, ci.ResponderResources, ci.InitiatorDepth)
	}
	if st := server.Stats(); st.Timeouts+client.Stats().Timeouts > 3 {
		t.Errorf("%+v, %+v", st, client.Stats())
	}
	if err := c.Disconnect(t.Context()); err != nil {
		t.Error(err)
	}
	if s.Wait() == nil {
		t.Error("not disconnected")
	}
}
