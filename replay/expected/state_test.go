package expected

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/spent"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// bench is a directory (object 1) with a subdirectory (2) and files (3 to 9).
func bench(payload plan.PayloadMode) *State {
	w := &workload.Workload{}
	w.Tables.Header.Payload = payload
	w.Tables.Objects = []plan.Object{{ID: 1, Type: "dir", Base: true}, {ID: 2, Type: "dir", Parent: 1, Name: "d"}}
	for id := 3; id < 10; id++ {
		w.Tables.Objects = append(w.Tables.Objects, plan.Object{ID: id, Type: "file", Parent: 1, Name: string(rune('a' + id))})
	}
	return New(w)
}

// side is a side file whose byte at n is n.
type side struct{}

func (side) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = byte(off + int64(i))
	}
	return len(p), nil
}

func call(procedure uint32, args ...plan.Field) *plan.Op {
	return &plan.Op{Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: procedure, Modifies: true, Args: args}
}

func at(id int) plan.Field         { return plan.Field{Kind: plan.FieldHandle, Ref: id} }
func named(name string) plan.Field { return plan.Field{Kind: plan.FieldName, Text: name} }
func u32(v uint64) plan.Field      { return plan.Field{Kind: plan.FieldU32, Value: v} }
func u64(v uint64) plan.Field      { return plan.Field{Kind: plan.FieldU64, Value: v} }

func write(id int, offset uint64, p plan.Payload) *plan.Op {
	return call(nfs3.NFSPROC3_WRITE, at(id), u64(offset), u32(uint64(p.Length)), u32(0), plan.Field{Kind: plan.FieldData, Data: &p})
}

func took(n uint32) xdr.Message {
	m := &nfs3.WRITE3res{}
	m.Resok.Count = n
	return m
}

func never(uint64, uint64) bool { return false }

// TestTogether: where concurrent calls have written to the same place, either content is right,
// unless they wrote the same.
func TestTogether(t *testing.T) {
	start := time.Unix(1, 0)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	for name, c := range map[string]struct {
		second plan.Payload
		sent   int
		want   verdict.Code // of what the first wrote, read after the second
		lost   verdict.Code // of zeros
	}{
		"one after the other":    {plan.Payload{Length: 100, Source: plan.Captured, At: 500}, 20, verdict.WrittenDiffers, verdict.WrittenLost},
		"together":               {plan.Payload{Length: 100, Source: plan.Captured, At: 500}, 5, verdict.None, verdict.None},
		"together, and the same": {plan.Payload{Length: 100, Source: plan.Captured, At: 50}, 5, verdict.None, verdict.WrittenLost},
		"together, beside it":    {plan.Payload{Length: 0, Source: plan.Captured, At: 500}, 5, verdict.None, verdict.WrittenLost},
	} {
		l := bench(plan.Captured)
		l.load.Data = side{}
		l.Done(&Call{Op: write(3, 0, plan.Payload{Length: 100, Source: plan.Captured, At: 50}), Result: took(100), Sent: ms(0), Replied: ms(10)})
		l.Done(&Call{Op: write(3, 0, c.second), Result: took(c.second.Length), Sent: ms(c.sent), Replied: ms(30)})
		b := make([]byte, 100)
		_, _ = side{}.ReadAt(b, 50)
		if _, code := l.Check(3, 0, b, never); code != c.want {
			t.Errorf("%s: %s, want %s", name, code, c.want)
		}
		if _, code := l.Check(3, 0, make([]byte, 100), never); code != c.lost {
			t.Errorf("%s: zeros: %s, want %s", name, code, c.lost)
		}
	}
}

