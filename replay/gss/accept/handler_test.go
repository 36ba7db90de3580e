package accept_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/krbtest"
	"github.com/rpcrdma/toolkit/replay/gss/accept"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// exchange is a call of a peer, without a transport.
type exchange struct {
	transport.Exchange // any other use panics
	call               transport.Message
	peer               transport.Peer
	reply              []byte // nil: dropped
	ended              chan struct{}
	times              int
}

func (x *exchange) Call() *transport.Message { return &x.call }
func (x *exchange) Peer() transport.Peer     { return x.peer }
func (x *exchange) MaxResult(int) uint32     { return 7 }
func (x *exchange) Drop()                    { x.times++; close(x.ended) }
func (x *exchange) Reply(m *transport.Message) {
	x.times++
	x.reply = m.AppendWhole(nil)
	if m.Release != nil {
		m.Release()
	}
	close(x.ended)
}

// serve passes a call to a handler and waits for its end.
func serve(t testing.TB, h *accept.Handler, b []byte, from string) []byte {
	t.Helper()
	x := &exchange{call: transport.Message{Stream: b}, ended: make(chan struct{})}
	x.peer.Remote = netip.AddrPortFrom(netip.MustParseAddr(from), 999)
	h.ServeRPC(x)
	<-x.ended
	if x.times != 1 {
		t.Fatalf("%d ends", x.times)
	}
	return x.reply
}

// echo replies with the arguments, and remembers its calls.
type echo struct {
	mu     sync.Mutex
	calls  int
	args   []byte
	cred   oncrpc.Sys
	flavor oncrpc.Flavor
}

func (e *echo) ServeRPC(x transport.Exchange) {
	m := x.Call()
	var h oncrpc.Call
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil {
		x.Drop() // what is no RPCSEC_GSS reaches the server as it came
		return
	}
	e.mu.Lock()
	e.calls++
	e.args = append([]byte{}, h.Payload...)
	e.cred.Decode(h.Cred.Body)
	if id, ok := x.(interface {
		Identity() (oncrpc.Flavor, uint32)
	}); ok {
		e.flavor, _ = id.Identity()
	}
	e.mu.Unlock()
	r := oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}
	x.Reply(&transport.Message{Stream: append(r.Append(nil), h.Payload...)})
}

// peer is a client with a context.
type peer struct {
	t       testing.TB
	session *krb5.Session
	handle  []byte
	xid     uint32
}

func initCall(token []byte) []byte {
	g := oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSInit, Service: oncrpc.ServicePrivacy}
	h := oncrpc.Call{XID: 1, RPCVersion: 2, Program: 100003, Version: 4, Cred: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: g.Append(nil)}}
	return xdr.AppendOpaque(h.Append(nil), token)
}

func result(t testing.TB, reply []byte) (h oncrpc.Reply, r oncrpc.GSSInitResult) {
	t.Helper()
	if err := h.Decode(reply, len(reply)); err != nil || !h.Succeeded() {
		t.Fatalf("%v %v", err, h.Status())
	}
	if !r.Decode(h.Payload) {
		t.Fatal("malformed result")
	}
	return h, r
}

func connect(t testing.TB, h *accept.Handler, ticket *krb5.Ticket, from string) *peer {
	t.Helper()
	req, err := krb5.NewRequest(ticket, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	reply, res := result(t, serve(t, h, initCall(req.Token()), from))
	if res.Major != 0 {
		t.Fatalf("refused: %s", oncrpc.GSSMajorName(res.Major))
	}
	s, err := req.Finish(res.Token)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(reply.Verf.Body, xdr.AppendUint32(nil, res.Window)); err != nil || res.Window != accept.Window {
		t.Fatal("the verifier of the creation is wrong")
	}
	return &peer{t: t, session: s, handle: slices.Clone(res.Handle), xid: 1}
}

// call makes a call of procedure 1.
func (p *peer) call(proc oncrpc.GSSProc, seq uint32, service oncrpc.Service, args []byte) []byte {
	p.xid++
	g := oncrpc.GSSCred{Version: 1, Proc: proc, Sequence: seq, Service: service, Handle: p.handle}
	h := oncrpc.Call{XID: p.xid, RPCVersion: 2, Program: 100003, Version: 3, Procedure: 1, Cred: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: g.Append(nil)}}
	if proc == oncrpc.GSSDestroy {
		h.Procedure = 0
	}
	b := h.Append(nil)[:24+h.Cred.Size()]
	b = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: p.session.MIC(nil, b)}.Append(b)
	body := append(xdr.AppendUint32(nil, seq), args...)
	switch service {
	case oncrpc.ServiceIntegrity:
		return xdr.AppendOpaque(xdr.AppendOpaque(b, body), p.session.MIC(nil, body))
	case oncrpc.ServicePrivacy:
		token, at := p.session.BeginWrap(nil)
		return xdr.AppendOpaque(b, p.session.EndWrap(append(token, body...), at))
	}
	return append(b, args...)
}

