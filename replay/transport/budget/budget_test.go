package budget

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// rig is a budget with a clock of its own.
type rig struct {
	t   *testing.T
	b   *Budget
	g   *Group
	at  time.Time
	out map[string]error
}

func newRig(t *testing.T, bytes int64, o GroupOptions) *rig {
	r := &rig{t: t, b: New(Options{Bytes: bytes}), at: time.Unix(1000, 0), out: map[string]error{}}
	r.b.now = func() time.Time { return r.at }
	o.Tick = time.Hour
	if o.Connections == 0 {
		o.Connections = 1000
	}
	if o.Newcomers == 0 {
		o.Newcomers = 1000
	}
	if o.NewcomerTime == 0 {
		o.NewcomerTime = time.Hour
	}
	r.g = r.b.Join(o)
	t.Cleanup(r.g.Leave)
	return r
}

func (r *rig) open(name, addr string) *Account {
	a, ok := r.g.Open(netip.AddrPortFrom(netip.MustParseAddr(addr), 1), func(why error) { r.out[name] = why }, nil)
	if !ok {
		r.out[name] = errors.New("refused")
	}
	return a
}

func (r *rig) pass(d time.Duration) {
	r.at = r.at.Add(d)
	r.b.sweep(r.at)
}

// Whoever holds much for long goes first; who makes progress stays, even if he
// holds the most.
func TestMemory(t *testing.T) {
	r := newRig(t, 1000, GroupOptions{})
	fast := r.open("fast", "192.0.2.1")
	fast.Add(500)
	var slow [5]*Account
	for i := range slow {
		slow[i] = r.open(fmt.Sprint(i), "192.0.2.2")
		slow[i].Add(int64(50 + i*10))
	}
	for range 10 {
		r.pass(time.Second)
		fast.Progress()
	}
	fast.Add(300) // 1150 in all
	if len(r.out) != 2 || !errors.Is(r.out["4"], ErrMemory) || !errors.Is(r.out["3"], ErrMemory) {
		t.Errorf("ended: %v, want the two that hold the most and make no progress", r.out)
	}
	// They have not closed yet, and are not counted twice.
	fast.Add(10)
	if len(r.out) != 2 {
		t.Errorf("ended: %v", r.out)
	}
	// When some of it is free again, and more is taken, others follow.
	slow[4].Add(-90)
	slow[4].Close()
	fast.Add(100)
	if len(r.out) != 4 {
		t.Errorf("ended: %v", r.out)
	}
	fast.Add(-100)
	for _, a := range slow {
		a.Add(-a.Held())
		a.Close()
		a.Close()
	}
	if s := r.b.Stats(); s.Bytes != 810 || s.Memory != 4 || s.Peak != 1170 {
		t.Errorf("%+v", s)
	}
	fast.Add(-810)
	fast.Close()
	if s := r.b.Stats(); s.Bytes != 0 {
		t.Errorf("%d bytes are held by nobody", s.Bytes)
	}
}

// While nothing is free, a source that holds much has to wait, and others not.
func TestAdmit(t *testing.T) {
	r := newRig(t, 1000, GroupOptions{})
	bad, worse, good := r.open("bad", "192.0.2.1"), r.open("worse", "192.0.2.1"), r.open("good", "192.0.2.2")
	if !worse.Admit(100, 0) {
		t.Error("it had to wait although nothing is held")
	}
	bad.Add(980)
	if worse.Admit(100, 0) || !worse.Admit(100, MaxWait) {
		t.Error("a connection of a source that holds all does not wait, or for too long")
	}
	if !good.Admit(100, 0) {
		t.Error("another source has to wait")
	}
	var none *Account
	if !none.Admit(1<<40, 0) {
		t.Error("no account has to wait")
	}
}

// However many are greedy, there is room for one more.
func TestRoom(t *testing.T) {
	r := newRig(t, 1<<20, GroupOptions{})
	var greedy []*Account
	for i := range 40 {
		greedy = append(greedy, r.open(fmt.Sprint(i), "192.0.2.1"))
	}
	for more := true; more; {
		more = false
		for _, a := range greedy {
			if a.Room() {
				a.Add(1000)
				more = true
			}
		}
	}
	good := r.open("good", "192.0.2.2")
	if !good.Room() || !good.Fits(4000) {
		t.Error("no room for a newcomer")
	}
	if used := r.b.used.Load(); used > 1<<20 || used < 1<<19 || len(r.out) > 0 {
		t.Errorf("%d bytes are used of %d; ended: %v", used, 1<<20, r.out)
	}
	var none *Account
	none.Add(5)
	none.Proven()
	none.Progress()
	none.Close()
	if !none.Room() || !none.Fits(1<<30) || none.Held() != 0 {
		t.Error("no account is not without limits")
	}
}

