package state

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

func from(n int) Source {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

// Greedy sources take all they can get: the more of them there are, the less each has, and the
// next one always gets something.
func TestShares(t *testing.T) {
	s := shares{limit: 1000}
	for n := range 9 {
		for s.take(from(n), 1) {
		}
		for round := true; round; { // what one has given up, another may take
			round = false
			for i := range n + 1 {
				if over := -s.room(from(i)); over > 0 {
					s.give(from(i), over)
					round = true
				}
			}
		}
		if s.room(from(100)) < 1000/(2*(n+2))-2 {
			t.Errorf("%d sources leave room for %d of the next", n+1, s.room(from(100)))
		}
	}
	for n := range 9 {
		s.give(from(n), s.by[from(n)])
	}
	if s.used != 0 || len(s.by) != 0 {
		t.Errorf("left: %+v", s)
	}
}

func TestIDs(t *testing.T) {
	a, b := newIDs(), newIDs()
	seen := map[uint64]bool{}
	for range 1000 {
		tag, number := random(), random()
		id := a.client(tag)
		if seen[id] {
			t.Fatal("twice the same")
		}
		seen[id] = true
		if !a.madeClient(id) || b.madeClient(id) {
			t.Fatal("made by the wrong one")
		}
		other := a.state(tag, number)
		if !a.madeState(&other) || b.madeState(&other) {
			t.Fatal("made by the wrong one")
		}
		for bit := range 64 {
			if a.madeClient(id ^ 1<<bit) {
				t.Errorf("%x with bit %d flipped", id, bit)
			}
		}
		for bit := range 96 {
			other[bit/8] ^= 1 << (bit % 8)
			if a.madeState(&other) {
				t.Errorf("%x", other)
			}
			other[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// zero makes a confirmed client of NFSv4.0.
func zero(tb *Table, name string, src Source) (uint64, Status) {
	id, confirm, st := tb.Clients.SetClientID([]byte(name), [8]byte{1}, Who{1, src}, nil)
	if st == nfs4.NFS4_OK {
		st = tb.Clients.Confirm(id, confirm, 1)
	}
	return id, st
}

func openFile(tb *Table, id uint64, owner string, seq uint32, key uint64) (nfs4.Stateid4, Status) {
	turn, _, st := tb.Opens.Begin(nil, &nfs4.StateOwner4{Clientid: id, Owner: []byte(owner)}, seq, 1)
	if st != nfs4.NFS4_OK {
		return nfs4.Stateid4{}, st
	}
	sid, _, st := tb.Opens.Open(turn, Key{ID: key}, 3, 0)
	turn.End(st, []byte{0, 0, 0, byte(st)}, Key{}, false)
	return sid, st
}

// A source with any number of confirmed clients locks nobody out; a client with open files keeps
// its record whatever the others do.
func TestNewcomers(t *testing.T) {
	clock := &atomicClock{now: time.Unix(1e9, 0)}
	tb := New(Options{Now: clock.Now, Limits: Limits{Clients: 64}})
	defer tb.Close()
	holder, st := zero(tb, "holder", from(1))
	if st != nfs4.NFS4_OK {
		t.Fatal(st)
	}
	if _, st := openFile(tb, holder, "o", 1, 1); st != nfs4.NFS4_OK {
		t.Fatal(st)
	}
	idle, _ := zero(tb, "idle", from(2))
	for i := range 2000 {
		clock.mu.Lock()
		clock.now = clock.now.Add(time.Millisecond)
		clock.mu.Unlock()
		if _, st := zero(tb, fmt.Sprint("flood", i), from(1)); st != nfs4.NFS4_OK {
			t.Fatalf("%d: %s", i, st)
		}
	}
	if n := tb.clients.records.by[from(1)]; n > 32 {
		t.Errorf("one source has %d of 64 records", n)
	}
	for _, id := range []uint64{holder, idle} {
		if st := tb.Clients.Renew(id); st != nfs4.NFS4_OK {
			t.Errorf("%x: %s", id, st)
		}
	}
	// A source whose clients all hold state gets no more records; others do.
	refused := false
	for i := range 100 {
		id, st := zero(tb, fmt.Sprint("busy", i), from(3))
		if refused = st == nfs4.NFS4ERR_RESOURCE; refused {
			break
		}
		if _, st := openFile(tb, id, "o", 1, uint64(i)); st != nfs4.NFS4_OK {
			t.Fatal(st)
		}
	}
	if !refused {
		t.Error("no end")
	}
	for i := range 5 {
		if _, st := zero(tb, fmt.Sprint("new", i), from(10+i)); st != nfs4.NFS4_OK {
			t.Errorf("newcomer %d: %s", i, st)
		}
	}
	if len(tb.clients.byTag) > 64 || tb.clients.records.used != len(tb.clients.byTag) {
		t.Errorf("%d clients, counted %d", len(tb.clients.byTag), tb.clients.records.used)
	}
	// Expired records make room at once.
	clock.mu.Lock()
	clock.now = clock.now.Add(time.Hour)
	clock.mu.Unlock()
	if _, st := zero(tb, "late", from(3)); st != nfs4.NFS4_OK {
		t.Error(st)
	}
}

// The sessions of one source leave room for others.
func TestCacheShares(t *testing.T) {
	tb := New(Options{Limits: Limits{CacheBytes: 1 << 20}})
	defer tb.Close()
	session := func(name string, src Source) Status {
		id, seq, _, st := tb.Clients.ExchangeID([]byte(name), [8]byte{1}, 0, Who{1, src}, nil)
		if st != nfs4.NFS4_OK {
			return st
		}
		c := tb.clients.lookup(id)
		for range 16 {
			r := tb.Sessions.Create(sessionArgs(id, seq), Who{1, src}, false)
			if st = r.CsrStatus; st != nfs4.NFS4_OK {
				return st
			}
			seq++
		}
		c.busy.Add(1) // it is active, so it does not make room
		return nfs4.NFS4_OK
	}
	n := 0
	for session(fmt.Sprint("greedy", n), from(1)) == nfs4.NFS4_OK {
		if n++; n > 1000 {
			t.Fatal("no end")
		}
	}
	if tb.Sessions.cache.used > 1<<19+1 {
		t.Errorf("one source has %d bytes", tb.Sessions.cache.used)
	}
	if st := session("newcomer", from(2)); st != nfs4.NFS4_OK {
		t.Error(st)
	}
}

// State of all kinds is counted, and every count is given back.
func TestStateBytes(t *testing.T) {
	tb := New(Options{Limits: Limits{StateBytes: 1 << 20}})
	id, _ := zero(tb, "greedy", from(1))
	opens := 0
	for i := range uint64(10000) {
		_, st := openFile(tb, id, fmt.Sprint("owner", i), 1, i)
		if st == nfs4.NFS4ERR_RESOURCE {
			break
		}
		opens++
	}
	if opens == 10000 || tb.Opens.budget.used > 1<<19 {
		t.Errorf("%d opens, %d bytes", opens, tb.Opens.budget.used)
	}
	other, _ := zero(tb, "newcomer", from(2))
	if _, st := openFile(tb, other, "o", 1, 1); st != nfs4.NFS4_OK {
		t.Error(st)
	}
	tb.Close()
	for _, s := range []shares{tb.Opens.budget.shares, tb.clients.records, tb.Sessions.cache} {
		if s.used != 0 || len(s.by) != 0 {
			t.Errorf("left: %+v", s)
		}
	}
}

// What the table estimates of its memory is not less than what it takes.
func TestStateMemory(t *testing.T) {
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for _, locks := range []bool{false, true} {
		tb := New(Options{Limits: Limits{StateBytes: 1 << 30, Opens: 1 << 20, Ranges: 1 << 20}})
		id, _ := zero(tb, "c", from(1))
		before := heap()
		for i := range uint64(10000) {
			sid, st := openFile(tb, id, fmt.Sprint("owner", i), 1, i)
			if st != nfs4.NFS4_OK {
				t.Fatal(st)
			}
			if sid, st = tb.Opens.Confirm(&sid, Key{ID: i}, 1); st != nfs4.NFS4_OK {
				t.Fatal(st)
			}
			if !locks {
				continue
			}
			a := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Length: 1}
			a.Locker.NewLockOwner = true
			a.Locker.OpenOwner = nfs4.OpenToLockOwner4{OpenStateid: sid, LockOwner: nfs4.StateOwner4{Clientid: id, Owner: []byte(fmt.Sprint("lock", i))}}
			if _, st := tb.Locks.Lock(nil, a, Key{ID: i}, 1, nil); st != nfs4.NFS4_OK {
				t.Fatal(st)
			}
		}
		used := heap() - before
		t.Logf("locks %v: %d bytes each, estimated %d", locks, used/10000, tb.Opens.budget.used/10000)
		if used > tb.Opens.budget.used {
			t.Errorf("locks %v: %d bytes, estimated %d", locks, used, tb.Opens.budget.used)
		}
		tb.Close()
	}
}

// An unlock that cuts a range in two is refused when there are too many ranges,
// any other one is not.
func TestUnlockAtTheLimit(t *testing.T) {
	tb := New(Options{Limits: Limits{Ranges: 8}})
	defer tb.Close()
	c := confirmed(t, tb, "c")
	turn, _, _ := tb.Opens.Begin(c, &nfs4.StateOwner4{Owner: []byte("o")}, 0, 1)
	sid, _, _ := tb.Opens.Open(turn, Key{ID: 1}, 3, 0)
	a := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Length: 1 << 20}
	a.Locker.NewLockOwner = true
	a.Locker.OpenOwner = nfs4.OpenToLockOwner4{OpenStateid: sid, LockOwner: nfs4.StateOwner4{Owner: []byte("l")}}
	l, st := tb.Locks.Lock(c, a, Key{ID: 1}, 1, nil)
	if st != nfs4.NFS4_OK {
		t.Fatal(st)
	}
	l.Seqid = 0
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		_, _ = tb.Locks.Unlock(c, &nfs4.LOCKU4args{Locktype: 1, LockStateid: l, Offset: 2 * r.Uint64N(1000), Length: 1}, Key{ID: 1}, 1)
	}
	if c.ranges > 8 {
		t.Errorf("%d ranges", c.ranges)
	}
	if _, st = tb.Locks.Unlock(c, &nfs4.LOCKU4args{Locktype: 1, LockStateid: l, Length: 1 << 21}, Key{ID: 1}, 1); st != nfs4.NFS4_OK || c.ranges != 0 {
		t.Errorf("%s, %d ranges", st, c.ranges)
	}
}
