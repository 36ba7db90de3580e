package planner

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// address sends the following calls to a server's address.
func (s *scene) address(addr string) {
	s.conn = &rdma.Connection{ID: s.conn.ID + 1, Fabric: rdma.TCP, Ends: [2]rdma.End{
		{Addr: netip.MustParseAddr("192.0.2.2"), Port: 700}, {Addr: netip.MustParseAddr(addr), Port: 2049}}}
}

func (s *scene) exchange(client string, id uint64, major string) {
	a := &nfs4.EXCHANGE_ID4args{}
	a.EiaClientowner.CoOwnerid = []byte(client)
	r := &nfs4.EXCHANGE_ID4res{}
	r.EirResok4.EirClientid, r.EirResok4.EirServerOwner.SoMajorId, r.EirResok4.EirServerScope = id, []byte(major), []byte(major)
	s.compound(1, step{nfs4.OP_EXCHANGE_ID, a, r})
}

func (s *scene) finds3(dir, name, found string, fileid uint64) {
	r := &nfs3.LOOKUP3res{}
	r.Resok.Object.Data = []byte(found)
	r.Resok.ObjAttributes.AttributesFollow = true
	r.Resok.ObjAttributes.Attributes = nfs3.Fattr3{Type: nfs3.NF3REG, Fsid: 9, Fileid: fileid}
	s.call(3, nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: diropargs(dir, name)}, r)
}

func (s *scene) makes3(dir, name, made string, fileid uint64) {
	r := &nfs3.CREATE3res{}
	r.Resok.Obj.HandleFollows, r.Resok.Obj.Handle.Data = true, []byte(made)
	r.Resok.ObjAttributes.AttributesFollow = true
	r.Resok.ObjAttributes.Attributes = nfs3.Fattr3{Type: nfs3.NF3REG, Fsid: 9, Fileid: fileid}
	s.call(3, nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: diropargs(dir, name)}, r)
}

func diropargs(dir, name string) (a nfs3.Diropargs3) {
	a.Dir.Data, a.Name = []byte(dir), []byte(name)
	return a
}