func TestNewcomers(t *testing.T) {
	r := newRig(t, 1000, GroupOptions{Newcomers: 10, NewcomerTime: time.Minute})
	good := r.open("good", "192.0.2.1")
	for i := range 100 {
		r.at = r.at.Add(time.Millisecond)
		r.open(fmt.Sprint(i), "192.0.2.2")
	}
	if r.out["good"] != nil || len(r.out) != 91 {
		t.Errorf("%d ended, the only one of its address: %v", len(r.out), r.out["good"])
	}
	good.Proven()
	r.pass(time.Hour)
	if r.out["good"] != nil || len(r.out) != 100 || r.b.Stats().Silent != 9 {
		t.Errorf("%d ended, %d of them because they were silent", len(r.out), r.b.Stats().Silent)
	}
	if r.g.Reclaim() {
		t.Error("a newcomer was ended although there is none")
	}
	r.open("last", "192.0.2.3")
	if !r.g.Reclaim() || !errors.Is(r.out["last"], ErrNewcomers) {
		t.Error("the newcomer was not ended")
	}
}

// Too many connections cost the source that has the most, and there the one that
// has been idle for longest.
func TestConnections(t *testing.T) {
	r := newRig(t, 1000, GroupOptions{Connections: 10})
	good := r.open("good", "192.0.2.1")
	good.Proven()
	for i := range 9 {
		r.open(fmt.Sprint(i), "192.0.2.2").Proven()
		r.at = r.at.Add(time.Second)
	}
	r.open("more", "192.0.2.3").Proven()
	if len(r.out) != 1 || !errors.Is(r.out["0"], ErrConnections) {
		t.Errorf("ended: %v, want the oldest of the largest share", r.out)
	}
	// The largest share gets no larger at the cost of those that work.
	for a := range r.g.accounts {
		a.Progress()
	}
	r.open("again", "192.0.2.2")
	if r.out["again"] == nil || r.b.Stats().Refused != 1 || len(r.out) != 2 {
		t.Errorf("ended: %v; %+v", r.out, r.b.Stats())
	}
	r.pass(settled)
	for i := range 20 {
		r.open(fmt.Sprint("x", i), "192.0.2.2").Proven()
	}
	if r.out["good"] != nil || r.out["more"] != nil {
		t.Errorf("others paid for the flood: %v", r.out)
	}
}

func TestClock(t *testing.T) {
	var c Clock
	at := time.Unix(1, 0)
	late := func(d time.Duration) bool {
		at = at.Add(d)
		return c.Overdue(at, 10*time.Second)
	}
	if late(time.Hour) {
		t.Error("overdue before it has begun")
	}
	c.Start()
	if late(time.Hour) || late(9*time.Second) {
		t.Error("overdue before its time")
	}
	c.Start() // goes on
	if !late(2 * time.Second) {
		t.Error("not overdue")
	}
	for range 10 { // many, each in time
		c.Stop()
		c.Start()
		if late(9 * time.Second) {
			t.Error("two were taken for one")
		}
	}
	c.Stop()
	c.Stop()
	if late(time.Hour) {
		t.Error("overdue after its end")
	}
}

// An account's check ends it.
func TestCheck(t *testing.T) {
	r := newRig(t, 1000, GroupOptions{})
	why := error(nil)
	ended := 0
	r.g.Open(netip.MustParseAddrPort("192.0.2.1:1"), func(err error) {
		ended++
		if !errors.Is(err, ErrUnread) {
			t.Error(err)
		}
	}, func(time.Time) error { return why })
	r.pass(time.Second)
	why = ErrUnread
	r.pass(time.Second)
	r.pass(time.Second)
	if ended != 1 {
		t.Errorf("ended %d times", ended)
	}
}

func TestConcurrent(t *testing.T) {
	b := New(Options{Bytes: 1 << 20})
	g := b.Join(GroupOptions{Connections: 50, Newcomers: 20, NewcomerTime: time.Millisecond, Tick: time.Millisecond})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 300 {
				var a *Account
				done := make(chan struct{})
				var once sync.Once
				a, _ = g.Open(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1), func(error) { once.Do(func() { close(done) }) }, func(time.Time) error { return nil })
				if n%2 == 0 {
					a.Proven()
				}
				for range 20 {
					if a.Room() {
						a.Add(100_000)
					}
					a.Progress()
					a.Add(-min(a.Held(), 50_000))
				}
				a.Add(-a.Held())
				a.Close()
			}
		})
	}
	wg.Wait()
	g.Leave()
	if s := b.Stats(); s.Bytes != 0 || g.alive != 0 || len(g.accounts) != 0 || len(g.sources) != 0 || g.newcomers.Len() != 0 {
		t.Errorf("%+v, %d alive, %d accounts, %d sources, %d newcomers", s, g.alive, len(g.accounts), len(g.sources), g.newcomers.Len())
	}
}

func TestAllocations(t *testing.T) {
	r := newRig(t, 1<<20, GroupOptions{})
	a := r.open("a", "192.0.2.1")
	if n := testing.AllocsPerRun(100, func() { a.Add(10); a.Room(); a.Progress(); a.Add(-10) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	bud := New(Options{})
	g := bud.Join(GroupOptions{Connections: 10, Newcomers: 10, NewcomerTime: time.Hour, Tick: time.Second})
	defer g.Leave()
	a, _ := g.Open(netip.MustParseAddrPort("192.0.2.1:1"), func(error) {}, nil)
	for b.Loop() {
		a.Add(1000)
		a.Progress()
		a.Add(-1000)
	}
}
