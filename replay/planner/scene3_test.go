package planner

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// NFSv3 by hand.

func fh3(h string) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: []byte(h)} }

func in3(dir, name string) nfs3.Diropargs3 { return nfs3.Diropargs3{Dir: fh3(dir), Name: []byte(name)} }

func post3(h string) nfs3.PostOpFh3 { return nfs3.PostOpFh3{HandleFollows: true, Handle: fh3(h)} }

func (s *scene) lookup3(dir, name, handle string) {
	r := &nfs3.LOOKUP3res{}
	if handle == "" {
		r.Status = nfs3.NFS3ERR_NOENT
	} else {
		r.Resok.Object = fh3(handle)
	}
	s.call(3, 3, &nfs3.LOOKUP3args{What: in3(dir, name)}, r)
}

func (s *scene) create3(dir, name, handle string) {
	s.call(3, 8, &nfs3.CREATE3args{Where: in3(dir, name), How: nfs3.Createhow3{Mode: nfs3.GUARDED}},
		&nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: post3(handle)}})
}

func (s *scene) remove3(dir, name string, status nfs3.Nfsstat3) {
	s.call(3, 12, &nfs3.REMOVE3args{Object: in3(dir, name)}, &nfs3.REMOVE3res{Status: status})
}

func (s *scene) rename3(from, old, to, name string) {
	s.call(3, 14, &nfs3.RENAME3args{From: in3(from, old), To: in3(to, name)}, &nfs3.RENAME3res{})
}

func (s *scene) write3(h string, offset uint64, data string) {
	s.call(3, 7, &nfs3.WRITE3args{File: fh3(h), Offset: offset, Count: uint32(len(data)), Data: xdr.Data{Length: uint32(len(data)), Inline: []byte(data)}},
		&nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: uint32(len(data))}})
}

func (s *scene) read3(h string, offset uint64, data string, status nfs3.Nfsstat3) {
	r := &nfs3.READ3res{Status: status}
	if status == nfs3.NFS3_OK {
		r.Resok.Count, r.Resok.Eof = uint32(len(data)), true
		r.Resok.Data = xdr.Data{Length: uint32(len(data)), Inline: []byte(data)}
	}
	s.call(3, 6, &nfs3.READ3args{File: fh3(h), Offset: offset, Count: 4096}, r)
}

// handleOf is the object of the first handle of an op.
func handle(o *plan.Op) int {
	n := 0
	each(o, func(f *plan.Field) {
		if f.Kind == plan.FieldHandle && n == 0 {
			n = f.Ref
		}
	})
	return n
}

