package nlm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// rig is a server with two files, and the lock managers of its clients.
type rig struct {
	*testing.T
	*Server
	table  *state.Table
	rpc    *nfsserver.Server
	store  store.Store
	fh     [2][]byte
	secret []byte // of a file that only root may use

	mu      sync.Mutex
	granted []nlm.Nlm4Testargs
	answer  func(n int) (stat, error) // of the client to the n-th GRANTED; nil: GRANTED
	notices []nsm.StatChge
	told    chan struct{}
}

func newRig(t *testing.T, opt Options, table state.Options) *rig {
	st := memory.New(memory.Options{Size: 1 << 20})
	r := &rig{T: t, store: st, told: make(chan struct{}, 64)}
	for i, name := range []string{"a", "b", "secret"} {
		var a store.Attr
		mode := uint32(0o666)
		if i == 2 {
			mode = 0o600
		}
		if _, err := st.Create(&store.Cred{}, st.Root(), []byte(name), &store.Create{Set: store.SetAttr{Mask: store.SetMode, Mode: mode}}, &a, &store.Wcc{}); err != nil {
			t.Fatal(err)
		}
		if fh := st.Info().Handles.Append(nil, a.Handle); i < 2 {
			r.fh[i] = fh
		} else {
			r.secret = fh
		}
	}
	r.table = state.New(table)
	if opt.Dial == nil {
		opt.Dial = func(_ context.Context, network string, at netip.AddrPort) (transport.Requester, error) {
			if network != "tcp" {
				return nil, errors.New("no UDP here")
			}
			return &peer{r: r, at: at}, nil
		}
	}
	r.Server = New(st, r.table, opt)
	r.rpc = nfsserver.New(nfsserver.Options{})
	for _, p := range r.Programs() {
		r.rpc.Register(p)
	}
	t.Cleanup(func() {
		r.rpc.Close()
		r.Close()
		r.table.Close()
		_ = st.Close()
	})
	return r
}

// peer is the rpcbind and the lock manager of a client.
type peer struct {
	transport.Requester
	r  *rig
	at netip.AddrPort
}

func (p *peer) Close() error { return nil }

func (p *peer) Do(_ context.Context, c *transport.Call) error {
	var h oncrpc.Call
	if err := h.Decode(c.Stream, len(c.Stream)); err != nil {
		return err
	}
	var in xdr.Reader
	in.Reset(c.Stream[h.Size():], len(c.Stream)-h.Size())
	out := (&oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}).Append(nil)
	switch {
	case h.Program == rpcbind.PMAP_PROG && p.at.Port() == 111:
		out = xdr.AppendUint32(out, 4045)
	case h.Program == nsm.SM_PROG && p.at.Port() == 4045:
		var a nsm.StatChge
		a.Decode(&in)
		p.r.mu.Lock()
		p.r.notices = append(p.r.notices, a)
		p.r.mu.Unlock()
		p.r.told <- struct{}{}
	case h.Program == nlm.NLM_PROG && h.Procedure == nlm.NLMPROC4_GRANTED && p.at.Port() == 4045:
		var a nlm.Nlm4Testargs
		if h.Version == nlm.NLM4_VERS {
			a.Decode(&in)
		} else {
			var n nlm.NlmTestargs
			n.Decode(&in)
			a = nlm.Nlm4Testargs{Cookie: n.Cookie, Exclusive: n.Exclusive, Alock: widen(&n.Alock)}
		}
		if in.Failed() {
			p.r.Errorf("malformed GRANTED: %v", in.Err())
		}
		p.r.mu.Lock()
		p.r.granted = append(p.r.granted, a)
		n, answer := len(p.r.granted), p.r.answer
		p.r.mu.Unlock()
		st := nlm.NLM4_GRANTED
		if answer != nil {
			var err error
			if st, err = answer(n); err != nil {
				p.r.told <- struct{}{}
				return err
			}
		}
		out = (&nlm.Nlm4Res{Cookie: a.Cookie, Stat: nlm.Nlm4Stat{Stat: st}}).Append(out)
		defer func() { p.r.told <- struct{}{} }()
	default:
		return fmt.Errorf("program %d, procedure %d at %v", h.Program, h.Procedure, p.at)
	}
	c.Reply = transport.Message{Stream: out}
	return nil
}

// process is an owner of locks on a host.
type process struct {
	r       *rig
	d       *nfstest.Direct
	version uint32
	name    string
	svid    int32
	uid     uint32
}