// TestAccount: every byte that was written is counted once, whatever becomes of it.
func TestAccount(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	start := time.Unix(1, 0)
	for round := range 200 {
		l := bench(plan.Pattern)
		now, sum := 0, uint64(0)
		for range 60 {
			id := 3 + rng.IntN(3)
			offset, n := rng.Uint64N(500), uint32(rng.IntN(200))
			now += rng.IntN(3)
			c := &Call{Sent: start.Add(time.Duration(now-rng.IntN(4)) * time.Millisecond), Replied: start.Add(time.Duration(now) * time.Millisecond)}
			switch rng.IntN(6) {
			case 0: // READ
				b := make([]byte, n)
				plan.FillPattern(b, id, offset)
				l.Compare(id, offset, b, never)
				continue
			case 1:
				a := nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: offset}}
				c.Op, c.Result = call(nfs3.NFSPROC3_SETATTR, at(id), plan.Field{Kind: plan.FieldRaw, Bytes: a.Append(nil)}, u32(0)), &nfs3.SETATTR3res{}
			case 2:
				c.Op = write(id, offset, plan.Payload{Length: n, Source: plan.Pattern, Object: id, Offset: offset}) // no reply
			case 3:
				c.Op, c.Result = write(id, offset, plan.Payload{Length: n, Source: plan.Sparse}), took(n)
				sum += uint64(n)
			default:
				c.Op, c.Result = write(id, offset, plan.Payload{Length: n, Source: plan.Pattern, Object: id, Offset: offset}), took(n)
				sum += uint64(n)
			}
			l.Done(c)
		}
		unseen := uint64(0)
		for _, id := range l.Objects() {
			unseen += l.Unseen(id, 0, forever)
		}
		a := l.Account(unseen/2, unseen/4)
		total := a.Run + a.End
		for _, n := range a.Never {
			total += n
		}
		if a.Written != sum || total != sum || a.Never[Untold] != 0 {
			t.Fatalf("round %d: %d written, %+v", round, sum, a)
		}
	}
}

// TestNames follows names through the calls that create, rename and remove them.
func TestNames(t *testing.T) {
	l := bench(plan.Pattern)
	done := func(o *plan.Op, res xdr.Message) { l.Done(&Call{Op: o, Result: res}) }
	is := func(dir int, name string, p Presence, object int) {
		t.Helper()
		list, _ := l.Names()
		for _, e := range list {
			if e.Dir == dir && e.Name.Name == name {
				if e.Presence != p || e.Object != object {
					t.Errorf("%s: %+v", name, e)
				}
				return
			}
		}
		if p != Unknown {
			t.Errorf("%s is not known", name)
		}
	}
	made := func(o *plan.Op, id int) *plan.Op {
		o.Binds = []plan.Bind{{Kind: plan.FieldHandle, Ref: id}}
		return o
	}
	none := plan.Field{Kind: plan.FieldRaw, Bytes: (&nfs3.Sattr3{}).Append(nil)}
	rename := func(from int, a string, to int, b string) *plan.Op {
		return call(nfs3.NFSPROC3_RENAME, at(from), named(a), at(to), named(b))
	}
	done(made(call(nfs3.NFSPROC3_CREATE, at(1), named("f"), u32(uint64(nfs3.GUARDED)), none), 3), &nfs3.CREATE3res{})
	is(1, "f", Present, 3)
	done(call(nfs3.NFSPROC3_LINK, at(3), at(2), named("g")), &nfs3.LINK3res{})
	is(2, "g", Present, 3)
	if a, _ := l.Object(3); a.Links == nil || *a.Links != 2 || a.Size == nil || *a.Size != 0 {
		t.Errorf("%+v", a)
	}
	done(rename(1, "f", 2, "g"), &nfs3.RENAME3res{}) // of one file: nothing happens
	is(1, "f", Present, 3)
	is(2, "g", Present, 3)
	done(rename(1, "f", 1, "h"), &nfs3.RENAME3res{})
	is(1, "f", Absent, 0)
	is(1, "h", Present, 3)
	done(call(nfs3.NFSPROC3_REMOVE, at(1), named("h")), &nfs3.REMOVE3res{Status: nfs3.NFS3ERR_ACCES})
	is(1, "h", Present, 3)
	done(call(nfs3.NFSPROC3_REMOVE, at(1), named("h")), nil) // no reply
	is(1, "h", Unknown, 0)
	done(call(nfs3.NFSPROC3_REMOVE, at(2), named("g")), &nfs3.REMOVE3res{})
	is(2, "g", Absent, 0)
	if a, _ := l.Object(3); a.Links != nil {
		t.Error("a name may be there or not, and the links are known")
	}
}