func (l *loaded) want(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (l *loaded) waits(t *testing.T, from, to int) {
	t.Helper()
	if !l.reaches(from, to) {
		t.Errorf("op %d (%s) does not wait for op %d (%s)", from, l.ops[from-1].What, to, l.ops[to-1].What)
	}
}

func (l *loaded) free(t *testing.T, from, to int) {
	t.Helper()
	if l.reaches(from, to) {
		t.Errorf("op %d (%s) waits for op %d (%s)", from, l.ops[from-1].What, to, l.ops[to-1].What)
	}
}

// A chain of renames: the file is prepared under its first name only.
func TestRenameChain(t *testing.T) {
	s := newScene(t)
	s.rename3("root", "a", "root", "b") // 1: never seen before
	s.rename3("root", "b", "root", "c") // 2
	s.lookup3("root", "c", "H")         // 3
	s.rename3("root", "c", "root", "a") // 4
	s.lookup3("root", "a", "H")         // 5
	s.lookup3("root", "b", "")          // 6
	s.read3("H", 0, "hello", 0)         // 7
	l := s.plan()
	o := l.object(t, "a")
	l.want(t, "origin", o.Origin, plan.Before)
	l.want(t, "size", o.Size, uint64(5))
	l.want(t, "objects", len(l.Objects), 2)
	l.want(t, "handle", handle(l.ops[6]), o.ID)
	for i := 2; i <= 5; i++ {
		l.waits(t, i, i-1)
	}
	l.waits(t, 6, 2)
	l.free(t, 6, 5)
}

// A file is renamed over an existing one.
func TestRenameOver(t *testing.T) {
	s := newScene(t)
	s.lookup3("root", "old", "O")           // 1
	s.read3("O", 0, "old", 0)               // 2
	s.create3("root", "new", "N")           // 3
	s.write3("N", 0, "new")                 // 4
	s.rename3("root", "new", "root", "old") // 5
	s.lookup3("root", "old", "N")           // 6
	s.read3("N", 0, "new", 0)               // 7
	s.read3("O", 0, "", nfs3.NFS3ERR_STALE) // 8
	l := s.plan()
	l.want(t, "prepared", l.Header.Summary.Prepared, 2) // root and old
	l.want(t, "old", l.object(t, "old").Origin, plan.Before)
	l.want(t, "new", l.object(t, "new").CreatedBy, 3)
	l.waits(t, 5, 2) // or it would find no file
	l.waits(t, 5, 3)
	l.free(t, 5, 4)
	l.waits(t, 6, 5)
	l.waits(t, 7, 4)
	l.waits(t, 8, 5)
}

// The same handle stands for a new file after the old one was removed.
func TestHandleAgain(t *testing.T) {
	s := newScene(t)
	s.create3("root", "a", "H")             // 1
	s.write3("H", 0, "one")                 // 2
	s.remove3("root", "a", nfs3.NFS3_OK)    // 3
	s.read3("H", 0, "", nfs3.NFS3ERR_STALE) // 4
	s.create3("root", "b", "H")             // 5
	s.write3("H", 0, "two")                 // 6
	s.read3("H", 0, "two", 0)               // 7
	l := s.plan()
	a, b := l.object(t, "a"), l.object(t, "b")
	l.want(t, "a", a.CreatedBy, 1)
	l.want(t, "b", b.CreatedBy, 5)
	l.want(t, "read of the removed file", handle(l.ops[3]), a.ID)
	l.want(t, "read of the new file", handle(l.ops[6]), b.ID)
	l.waits(t, 3, 2)
	l.waits(t, 4, 3)
	l.waits(t, 7, 6)
	l.free(t, 6, 3)
	l.want(t, "prepared", l.Header.Summary.Prepared, 1) // root
}

// Hard links: made by the workload, and existing before it.
func TestHardLinks(t *testing.T) {
	s := newScene(t)
	s.lookup3("root", "x", "X")                                                                       // 1
	s.lookup3("root", "y", "X")                                                                       // 2: another name that was there
	s.call(3, 15, &nfs3.LINK3args{File: fh3("X"), Link: in3("root", "z")}, &nfs3.LINK3res{})          // 3
	s.remove3("root", "x", nfs3.NFS3_OK)                                                              // 4
	s.remove3("root", "y", nfs3.NFS3_OK)                                                              // 5
	s.read3("X", 0, "still", 0)                                                                       // 6
	s.remove3("root", "z", nfs3.NFS3_OK)                                                              // 7
	s.call(3, 1, &nfs3.GETATTR3args{Object: fh3("X")}, &nfs3.GETATTR3res{Status: nfs3.NFS3ERR_STALE}) // 8
	l := s.plan()
	o := l.object(t, "x")
	if len(o.Links) != 1 || o.Links[0].Name != "y" {
		t.Errorf("links %+v", o.Links)
	}
	l.want(t, "objects", len(l.Objects), 2)
	l.waits(t, 7, 6) // the last name goes after the last use
	l.waits(t, 7, 3)
	l.waits(t, 4, 3) // otherwise there might be no name left to link
	l.waits(t, 8, 7)
}

// A directory that is read in three calls.
func TestCookies(t *testing.T) {
	s := newScene(t)
	list := func(cookie uint64, eof bool, names ...string) {
		r := &nfs3.READDIR3res{}
		r.Resok.Cookieverf = [8]byte{1}
		for i, n := range names {
			r.Resok.Reply.Entries = append(r.Resok.Reply.Entries, nfs3.Entry3{Name: []byte(n), Cookie: cookie*10 + uint64(i) + 1})
		}
		r.Resok.Reply.Eof = eof
		a := &nfs3.READDIR3args{Dir: fh3("root"), Cookie: cookie, Count: 512}
		if cookie != 0 {
			a.Cookieverf = [8]byte{1}
		}
		s.call(3, 16, a, r)
	}
	s.create3("root", "new", "N")          // 1
	list(0, false, ".", "..", "a", "new")  // 2: cookies 1 to 4
	s.create3("root", "later", "L")        // 3
	list(4, false, "b", "c")               // 4: after the last
	list(42, true)                         // 5: after the last of that
	list(2, true, "a", "new")              // 6: again from the middle of the first
	list(777, true, "q")                   // 7: from nowhere
	s.remove3("root", "new", nfs3.NFS3_OK) // 8
	l := s.plan()
	cookie := func(op int) (f plan.Field) {
		each(l.ops[op-1], func(x *plan.Field) {
			if x.Kind == plan.FieldCookie {
				f = *x
			}
		})
		return f
	}
	for _, c := range []struct {
		op, from, entry int
		last            bool
	}{{4, 2, 3, true}, {5, 4, 1, true}, {6, 2, 1, false}} {
		f := cookie(c.op)
		if f.Op != c.from || int(f.Value) != c.entry || f.Zero != c.last {
			t.Errorf("op %d: cookie %+v, want %+v", c.op, f, c)
		}
		l.waits(t, c.op, c.from)
	}
	if x := l.ops[6]; x.Class != plan.Inferred || !strings.Contains(x.Reasons[0], "cookie") {
		t.Errorf("a cookie from nowhere: %s %q", x.Class, x.Reasons)
	}
	for _, n := range []string{"a", "b", "c"} {
		l.want(t, n, l.object(t, n).Origin, plan.Before)
	}
	l.want(t, "new", l.object(t, "new").Origin, plan.Created)
	l.waits(t, 2, 1)
	l.waits(t, 3, 2)
	l.waits(t, 8, 7)
}

// TestCookiesOfSeveral: clients that list a directory at the same time have the same cookies, and each continues its own listing, also over
// another of its connections.
func TestCookiesOfSeveral(t *testing.T) {
	s := newScene(t)
	first := s.conn
	second := &rdma.Connection{ID: 2, Fabric: rdma.TCP, Ends: [2]rdma.End{{Addr: first.Ends[0].Addr, Port: 701}, first.Ends[1]}}
	other := &rdma.Connection{ID: 3, Fabric: rdma.TCP, Ends: [2]rdma.End{{Addr: netip.MustParseAddr("192.0.2.3"), Port: 700}, first.Ends[1]}}
	list := func(conn *rdma.Connection, cookie uint64, entries ...uint64) {
		s.conn = conn
		r := &nfs3.READDIR3res{}
		for _, c := range entries {
			r.Resok.Reply.Entries = append(r.Resok.Reply.Entries, nfs3.Entry3{Name: fmt.Appendf(nil, "n%d", c), Cookie: c})
		}
		r.Resok.Reply.Eof = len(entries) == 0
		s.call(3, 16, &nfs3.READDIR3args{Dir: fh3("root"), Cookie: cookie, Count: 512}, r)
	}
	list(first, 0, 1, 2)    // 1
	list(other, 0, 1, 2)    // 2
	list(second, 2, 3, 4)   // 3: continues 1
	list(other, 2, 3, 4, 5) // 4: continues 2
	list(first, 4)          // 5: continues 3
	list(other, 5)          // 6: continues 4
	list(first, 5)          // 7: where only the other one ended
	l := s.plan()
	for op, from := range map[int]int{3: 1, 4: 2, 5: 3, 6: 4, 7: 4} {
		each(l.ops[op-1], func(f *plan.Field) {
			if f.Kind == plan.FieldCookie && f.Op != from {
				t.Errorf("op %d continues op %d, want %d", op, f.Op, from)
			}
		})
		l.waits(t, op, from)
	}
}

// Calls that were in flight together do not wait for each other; later ones do.
func TestOverlap(t *testing.T) {
	s := newScene(t)
	s.create3("root", "f", "F") // 1
	w := func(offset uint64, n int, start, end int64) {
		data := make([]byte, n)
		s.add(3, 7, &nfs3.WRITE3args{File: fh3("F"), Offset: offset, Count: uint32(n), Data: xdr.Data{Length: uint32(n), Inline: data}},
			&nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: uint32(n)}}, s.now+start, s.now+end)
	}
	w(0, 100, 1000, 9000)    // 2
	w(100, 100, 2000, 5000)  // 3
	w(50, 100, 3000, 8000)   // 4: overlaps both, which are in flight
	w(150, 10, 6000, 7000)   // 5: after 3
	w(500, 10, 10000, 11000) // 6: beside all
	s.now += 20000
	s.read3("F", 90, "x", 0) // 7
	s.call(3, 21, &nfs3.COMMIT3args{File: fh3("F")}, &nfs3.COMMIT3res{})
	l := s.plan()
	for i := 2; i <= 6; i++ {
		l.waits(t, i, 1)
		l.waits(t, 8, i)
		if i == 3 || i == 4 {
			l.free(t, i, i-1)
		}
	}
	l.waits(t, 5, 3)
	l.free(t, 5, 4)
	l.free(t, 5, 2)
	l.free(t, 6, 2)
	l.waits(t, 7, 2)
	l.waits(t, 7, 4)
	l.want(t, "flights", l.Connections[0].MaxInFlight, 3)
	l.want(t, "think", l.ops[4].Think, int64(1000))
	l.want(t, "after", l.ops[4].After, 3)
}