func (r *rig) process(addr, name string, svid int32, version uint32) *process {
	d := nfstest.NewDirect(r.rpc)
	d.Name.Remote = netip.AddrPortFrom(netip.MustParseAddr(addr), 700)
	return &process{r: r, d: d, version: version, name: name, svid: svid, uid: 1000}
}

func (p *process) call(program, version, procedure uint32, args, res xdr.Message) {
	p.r.Helper()
	c := nfstest.Client{Doer: p.d, Program: program, Version: version, Cred: nfstest.Sys(p.uid, p.uid), XID: rand.Uint32() | 1}
	if err := c.Call(context.Background(), procedure, args, res, nil, nil); err != nil {
		p.r.Fatal(err)
	}
}

func (p *process) alock(fh []byte, offset, length uint64) nlm.Nlm4Lock {
	return nlm.Nlm4Lock{CallerName: []byte(p.name), Fh: fh, Oh: fmt.Appendf(nil, "%d@%s", p.svid, p.name), Svid: p.svid, LOffset: offset, LLen: length}
}

func (p *process) lock(a nlm.Nlm4Lockargs) stat {
	p.r.Helper()
	a.Cookie = []byte("cook")
	if p.version == nlm.NLM4_VERS {
		var res nlm.Nlm4Res
		p.call(nlm.NLM_PROG, p.version, nlm.NLMPROC4_LOCK, &a, &res)
		if string(res.Cookie) != "cook" {
			p.r.Errorf("cookie %q", res.Cookie)
		}
		return res.Stat.Stat
	}
	var res nlm.NlmRes
	p.call(nlm.NLM_PROG, p.version, nlm.NLM_LOCK, &nlm.NlmLockargs{Cookie: a.Cookie, Block: a.Block, Exclusive: a.Exclusive, Alock: narrowLock(&a.Alock), Reclaim: a.Reclaim, State: a.State}, &res)
	return stat(res.Stat.Stat)
}

func (p *process) try(fh []byte, offset, length uint64, exclusive, block bool) stat {
	p.r.Helper()
	return p.lock(nlm.Nlm4Lockargs{Block: block, Exclusive: exclusive, Alock: p.alock(fh, offset, length)})
}

func (p *process) test(fh []byte, offset, length uint64, exclusive bool) nlm.Nlm4Testrply {
	p.r.Helper()
	if p.version == nlm.NLM4_VERS {
		var res nlm.Nlm4Testres
		p.call(nlm.NLM_PROG, p.version, nlm.NLMPROC4_TEST, &nlm.Nlm4Testargs{Exclusive: exclusive, Alock: p.alock(fh, offset, length)}, &res)
		return res.Stat
	}
	var res nlm.NlmTestres
	l := p.alock(fh, offset, length)
	p.call(nlm.NLM_PROG, p.version, nlm.NLM_TEST, &nlm.NlmTestargs{Exclusive: exclusive, Alock: narrowLock(&l)}, &res)
	h := &res.Stat.Holder
	return nlm.Nlm4Testrply{Stat: stat(res.Stat.Stat), Holder: nlm.Nlm4Holder{Exclusive: h.Exclusive, Svid: h.Svid, Oh: h.Oh, LOffset: uint64(h.LOffset), LLen: uint64(h.LLen)}}
}

func (p *process) unlock(fh []byte, offset, length uint64) stat {
	p.r.Helper()
	l := p.alock(fh, offset, length)
	if p.version == nlm.NLM4_VERS {
		var res nlm.Nlm4Res
		p.call(nlm.NLM_PROG, p.version, nlm.NLMPROC4_UNLOCK, &nlm.Nlm4Unlockargs{Alock: l}, &res)
		return res.Stat.Stat
	}
	var res nlm.NlmRes
	p.call(nlm.NLM_PROG, p.version, nlm.NLM_UNLOCK, &nlm.NlmUnlockargs{Alock: narrowLock(&l)}, &res)
	return stat(res.Stat.Stat)
}

func (p *process) cancel(fh []byte, offset, length uint64, exclusive bool) stat {
	p.r.Helper()
	var res nlm.Nlm4Res
	p.call(nlm.NLM_PROG, nlm.NLM4_VERS, nlm.NLMPROC4_CANCEL, &nlm.Nlm4Cancargs{Block: true, Exclusive: exclusive, Alock: p.alock(fh, offset, length)}, &res)
	return res.Stat.Stat
}

