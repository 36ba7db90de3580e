package backchannel

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// peer is a client with a slot as RFC 8881, section 2.10.6.1 has it.
type peer struct {
	transport.Requester // nil
	mu                  sync.Mutex
	seq                 uint32
	status              []nfs4.Nfsstat4 // of the next operations after CB_SEQUENCE
	lose                int             // so many replies
	calls               []nfs4.Nfsstat4 // of CB_SEQUENCE
	done                []uint32        // operations
	raw                 []byte          // answers everything, if set
}

func (p *peer) Do(_ context.Context, c *transport.Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var h oncrpc.Call
	if err := h.Decode(c.Stream, len(c.Stream)); err != nil {
		return err
	}
	reply := (&oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}).Append(nil)
	switch {
	case p.raw != nil:
		c.Reply = transport.Message{Stream: append([]byte(nil), p.raw...)}
		return nil
	case h.Procedure == procNull:
		c.Reply = transport.Message{Stream: reply}
		return nil
	}
	var r xdr.Reader
	r.Reset(c.Stream[h.Size():], len(c.Stream)-h.Size())
	var args nfs4.CbCompoundArgs
	if args.Decode(&r); r.Failed() || len(args.Ops) != 2 {
		return errors.New("bad call")
	}
	seq := args.Ops[0].Body.(*nfs4.CB_SEQUENCE4args)
	res := nfs4.CbCompoundRes{}
	st := nfs4.NFS4_OK
	switch seq.CsaSequenceid {
	case p.seq + 1:
		p.seq++
		p.done = append(p.done, args.Ops[1].Number)
	case p.seq:
		st = nfs4.NFS4ERR_RETRY_UNCACHED_REP
	default:
		st = nfs4.NFS4ERR_SEQ_MISORDERED
	}
	p.calls = append(p.calls, st)
	body := &nfs4.CB_SEQUENCE4res{CsrStatus: st}
	body.CsrResok4.CsrSequenceid = seq.CsaSequenceid
	res.Ops = []nfs4.Op{{Number: args.Ops[0].Number, Body: body}}
	res.Status = st
	if st == nfs4.NFS4_OK {
		if len(p.status) > 0 {
			res.Status, p.status = p.status[0], p.status[1:]
		}
		res.Ops = append(res.Ops, nfs4.Op{Number: args.Ops[1].Number, Body: &nfs4.Status4res{Status: res.Status}})
	}
	c.Reply = transport.Message{Stream: res.Append(reply)}
	if p.lose > 0 {
		p.lose--
		return transport.ErrTimeout
	}
	return nil
}

func handle(b []byte, k state.Key) []byte { return binary.BigEndian.AppendUint64(b, k.ID) }