// The size at the start is the one shown before the first change.
func TestSizes(t *testing.T) {
	attr := func(size uint64) nfs3.PostOpAttr {
		return nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o640, Size: size, Uid: 7, Gid: 8}}
	}
	get := func(s *scene, h string, size uint64) {
		a := attr(size)
		s.call(3, 1, &nfs3.GETATTR3args{Object: fh3(h)}, &nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: a.Attributes}})
	}
	s := newScene(t)
	s.lookup3("root", "a", "A")
	get(s, "A", 1000)
	s.write3("A", 2000, "more")
	get(s, "A", 2004)
	s.lookup3("root", "b", "B")
	s.write3("B", 0, "over")
	get(s, "B", 300) // known too late
	s.lookup3("root", "c", "C")
	s.read3("C", 0, "0123456789", 0)
	w := &nfs3.WRITE3res{}
	w.Resok.FileWcc.Before.AttributesFollow, w.Resok.FileWcc.Before.Attributes.Size = true, 77
	s.lookup3("root", "d", "D")
	s.call(3, 7, &nfs3.WRITE3args{File: fh3("D"), Offset: 0, Count: 1, Data: xdr.Data{Length: 1, Inline: []byte("x")}}, w)
	s.read3("A", 0, "ab", 0) // the server says that it ends there
	l := s.plan()
	for _, c := range []struct {
		path  string
		size  uint64
		class plan.Class
	}{{"a", 1000, plan.Exact}, {"b", 0, plan.Inferred}, {"c", 10, plan.Exact}, {"d", 77, plan.Exact}} {
		o := l.object(t, c.path)
		if o.Size != c.size || o.SizeClass != c.class {
			t.Errorf("%s: %d bytes, %s, want %d, %s", c.path, o.Size, o.SizeClass, c.size, c.class)
		}
	}
	if a := l.object(t, "a"); *a.Mode != 0o640 || *a.UID != 7 || *a.GID != 8 {
		t.Errorf("attributes of a: %o %d %d", *a.Mode, *a.UID, *a.GID)
	}
	if c := l.object(t, "c"); len(c.Content) != 1 || c.Content[0].Length != 10 {
		t.Errorf("content of c: %+v", c.Content)
	}
}

