package accept_test

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/internal/testtools/krbtest"
	"github.com/rpcrdma/toolkit/replay/gss/accept"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// bare is an exchange that allocates nothing.
type bare struct {
	transport.Exchange
	call transport.Message
	size int
}

func (x *bare) Call() *transport.Message { return &x.call }
func (x *bare) Peer() transport.Peer     { return transport.Peer{} }
func (x *bare) MaxResult(int) uint32     { return 0 }
func (x *bare) Drop()                    {}
func (x *bare) Reply(m *transport.Message) {
	x.size = m.Size()
	m.Release()
}

// TestAllocs: calls of a context allocate nothing once it is in use.
func TestAllocs(t *testing.T) {
	realm := krbtest.New(t, krb5.AES256SHA1)
	reply := transport.Message{Stream: append((&oncrpc.Reply{Stat: oncrpc.Accepted}).Append(nil), make([]byte, 500)...)}
	h := accept.New(transport.HandlerFunc(func(x transport.Exchange) { x.Reply(&reply) }), accept.Options{Keytab: realm.Keytab()})
	p := connect(t, h, realm.Ticket("alice", time.Now(), time.Hour), "192.0.2.1")
	seq := uint32(0)
	for _, s := range []oncrpc.Service{oncrpc.ServiceNone, oncrpc.ServiceIntegrity, oncrpc.ServicePrivacy} {
		var list []*bare
		for range 220 {
			seq++
			list = append(list, &bare{call: transport.Message{Stream: p.call(oncrpc.GSSData, seq, s, make([]byte, 400))}})
		}
		i := 0
		serveOne := func() {
			h.ServeRPC(list[i])
			if i++; list[i-1].size < 524 {
				t.Fatalf("a reply of %d bytes", list[i-1].size)
			}
		}
		for range 10 {
			serveOne()
		}
		if n := testing.AllocsPerRun(200, serveOne); n > 0 && !raceDetector {
			t.Errorf("%v: %.1f allocations", s, n)
		}
	}
}