func (p *process) share(fh []byte, mode nlm.FshMode, access nlm.FshAccess, un bool) stat {
	p.r.Helper()
	proc := uint32(nlm.NLMPROC4_SHARE)
	if un {
		proc = nlm.NLMPROC4_UNSHARE
	}
	var res nlm.Nlm4Shareres
	p.call(nlm.NLM_PROG, nlm.NLM4_VERS, proc, &nlm.Nlm4Shareargs{Share: nlm.Nlm4Share{CallerName: []byte(p.name), Fh: fh, Oh: fmt.Appendf(nil, "%d", p.svid), Mode: mode, Access: access}}, &res)
	return res.Stat
}

func (p *process) notify(number int32) {
	p.r.Helper()
	p.call(nsm.SM_PROG, nsm.SM_VERS, nsm.SM_NOTIFY, &nsm.StatChge{MonName: []byte(p.name), State: number}, xdr.Void{})
}

// callbacks waits for n callbacks.
func (r *rig) callbacks(n int) {
	r.Helper()
	for range n {
		select {
		case <-r.told:
		case <-time.After(time.Minute):
			r.Fatal("no callback")
		}
	}
}

// until waits for something that another goroutine does.
func (r *rig) until(what string, f func() bool) {
	r.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.Fatal(what)
		}
	}
}

// empty makes sure that nothing is left.
func (r *rig) empty() {
	r.Helper()
	c := r.Counts()
	if c.Owners != 0 || c.Waiters != 0 {
		r.Errorf("left: %+v", c)
	}
	if n := r.table.Counts(); n.Files != 0 || n.Ranges != 0 {
		r.Errorf("left: %+v", n)
	}
	if free := r.table.Outsiders.Charged(); free != hosts(r.Server) {
		r.Errorf("%d bytes are counted, of which %d are of hosts", free, hosts(r.Server))
	}
}

func hosts(s *Server) (n int) {
	for _, h := range s.hosts {
		n += hostCost + 2*len(h.name)
	}
	return n
}

// TestConflicts goes through what two owners may have at the same time.
func TestConflicts(t *testing.T) {
	const eof = math.MaxUint64
	for _, c := range []struct {
		first, second         [2]uint64 // offset, length
		firstExcl, secondExcl bool
		same, conflict        bool
	}{
		{first: [2]uint64{0, 10}, second: [2]uint64{0, 10}},
		{first: [2]uint64{0, 10}, second: [2]uint64{0, 10}, firstExcl: true, conflict: true},
		{first: [2]uint64{0, 10}, second: [2]uint64{0, 10}, secondExcl: true, conflict: true},
		{first: [2]uint64{0, 10}, second: [2]uint64{0, 10}, firstExcl: true, secondExcl: true, conflict: true},
		{first: [2]uint64{0, 10}, second: [2]uint64{0, 10}, firstExcl: true, secondExcl: true, same: true},
		{first: [2]uint64{0, 10}, second: [2]uint64{10, 10}, firstExcl: true, secondExcl: true},
		{first: [2]uint64{0, 11}, second: [2]uint64{10, 10}, firstExcl: true, secondExcl: true, conflict: true},
		{first: [2]uint64{5, 0}, second: [2]uint64{0, 5}, firstExcl: true, secondExcl: true},
		{first: [2]uint64{5, 0}, second: [2]uint64{eof, 1}, firstExcl: true, secondExcl: true, conflict: true},
		{first: [2]uint64{eof, 1}, second: [2]uint64{0, 0}, firstExcl: true, conflict: true},
		{first: [2]uint64{1, eof}, second: [2]uint64{0, 1}, firstExcl: true, secondExcl: true},
	} {
		r := newRig(t, Options{}, state.Options{})
		p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "one", 1, 4)
		if c.same {
			q = p
		}
		if st := p.try(r.fh[0], c.first[0], c.first[1], c.firstExcl, false); st != nlm.NLM4_GRANTED {
			t.Fatalf("%+v: %v", c, st)
		}
		want := nlm.NLM4_GRANTED
		if c.conflict {
			want = nlm.NLM4_DENIED
		}
		reply := q.test(r.fh[0], c.second[0], c.second[1], c.secondExcl)
		if reply.Stat != want {
			t.Errorf("%+v: TEST: %v", c, reply.Stat)
		}
		if h := reply.Holder; c.conflict && (h.Exclusive != c.firstExcl || h.LOffset != c.first[0] || h.Svid != 1 || string(h.Oh) != "1@one") {
			t.Errorf("%+v: %+v", c, h)
		}
		if st := q.try(r.fh[0], c.second[0], c.second[1], c.secondExcl, false); st != want {
			t.Errorf("%+v: LOCK: %v", c, st)
		}
		if st := q.try(r.fh[1], c.second[0], c.second[1], true, false); st != nlm.NLM4_GRANTED {
			t.Errorf("%+v: another file: %v", c, st)
		}
		for _, fh := range r.fh {
			p.unlock(fh, 0, 0)
			q.unlock(fh, 0, 0)
		}
		r.empty()
	}
}