// A call without a reply is replayed, and objects that it may have made are not prepared; a call
// that is sent again is replayed once.
func TestNoReply(t *testing.T) {
	s := newScene(t)
	s.call(3, 8, &nfs3.CREATE3args{Where: in3("root", "f"), How: nfs3.Createhow3{Mode: nfs3.GUARDED}}, nil) // 1
	s.xid--
	s.call(3, 8, &nfs3.CREATE3args{Where: in3("root", "f"), How: nfs3.Createhow3{Mode: nfs3.GUARDED}},
		&nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: post3("F")}})
	s.lookup3("root", "f", "F") // 2
	l := s.plan()
	l.want(t, "ops", len(l.ops), 2)
	l.want(t, "skips", len(l.skips), 1)
	l.want(t, "class", l.ops[0].Class, plan.Inferred)
	l.want(t, "origin", l.object(t, "f").Origin, plan.Created)
	if !strings.Contains(l.skips[0].Reason, "again") {
		t.Errorf("skipped: %s", l.skips[0].Reason)
	}
	if l.ops[0].Expect != nil || l.ops[0].Latency != -1 {
		t.Error("a call without a reply has an outcome")
	}
}

// Names that are no UTF-8, and directories that contain themselves.
func TestStrangeNames(t *testing.T) {
	s := newScene(t)
	s.lookup3("root", "\xff\xfe", "A")
	s.lookup3("A", "b", "B")
	s.lookup3("B", "a", "A") // a circle
	s.lookup3("B", "b", "B")
	s.lookup3("root", "..", "root")
	s.lookup3("root", "", "root")
	l := s.plan()
	l.identity(t)
	found := false
	for i := range l.Objects {
		found = found || string(l.Objects[i].NameBytes) == "\xff\xfe"
	}
	if !found {
		t.Error("the name is lost")
	}
}

