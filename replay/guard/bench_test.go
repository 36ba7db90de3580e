package guard_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// usual are calls of ordinary workloads.
func usual(f *fixture) map[string]*client.Call {
	_, session := f.session("bench")
	seq := op(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: session, SaSequenceid: 1})
	attrs := op(nfs4.OP_GETATTR, &nfs4.GETATTR4args{AttrRequest: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(1, 3, 4, 20, 33)}})
	f.must(f.v3(nfs3.NFSPROC3_READDIRPLUS, &nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: f.base}, Dircount: 4096, Maxcount: 8192}), &nfs3.READDIRPLUS3res{})
	data := make([]byte, 1<<20)
	write3 := &client.Call{}
	write3.Build(client.Procedure{Program: 100003, Version: 3, Number: nfs3.NFSPROC3_WRITE}, f.cred,
		&nfs3.WRITE3args{File: nfs3.NfsFh3{Data: f.file}, Count: 1 << 20, Data: xdr.Data{Length: 1 << 20, Chunk: 1}}, data)
	write4 := &client.Call{}
	write4.Build(client.Procedure{Program: 100003, Version: 4, Number: 1}, f.cred,
		compound(1, seq, put(f.file), op(nfs4.OP_WRITE, &nfs4.WRITE4args{Data: xdr.Data{Length: 1 << 20, Chunk: 1}}), attrs), data)
	return map[string]*client.Call{
		"GETATTR 3":      f.v3(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: f.file}}),
		"CREATE 3":       f.v3(nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: in(f.base, "some-name")}),
		"WRITE 3 of 1M":  write3,
		"READ 4.1":       f.v4(1, seq, put(f.file), op(nfs4.OP_READ, &nfs4.READ4args{Count: 1 << 20})),
		"WRITE 4.1 1M":   write4,
		"OPEN 4.1":       f.v4(1, seq, put(f.base), op(nfs4.OP_OPEN, opens("file", true)), op(nfs4.OP_GETFH), attrs),
		"LOOKUP 4.1":     f.v4(1, seq, put(f.base), lookup("file"), op(nfs4.OP_GETFH), attrs),
		"RENAME 4.1":     f.v4(1, seq, put(f.base), op(nfs4.OP_SAVEFH), put(f.dir), op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("a"), Newname: []byte("b")})),
		"8 LOOKUPs 4.1":  f.v4(1, seq, put(f.base), lookup("a"), lookup("a"), lookup("a"), lookup("a"), lookup("a"), lookup("a"), lookup("a"), lookup("a")),
		"COMPOUND 4.1 0": f.v4(1),
	}
}

// TestNoAllocations: a call that may be sent costs no memory, nor does what its
// reply teaches again.
func TestNoAllocations(t *testing.T) {
	f := newFixture(t, true)
	defer f.close()
	for name, c := range usual(f) {
		if err := f.guard.Check(&c.Message); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = f.guard.Check(&c.Message) }); n >= 1 && !raceDetector {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
	for name, c := range map[string]*client.Call{
		"LOOKUP 3": f.v3(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: in(f.base, "file")}),
		"GETFH":    f.v4(0, put(f.base), lookup("file"), op(nfs4.OP_GETFH)),
	} {
		f.must(c, xdr.Void{})
		still := f.guard.Requester(again{reply: c.Reply})
		c.Done = func(*transport.Call) {}
		if n := testing.AllocsPerRun(100, func() { still.Start(&c.Call) }); n >= 1 && !raceDetector {
			t.Errorf("%s and its reply: %g allocations", name, n)
		}
	}
}

// again always has the same reply.
type again struct {
	transport.Requester
	reply transport.Message
}

func (r again) Start(c *transport.Call) {
	c.Err, c.Reply = nil, r.reply
	c.Done(c)
}

// BenchmarkCheck is what the guard costs for each call.
func BenchmarkCheck(b *testing.B) {
	f := newFixture(b, true)
	defer f.close()
	for name, c := range usual(f) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f.guard.Check(&c.Message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