// results opens a reply.
func (p *peer) results(reply []byte, seq uint32, service oncrpc.Service) ([]byte, error) {
	var h oncrpc.Reply
	if err := h.Decode(reply, len(reply)); err != nil {
		return nil, err
	}
	if !h.Succeeded() {
		return nil, fmt.Errorf("%s %s", h.Status(), h.AuthStat)
	}
	if err := p.session.Verify(h.Verf.Body, xdr.AppendUint32(nil, seq)); err != nil {
		return nil, err
	}
	var r xdr.Reader
	r.Reset(h.Payload, len(h.Payload))
	switch service {
	case oncrpc.ServiceIntegrity:
		body, sum := r.Opaque(0), r.Opaque(0)
		if r.Failed() {
			return nil, fmt.Errorf("malformed")
		}
		return body[4:], p.session.Verify(sum, body)
	case oncrpc.ServicePrivacy:
		var out rpc.Opened
		err := p.session.Unwrap(r.Opaque(0), seq, &out)
		return out.Data, err
	}
	return h.Payload, nil
}

func newHandler(t testing.TB, o accept.Options) (*accept.Handler, *echo, *krbtest.Realm) {
	realm := krbtest.New(t, krb5.AES128SHA1)
	o.Keytab = realm.Keytab()
	e := &echo{}
	return accept.New(e, o), e, realm
}

var args = []byte("sixteen bytes ok")

func TestCalls(t *testing.T) {
	h, e, realm := newHandler(t, accept.Options{})
	p := connect(t, h, realm.Ticket("alice", time.Now(), time.Hour), "192.0.2.1")
	for i, s := range []oncrpc.Service{oncrpc.ServiceNone, oncrpc.ServiceIntegrity, oncrpc.ServicePrivacy} {
		seq := uint32(i + 1)
		got, err := p.results(serve(t, h, p.call(oncrpc.GSSData, seq, s, args), "192.0.2.1"), seq, s)
		if err != nil || !bytes.Equal(got, args) {
			t.Errorf("%v: %q, %v", s, got, err)
		}
		if !bytes.Equal(e.args, args) || e.flavor != oncrpc.PseudoKrb5+oncrpc.Flavor(i) || e.cred.UID != 65534 {
			t.Errorf("%v: the server saw %q, %v, user %d", s, e.args, e.flavor, e.cred.UID)
		}
	}
	// The end of the context.
	if _, err := p.results(serve(t, h, p.call(oncrpc.GSSDestroy, 9, oncrpc.ServiceNone, nil), "192.0.2.1"), 9, oncrpc.ServiceNone); err != nil {
		t.Error(err)
	}
	if _, err := p.results(serve(t, h, p.call(oncrpc.GSSData, 10, oncrpc.ServiceNone, args), "192.0.2.1"), 10, oncrpc.ServiceNone); err == nil || !strings.Contains(err.Error(), "CREDPROBLEM") {
		t.Errorf("after its end: %v", err)
	}
}

// TestTampered flips each bit of calls: none may be executed. Bits without meaning are left out:
// the rotation count of a Wrap token only says how the rest is arranged, modulo its length.
func TestTampered(t *testing.T) {
	h, e, realm := newHandler(t, accept.Options{})
	p := connect(t, h, realm.Ticket("alice", time.Now(), time.Hour), "192.0.2.1")
	seq := uint32(1)
	for _, s := range []oncrpc.Service{oncrpc.ServiceNone, oncrpc.ServiceIntegrity, oncrpc.ServicePrivacy} {
		good := p.call(oncrpc.GSSData, seq, s, args)
		n := len(good) * 8
		if s == oncrpc.ServiceNone {
			n = (len(good) - len(args)) * 8 // arguments are not protected
		}
		for bit := range n {
			seq++
			b := p.call(oncrpc.GSSData, seq, s, args)
			b[bit/8] ^= 1 << (bit % 8)
			token := len(b) - p.session.WrapSize(4+len(args)) - (-p.session.WrapSize(4+len(args)) & 3)
			if s == oncrpc.ServicePrivacy && (bit/8 == token+6 || bit/8 == token+7) {
				continue
			}
			if bit/8 >= 4 && bit/8 < 8 || bit/8 >= 24 && bit/8 < 28 {
				continue // not a call, or another flavor: not for this handler
			}
			if s == oncrpc.ServicePrivacy && bit/8 >= len(b)-(-p.session.WrapSize(4+len(args))&3) {
				continue // padding of the opaque
			}
			e.calls = 0
			serve(t, h, b, "192.0.2.1")
			if e.calls != 0 {
				t.Fatalf("%v: bit %d (byte %d of %d) flipped, and executed", s, bit, bit/8, len(b))
			}
		}
	}
	if s := h.Stats(); s.Calls != 0 || s.Forged == 0 {
		t.Errorf("%+v", s)
	}
}