// A call that the server delays is sent again; it is replayed once.
func TestPutOff(t *testing.T) {
	s := newScene(t)
	s.remove3("root", "a", nfs3.NFS3ERR_JUKEBOX)
	s.remove3("root", "a", nfs3.NFS3_OK)
	l := s.plan()
	l.want(t, "ops", len(l.ops), 1)
	l.want(t, "skips", l.skips[0].Reason, putOff)
	l.want(t, "after", l.ops[0].After, 0)
	l.want(t, "type", l.object(t, "a").Type, "file")
}

// Beyond the limit, handles are sent as captured, and a note says so.
func TestObjectLimit(t *testing.T) {
	s := newScene(t)
	s.b.opt.Objects = 5
	for i := range 20 {
		s.lookup3("root", "f"+itoa(i), "H"+itoa(i))
		s.read3("H"+itoa(i), 0, "x", 0)
	}
	l := s.plan()
	if n := len(l.Objects); n > 6 {
		t.Errorf("%d objects", n)
	}
	l.want(t, "ops", len(l.ops), 40)
	l.want(t, "limits", len(l.Header.Summary.Limits), 1)
	l.want(t, "class", l.ops[39].Class, plan.Inferred)
	l.arguments(t)
	l.defined(t)
}

// A symlink that was never read, and names that lead out of their directory.
func TestMadeUp(t *testing.T) {
	s := newScene(t)
	r := &nfs3.LOOKUP3res{}
	r.Resok.Object = fh3("L")
	r.Resok.ObjAttributes = nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Type: nfs3.NF3LNK, Size: 7}}
	s.call(3, 3, &nfs3.LOOKUP3args{What: in3("root", "link")}, r)
	for name, size := range map[string]uint64{"long": 4095, "longer": 1 << 40} {
		r.Resok.Object, r.Resok.ObjAttributes.Attributes.Size = fh3(name), size
		s.call(3, 3, &nfs3.LOOKUP3args{What: in3("root", name)}, r)
	}
	s.lookup3("root", "../../etc", "E")
	s.lookup3("root", "a\x00b", "Z")
	l := s.plan()
	o := l.object(t, "link")
	l.want(t, "target", o.Target, "xxxxxxx")
	l.want(t, "size of a long target", len(l.object(t, "long").Target), 4095)
	l.want(t, "size of a target that is too long", len(l.object(t, "longer").Target), 4095)
	l.want(t, "notes", len(o.Notes), 1)
	for i := range l.Objects {
		if strings.ContainsAny(l.Objects[i].Name, "/\x00") {
			t.Errorf("object %q", l.Objects[i].Name)
		}
	}
}

