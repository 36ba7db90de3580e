package planner

import (
	"math"
	"math/bits"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestTouches: what a cut call may have changed is as narrow as the rest of the call allows.
// Objects 1 and 2 are a directory and a file in it.
func TestTouches(t *testing.T) {
	data := func(n int) xdr.Data { return xdr.Data{Length: uint32(n), Inline: make([]byte, n)} }
	compound := func(list ...nfs4.Op) *nfs4.CompoundArgs {
		return &nfs4.CompoundArgs{Minorversion: 2, Operations: nfs4.Operations{Ops: list}}
	}
	put := nfs4.Op{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.PUTFH4args{Object: []byte("file")}}
	write := nfs4.Op{Number: uint32(nfs4.OP_WRITE), Body: &nfs4.WRITE4args{Offset: 50, Data: data(100)}}
	getattr := nfs4.Op{Number: uint32(nfs4.OP_GETATTR), Body: &nfs4.GETATTR4args{}}
	done := &nfs4.CompoundRes{Operations: nfs4.Operations{Ops: []nfs4.Op{
		{Number: put.Number, Body: &nfs4.Status4res{}}, {Number: write.Number, Body: &nfs4.WRITE4res{}}, {Number: getattr.Number, Body: &nfs4.GETATTR4res{}}}}}
	removed := &nfs4.CompoundRes{Operations: nfs4.Operations{Ops: []nfs4.Op{
		{Number: put.Number, Body: &nfs4.Status4res{}}, {Number: write.Number, Body: &nfs4.WRITE4res{}}, {Number: uint32(nfs4.OP_REMOVE), Body: &nfs4.REMOVE4res{}}}}}
	for name, c := range map[string]struct {
		version, procedure uint32
		args, result       xdr.Message
		cut                int
		want               []plan.Touch
		reads              bool
	}{
		"GETATTR":                   {3, 1, &nfs3.GETATTR3args{Object: fh3("file")}, nil, 4, nil, true},
		"WRITE without its data":    {3, 7, &nfs3.WRITE3args{File: fh3("file"), Offset: 5, Count: 8, Data: data(8)}, nil, 12, []plan.Touch{{Object: 2}}, false},
		"WRITE without its file":    {3, 7, &nfs3.WRITE3args{File: fh3("file"), Offset: 5, Count: 8, Data: data(8)}, nil, 34, nil, false},
		"SETATTR":                   {3, 2, &nfs3.SETATTR3args{Object: fh3("file")}, nil, 8, []plan.Touch{{Object: 2}}, false},
		"SETATTR of something else": {3, 2, &nfs3.SETATTR3args{Object: fh3("else")}, nil, 8, nil, false},
		"CREATE":                    {3, 8, &nfs3.CREATE3args{Where: in3("dir", "new"), How: nfs3.Createhow3{Mode: nfs3.GUARDED}}, nil, 8, []plan.Touch{{Object: 1, Named: true, Name: "new"}}, false},
		"COMPOUND":                  {4, 1, compound(put, write, getattr), done, 40, []plan.Touch{{Object: 2, Ranged: true, Offset: 50, Length: 100}}, false},
		"COMPOUND without reply":    {4, 1, compound(put, write, getattr), nil, 40, nil, false},
		"COMPOUND with a REMOVE":    {4, 1, compound(put, write, getattr), removed, 40, nil, false},
	} {
		s := newScene(t)
		s.lookup3("dir", "f", "file")
		s.read3("file", 0, "x", nfs3.NFS3_OK)
		s.cut = c.cut
		s.call(c.version, c.procedure, c.args, c.result)
		l := s.plan()
		if len(l.skips) != 1 || !l.skips[0].Cut() {
			t.Errorf("%s: %+v", name, l.skips)
			continue
		}
		if got := l.skips[0]; got.Reads != c.reads || !reflect.DeepEqual(got.Touches, c.want) {
			t.Errorf("%s: %+v, reads %v", name, got.Touches, got.Reads)
		}
		if len(l.Objects) != 2 {
			t.Errorf("%s: %d objects", name, len(l.Objects))
		}
	}
}

// TestLostCalls: a call of which only the reply was captured may have changed anything, unless it is from before the
// capture: what that changed is prepared.
func TestLostCalls(t *testing.T) {
	swapped := func(n uint32) uint32 { return bits.ReverseBytes32(n) }
	for _, c := range []struct {
		began      bool
		first, xid uint32 // of the first call, and of a reply after it whose call is lost
		cut        bool
	}{
		{true, 1000, 900, true},
		{false, 1000, 900, false},
		{false, 1000, 1001, true},
		{false, 1000, 0x345678, false},
		{false, swapped(1000), swapped(1003), true},
		{false, swapped(1000), swapped(997), false},
		{false, math.MaxUint32, 3, true},
	} {
		lostCalls(t, c.began, c.first, c.xid, c.cut)
	}
}

// lostCalls loses calls of a connection of which the capture has the setup, or not.
func lostCalls(t *testing.T, began bool, first, xid uint32, cut bool) {
	s := newScene(t)
	if began {
		s.conn.Fabric, s.conn.Setup[0].Message = rdma.RoCEv2, rdma.SetupREQ
	}
	lose := func() {
		s.lost = true
		s.call(3, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in3("dir", "f")}, &nfs3.REMOVE3res{})
		s.lost = false
	}
	lose()
	s.xid = first - 1
	s.lookup3("dir", "f", "file")
	s.xid = xid - 1
	lose()
	s.xid += 100
	s.cut = 30 // within the header
	s.call(3, nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh3("file")}, nil)
	s.cut = 0
	s.read3("file", 0, "x", nfs3.NFS3_OK)
	l := s.plan()
	if len(l.skips) != 3 {
		t.Fatalf("%+v", l.skips)
	}
	for i, want := range []struct {
		cut    bool
		reason string
	}{{false, notCaptured}, {cut, notCaptured}, {true, noHeader}} {
		got := l.skips[i]
		if got.Cut() != want.cut || got.Reason != want.reason || got.Reads || len(got.Touches) != 0 || got.Class != plan.Impossible {
			t.Errorf("setup %t, XIDs %#x and %#x, %d: %+v", began, first, xid, i, got)
		}
	}
}
