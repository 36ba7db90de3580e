package guard_test

import (
	"context"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// changeable reports whether the guard lets an object change.
func (f *fixture) changeable(h []byte) bool {
	return f.reason(f.v3(nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: nfs3.NfsFh3{Data: h}})) == 0
}

// TestLearning: handles become known by replies about the base and what is below
// it, and by no others.
func TestLearning(t *testing.T) {
	all := nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.FATTR4_FILEHANDLE)}
	readdir := func() nfs4.Op {
		return op(nfs4.OP_READDIR, &nfs4.READDIR4args{Dircount: 4096, Maxcount: 8192, AttrRequest: all})
	}
	plus := func(h []byte) *nfs3.READDIRPLUS3args {
		return &nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: h}, Dircount: 4096, Maxcount: 8192}
	}
	for _, c := range []struct {
		name string
		call func(f *fixture) *client.Call
		file bool // becomes known
	}{
		{"nothing", func(f *fixture) *client.Call { return f.v4(0) }, false},
		{"LOOKUP", func(f *fixture) *client.Call {
			return f.v3(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: in(f.base, "file")})
		}, true},
		{"LOOKUP above", func(f *fixture) *client.Call {
			return f.v3(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: in(f.root, "canary")})
		}, false},
		{"LOOKUP of ..", func(f *fixture) *client.Call {
			return f.v3(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: in(f.base, "..")})
		}, false},
		{"READDIRPLUS", func(f *fixture) *client.Call { return f.v3(nfs3.NFSPROC3_READDIRPLUS, plus(f.base)) }, true},
		{"READDIRPLUS above", func(f *fixture) *client.Call { return f.v3(nfs3.NFSPROC3_READDIRPLUS, plus(f.root)) }, false},
		{"GETFH", func(f *fixture) *client.Call { return f.v4(0, put(f.base), lookup("file"), op(nfs4.OP_GETFH)) }, true},
		{"GETFH from the root", func(f *fixture) *client.Call {
			return f.v4(0, op(nfs4.OP_PUTROOTFH), lookup("base"), lookup("file"), op(nfs4.OP_GETFH))
		}, false},
		{"GETFH above", func(f *fixture) *client.Call {
			return f.v4(0, op(nfs4.OP_PUTROOTFH), lookup("canary"), op(nfs4.OP_GETFH))
		}, false},
		{"GETFH by LOOKUPP", func(f *fixture) *client.Call { return f.v4(0, put(f.base), op(nfs4.OP_LOOKUPP), op(nfs4.OP_GETFH)) }, false},
		{"READDIR", func(f *fixture) *client.Call { return f.v4(0, put(f.base), readdir()) }, true},
		{"READDIR above", func(f *fixture) *client.Call { return f.v4(0, put(f.root), readdir()) }, false},
	} {
		for _, async := range []bool{false, true} {
			f := newFixture(t, true)
			call := c.call(f)
			if async {
				done := 0
				call.Done = func(*transport.Call) { done++ }
				if f.sent.Start(&call.Call); done != 1 || call.Err != nil {
					t.Fatalf("%s: done %d times, %v", c.name, done, call.Err)
				}
				if call.Done(&call.Call); done != 2 {
					t.Errorf("%s: the caller's Done is gone", c.name)
				}
			} else if err := f.sent.Do(context.Background(), &call.Call); err != nil {
				t.Fatal(c.name, err)
			}
			if got := f.changeable(f.file); got != c.file {
				t.Errorf("%s: file may change: %v", c.name, got)
			}
			for _, h := range [][]byte{f.root, f.canary, f.beside, f.canary2, nil} {
				if f.changeable(h) {
					t.Errorf("%s: %x may change", c.name, h)
				}
			}
			f.close()
		}
	}
}

// TestLies: a directory above stays above, even if the server returns its handle
// for something inside; and so does what a reply that makes no sense says.
func TestLies(t *testing.T) {
	f := newFixture(t, true)
	defer f.close()
	lie := []byte(nil)
	sent := f.guard.Requester(lying{f.wire, &lie})
	call := f.v3(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: in(f.base, "file")})
	ask := func() {
		if err := sent.Do(context.Background(), &call.Call); err != nil {
			t.Fatal(err)
		}
	}
	res := nfs3.LOOKUP3res{}
	res.Resok.Object.Data = f.root
	lie = res.Append(nil)
	if ask(); f.changeable(f.root) {
		t.Error("the root may change")
	}
	res.Resok.Object.Data = f.canary
	for _, b := range [][]byte{res.Append(nil)[:12], {0}, append([]byte{0, 0, 0, 5}, res.Append(nil)[4:]...), nil} {
		lie = b
		if ask(); f.changeable(f.canary) {
			t.Errorf("a reply of % x was believed", b)
		}
	}
	lie = res.Append(nil)
	if ask(); !f.changeable(f.canary) {
		t.Error("this is what a server that lies can do, and the documents say so")
	}
}

// lying answers with other results.
type lying struct {
	transport.Requester
	results *[]byte
}

func (l lying) Do(ctx context.Context, c *transport.Call) error {
	err := l.Requester.Do(ctx, c)
	if len(c.Reply.Stream) >= 24 {
		c.Reply.Stream = append(c.Reply.Stream[:24:24], *l.results...)
	}
	return err
}