// An unchecked CREATE opens a file that is there. If its reply shows more than a new file has, the file is made before
// the start, also if nothing else tells so: Linux does not send the attributes before it then.
func TestCreateOfWhatExists(t *testing.T) {
	type attr = nfs3.Fattr3
	size := func(n uint64) nfs3.SetSize3 { return nfs3.SetSize3{SetIt: true, Size: n} }
	file := func(n uint64) attr { return attr{Type: nfs3.NF3REG, Size: n, Nlink: 1} }
	for _, c := range []struct {
		name    string
		mode    nfs3.Createmode3
		set     nfs3.SetSize3
		a       *attr
		removed bool // by an earlier call
		want    plan.ObjectOrigin
	}{
		{"contents", nfs3.UNCHECKED, nfs3.SetSize3{}, new(file(4097)), false, plan.Before},
		{"empty", nfs3.UNCHECKED, nfs3.SetSize3{}, new(file(0)), false, plan.Created},
		{"no attributes", nfs3.UNCHECKED, nfs3.SetSize3{}, nil, false, plan.Created},
		{"the size that was set", nfs3.UNCHECKED, size(4097), new(file(4097)), false, plan.Created},
		{"another size than was set", nfs3.UNCHECKED, size(5), new(file(4097)), false, plan.Before},
		{"cut", nfs3.UNCHECKED, size(0), new(file(0)), false, plan.Created},
		{"two names", nfs3.UNCHECKED, size(0), &attr{Type: nfs3.NF3REG, Nlink: 2}, false, plan.Before},
		{"guarded", nfs3.GUARDED, nfs3.SetSize3{}, new(file(4097)), false, plan.Created},
		{"removed before", nfs3.UNCHECKED, nfs3.SetSize3{}, new(file(4097)), true, plan.Created},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			if c.removed {
				s.remove3("root", "f", nfs3.NFS3_OK)
			}
			r := &nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: post3("F")}}
			if c.a != nil {
				r.Resok.ObjAttributes = nfs3.PostOpAttr{AttributesFollow: true, Attributes: *c.a}
			}
			s.call(3, 8, &nfs3.CREATE3args{Where: in3("root", "f"), How: nfs3.Createhow3{Mode: c.mode, ObjAttributes: nfs3.Sattr3{Size: c.set}}}, r)
			l := s.plan()
			var o *plan.Object
			for i := range l.Objects {
				if l.Objects[i].Name == "f" && (o == nil || l.Objects[i].Origin == plan.Created) {
					o = &l.Objects[i]
				}
			}
			if o == nil {
				t.Fatal("no object")
			}
			l.want(t, "origin", o.Origin, c.want)
			if c.want == plan.Before && c.a.Size > 0 && !c.set.SetIt {
				l.want(t, "size", o.Size, c.a.Size)
			}
			l.defined(t)
		})
	}
}

// How many names a file had at the start counts if not all of them are known, and as the first reply shows it before
// a call has changed it.
func TestOtherNames(t *testing.T) {
	look := func(s *scene, name, handle string, nlink uint32) {
		r := &nfs3.LOOKUP3res{}
		r.Resok.Object = fh3(handle)
		if nlink > 0 {
			r.Resok.ObjAttributes = nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Type: nfs3.NF3REG, Nlink: nlink}}
		}
		s.call(3, 3, &nfs3.LOOKUP3args{What: in3("root", name)}, r)
	}
	link := func(s *scene, handle, name string) {
		s.call(3, 15, &nfs3.LINK3args{File: fh3(handle), Link: in3("root", name)}, &nfs3.LINK3res{})
	}
	for _, c := range []struct {
		name string
		does func(s *scene)
		want uint32
	}{
		{"one name", func(s *scene) { look(s, "f", "F", 1) }, 0},
		{"three names, one shown", func(s *scene) { look(s, "f", "F", 3) }, 3},
		{"three names, two shown", func(s *scene) { look(s, "f", "F", 3); look(s, "g", "F", 3) }, 3},
		{"two names, both shown", func(s *scene) { look(s, "f", "F", 2); look(s, "g", "F", 2) }, 0},
		{"linked before it is shown", func(s *scene) { look(s, "f", "F", 0); link(s, "F", "g"); look(s, "f", "F", 3) }, 0},
		{"linked after it was shown", func(s *scene) { look(s, "f", "F", 2); link(s, "F", "g"); look(s, "f", "F", 3) }, 2},
		{"removed before it is shown", func(s *scene) {
			look(s, "f", "F", 0)
			look(s, "g", "F", 0)
			s.remove3("root", "g", nfs3.NFS3_OK)
			look(s, "f", "F", 3)
		}, 0},
	} {
		s := newScene(t)
		c.does(s)
		if got := s.plan().object(t, "f").Nlink; got != c.want {
			t.Errorf("%s: %d names, want %d", c.name, got, c.want)
		}
	}
}

