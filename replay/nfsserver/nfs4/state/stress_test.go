package state

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// atomicClock can be moved while it is read.
type atomicClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *atomicClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// consistent checks the counts that a table keeps.
func (t *Table) consistent() error {
	t.section.Lock()
	defer t.section.Unlock()
	for key, f := range t.files.by {
		var a, d [2]int
		for o := range f.opens {
			if o.file != f || o.owner.opens[key] != o || o.client.states[o.number()] != o.state || o.client.gone {
				return fmt.Errorf("%v: open %d of nobody", key, o.number())
			}
			for i := range a {
				a[i] += int(o.access >> i & 1)
				d[i] += int(o.deny >> i & 1)
			}
			var sa, sd uint32
			for i := range uint32(16) {
				if o.shares>>i&1 != 0 {
					sa, sd = sa|i&3, sd|i>>2
				}
			}
			if sa != o.access || sd != o.deny {
				return fmt.Errorf("%v: shares %x, access %d, deny %d", key, o.shares, o.access, o.deny)
			}
		}
		if a != f.accesses || d != f.denies || len(f.opens) == 0 {
			return fmt.Errorf("%v: counts %v %v, are %v %v of %d", key, f.accesses, f.denies, a, d, len(f.opens))
		}
		for _, h := range f.locks.held {
			by, found := h.owner.(*lockOwner), false
			for o := range f.opens {
				found = found || o.locks[by] != nil
			}
			if !found || by.gone {
				return fmt.Errorf("%v: range %v of nobody", key, h.Range)
			}
		}
	}
	for id, c := range t.clients.byTag {
		if c.gone || c.tag() != id {
			return fmt.Errorf("client %x is gone", id)
		}
		n := 0
		for _, f := range t.files.by {
			for _, h := range f.locks.held {
				if h.owner.record() == c {
					n++
				}
			}
		}
		if n != c.ranges {
			return fmt.Errorf("client %x: %d ranges, counted %d", id, n, c.ranges)
		}
	}
	return nil
}

// Clients of both kinds come, work at random and go, with and without notice,
// several at a time.
func TestStress(t *testing.T) {
	clock := &atomicClock{now: time.Unix(1e9, 0)}
	var holdMu sync.Mutex
	held := map[Key]int{}
	tb := New(Options{Now: clock.Now, Limits: Limits{Owners: 20, Opens: 40, Ranges: 30, Clients: 12},
		Hold:   func(k Key) error { holdMu.Lock(); held[k]++; holdMu.Unlock(); return nil },
		Unhold: func(k Key) { holdMu.Lock(); held[k]--; holdMu.Unlock() },
	})
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() { visit(t, tb, clock, uint64(g)) })
	}
	wg.Wait()
	if err := tb.consistent(); err != nil {
		t.Error(err)
	}
	tb.Close()
	for k, n := range held {
		if n != 0 {
			t.Errorf("%v held %d times", k, n)
		}
	}
	if n := tb.Counts(); n != (Counts{}) {
		t.Errorf("left: %+v", n)
	}
}

