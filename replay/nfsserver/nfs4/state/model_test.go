package state

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// The model of byte-range locks is a map of cells; the last one stands for all
// bytes to the end.
const cells = 24

type cellModel [cells]map[*lockOwner]bool // owner: write

func cellRange(r *rand.Rand) (Range, int, int) {
	a, b := r.IntN(cells), r.IntN(cells)
	if a > b {
		a, b = b, a
	}
	last := uint64(b)
	if b == cells-1 {
		last = math.MaxUint64
	}
	return Range{uint64(a), last}, a, b
}

func (m *cellModel) conflict(o *lockOwner, a, b int, write bool) bool {
	for i := a; i <= b; i++ {
		for other, w := range m[i] {
			if other != o && (w || write) {
				return true
			}
		}
	}
	return false
}

func TestRangesModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var l ranges
		var m cellModel
		for i := range m {
			m[i] = map[*lockOwner]bool{}
		}
		owners := []*lockOwner{{}, {}, {}, {}}
		for step := range 200 {
			o := owners[r.IntN(len(owners))]
			rg, a, b := cellRange(r)
			write := r.IntN(2) == 0
			switch r.IntN(10) {
			case 0:
				l.drop(o)
				for i := range m {
					delete(m[i], o)
				}
			case 1, 2, 3:
				l.remove(o, rg)
				for i := a; i <= b; i++ {
					delete(m[i], o)
				}
			default:
				c := l.conflict(o, rg, write)
				if (c != nil) != m.conflict(o, a, b, write) {
					t.Fatalf("round %d step %d: conflict %v", round, step, c)
				}
				if c != nil {
					if c.owner == o || !c.overlaps(rg) || !write && !c.write {
						t.Fatalf("no conflict: %+v", c)
					}
					continue
				}
				l.add(o, rg, write)
				for i := a; i <= b; i++ {
					m[i][o] = write
				}
			}
			same(t, &l, &m, owners)
		}
	}
}

// same compares the ranges with the model, and checks their form: those of an
// owner neither overlap nor touch with the same type.
func same(t *testing.T, l *ranges, m *cellModel, owners []*lockOwner) {
	t.Helper()
	for i := range cells {
		at := uint64(i)
		if i == cells-1 {
			at = math.MaxUint64
		}
		for _, o := range owners {
			n, write := 0, false
			for _, h := range l.held {
				if h.owner == o && h.First <= at && at <= h.Last {
					n++
					write = h.write
				}
			}
			w, locked := m[i][o]
			if n > 1 || (n == 1) != locked || write != w {
				t.Fatalf("cell %d: %d ranges, write %v; want %v, %v", i, n, write, locked, w)
			}
		}
	}
	for _, h := range l.held {
		for _, g := range l.held {
			if h.owner == g.owner && h.write == g.write && h.Last != math.MaxUint64 && h.Last+1 == g.First {
				t.Fatalf("%v and %v touch", h, g)
			}
		}
	}
}

func TestMakeRange(t *testing.T) {
	const top = math.MaxUint64
	for _, c := range []struct {
		offset, length uint64
		want           Range
		ok             bool
	}{
		{0, 0, Range{}, false},
		{0, 1, Range{0, 0}, true},
		{5, 10, Range{5, 14}, true},
		{5, top, Range{5, top}, true},
		{top, 1, Range{top, top}, true},
		{top, 2, Range{}, false},
		{top, top, Range{top, top}, true},
		{10, top - 10, Range{10, top - 1}, true},
		{10, top - 9, Range{10, top}, true},
		{10, top - 8, Range{}, false},
	} {
		got, ok := MakeRange(c.offset, c.length)
		if got != c.want || ok != c.ok {
			t.Errorf("%d+%d: %v %v", c.offset, c.length, got, ok)
		}
	}
	if n := (Range{3, top}).Length(); n != top {
		t.Errorf("length %d", n)
	}
	if n := (Range{3, 3}).Length(); n != 1 {
		t.Errorf("length %d", n)
	}
}

// confirmed makes a client of NFSv4.1 without a session.
func confirmed(t *testing.T, tb *Table, name string) *Client {
	t.Helper()
	id, seq, _, st := tb.Clients.ExchangeID([]byte(name), [8]byte{1}, 0, Who{Principal: 1}, nil)
	if st != nfs4.NFS4_OK {
		t.Fatal(st)
	}
	if r := tb.Sessions.Create(sessionArgs(id, seq), Who{Principal: 1}, false); r.CsrStatus != nfs4.NFS4_OK {
		t.Fatal(r.CsrStatus)
	}
	c := tb.clients.lookup(id)
	if st := tb.Clients.ReclaimComplete(c); st != nfs4.NFS4_OK {
		t.Fatal(st)
	}
	return c
}

func sessionArgs(id uint64, seq uint32) *nfs4.CREATE_SESSION4args {
	a := nfs4.ChannelAttrs4{CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 1 << 12, CaMaxoperations: 8, CaMaxrequests: 4}
	return &nfs4.CREATE_SESSION4args{CsaClientid: id, CsaSequence: seq, CsaForeChanAttrs: a, CsaBackChanAttrs: a}
}