func idle(t *testing.T, m *Manager) {
	t.Helper()
	for range 60000 {
		if m.Idle() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("callbacks do not end")
}

func recallOf(n byte) nfs4.Stateid4 { return nfs4.Stateid4{Seqid: 1, Other: [12]byte{n}} }

// The slot stays in sync with the client's, whatever is lost.
func TestSlot(t *testing.T) {
	m := New(Options{Handle: handle})
	defer m.Close()
	p, c := &peer{}, m.NewChannel()
	if c.Up() || c.Down() {
		t.Error("known before the first callback")
	}
	c.Add(state.SessionID{1}, 1, Params{Program: 7})
	c.Bind(state.SessionID{1}, 1, p)
	idle(t, m)
	if !c.Up() {
		t.Fatal("not up")
	}
	for i := range byte(3) {
		c.Recall(recallOf(i), state.Key{ID: uint64(i)})
		idle(t, m)
	}
	if len(p.done) != 3 || !c.Up() {
		t.Fatalf("%v", p.done)
	}
	// One reply is lost: the call is sent again, and the client says that it knows it.
	p.lose = 1
	c.Recall(recallOf(3), state.Key{})
	idle(t, m)
	if !c.Up() {
		t.Error("down after one lost reply")
	}
	p.lose = 2 // both attempts
	c.Recall(recallOf(4), state.Key{})
	idle(t, m)
	if !c.Down() {
		t.Error("up after two lost replies")
	}
	c.Probe()
	idle(t, m)
	before := len(p.done)
	c.Recall(recallOf(5), state.Key{})
	idle(t, m)
	if len(p.done) != before+1 || !c.Up() {
		t.Errorf("%d operations after %d; %v", len(p.done), before, p.calls)
	}
	// The client has begun its slot anew.
	p.seq = 0
	c.Recall(recallOf(6), state.Key{})
	idle(t, m)
	if len(p.done) != before+2 {
		t.Errorf("%v", p.calls)
	}
	c.Disconnected(1)
	if !c.Down() {
		t.Error("up without a connection")
	}
	c.Unbind(state.SessionID{1})
	c.Close()
	failed := make(chan error, 1)
	c.GetAttr(state.Key{}, false, func(_ nfs4.Attrs, err error) { failed <- err })
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// A waiting recall is not queued twice, and no queue grows without bound, however often a
// client's connections come and go.
func TestQueues(t *testing.T) {
	block := make(chan struct{})
	m := New(Options{Handle: handle, Timeout: time.Minute})
	c := m.NewChannel()
	c.Add(state.SessionID{1}, 1, Params{})
	slow := &slowPeer{block: block}
	c.Bind(state.SessionID{1}, 1, slow)
	full := 0
	var mu sync.Mutex
	for i := range 1000 {
		c.Recall(recallOf(byte(i%10)), state.Key{})
		c.Probe()
		c.GetAttr(state.Key{}, false, func(_ nfs4.Attrs, err error) {
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, ErrFull) {
				full++
			}
		})
	}
	c.mu.Lock()
	n := len(c.queue)
	c.mu.Unlock()
	if n > maxQueued+10 {
		t.Errorf("%d callbacks wait", n)
	}
	close(block)
	m.Close()
	if full < 900 {
		t.Errorf("%d were refused", full)
	}
	c.Recall(recallOf(1), state.Key{}) // after the end
	for i := range 100 {
		c.Add(state.SessionID{byte(i)}, 1, Params{})
		c.Bind(state.SessionID{byte(i)}, uint64(i), slow)
	}
	if len(c.sessions) > maxSessions {
		t.Errorf("%d sessions", len(c.sessions))
	}
}

type slowPeer struct {
	transport.Requester
	block chan struct{}
}

func (p *slowPeer) Do(ctx context.Context, _ *transport.Call) error {
	select {
	case <-p.block:
	case <-ctx.Done():
	}
	return transport.ErrTimeout
}

func never(context.Context, netip.AddrPort, int, time.Duration) (transport.Requester, error) {
	return nil, ErrNoPath
}

// The server connects to nobody but the client that has called.
func TestNewChannel0(t *testing.T) {
	m := New(Options{Handle: handle, Dial: never})
	defer m.Close()
	for _, c := range []struct {
		from, netid, addr string
		want              string
	}{
		{"192.0.2.1", "tcp", "192.0.2.1.8.1", "192.0.2.1:2049"},
		{"::ffff:192.0.2.1", "tcp", "192.0.2.1.8.1", "192.0.2.1:2049"},
		{"192.0.2.1", "tcp", "192.0.2.2.8.1", ""},
		{"192.0.2.1", "tcp", "127.0.0.1.8.1", ""},
		{"192.0.2.1", "tcp", "0.0.0.0.8.1", ""},
		{"192.0.2.1", "tcp", "192.0.2.1.0.22", ""},
		{"192.0.2.1", "tcp", "192.0.2.1.3.255", ""},
		{"192.0.2.1", "tcp", "192.0.2.1.4.0", "192.0.2.1:1024"},
		{"192.0.2.1", "tcp", "192.0.2.1.256.1", ""},
		{"192.0.2.1", "tcp", "192.0.2.1.-1.1", ""},
		{"192.0.2.1", "tcp", "192.0.2.1", ""},
		{"192.0.2.1", "tcp", "", ""},
		{"192.0.2.1", "udp", "192.0.2.1.8.1", ""},
		{"192.0.2.1", "rdma", "192.0.2.1.78.81", ""},
		{"2001:db8::1", "tcp6", "2001:db8::1.8.1", "[2001:db8::1]:2049"},
		{"2001:db8::1", "tcp6", "2001:db8::2.8.1", ""},
		{"2001:db8::1", "tcp", "2001:db8::1.8.1", ""},
		{"fe80::1%eth0", "tcp6", "fe80::1.8.1", "[fe80::1%eth0]:2049"},
		{"fe80::1%eth0", "tcp6", "fe80::1%eth1.8.1", ""},
		{"192.0.2.1", "tcp6", "::ffff:192.0.2.1.8.1", "192.0.2.1:2049"},
	} {
		cb := &nfs4.CbClient4{CbProgram: 1, CbLocation: nfs4.Netaddr4{NaRNetid: []byte(c.netid), NaRAddr: []byte(c.addr)}}
		got := ""
		if ch := m.NewChannel0(netip.MustParseAddr(c.from), cb, 1); ch != nil {
			got = ch.target.at.String()
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// FuzzReply takes replies of a hostile client.
func FuzzReply(f *testing.F) {
	head := (&oncrpc.Reply{Stat: oncrpc.Accepted}).Append(nil)
	good := nfs4.CbCompoundRes{}
	get := &nfs4.CB_GETATTR4res{}
	get.Resok4.ObjAttributes = (&nfs4.Attrs{Mask: nfs4.NewBitmap4(nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE), Change: 5, Size: 6}).Fattr4()
	good.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_CB_SEQUENCE), Body: &nfs4.CB_SEQUENCE4res{}}, {Number: uint32(nfs4.OP_CB_GETATTR), Body: get}}
	f.Add(good.Append(append([]byte(nil), head...)))
	f.Add(head)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := New(Options{Handle: handle})
		c := m.NewChannel()
		c.Add(state.SessionID{1}, 1, Params{})
		c.Bind(state.SessionID{1}, 1, &peer{raw: b})
		done := make(chan struct{})
		c.GetAttr(state.Key{}, false, func(nfs4.Attrs, error) { close(done) })
		<-done
		c.Close()
		m.Close()
	})
}

// FuzzLocation takes addresses of a hostile client: at most the client's own one is accepted.
func FuzzLocation(f *testing.F) {
	f.Add("tcp", "192.0.2.1.8.1")
	f.Add("tcp6", "2001:db8::1.8.1")
	f.Fuzz(func(t *testing.T, netid, addr string) {
		m := New(Options{Handle: handle, Dial: never})
		defer m.Close()
		from := netip.MustParseAddr("192.0.2.1")
		ch := m.NewChannel0(from, &nfs4.CbClient4{CbLocation: nfs4.Netaddr4{NaRNetid: []byte(netid), NaRAddr: []byte(addr)}}, 1)
		if ch != nil && (ch.target.at.Addr() != from || ch.target.at.Port() < 1024) {
			t.Errorf("%v", ch.target.at)
		}
	})
}