func TestRefused(t *testing.T) {
	r := newRig(t, Options{}, state.Options{})
	p := r.process("192.0.2.7", "one", 1, 4)
	root := r.store.Info().Handles.Append(nil, r.store.Root())
	for _, c := range []struct {
		fh             []byte
		offset, length uint64
		want           stat
	}{
		{[]byte("no handle"), 0, 1, nlm.NLM4_STALE_FH},
		{nil, 0, 1, nlm.NLM4_STALE_FH},
		{root, 0, 1, nlm.NLM4_FAILED},
		{r.secret, 0, 1, nlm.NLM4_FAILED},
		{r.fh[0], 2, math.MaxUint64, nlm.NLM4_FBIG},
	} {
		if st := p.try(c.fh, c.offset, c.length, true, true); st != c.want {
			t.Errorf("%x %d+%d: LOCK: %v", c.fh, c.offset, c.length, st)
		}
		if st := p.test(c.fh, c.offset, c.length, true).Stat; st != c.want {
			t.Errorf("%x %d+%d: TEST: %v", c.fh, c.offset, c.length, st)
		}
	}
	old := r.process("192.0.2.7", "one", 1, 1)
	if st := old.try(r.secret, 0, 1, true, true); st != stat(nlm.NlmDeniedNolocks) {
		t.Errorf("version 1: %v", st)
	}
	p.uid = 0
	if st := p.try(r.secret, 0, 1, true, true); st != nlm.NLM4_GRANTED {
		t.Errorf("root: %v", st)
	}
	p.unlock(r.secret, 0, 0)
	r.empty()
}

// TestNarrow: versions 1 and 3 see locks of version 4 as far as they can.
func TestNarrow(t *testing.T) {
	r := newRig(t, Options{}, state.Options{})
	p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 3)
	for _, c := range []struct{ offset, length, showsOffset, showsLength uint64 }{
		{1, 2, 1, 2},
		{1, 0, 1, 0},
		{math.MaxUint32 - 1, 2, math.MaxUint32 - 1, 2},
		{math.MaxUint32, 2, math.MaxUint32, 0},
		{0, math.MaxUint64, 0, 0},
	} {
		if st := p.try(r.fh[0], c.offset, c.length, true, false); st != nlm.NLM4_GRANTED {
			t.Fatal(st)
		}
		reply := q.test(r.fh[0], 0, 0, false)
		if h := reply.Holder; reply.Stat != nlm.NLM4_DENIED || h.LOffset != c.showsOffset || h.LLen != c.showsLength {
			t.Errorf("%+v: %+v", c, reply)
		}
		p.unlock(r.fh[0], 0, 0)
	}
	r.empty()
}

// model is who holds what of the cells of a file: owner: exclusive.
const cells = 24

type model [cells]map[*process]bool

func (m *model) conflict(p *process, a, b int, exclusive bool) bool {
	for i := a; i < b; i++ {
		for q, e := range m[i] {
			if q != p && (e || exclusive) {
				return true
			}
		}
	}
	return false
}

