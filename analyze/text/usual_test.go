package text

import (
	"bytes"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// detached are options with which the connections of transactions are copies that do not change, or themselves.
func detached(detach bool) (opt decode.Options) {
	opt.Transactions.Detach = detach
	return opt
}

// fully writes a line in the way of all rows, without what is known of COMPOUNDs.
func fully(l *Lister, v *rpc.View) []byte {
	l.kinds = compound.Kinds{}
	return l.any(nil, v)
}

// TestUsual writes the transactions of all captures in both ways, with lines of several widths.
func TestUsual(t *testing.T) {
	usual, all := 0, 0
	for i := range traffic.Count() {
		for _, width := range []int{0, 40, 60, 79, 100, 300} {
			short, full := Lister{Width: width}, Lister{Width: width}
			holds.Each(t, traffic.Apply(uint8(i), nil), detached(width%2 == 0), func(v *rpc.View) {
				all++
				want := string(fully(&full, v))
				if b, ok := short.usual(nil, v); ok {
					usual++
					if string(b) != want {
						t.Fatalf("width %d:\n%s, want\n%s", width, b, want)
					}
				} else if b := short.any(nil, v); string(b) != want {
					t.Fatalf("after usual lines, width %d:\n%s, want\n%s", width, b, want)
				}
			})
		}
	}
	t.Logf("%d of %d lines are usual", usual, all)
	if usual == 0 {
		t.Error("none")
	}
}

// TestUsualFiles changes what the transactions of captures are about.
func TestUsualFiles(t *testing.T) {
	usual, all, cut, chunks, compounds := 0, 0, 0, 0, 0
	long := bytes.Repeat([]byte("long-name"), 30)
	for _, name := range []string{"rocev2-nfs3-meta.pcap.zst", "rocev2-nfs42-basic.pcap.zst", "rocev2-nfs41-mixed-load.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		for _, width := range []int{0, 70, 100, 102, 105, 108, 111, 114, 137, 160, 250} {
			short, full := Lister{Width: width}, Lister{Width: width}
			random := rand.New(rand.NewPCG(uint64(width), 7))
			each(t, name, func(v *rpc.View) {
				if f := v.File(); f != nil {
					if holds.ChangeFile(random, f); all%5 == 0 {
						f.Name, f.To = long[:random.IntN(len(long))], nil
					}
				}
				if all++; all%11 == 0 && !v.Tx.Chunkless() {
					v.Tx.Reply.Last.Number = 0 // as if it was still in flight
				}
				want := string(fully(&full, v))
				b, ok := short.usual([]byte("before"), v)
				if !ok {
					b = short.any(b, v)
				}
				if string(b) != "before"+want {
					t.Errorf("width %d:\n%s, want\n%s", width, b, want)
				}
				if !ok {
					return
				}
				usual++
				if strings.Contains(want, ellipsis) {
					cut++
				}
				if !v.Tx.Chunkless() {
					chunks++
				}
				if _, is := v.MinorVersion(); is {
					compounds++
				}
			})
		}
	}
	t.Logf("%d of %d lines are usual: %d shortened, %d with chunks, %d COMPOUNDs", usual, all, cut, chunks, compounds)
	if usual < all/5 || cut < usual/20 || chunks < usual/20 || compounds < usual/5 {
		t.Error("too few")
	}
}

// FuzzUsual writes transactions of changed captures in both ways.
func FuzzUsual(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), uint8(0), []byte{})
		f.Add(uint8(i), uint8(100), []byte{})
	}
	f.Fuzz(func(t *testing.T, which, width uint8, program []byte) {
		short, full := Lister{Width: int(width)}, Lister{Width: int(width)}
		holds.Each(t, traffic.Apply(which, program), detached(width%2 == 0), func(v *rpc.View) {
			b, want := short.Append(nil, v), fully(&full, v)
			if string(b) != string(want) {
				t.Fatalf("%s\nwant %s", b, want)
			}
		})
	})
}

// TestShort compares with Duration at each edge.
func TestShort(t *testing.T) {
	check := func(d uint64) {
		word, size, ok := short(d)
		if !ok {
			if d >= 1000 && d < 999_950_000 {
				t.Fatalf("%d is not written", d)
			}
			return
		}
		var b []byte
		for ; word != 0; word >>= 8 {
			b = append(b, byte(word))
		}
		want, width := duration(nil, time.Duration(d))
		if string(b) != string(want) || size != len(want) || width != latencyWidth {
			t.Fatalf("%d: %q of %d bytes, want %q", d, b, size, want)
		}
	}
	for edge := uint64(1000); edge <= 1_000_000_000; edge *= 10 {
		for i := range uint64(12_000) {
			check(edge - min(edge, 6000) + i)
			check(max(edge, edge/20000) - edge/20000 + i)
		}
	}
	for range 1_000_000 {
		check(rand.Uint64N(1 << (rand.Uint32() % 31)))
	}
}

