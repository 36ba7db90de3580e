package halfopen

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

var epoch = time.Unix(1000, 0)

func v4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

// check compares the table with what it should be.
func check[T any](t *testing.T, tab *Table[T]) {
	t.Helper()
	total, listed := 0, 0
	for _, n := range tab.sources {
		total += n
	}
	last := time.Time{}
	for e := tab.head; e != nil; e = e.next {
		listed++
		if e.Since.Before(last) {
			t.Error("not in the order of arrival")
		}
		last = e.Since
		if tab.entries[e.at] != e {
			t.Error("an entry is not in its place")
		}
	}
	if total != tab.Len() || listed != tab.Len() || tab.Len() > tab.limit {
		t.Errorf("%d entries, %d by source, %d in order, the limit is %d", tab.Len(), total, listed, tab.limit)
	}
}

// A flood from one address evicts its own: others stay.
func TestShare(t *testing.T) {
	tab := New[int](100)
	good, _ := tab.Add(v4(1), -1, epoch)
	for i := range 10000 {
		now := epoch.Add(time.Duration(i) * time.Millisecond)
		if _, out := tab.Add(v4(2), i, now); out == good {
			t.Fatalf("the only peer of its address was evicted after %d others", i)
		}
	}
	check(t, tab)
	if tab.Len() != 100 || tab.Share(Source(v4(2))) != 99 {
		t.Errorf("%d entries, %d of the flood", tab.Len(), tab.Share(Source(v4(2))))
	}
}

// In a flood of forged addresses, or from a peer's own address, a newcomer stays
// for long enough to complete.
func TestNewcomer(t *testing.T) {
	for name, source := range map[string]func(i int) netip.Addr{
		"forged": func(int) netip.Addr { return v4(rand.Uint32()) },
		"same":   func(int) netip.Addr { return v4(7) },
	} {
		const size, meanwhile, rounds = 1000, 200, 200
		tab := New[int](size)
		now := epoch
		add := func(a netip.Addr) *Entry[int] {
			now = now.Add(time.Microsecond)
			e, _ := tab.Add(a, 0, now)
			return e
		}
		for i := range size {
			add(source(i))
		}
		lost := 0
		for range rounds {
			good := add(v4(7))
			for i := range meanwhile {
				add(source(i))
			}
			if !tab.Remove(good) {
				lost++
			}
		}
		check(t, tab)
		if lost > rounds/50 {
			t.Errorf("%s: %d of %d newcomers were evicted while a fifth of the table was new", name, lost, rounds)
		}
	}
}

func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tab := New[int](50)
	in := map[*Entry[int]]bool{}
	for i := range 20000 {
		switch rng.IntN(3) {
		case 0, 1:
			e, out := tab.Add(v4(rng.Uint32N(20)), i, epoch.Add(time.Duration(i)))
			if out != nil && !in[out] {
				t.Fatal("what was evicted was not there")
			}
			delete(in, out)
			in[e] = true
		default:
			for e := range in {
				if !tab.Remove(e) || tab.Remove(e) {
					t.Fatal("Remove is true once")
				}
				delete(in, e)
				break
			}
		}
		if len(in) != tab.Len() {
			t.Fatalf("%d entries, want %d", tab.Len(), len(in))
		}
	}
	check(t, tab)
	for tab.Oldest() != nil {
		tab.Remove(tab.Oldest())
	}
	check(t, tab)
	if tab.Evict() != nil {
		t.Error("an entry of an empty table was evicted")
	}
}

func TestSource(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"2001:db8::1", "2001:db8::ffff:1"},
		{"fe80::1%eth0", "fe80::2%eth1"},
	} {
		if a, b := Source(netip.MustParseAddr(tt.a)), Source(netip.MustParseAddr(tt.b)); a != b {
			t.Errorf("%v and %v are two sources: %v, %v", tt.a, tt.b, a, b)
		}
	}
	if Source(v4(1)) == Source(v4(2)) {
		t.Error("two addresses are one source")
	}
}

func BenchmarkAdd(b *testing.B) {
	tab := New[int](8192)
	for b.Loop() {
		tab.Add(v4(rand.Uint32()), 0, epoch)
	}
}