// TestModel compares random locks of several owners, hosts and versions with a model.
func TestModel(t *testing.T) {
	rounds, steps := 6, 400
	if testing.Short() {
		rounds, steps = 2, 150
	}
	for round := range rounds {
		rnd := rand.New(rand.NewPCG(uint64(round), 7))
		r := newRig(t, Options{}, state.Options{})
		var all []*process
		for i, host := range []string{"192.0.2.7", "192.0.2.7", "192.0.2.8", "2001:db8::9"} {
			// The same process twice, by name and number, but for the host's address.
			all = append(all, r.process(host, []string{"one", "two"}[i%2], int32(i/2), []uint32{1, 3, 4, 4}[i]))
		}
		var m model
		for i := range m {
			m[i] = map[*process]bool{}
		}
		for step := range steps {
			p := all[rnd.IntN(len(all))]
			a := rnd.IntN(cells)
			b := a + 1 + rnd.IntN(cells-a)
			offset, length := uint64(a*10), uint64((b-a)*10)
			if b == cells {
				length = 0
			}
			exclusive := rnd.IntN(2) == 0
			want := nlm.NLM4_GRANTED
			if m.conflict(p, a, b, exclusive) {
				want = nlm.NLM4_DENIED
			}
			switch rnd.IntN(5) {
			case 0, 1:
				if st := p.try(r.fh[0], offset, length, exclusive, false); st != want {
					t.Fatalf("round %d, step %d: LOCK %d-%d: %v, want %v", round, step, a, b, st, want)
				}
				for i := a; i < b && want == nlm.NLM4_GRANTED; i++ {
					m[i][p] = exclusive
				}
			case 2, 3:
				if st := p.unlock(r.fh[0], offset, length); st != nlm.NLM4_GRANTED {
					t.Fatalf("round %d, step %d: UNLOCK: %v", round, step, st)
				}
				for i := a; i < b; i++ {
					delete(m[i], p)
				}
			default:
				if st := p.test(r.fh[0], offset, length, exclusive).Stat; st != want {
					t.Fatalf("round %d, step %d: TEST %d-%d: %v, want %v", round, step, a, b, st, want)
				}
			}
		}
		for _, p := range all {
			p.unlock(r.fh[0], 0, 0)
		}
		r.empty()
	}
}

// TestGranted: who waits gets the lock in turn, and is told.
func TestGranted(t *testing.T) {
	for _, version := range []uint32{1, 3, 4} {
		r := newRig(t, Options{}, state.Options{})
		p, q, s := r.process("192.0.2.7", "one", 1, version), r.process("192.0.2.8", "two", 2, version), r.process("192.0.2.9", "three", 3, version)
		if st := p.try(r.fh[0], 0, 100, true, true); st != nlm.NLM4_GRANTED {
			t.Fatal(st)
		}
		for range 2 { // asking again makes no second waiter
			if st := q.try(r.fh[0], 50, 100, true, true); st != nlm.NLM4_BLOCKED {
				t.Fatal(st)
			}
		}
		if st := s.try(r.fh[0], 0, 0, false, true); st != nlm.NLM4_BLOCKED {
			t.Fatal(st)
		}
		if c := r.Counts(); c.Waiters != 2 {
			t.Fatalf("%+v", c)
		}
		p.unlock(r.fh[0], 0, 10)
		if len(r.told) > 0 {
			t.Fatal("granted too early")
		}
		p.unlock(r.fh[0], 0, 0)
		r.callbacks(1)
		if g := r.granted[0]; g.Alock.Svid != 2 || string(g.Alock.Oh) != "2@two" || g.Alock.LOffset != 50 || g.Alock.LLen != 100 || !g.Exclusive || string(g.Alock.Fh) != string(r.fh[0]) {
			t.Errorf("%+v", g)
		}
		r.until("the first waiter is still there", func() bool { return r.Counts().Waiters == 1 })
		if st := p.test(r.fh[0], 60, 1, false); st.Stat != nlm.NLM4_DENIED || st.Holder.Svid != 2 {
			t.Errorf("%+v", st)
		}
		q.unlock(r.fh[0], 0, 0)
		r.callbacks(1)
		r.until("the second waiter is still there", func() bool { return r.Counts().Waiters == 0 })
		s.unlock(r.fh[0], 0, 0)
		r.empty()
	}
}

// TestInTurn unlocks a file range by range: the waiters get it in the order in which they came.
func TestInTurn(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		r := newRig(t, Options{}, state.Options{})
		p := r.process("192.0.2.7", "one", 1, 4)
		if st := p.try(r.fh[0], 0, 100, true, true); st != nlm.NLM4_GRANTED {
			t.Fatal(st)
		}
		var waiting []*process
		for i := range 12 {
			q := r.process(fmt.Sprintf("192.0.2.%d", 10+i), "w", int32(10+i), 4)
			if st := q.try(r.fh[0], 0, 0, true, true); st != nlm.NLM4_BLOCKED {
				t.Fatal(st)
			}
			waiting = append(waiting, q)
		}
		for i := range 100 {
			p.unlock(r.fh[0], uint64(i), 1)
		}
		for i, q := range waiting {
			r.callbacks(1)
			if got := r.granted[i].Alock.Svid; got != q.svid {
				t.Fatalf("grant %d is for %d, not %d", i, got, q.svid)
			}
			q.unlock(r.fh[0], 0, 0)
		}
		r.until("a waiter is still there", func() bool { return r.Counts().Waiters == 0 })
		r.empty()
	}
}