// A handle that the server always refused is not prepared.
func TestStale(t *testing.T) {
	s := newScene(t)
	s.read3("gone", 0, "", nfs3.NFS3ERR_STALE)
	s.read3("here", 0, "x", 0)
	s.read3("here", 0, "", nfs3.NFS3ERR_STALE)
	l := s.plan()
	l.want(t, "gone", l.Objects[0].Origin, plan.Stale)
	l.want(t, "here", l.Objects[1].Origin, plan.Before)
	l.defined(t)
}

// An invalid name has no place in a plan: the object that it supposedly made has no name.
func TestNameThatIsNone(t *testing.T) {
	for _, name := range []string{"a/b", "..", ".", "", "a\x00b"} {
		s := newScene(t)
		s.lookup3("root", "f", "F")
		s.create3("root", name, "H")
		s.read3("H", 0, "x", 0)
		l := s.plan()
		for i := range l.Objects {
			if o := &l.Objects[i]; o.Name == name && name != "" {
				t.Errorf("%q: %+v", name, o)
			}
		}
	}
}

// A file that was written before it was described: what was read of it afterwards, and nobody had written, was there before.
func TestReadAfterWrite(t *testing.T) {
	s := newScene(t)
	s.write3("F", 8, "new")
	s.read3("F", 0, "old data", 0)
	s.read3("F", 8, "new", 0)
	l := s.plan()
	for i := range l.Objects {
		if o := &l.Objects[i]; string(unhex(t, o.Handle)) == "F" && (o.Size != 8 || o.SizeClass != plan.Inferred || len(o.Content) != 1 || o.Content[0].Length != 8) {
			t.Errorf("%+v", o)
		}
	}
}

// A file that the workload did not make cannot be prepared in a directory that the workload has
// made.
func TestFoundInNewDirectory(t *testing.T) {
	s := newScene(t)
	s.lookup3("root", "x", "X")
	s.call(3, 9, &nfs3.MKDIR3args{Where: in3("root", "d")}, &nfs3.MKDIR3res{Resok: nfs3.MKDIR3resok{Obj: post3("D")}})
	s.lookup3("D", "f", "F")
	s.read3("F", 0, "x", 0)
	l := s.plan()
	l.defined(t)
	for i := range l.Objects {
		if o := &l.Objects[i]; string(unhex(t, o.Handle)) == "F" && (o.Origin != plan.Before || !l.Objects[o.Parent-1].Base || len(o.Notes) == 0 || o.NameClass != plan.Synthesised) {
			t.Errorf("%+v", o)
		}
	}
}

// TestExtended: SETATTR of the size moves the end of a file, so that a READ of what lies before the new end waits for it.
func TestExtended(t *testing.T) {
	s := newScene(t)
	s.create3("root", "f", "f")
	s.write3("f", 0, "0123456789")
	s.call(3, 2, &nfs3.SETATTR3args{Object: fh3("f"), NewAttributes: nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: 100}}}, &nfs3.SETATTR3res{})
	s.call(3, 6, &nfs3.READ3args{File: fh3("f"), Offset: 50, Count: 5},
		&nfs3.READ3res{Resok: nfs3.READ3resok{Count: 5, Data: xdr.Data{Length: 5, Inline: make([]byte, 5)}}})
	l := s.plan()
	read := l.ops[len(l.ops)-1]
	if !slices.ContainsFunc(read.Deps, func(d plan.Dep) bool { return d.Op == read.ID-1 && !d.Kind.Optional() }) {
		t.Errorf("%s depends on %v", read.What, read.Deps)
	}
}