// TestPlace writes paths of all lengths, with names and ranges behind them, into columns of several widths.
func TestPlace(t *testing.T) {
	long := bytes.Repeat([]byte("path/of/some-file.of.a length "), 10)
	fits := 0
	for n := range 140 {
		for _, room := range []int{16, 35, 60, 130} {
			for _, f := range []rpc.File{{}, {Name: []byte("n")}, {Name: long[:20]}, {Name: []byte{}}, {HasRange: true, Count: 4096}, {Name: []byte("a"), To: []byte("b")}, {To: long[:70]}, {Name: []byte("\x1b")}} {
				var k place
				handle := []byte("handle")
				k.write(&rpc.Place{Stamp: 1, Path: long[:n]}, handle)
				if k.size == notKept {
					if n <= len(placeBlanks) || k.put(nil, 1000, &f) {
						t.Fatalf("%d bytes", n)
					}
					continue
				}
				want := string(long[:n])
				if n == 0 && len(f.Name) == 0 {
					want = string(Handle(nil, handle))
				}
				if n > 0 && f.Name != nil {
					want += "/"
				}
				want += string(f.Name)
				if f.HasRange {
					want += " " + string(appendRange(nil, &f))
				}
				if f.To != nil {
					want += " -> " + string(f.To)
				}
				line := bytes.Repeat([]byte{' '}, maxLine)
				ok := k.put(line, room, &f)
				if may := len(want) < room && !bytes.Contains(f.Name, []byte{0x1b}) && len(f.To) < 61; ok != may || ok && string(bytes.TrimRight(line[:room], " ")) != strings.TrimRight(want, " ") {
					t.Fatalf("%d bytes, room %d: %q, %t, want %q", n, room, line[:room], ok, want)
				}
				if ok {
					fits++
				}
			}
		}
	}
	if fits < 500 {
		t.Errorf("%d fit", fits)
	}
}

// TestCut writes paths of all lengths, with names and ranges behind them, into columns of several widths, if they are too long for these.
func TestCut(t *testing.T) {
	long := bytes.Repeat([]byte("path/of/some-file.of.a length "), 40)
	cut := 0
	for n := range 1100 {
		for _, limit := range []int{16, 17, 35, 64, 65, 80} {
			for _, f := range []rpc.File{{}, {Name: []byte("n")}, {Name: long[:20]}, {Name: []byte{}}, {HasRange: true, Count: 4096}, {HasRange: true, Offset: 1<<60 + 1, Count: 1<<60 + 1}, {Name: long[:33], HasRange: true, Offset: 1, Count: 5}, {Name: []byte("a"), To: []byte("b")}, {To: long[:70]}, {Name: []byte("\x1b")}, {To: []byte("\\")}, {To: []byte("b"), HasRange: true}} {
				var s Lister
				var k place
				k.write(&rpc.Place{Stamp: 1, Path: long[:n]}, []byte("handle"))
				text := bytes.Clone(long[:n])
				if n > 0 && f.Name != nil {
					text = append(text, '/')
				}
				text = append(text, f.Name...)
				if f.To != nil {
					text = append(append(text, " -> "...), f.To...)
				}
				extent, left := []byte(nil), limit
				if f.HasRange {
					extent = appendRange([]byte(" "), &f)
					left -= len(extent)
				}
				d := bytes.Repeat([]byte{'#'}, maxLine)
				ok := s.cut(d, limit, &k, long[:n], &f)
				plain := !bytes.ContainsAny(text, "\x1b\\") && (f.To == nil || !f.HasRange)
				if n+len(f.Name)+len(f.To) < 900 {
					if may := plain && left >= 8 && left <= 64 && len(text) > left && (n > 0 || len(f.Name) > 0); ok != may {
						t.Fatalf("%d bytes, limit %d, %+v: %t", n, limit, f, ok)
					}
				}
				if !ok {
					continue
				}
				cut++
				head, tail := sides(left)
				want, width := shortenRunes(text, 0, head, tail)
				if want = append(want, extent...); width+len(extent) != limit || !bytes.HasPrefix(d, want) {
					t.Fatalf("%d bytes, limit %d: %q, want %q", n, limit, d, want)
				}
			}
		}
	}
	if cut < 10000 {
		t.Errorf("%d are cut", cut)
	}
}

// TestFarApart has a reply that seems to come as long before its call as numbers of 64 bits do not show.
func TestFarApart(t *testing.T) {
	lines := 0
	each(t, "rocev2-nfs3-meta.pcap.zst", func(v *rpc.View) {
		call, reply := &v.Tx.Call.First.Time, &v.Tx.Reply.Last.Time
		was := [2]int64{*call, *reply}
		*call, *reply = math.MaxInt64, math.MinInt64+5000
		short, full := Lister{}, Lister{}
		if b, want := short.Append(nil, v), fully(&full, v); string(b) != string(want) {
			t.Fatalf("%s, want %s", b, want)
		}
		*call, *reply = was[0], was[1]
		lines++
	})
	if lines == 0 {
		t.Error("none")
	}
}

// TestSettled writes transactions of connections that do not change, of which several are kept in the same place.
func TestSettled(t *testing.T) {
	usual := 0
	for which := range traffic.Count() {
		usual += settled(t, uint8(which))
	}
	if usual == 0 {
		t.Error("none is usual")
	}
}

func settled(t *testing.T, which uint8) (usual int) {
	var conns []*rdma.Connection
	var short Lister
	holds.Each(t, traffic.Apply(which, nil), detached(true), func(v *rpc.View) {
		c := v.Tx.Connection
		if conns == nil {
			for i := range 3 {
				x := *c
				x.ID += len(short.kept) / 4 * i
				x.Ends[0].Addr, x.Ends[1].Addr = netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})
				x.Settled = i > 0
				conns = append(conns, &x)
			}
		}
		for _, i := range []int{0, 1, 0, 2, 1, 2, 2} {
			v.Tx.Connection = conns[i]
			want := string(new(Lister).any(nil, v))
			if b, ok := short.usual(nil, v); ok {
				usual++
				if string(b) != want {
					t.Fatalf("%s, want %s", b, want)
				}
			}
		}
		v.Tx.Connection = c
	})
	return usual
}