// TestCancel: who gives up waiting is not told.
func TestCancel(t *testing.T) {
	r := newRig(t, Options{}, state.Options{})
	p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 4)
	p.try(r.fh[0], 0, 0, true, true)
	if st := q.try(r.fh[0], 0, 0, true, true); st != nlm.NLM4_BLOCKED {
		t.Fatal(st)
	}
	if st := q.cancel(r.fh[0], 0, 0, true); st != nlm.NLM4_GRANTED {
		t.Error(st)
	}
	p.unlock(r.fh[0], 0, 0)
	if st := p.try(r.fh[0], 0, 0, true, false); st != nlm.NLM4_GRANTED {
		t.Error(st)
	}
	// An UNLOCK of what is waited for cancels, too.
	q.try(r.fh[0], 5, 5, false, true)
	q.unlock(r.fh[0], 5, 5)
	p.unlock(r.fh[0], 0, 0)
	if n := len(r.told); n > 0 {
		t.Errorf("%d callbacks", n)
	}
	r.empty()
}

// TestUnwanted: a client that does not want the lock any more leaves it to others.
func TestUnwanted(t *testing.T) {
	r := newRig(t, Options{}, state.Options{})
	r.answer = func(n int) (stat, error) {
		if n == 1 {
			return nlm.NLM4_DENIED, nil
		}
		return nlm.NLM4_GRANTED, nil
	}
	p, q, s := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 4), r.process("192.0.2.9", "three", 3, 4)
	p.try(r.fh[0], 0, 0, true, true)
	q.try(r.fh[0], 0, 0, true, true)
	s.try(r.fh[0], 0, 0, true, true)
	p.unlock(r.fh[0], 0, 0)
	r.callbacks(2)
	r.until("somebody waits", func() bool { return r.Counts().Waiters == 0 })
	if st := p.test(r.fh[0], 0, 0, true); st.Holder.Svid != 3 {
		t.Errorf("%+v", st)
	}
	if c := r.Counts(); c.Refused != 1 {
		t.Errorf("%+v", c)
	}
	s.unlock(r.fh[0], 0, 0)
	r.empty()
}

// TestUnlockedMeanwhile: an owner that unlocks the whole file before its answer to GRANTED arrives has nothing left, whatever it answers.
func TestUnlockedMeanwhile(t *testing.T) {
	for _, st := range []stat{nlm.NLM4_GRANTED, nlm.NLM4_DENIED} {
		r := newRig(t, Options{}, state.Options{})
		asked, unlocked := make(chan struct{}), make(chan struct{})
		r.answer = func(int) (stat, error) {
			close(asked)
			<-unlocked
			return st, nil
		}
		p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 4)
		p.try(r.fh[0], 0, 0, true, true)
		if st := q.try(r.fh[0], 5, 10, true, true); st != nlm.NLM4_BLOCKED {
			t.Fatal(st)
		}
		p.unlock(r.fh[0], 0, 0)
		<-asked
		q.unlock(r.fh[0], 0, 0)
		close(unlocked)
		r.callbacks(1)
		r.until("somebody waits", func() bool { return r.Counts().Waiters == 0 })
		r.empty()
	}
}

// TestUnreachable: a client without rpcbind loses a lock that it has waited for, as it cannot know of it.
func TestUnreachable(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(1e9, 0)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Minute) // each time: nobody waits for a retry
		return now
	}
	r := newRig(t, Options{Now: clock, Dial: func(context.Context, string, netip.AddrPort) (transport.Requester, error) {
		return nil, errors.New("refused")
	}}, state.Options{})
	p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 4)
	p.try(r.fh[0], 0, 0, true, true)
	q.try(r.fh[0], 0, 0, true, true)
	p.unlock(r.fh[0], 0, 0)
	r.until("somebody waits", func() bool { return r.Counts().Waiters == 0 })
	if c := r.Counts(); c.Unreachable != 1 || c.Callbacks != maxTries {
		t.Errorf("%+v", c)
	}
	if st := p.test(r.fh[0], 0, 0, true); st.Stat != nlm.NLM4_GRANTED {
		t.Errorf("%+v", st)
	}
	r.empty()
}