// TestSubstituted swaps the bodies of genuine calls.
func TestSubstituted(t *testing.T) {
	h, e, realm := newHandler(t, accept.Options{})
	p := connect(t, h, realm.Ticket("alice", time.Now(), time.Hour), "192.0.2.1")
	for _, s := range []oncrpc.Service{oncrpc.ServiceIntegrity, oncrpc.ServicePrivacy} {
		a, b := p.call(oncrpc.GSSData, 10, s, args), p.call(oncrpc.GSSData, 11, s, []byte("SIXTEEN BYTES OK"))
		var ha oncrpc.Call
		if err := ha.Decode(a, len(a)); err != nil {
			t.Fatal(err)
		}
		mixed := append(slices.Clone(a[:ha.Size()]), b[ha.Size():]...)
		serve(t, h, mixed, "192.0.2.1")
		// The body of another service behind a genuine header.
		c, d := p.call(oncrpc.GSSData, 12, s, args), p.call(oncrpc.GSSData, 12, oncrpc.ServiceIntegrity+oncrpc.ServicePrivacy-s, args)
		serve(t, h, append(slices.Clone(c[:ha.Size()]), d[ha.Size():]...), "192.0.2.1")
	}
	if e.calls != 0 {
		t.Errorf("%d calls were executed", e.calls)
	}
}

// TestWindow repeats calls, and sends them out of order.
func TestWindow(t *testing.T) {
	h, e, realm := newHandler(t, accept.Options{})
	p := connect(t, h, realm.Ticket("alice", time.Now(), time.Hour), "192.0.2.1")
	used, highest := map[uint32]bool{}, uint32(0)
	next := uint32(1)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		seq := next
		switch rnd.IntN(8) {
		case 0:
			next += uint32(rnd.IntN(300))
		case 1, 2:
			seq = max(1, int32OrZero(seq, rnd.IntN(200)))
		case 3, 4, 5:
			seq = next + uint32(rnd.IntN(20))
			next++
		default:
			next++
		}
		want := !used[seq] && (highest < accept.Window || seq > highest-accept.Window)
		e.calls = 0
		reply := serve(t, h, p.call(oncrpc.GSSData, seq, oncrpc.ServiceNone, args), "192.0.2.1")
		if (e.calls == 1) != want || (reply != nil) != want {
			t.Fatalf("sequence number %d, highest %d, used %v: executed %d times", seq, highest, used[seq], e.calls)
		}
		if want {
			used[seq] = true
			highest = max(highest, seq)
		}
	}
	// The highest numbers.
	if _, err := p.results(serve(t, h, p.call(oncrpc.GSSData, 0x80000000, oncrpc.ServiceNone, args), "192.0.2.1"), 0, 0); err == nil || !strings.Contains(err.Error(), "CTXPROBLEM") {
		t.Errorf("too high: %v", err)
	}
	e.calls = 0
	if serve(t, h, p.call(oncrpc.GSSData, 0x7fffffff, oncrpc.ServiceNone, args), "192.0.2.1"); e.calls != 1 {
		t.Error("the highest number was not taken")
	}
	// A forged header must not move the window.
	q := connect(t, h, realm.Ticket("alice", time.Now(), time.Hour), "192.0.2.1")
	b := q.call(oncrpc.GSSData, 100000, oncrpc.ServiceNone, args)
	b[len(b)-len(args)-1] ^= 1
	serve(t, h, b, "192.0.2.1")
	e.calls = 0
	if serve(t, h, q.call(oncrpc.GSSData, 1, oncrpc.ServiceNone, args), "192.0.2.1"); e.calls != 1 {
		t.Error("a forged call moved the window")
	}
}

func int32OrZero(a uint32, b int) uint32 {
	if uint32(b) > a {
		return 0
	}
	return a - uint32(b)
}