// TestOneServer: what shows that two addresses are of one server, and what does not.
func TestOneServer(t *testing.T) {
	t.Run("one address", func(t *testing.T) {
		s := newScene(t)
		s.exchange("a", 1, "nfs.example")
		s.exchange("a", 1, "nfs.example")
		s.compound(1, sequence("session", 0, 1))
		s.exchange("b", 2, "nfs.example")
		if len(s.b.ids.late) > 0 {
			t.Errorf("%+v", s.b.ids.late)
		}
		if l := s.plan(); len(l.Servers) != 1 || len(l.Servers[0].Same) > 0 {
			t.Errorf("%+v", l.Servers)
		}
	})
	const one, two = "192.0.2.1", "2001:db8::1"
	const root = "\x01\x00\x06\x00an-id-of-16-bytes!"
	for _, c := range []struct {
		name  string
		calls func(s *scene)
		want  plan.SameWhy // "" if they are two
		late  bool
		opt   Options
	}{
		{name: "owner", want: plan.SameOwner, calls: func(s *scene) {
			s.exchange("a", 1, "nfs.example")
			s.address(two)
			s.exchange("b", 2, "nfs.example")
		}},
		{name: "another owner", calls: func(s *scene) {
			s.exchange("a", 1, "one.example")
			s.compound(1, putfh(root), getfh(root))
			s.address(two)
			s.exchange("b", 2, "two.example")
			s.compound(1, putfh(root), getfh(root))
		}},
		{name: "an owner that nobody has named", calls: func(s *scene) {
			s.exchange("a", 1, "localhost.localdomain")
			s.address(two)
			s.exchange("b", 2, "localhost.localdomain")
		}},
		{name: "session", want: plan.SameSession, calls: func(s *scene) {
			s.compound(1, sequence("session", 0, 1))
			s.address(two)
			s.compound(1, sequence("session", 1, 1))
		}},
		{name: "handle", want: plan.SameHandle, calls: func(s *scene) {
			s.finds3(root, "a", root+" a", 5)
			s.address(two)
			s.finds3(root, "a", root+" a", 5)
		}},
		{name: "a small handle", calls: func(s *scene) {
			s.finds3("root", "a", "a", 5)
			s.address(two)
			s.finds3("root", "a", "a", 5)
		}},
		{name: "a trivial handle", calls: func(s *scene) {
			const zeros = "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"
			s.finds3(zeros, "a", "a", 5)
			s.address(two)
			s.finds3(zeros, "a", "a", 5)
		}},
		{name: "a small handle of what was made", want: plan.SameMade, late: true, calls: func(s *scene) {
			s.makes3("root", "a", "a", 5)
			s.address(two)
			s.finds3("root", "b", "b", 6)
			s.call(3, nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: diropargs("a", "x")}, &nfs3.LOOKUP3res{})
		}},
		{name: "names", want: plan.SameMade, late: true, calls: func(s *scene) {
			s.makes3("root", "a", "a", 5)
			s.makes3("root", "b", "b", 6)
			s.address(two)
			s.finds3("ROOT", "a", "A", 5)
			s.finds3("ROOT", "b", "B", 6)
		}},
		{name: "names of both", calls: func(s *scene) {
			s.makes3("root", "a", "a", 5)
			s.makes3("root", "b", "b", 6)
			s.address(two)
			s.makes3("ROOT", "a", "A", 5)
			s.makes3("ROOT", "b", "B", 6)
			s.finds3("ROOT", "a", "A", 5)
			s.finds3("ROOT", "b", "B", 6)
		}},
		{name: "told", want: plan.SameByUser, opt: Options{Same: []plan.SameServer{{Addr: two, As: one, Why: plan.SameByUser}}}, calls: func(s *scene) {
			s.finds3("root", "a", "a", 5)
			s.address(two)
			s.finds3("root", "a", "a", 5)
		}},
		{name: "told otherwise", opt: Options{Separate: true}, calls: func(s *scene) {
			s.exchange("a", 1, "nfs.example")
			s.address(two)
			s.exchange("b", 2, "nfs.example")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := c.opt
			for range 2 {
				s := newScene(t)
				s.b.opt.Same, s.b.opt.Separate = opt.Same, opt.Separate
				c.calls(s)
				late := s.b.ids.late
				if c.late && opt.Same == nil {
					if len(late) != 1 || late[0].Why != c.want {
						t.Fatalf("%+v", late)
					}
					_ = s.b.Abort()
					opt.Same = late
					continue
				}
				l := s.plan()
				var why plan.SameWhy
				if len(l.Servers[0].Same) > 0 {
					why = l.Servers[0].Same[0].Why
				}
				if why != c.want || (why == "") != (len(l.Servers) == 2) || len(late) > 0 {
					t.Errorf("%+v, late %+v", l.Servers, late)
				}
				return
			}
		})
	}
}

// TestTwoAddresses: a Linux client has mounted a Linux server by IPv4 with version 3, by IPv6
// with version 3, and by IPv6 with version 4.1. The others used what one mount had created.
func TestTwoAddresses(t *testing.T) {
	build := func(opt Options) (*plan.Summary, string, error) {
		r, err := capture.Open([]string{"testdata/two-addresses.pcap.zst"}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		out := t.TempDir() + "/plan"
		s, err := Build(context.Background(), r, out, decode.Options{}, opt)
		return s, out, err
	}
	s, _, err := build(Options{Retry: true})
	var late *LateError
	if s != nil || !errors.As(err, &late) {
		t.Fatalf("%v, %+v", err, s)
	}
	if s, _, err = build(Options{}); s == nil || !errors.As(err, &late) || len(s.Servers) != 2 {
		t.Fatalf("%v, %+v", err, s)
	}
	s, out, err := build(Options{Same: late.Same})
	if err != nil || len(s.Servers) != 1 || len(s.Same) != 1 || s.Created != 8 {
		t.Fatalf("%v, %+v", err, s)
	}
	l := load(t, out)
	bases := 0
	for i := range l.Objects {
		if l.Objects[i].Base {
			bases++
		}
	}
	if bases != 1 || l.object(t, "by-v41").CreatedBy == 0 {
		t.Errorf("%d bases, %+v", bases, l.object(t, "by-v41"))
	}
}