// The model of share reservations: for each owner and file, the list of its requests since its
// last CLOSE.
type shareModel map[string][][2]uint32

func (m shareModel) union(key string) (a, d uint32) {
	for _, s := range m[key] {
		a, d = a|s[0], d|s[1]
	}
	return a, d
}

func (m shareModel) conflict(file int, access, deny uint32, owners []string) bool {
	for _, o := range owners {
		a, d := m.union(fmt.Sprint(o, file))
		if a&deny != 0 || d&access != 0 {
			return true
		}
	}
	return false
}

func TestSharesModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	held := map[Key]int{}
	tb := New(Options{
		Hold:   func(k Key) error { held[k]++; return nil },
		Unhold: func(k Key) { held[k]-- },
	})
	clients := []*Client{confirmed(t, tb, "a"), confirmed(t, tb, "b")}
	var owners []string
	ofClient := map[string]*Client{}
	for i := range 4 {
		name := fmt.Sprint("owner", i)
		owners = append(owners, name)
		ofClient[name] = clients[i%2]
	}
	m := shareModel{}
	sids := map[string]nfs4.Stateid4{}
	for step := range 8000 {
		owner := owners[r.IntN(len(owners))]
		file := r.IntN(3)
		key := Key{ID: uint64(file)}
		mine := fmt.Sprint(owner, file)
		c := ofClient[owner]
		access, deny := uint32(1+r.IntN(3)), uint32(0)
		if r.IntN(3) == 0 {
			deny = uint32(r.IntN(4))
		}
		sid, isOpen := sids[mine]
		switch r.IntN(6) {
		case 0, 1, 2:
			turn, _, st := tb.Opens.Begin(c, &nfs4.StateOwner4{Owner: []byte(owner)}, 0, 1)
			if st != nfs4.NFS4_OK {
				t.Fatal(st)
			}
			got, _, st := tb.Opens.Open(turn, key, access, deny)
			want := nfs4.NFS4_OK
			if m.conflict(file, access, deny, owners) {
				want = nfs4.NFS4ERR_SHARE_DENIED
			}
			if st != want {
				t.Fatalf("step %d: OPEN %s, want %s", step, st, want)
			}
			if st != nfs4.NFS4_OK {
				continue
			}
			if isOpen && (got.Other != sid.Other || got.Seqid != sid.Seqid+1) {
				t.Fatalf("step %d: %v after %v", step, got, sid)
			}
			sids[mine] = got
			m[mine] = append(m[mine], [2]uint32{access, deny})
		case 3:
			if !isOpen {
				continue
			}
			// The bits have to be those of some of the OPENs together.
			fits := false
			var left [][2]uint32
			for set := range 1 << min(len(m[mine]), 10) {
				var a, d uint32
				for i, s := range m[mine][:min(len(m[mine]), 10)] {
					if set>>i&1 != 0 {
						a, d = a|s[0], d|s[1]
					}
				}
				fits = fits || set != 0 && a == access && d == deny
			}
			if len(m[mine]) > 10 {
				continue
			}
			for _, s := range m[mine] {
				if s[0]&^access == 0 && s[1]&^deny == 0 {
					left = append(left, s)
				}
			}
			got, st := tb.Opens.Downgrade(c, &sid, key, access, deny, 1)
			if (st == nfs4.NFS4_OK) != fits || st != nfs4.NFS4_OK && st != nfs4.NFS4ERR_INVAL {
				t.Fatalf("step %d: OPEN_DOWNGRADE of %v to %d %d: %s", step, m[mine], access, deny, st)
			}
			if fits {
				m[mine], sids[mine] = left, got
			}
		case 4:
			if !isOpen {
				continue
			}
			if _, st := tb.Opens.Close(c, &sid, key, 1); st != nfs4.NFS4_OK {
				t.Fatalf("step %d: CLOSE %s", step, st)
			}
			delete(m, mine)
			delete(sids, mine)
		default:
			// I/O with the stateid, and without one.
			a, _ := m.union(mine)
			if isOpen {
				if _, st := tb.Stateids.CheckIO(c, &sid, key, true, 1); (st == nfs4.NFS4_OK) != (a&2 != 0) {
					t.Fatalf("step %d: WRITE with access %d: %s", step, a, st)
				}
			}
			var denied uint32
			for _, o := range owners {
				_, d := m.union(fmt.Sprint(o, file))
				denied |= d
			}
			for _, write := range []bool{false, true} {
				bit := uint32(1)
				if write {
					bit = 2
				}
				if _, st := tb.Stateids.CheckIO(c, &anonymous, key, write, 1); (st == nfs4.NFS4ERR_LOCKED) != (denied&bit != 0) {
					t.Fatalf("step %d: anonymous I/O, denied %d: %s", step, denied, st)
				}
			}
		}
		opens := 0
		for _, s := range m {
			if len(s) > 0 {
				opens++
			}
		}
		if n := tb.Counts().Opens; n != opens {
			t.Fatalf("step %d: %d opens, want %d", step, n, opens)
		}
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