// TestMayHaveHeard: a client that may have heard of its lock keeps it.
func TestMayHaveHeard(t *testing.T) {
	now := time.Unix(1e9, 0)
	var mu sync.Mutex
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Minute)
		return now
	}
	r := newRig(t, Options{Now: clock}, state.Options{})
	r.answer = func(int) (stat, error) { return 0, transport.ErrTimeout }
	p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 4)
	p.try(r.fh[0], 0, 0, true, true)
	q.try(r.fh[0], 0, 0, true, true)
	p.unlock(r.fh[0], 0, 0)
	r.callbacks(maxTries)
	r.until("somebody waits", func() bool { return r.Counts().Waiters == 0 })
	if st := p.test(r.fh[0], 0, 0, true); st.Holder.Svid != 2 {
		t.Errorf("%+v", st)
	}
	q.unlock(r.fh[0], 0, 0)
	r.empty()
}

// TestRestartOfClient: the locks of a host end when it says that it has restarted, and nobody
// else can say so.
func TestRestartOfClient(t *testing.T) {
	r := newRig(t, Options{}, state.Options{})
	p, same, other := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.7", "two", 1, 4), r.process("192.0.2.8", "one", 1, 4)
	held := func() (n int) { return r.table.Counts().Ranges }
	for i, x := range []*process{p, same, other} {
		if st := x.try(r.fh[0], uint64(i), 1, true, true); st != nlm.NLM4_GRANTED {
			t.Fatal(st)
		}
	}
	waits := r.process("192.0.2.7", "one", 2, 4)
	waits.try(r.fh[0], 0, 0, true, true)
	r.process("192.0.2.9", "one", 1, 4).notify(3)
	if held() != 3 {
		t.Error("another address has ended locks")
	}
	p.notify(3)
	if c := r.Counts(); held() != 2 || c.Restarts != 1 || c.Waiters != 0 {
		t.Errorf("%d ranges, %+v", held(), c)
	}
	p.try(r.fh[0], 0, 1, true, true)
	p.notify(3) // the same again: its reply was lost
	if held() != 3 {
		t.Error("a repeated SM_NOTIFY has ended new locks")
	}
	p.notify(5)
	p.name = "two.example.org"
	p.notify(5)
	if held() != 1 {
		t.Errorf("%d ranges", held())
	}
	var nobody nsm.SmStatRes
	p.call(nsm.SM_PROG, nsm.SM_VERS, nsm.SM_MON, &nsm.Mon{}, &nobody)
	if nobody.ResStat != nsm.StatFail {
		t.Errorf("%+v", nobody)
	}
	p.call(nsm.SM_PROG, nsm.SM_VERS, nsm.SM_SIMU_CRASH, xdr.Void{}, xdr.Void{})
	if held() != 1 {
		t.Error("SM_SIMU_CRASH has ended locks")
	}
	var void xdr.Void
	other.call(nlm.NLM_PROG, 4, nlm.NLMPROC4_FREE_ALL, &nlm.Nlm4Notify{Name: []byte("one"), State: 1}, void)
	r.empty()
}

type memoryStable struct {
	mu  sync.Mutex
	set map[Monitored]bool
}

func (m *memoryStable) AddHost(x *Monitored) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set[*x] = true
	return nil
}

func (m *memoryStable) RemoveHost(x *Monitored) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.set, *x)
}

// noClients is the stable storage of the table.
type noClients struct{}

func (noClients) Add(*state.Identity) error { return nil }
func (noClients) Remove(*state.Identity)    {}