// TestRefused tries to create contexts with bad tokens.
func TestRefused(t *testing.T) {
	now := time.Now()
	h, e, realm := newHandler(t, accept.Options{})
	other := krbtest.New(t, krb5.AES256SHA1)
	good := realm.Ticket("alice", now, time.Hour)
	request := func(tk *krb5.Ticket, at time.Time) []byte {
		r, err := krb5.NewRequest(tk, at)
		if err != nil {
			t.Fatal(err)
		}
		return r.Token()
	}
	swapped := *good
	swapped.Client.Parts = []string{"root"}
	wrongKey := *good
	wrongKey.Session, _ = krb5.NewKey(krb5.AES128SHA1)
	used := request(good, now)
	serve(t, h, initCall(used), "192.0.2.1")
	for name, c := range map[string]struct {
		token []byte
		want  string
	}{
		"of another service's key":    {request(other.Ticket("alice", now, time.Hour), now), "GSS_S_NO_CRED"},
		"expired":                     {request(realm.Ticket("alice", now.Add(-time.Hour), time.Minute), now), "GSS_S_CREDENTIALS_EXPIRED"},
		"not yet valid":               {request(realm.Ticket("alice", now.Add(time.Hour), time.Hour), now), "GSS_S_CREDENTIALS_EXPIRED"},
		"of a clock that is late":     {request(good, now.Add(-6*time.Minute)), "GSS_S_CREDENTIALS_EXPIRED"},
		"of a clock that is early":    {request(good, now.Add(6*time.Minute)), "GSS_S_CREDENTIALS_EXPIRED"},
		"of a client under a name":    {request(&swapped, now), "GSS_S_DEFECTIVE_TOKEN"},
		"without the session key":     {request(&wrongKey, now), "GSS_S_DEFECTIVE_TOKEN"},
		"used before":                 {used, "GSS_S_FAILURE"},
		"empty":                       {nil, "GSS_S_DEFECTIVE_TOKEN"},
		"noise":                       {bytes.Repeat([]byte{0x60}, 500), "GSS_S_DEFECTIVE_TOKEN"},
		"deep":                        {bytes.Repeat([]byte{0x60, 0x83, 0, 0xff, 0xff}, 5000), "GSS_S_DEFECTIVE_TOKEN"},
		"a token of another exchange": {append(slices.Clone(used[:len(used)-20]), make([]byte, 20)...), "GSS_S_DEFECTIVE_TOKEN"},
	} {
		_, res := result(t, serve(t, h, initCall(c.token), "192.0.2.1"))
		if got := oncrpc.GSSMajorName(res.Major &^ 0xffff); got != c.want || len(res.Handle) != 0 || len(res.Token) != 0 {
			t.Errorf("%s: %s (%#x), handle %x; want %s", name, got, res.Major, res.Handle, c.want)
		}
	}
	var reply oncrpc.Reply
	b := serve(t, h, initCall(make([]byte, 70<<10)), "192.0.2.1")
	if err := reply.Decode(b, len(b)); err != nil || reply.Accept != oncrpc.GarbageArgs {
		t.Errorf("too long: %v %v", err, reply.Accept)
	}
	if e.calls != 0 {
		t.Error("a call passed")
	}
}

// TestBounded creates more contexts than there is room for.
func TestBounded(t *testing.T) {
	h, e, realm := newHandler(t, accept.Options{Contexts: 10})
	ticket := realm.Ticket("alice", time.Now(), time.Hour)
	quiet := connect(t, h, ticket, "192.0.2.9")
	var last *peer
	for range 50 {
		last = connect(t, h, ticket, "192.0.2.1")
	}
	for _, p := range []*peer{quiet, last} {
		e.calls = 0
		if serve(t, h, p.call(oncrpc.GSSData, 1, oncrpc.ServicePrivacy, args), "192.0.2.7"); e.calls != 1 {
			t.Error("a context was lost to another source, or the latest is gone")
		}
	}
	if s := h.Stats(); s.Evicted != 41 || s.Contexts != 51 {
		t.Errorf("%+v", s)
	}
}