// TestMakeBase: the base itself may be made, and nothing else beside it.
func TestMakeBase(t *testing.T) {
	f := newFixture(t, true)
	defer f.close()
	mkdir := func(dir []byte, name string) *client.Call {
		return f.v3(nfs3.NFSPROC3_MKDIR, &nfs3.MKDIR3args{Where: in(dir, name)})
	}
	create := func(t nfs4.NfsFtype4, name string) *client.Call {
		return f.v4(1, put(f.root), op(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: t}, Objname: []byte(name)}), op(nfs4.OP_GETFH))
	}
	if f.reason(mkdir(f.root, "new")) != guard.Outside {
		t.Error("made without being asked")
	}
	f.guard.MakeBase(f.root, "new")
	for name, c := range map[string]struct {
		call *client.Call
		want guard.Reason
	}{
		"MKDIR":                  {mkdir(f.root, "new"), 0},
		"CREATE":                 {create(nfs4.NF4DIR, "new"), 0},
		"of another name":        {mkdir(f.root, "other"), guard.Outside},
		"CREATE of another name": {create(nfs4.NF4DIR, "other"), guard.Outside},
		"in another directory":   {mkdir(f.beside, "new"), guard.Outside},
		"a FIFO":                 {create(nfs4.NF4FIFO, "new"), guard.Outside},
		"REMOVE":                 {f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.root, "new")}), guard.Outside},
		"RMDIR":                  {f.v3(nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: in(f.root, "new")}), guard.Outside},
		"and then more in it":    {f.v4(1, put(f.root), op(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4DIR}, Objname: []byte("new")}), remove("x")), guard.Outside},
	} {
		if got := f.reason(c.call); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
	f.guard.Base([]byte("the new one"))
	if f.reason(mkdir(f.root, "new")) != guard.Outside {
		t.Error("made again")
	}
	readonly := guard.New(guard.Options{})
	readonly.MakeBase(f.root, "new")
	if readonly.Check(&mkdir(f.root, "new").Message) == nil {
		t.Error("made without leave to write")
	}
}

// TestOwn: a run's clients, sessions and state ids are those that replies gave it.
func TestOwn(t *testing.T) {
	f := newFixture(t, true)
	defer f.close()
	id, session := f.session("a")
	if f.reason(f.v4(1, op(nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: id}))) != 0 ||
		f.reason(f.v4(1, op(nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: session}))) != 0 {
		t.Error("our own session cannot be ended")
	}
	old := f.client40("b")
	o := opens("file", false)
	o.Owner.Clientid = old
	open := f.v4(0, put(f.base), op(nfs4.OP_OPEN, o), op(nfs4.OP_GETFH))
	var res nfs4.CompoundRes
	f.must(open, &res)
	stateid := res.Ops[1].Body.(*nfs4.OPEN4res).Resok4.Stateid
	if f.reason(f.v4(0, put(f.file), op(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: stateid}))) != 0 {
		t.Error("our own file cannot be closed")
	}
	if !f.changeable(f.file) {
		t.Error("the handle of what was opened is not known")
	}
	o.Owner.Clientid++
	if f.reason(f.v4(0, put(f.base), op(nfs4.OP_OPEN, o))) != guard.Foreign {
		t.Error("opened as somebody else")
	}
}

// session makes a client and a session of NFSv4.1, through the guard.
func (f *fixture) session(name string) (id uint64, session [16]byte) {
	f.tb.Helper()
	var res nfs4.CompoundRes
	f.must(f.v4(1, op(nfs4.OP_EXCHANGE_ID, &nfs4.EXCHANGE_ID4args{EiaClientowner: nfs4.ClientOwner4{CoOwnerid: []byte(owner + name)}})), &res)
	r := res.Ops[0].Body.(*nfs4.EXCHANGE_ID4res).EirResok4
	channel := nfs4.ChannelAttrs4{CaMaxrequestsize: 1 << 16, CaMaxresponsesize: 1 << 16, CaMaxoperations: 64, CaMaxrequests: 4}
	f.must(f.v4(1, op(nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{CsaClientid: r.EirClientid, CsaSequence: r.EirSequenceid,
		CsaForeChanAttrs: channel, CsaBackChanAttrs: channel, CsaCbProgram: 0x40000000})), &res)
	session = res.Ops[0].Body.(*nfs4.CREATE_SESSION4res).CsrResok4.CsrSessionid
	return r.EirClientid, session
}

// client40 makes a client of NFSv4.0.
func (f *fixture) client40(name string) uint64 {
	f.tb.Helper()
	var res nfs4.CompoundRes
	f.must(f.v4(0, op(nfs4.OP_SETCLIENTID, &nfs4.SETCLIENTID4args{Client: nfs4.NfsClientId4{Id: []byte(owner + name)},
		Callback: nfs4.CbClient4{CbLocation: nfs4.Netaddr4{NaRNetid: []byte("tcp"), NaRAddr: []byte("0.0.0.0.0.0")}}})), &res)
	r := res.Ops[0].Body.(*nfs4.SETCLIENTID4res).Resok4
	f.must(f.v4(0, op(nfs4.OP_SETCLIENTID_CONFIRM, &nfs4.SETCLIENTID_CONFIRM4args{Clientid: r.Clientid, SetclientidConfirm: r.SetclientidConfirm})), &res)
	return r.Clientid
}