// TestRestartOfServer: hosts with locks are told, and reclaim them while others wait.
func TestRestartOfServer(t *testing.T) {
	kept := &memoryStable{set: map[Monitored]bool{}}
	one := Monitored{netip.MustParseAddr("192.0.2.7"), "one"}
	kept.set[one] = true
	r := newRig(t, Options{Stable: kept, Recovered: []Monitored{one}, State: 7, Name: "server"}, state.Options{Stable: noClients{}, RecoveredHosts: true, Lease: time.Hour})
	r.callbacks(1)
	if n := r.notices[0]; string(n.MonName) != "server" || n.State != 7 {
		t.Errorf("%+v", n)
	}
	p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 4)
	if st := q.try(r.fh[0], 0, 0, true, true); st != nlm.NLM4_DENIED_GRACE_PERIOD {
		t.Error(st)
	}
	if st := q.test(r.fh[0], 0, 0, true).Stat; st != nlm.NLM4_DENIED_GRACE_PERIOD {
		t.Error(st)
	}
	if st := p.lock(nlm.Nlm4Lockargs{Exclusive: true, Reclaim: true, Alock: p.alock(r.fh[0], 0, 0)}); st != nlm.NLM4_GRANTED {
		t.Error(st)
	}
	// Without a grace period nothing can be reclaimed.
	r = newRig(t, Options{Stable: kept}, state.Options{Stable: noClients{}})
	p = r.process("192.0.2.8", "two", 1, 4)
	if st := p.lock(nlm.Nlm4Lockargs{Exclusive: true, Reclaim: true, Alock: p.alock(r.fh[0], 0, 0)}); st != nlm.NLM4_DENIED_GRACE_PERIOD {
		t.Error(st)
	}
	p.try(r.fh[0], 0, 0, true, true)
	if !kept.set[Monitored{netip.MustParseAddr("192.0.2.8"), "two"}] {
		t.Error("a host with locks is not remembered")
	}
}

func TestShares(t *testing.T) {
	r := newRig(t, Options{}, state.Options{})
	p, q := r.process("192.0.2.7", "one", 1, 4), r.process("192.0.2.8", "two", 2, 4)
	for _, c := range []struct {
		p      *process
		mode   nlm.FshMode
		access nlm.FshAccess
		want   stat
	}{
		{p, nlm.FsmDW, nlm.FsaR, nlm.NLM4_GRANTED},
		{q, nlm.FsmDN, nlm.FsaW, nlm.NLM4_DENIED},
		{q, nlm.FsmDR, nlm.FsaR, nlm.NLM4_DENIED},
		{q, nlm.FsmDN, nlm.FsaR, nlm.NLM4_GRANTED},
		{p, nlm.FsmDN, nlm.FsaR, nlm.NLM4_GRANTED}, // less than before
		{q, nlm.FsmDN, nlm.FsaRW, nlm.NLM4_GRANTED},
		{p, nlm.FsmDW, nlm.FsaR, nlm.NLM4_DENIED},
		{p, 4, nlm.FsaR, nlm.NLM4_FAILED},
	} {
		if st := c.p.share(r.fh[0], c.mode, c.access, false); st != c.want {
			t.Errorf("%s: deny %v, access %v: %v, want %v", c.p.name, c.mode, c.access, st, c.want)
		}
	}
	p.share(r.fh[0], 0, 0, true)
	q.share(r.fh[0], 0, 0, true)
	q.share(r.fh[0], 0, 0, true)
	r.empty()
}

// TestLimits: a client can fill its own share, and no more.
func TestLimits(t *testing.T) {
	r := newRig(t, Options{Limits: Limits{Names: 2, OfFile: 3, OfHost: 2, Waiters: 4}}, state.Options{Limits: state.Limits{Ranges: 4, FileRanges: 8}})
	p := r.process("192.0.2.7", "one", 1, 4)
	got := map[stat]int{}
	for i := range uint64(6) {
		got[p.try(r.fh[0], 10*i, 5, true, false)]++
	}
	if got[nlm.NLM4_GRANTED] != 3 || got[nlm.NLM4_DENIED_NOLOCKS] != 3 {
		t.Errorf("ranges: %v", got)
	}
	clear(got)
	for _, name := range []string{"two", "three", "four"} {
		got[r.process("192.0.2.7", name, 1, 4).try(r.fh[1], 0, 1, false, false)]++
	}
	if got[nlm.NLM4_GRANTED] != 1 || got[nlm.NLM4_DENIED_NOLOCKS] != 2 {
		t.Errorf("names: %v", got)
	}
	clear(got)
	for i := range 4 {
		got[r.process("192.0.2.8", "five", int32(i), 4).try(r.fh[0], 0, 1, true, true)]++
	}
	if got[nlm.NLM4_BLOCKED] != 2 || got[nlm.NLM4_DENIED_NOLOCKS] != 2 {
		t.Errorf("waiters of a host: %v", got)
	}
	clear(got)
	for i := range 4 {
		got[r.process("192.0.2.9", "six", int32(i), 4).try(r.fh[0], 0, 1, true, true)]++
	}
	if got[nlm.NLM4_BLOCKED] != 1 {
		t.Errorf("waiters of a file: %v", got)
	}
}