// visit is the life of some clients, one after the other. Statuses are ignored: others may take
// everything away at any time.
func visit(t *testing.T, tb *Table, clock *atomicClock, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	for round := range 8 {
		name := []byte(fmt.Sprint("client", seed, round%2))
		var c *Client
		var id uint64
		if seed%2 == 0 {
			var seq uint32
			id, seq, _, _ = tb.Clients.ExchangeID(name, [8]byte{byte(round)}, 0, Who{Principal: 1}, nil)
			tb.Sessions.Create(sessionArgs(id, seq), Who{Principal: 1}, false)
			tb.section.RLock()
			c = tb.clients.lookup(id)
			tb.section.RUnlock()
			if c == nil {
				continue
			}
			tb.Clients.ReclaimComplete(c)
		} else {
			var confirm [8]byte
			id, confirm, _ = tb.Clients.SetClientID(name, [8]byte{byte(round)}, Who{Principal: 1}, nil)
			tb.Clients.Confirm(id, confirm, 1)
		}
		var opens, locks []nfs4.Stateid4
		keys := map[nfs4.Stateid4]Key{}
		seq := uint32(0)
		pick := func(s []nfs4.Stateid4) (nfs4.Stateid4, Key) {
			if len(s) == 0 {
				return nfs4.Stateid4{Seqid: 1, Other: [12]byte{1}}, Key{}
			}
			x := s[r.IntN(len(s))]
			k := keys[nfs4.Stateid4{Other: x.Other}]
			x.Seqid = 0
			if c == nil {
				tb.section.RLock()
				if found, _ := tb.clients.find(nil, &x); found != nil {
					x.Seqid = found.seq
				}
				tb.section.RUnlock()
			}
			return x, k
		}
		end := func(turn Turn, replay *Replay, st Status) {
			if replay != nil {
				turn.Release()
				return
			}
			turn.End(st, []byte{0, 0, 0, byte(st)}, Key{}, false)
		}
		for range 150 {
			owner := fmt.Sprint("o", r.IntN(4))
			key := Key{ID: uint64(r.IntN(4))}
			switch r.IntN(12) {
			case 0, 1, 2:
				seq++
				turn, replay, st := tb.Opens.Begin(c, &nfs4.StateOwner4{Clientid: id, Owner: []byte(owner)}, seq, 1)
				if st != nfs4.NFS4_OK {
					continue
				}
				if replay == nil {
					var sid nfs4.Stateid4
					var confirm bool
					if sid, confirm, st = tb.Opens.Open(turn, key, uint32(1+r.IntN(3)), uint32(r.IntN(8)/7)); st == nfs4.NFS4_OK {
						keys[nfs4.Stateid4{Other: sid.Other}] = key
						opens = append(opens, sid)
						if confirm {
							_, _ = tb.Opens.Confirm(&sid, key, 1)
						}
					}
				}
				end(turn, replay, st)
			case 3:
				sid, k := pick(opens)
				turn, replay, st := tb.Stateids.Begin(c, &sid, seq+1, nfs4.OP_CLOSE, 1)
				if st == nfs4.NFS4_OK {
					if replay == nil {
						_, st = tb.Opens.Close(c, &sid, k, 1)
					}
					end(turn, replay, st)
				}
			case 4:
				sid, k := pick(opens)
				_, _ = tb.Opens.Downgrade(c, &sid, k, uint32(1+r.IntN(3)), 0, 1)
			case 5, 6, 7:
				sid, k := pick(opens)
				a := &nfs4.LOCK4args{Locktype: nfs4.NfsLockType4(1 + r.IntN(4)), Offset: r.Uint64N(50), Length: 1 + r.Uint64N(20)}
				a.Locker.NewLockOwner = true
				a.Locker.OpenOwner = nfs4.OpenToLockOwner4{OpenSeqid: seq + 1, OpenStateid: sid, LockOwner: nfs4.StateOwner4{Clientid: id, Owner: []byte(owner)}}
				var denied nfs4.LOCK4denied
				if l, st := tb.Locks.Lock(c, a, k, 1, &denied); st == nfs4.NFS4_OK {
					keys[nfs4.Stateid4{Other: l.Other}] = k
					locks = append(locks, l)
				}
			case 8:
				sid, k := pick(locks)
				_, _ = tb.Locks.Unlock(c, &nfs4.LOCKU4args{Locktype: 1, LockStateid: sid, Offset: r.Uint64N(50), Length: 1 + r.Uint64N(60)}, k, 1)
			case 9:
				sid, k := pick(append(opens, locks...))
				_, _ = tb.Stateids.CheckIO(c, &sid, k, r.IntN(2) == 0, 1)
				if c != nil {
					tb.Stateids.Free(c, &sid, 1)
				} else {
					tb.Locks.ReleaseOwner(&nfs4.StateOwner4{Clientid: id, Owner: []byte(owner)})
				}
			case 10:
				if c == nil {
					tb.Clients.Renew(id)
				} else {
					tb.leases.renew(c)
				}
			default:
				clock.mu.Lock()
				clock.now = clock.now.Add(time.Duration(r.IntN(10)) * time.Second)
				clock.mu.Unlock()
				tb.Reap()
				if err := tb.consistent(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}
}