// TestSameTime: a server keeps times in its own resolution, and no coarser.
func TestSameTime(t *testing.T) {
	set := time.Unix(1000, 123456789)
	for ns, want := range map[int64]bool{123456789: true, 123456700: true, 123456000: true, 123000000: true, 0: true, 123456788: false, 123456790: false, 500: false} {
		if got := SameTime(set, time.Unix(1000, ns)); got != want {
			t.Errorf("%d: %v", ns, got)
		}
	}
	for d, want := range map[time.Duration]bool{0: true, time.Hour: false, -time.Second: false} {
		if got := SameTime(set, set.Add(d)); got != want {
			t.Errorf("%s: %v", d, got)
		}
	}
}

// TestSideFile: bytes of the side file are compared with it.
func TestSideFile(t *testing.T) {
	l := bench(plan.Captured)
	l.load.Data = side{}
	l.Prepared(3, Prepared{Size: 1000, Filled: 1000, New: true, Parts: []plan.Extent{{Offset: 100, Length: 100, At: 7}}})
	b := make([]byte, 1000)
	plan.FillPattern(b, 3, 0)
	_, _ = side{}.ReadAt(b[100:200], 7)
	if n, code := l.Check(3, 0, b, never); code != verdict.None {
		t.Errorf("%s at %d", code, n)
	}
	b[150] ^= 1
	if n, code := l.Check(3, 0, b, never); code != verdict.WrittenDiffers || n != 150 {
		t.Errorf("%s at %d", code, n)
	}
	b[150] ^= 1
	clear(b[120:140])
	if n, code := l.Check(3, 0, b, never); code != verdict.WrittenLost || n != 120 {
		t.Errorf("%s at %d", code, n)
	}
	if n, code := l.Check(3, 1000, bytes.Repeat([]byte{1}, 10), never); code != verdict.HoleFilled || n != 1000 {
		t.Errorf("behind the end: %s at %d", code, n)
	}
}

// TestEmpty: a directory is empty if all names in it that are known are gone.
func TestEmpty(t *testing.T) {
	l := bench(plan.Pattern)
	at := time.Unix(1e9, 0)
	put := func(dir int, name string, p Presence) {
		at = at.Add(time.Second)
		l.put(&Call{Sent: at, Replied: at}, Name{dir, name}, p, 0)
	}
	is := func(when string, dir int, want bool) {
		t.Helper()
		if got := l.Empty(dir); got != want {
			t.Errorf("%s: directory %d is empty: %v", when, dir, got)
		}
	}
	is("at first", 1, true)
	put(1, "a", Present)
	put(1, "b", Unknown)
	put(2, "a", Absent)
	is("two names", 1, false)
	is("a name that is not there", 2, true)
	put(1, "a", Absent)
	is("one may be there", 1, false)
	put(1, "b", Absent)
	is("none", 1, true)
	l.doubt(&Call{Op: &plan.Op{Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 2}}}})
	is("any may be there", 2, false)
	is("nothing has happened there", 1, true)
	if l.Named(Name{2, "a"}) != 0 {
		t.Error("a name is known after a call that may have changed any")
	}
	put(2, "a", Present)
	put(2, "a", Absent)
	is("known again", 2, true)
	n := New(l.load)
	n.Restore(l.Snapshot())
	if !n.Empty(1) || !n.Empty(2) || n.named != l.named {
		t.Errorf("restored: %v %v, %d names", n.Empty(1), n.Empty(2), n.named)
	}
}

// TestManyNames: what a removal of a directory, or a call that may have changed any name, takes does not grow with the names that
// are known.
func TestManyNames(t *testing.T) {
	const quick, names = 20 * time.Second, 200_000 // it takes less than a second, and what is quadratic minutes
	l := bench(plan.Pattern)
	for i := range names {
		l.put(&Call{}, Name{1, strconv.Itoa(i)}, Present, 0)
		l.put(&Call{}, Name{3 + i, "a"}, Absent, 0)
	}
	any1 := &Call{Op: &plan.Op{Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}}
	start := spent.Time()
	for i := range names {
		if !l.Empty(3 + i) {
			t.Fatal("not empty")
		}
		l.doubt(any1)
	}
	if d := spent.Time() - start; d > quick {
		t.Errorf("%v for %d removals", d, names)
	}
	if _, open := l.Names(); open != names {
		t.Errorf("%d names are open", open)
	}
}