// TestClock moves the server's clock beyond the end of a ticket.
func TestClock(t *testing.T) {
	var ahead time.Duration
	h, e, realm := newHandler(t, accept.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
	p := connect(t, h, realm.Ticket("alice", time.Now(), time.Hour), "192.0.2.1")
	for _, c := range []struct {
		ahead time.Duration
		calls int
	}{{time.Hour, 1}, {time.Hour + 6*time.Minute, 0}, {0, 0}} {
		ahead, e.calls = c.ahead, 0
		if serve(t, h, p.call(oncrpc.GSSData, uint32(c.ahead/time.Minute)+1, oncrpc.ServiceNone, args), "192.0.2.1"); e.calls != c.calls {
			t.Errorf("%s ahead: %d calls", c.ahead, e.calls)
		}
	}
}

// TestReplayCacheOverTime reuses an Authenticator at every time at which it is valid.
func TestReplayCacheOverTime(t *testing.T) {
	start := time.Now()
	now := start
	h, _, realm := newHandler(t, accept.Options{Now: func() time.Time { return now }})
	ticket := realm.Ticket("alice", start.Add(-time.Hour), 24*time.Hour)
	for _, offset := range []time.Duration{-4 * time.Minute, 0, 4 * time.Minute} {
		for first := time.Duration(0); first < 25*time.Minute; first += 7 * time.Minute {
			now = start.Add(first)
			start = now
			r, err := krb5.NewRequest(ticket, now.Add(offset))
			if err != nil {
				t.Fatal(err)
			}
			taken := 0
			for range 30 {
				if _, res := result(t, serve(t, h, initCall(r.Token()), "192.0.2.1")); res.Major == 0 {
					taken++
				}
				now = now.Add(30 * time.Second)
			}
			if taken != 1 {
				t.Errorf("a token of a clock that is %s off was taken %d times", offset, taken)
			}
		}
	}
}

func TestParseList(t *testing.T) {
	l, err := accept.ParseList(strings.NewReader("# users\nalice@R 1000 100 5 6 # me\n\nnfs/c.example@R 0 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint32{"alice@R": 1000, "nfs/c.example@R": 0, "alice@S": 65534, "alice": 65534, "c.example@R": 65534} {
		p, err := krb5.ParsePrincipal(name)
		if err != nil {
			t.Fatal(err)
		}
		if u := l.Lookup(&p, "R"); u.UID != want {
			t.Errorf("%s: %+v", name, u)
		}
	}
	for name, want := range map[string]int{"alice": 1000, "nfs/c.example": -1, "bob": -1} {
		if id, ok := l.ID(name, false); ok != (want >= 0) || ok && id != uint32(want) {
			t.Errorf("%s: %d %v", name, id, ok)
		}
	}
	if id, ok := l.ID("alice", true); id != 100 || !ok {
		t.Errorf("group %d %v", id, ok)
	}
	for _, bad := range []string{"alice 1 1", "alice@R", "alice@R 1", "alice@R -1 1", "alice@R x 1", "alice@R 4294967295 1", "a@R 1 1\na@R 2 2", "/@R 1 1", "a@R 1 1 " + strings.Repeat("7 ", 17), "a@R 1 1 " + strings.Repeat(" ", 5000)} {
		if _, err := accept.ParseList(strings.NewReader(bad)); err == nil {
			t.Errorf("%.40q was taken", bad)
		}
	}
	local := accept.Local{}
	for _, group := range []bool{true, false} {
		if id, ok := local.ID("root", group); id != 0 || !ok {
			t.Errorf("root: %d %v", id, ok)
		}
		if _, ok := local.ID("nobody-of-that-name", group); ok {
			t.Error("somebody of no name")
		}
	}
	for _, name := range []string{"root@R", "root/admin@R", "root@S", "0@R", "nobody-of-that-name@R"} {
		p, _ := krb5.ParsePrincipal(name)
		if u := local.Lookup(&p, "R"); (u.UID == 0) != (name == "root@R") {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// FuzzCalls sends a server anything that begins like RPCSEC_GSS.
func FuzzCalls(f *testing.F) {
	realm := krbtest.New(f, krb5.AES256SHA1)
	e := &echo{}
	start := time.Now() // the clock stands still, so that nothing expires in a long run
	h := accept.New(e, accept.Options{Keytab: realm.Keytab(), Contexts: 8, Now: func() time.Time { return start }})
	seeds(f, h, realm)
	p := connect(f, h, realm.Ticket("alice", time.Now(), time.Hour), "192.0.2.1")
	f.Fuzz(func(t *testing.T, b []byte) {
		// The server chooses handles: give the fuzzer the existing one.
		if len(b) >= 68 && binary.BigEndian.Uint32(b[48:]) == 16 {
			b = slices.Clone(b)
			copy(b[52:], p.handle)
		}
		e.calls = 0
		b = slices.Clip(b)
		if len(b) < 28 || oncrpc.Flavor(binary.BigEndian.Uint32(b[24:])) != oncrpc.RPCSecGSS || binary.BigEndian.Uint32(b[4:]) != 0 || binary.BigEndian.Uint32(b[8:]) != 2 {
			return
		}
		serve(t, h, b, "192.0.2.1")
		if e.calls != 0 {
			t.Fatal("a call that nobody signed was executed")
		}
	})
}
