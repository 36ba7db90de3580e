package nfs4

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
)

// FuzzCompound sends arbitrary arguments, in a session and without: the server
// does not panic, and every reply is an RPC error or a COMPOUND that can be
// decoded, with no more results than operations.
func FuzzCompound(f *testing.F) {
	add := func(minor uint32, ops ...nfs4.Op) {
		a := nfs4.CompoundArgs{Minorversion: minor}
		a.Ops = ops
		f.Add(a.Append(nil), minor != 0, uint32(100))
	}
	add(0, setclientid("x", 1))
	add(0, putroot, getfh, getattr(1, 2, 3), lookup("f"), o(nfs4.OP_READDIR, &nfs4.READDIR4args{Maxcount: 1000}))
	add(1, exchangeID("x", 1, 0))
	add(1, putroot, open("f", 3, createHow(nfs4.UNCHECKED4)), write(nfs4.Stateid4{Seqid: 1}, 0, "abc"), read(nfs4.Stateid4{Seqid: 1}, 0, 3), closeOp(nfs4.Stateid4{Seqid: 1}))
	add(2, putroot, mkdir("d"), savefh, rename("f", "g"), link("h"), remove("g"), setattr(mode(0o600)))
	add(2, putroot, lookup("f"), o(nfs4.OP_READ_PLUS, &nfs4.READ_PLUS4args{RpaCount: 100}), o(nfs4.OP_SEEK, &nfs4.SEEK4args{SaWhat: 1}), o(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaKey: []byte("a")}))
	add(2, putroot, lookup("f"), savefh, o(nfs4.OP_COPY, &nfs4.COPY4args{}), o(nfs4.OP_CLONE, &nfs4.CLONE4args{}), o(nfs4.OP_LISTXATTRS, &nfs4.LISTXATTRS4args{LxaMaxcount: 100}))
	l := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Length: 8}
	l.Locker.NewLockOwner = true
	l.Locker.OpenOwner.OpenStateid.Seqid = 1
	add(1, putroot, open("f", 3, createHow(nfs4.UNCHECKED4)), o(nfs4.OP_LOCK, l), o(nfs4.OP_LOCKU, &nfs4.LOCKU4args{Locktype: 1, LockStateid: nfs4.Stateid4{Seqid: 1}, Length: 3}))

	f.Fuzz(func(t *testing.T, args []byte, inSession bool, chunk uint32) {
		r := &rig{TB: t, clock: &clock{}}
		st := memory.New(memory.Options{Size: 64 << 20})
		r.store = st
		r.boot(Options{MaxCopy: 1 << 20})
		defer func() {
			r.shut()
			_ = st.Close()
		}()
		var x *exchange
		if inSession {
			s := r.mount("fuzz", 2, 0)
			s.create("o", "f", 3, 0)
			x = &exchange{max: []uint32{chunk % 5000}}
			x.call.Stream = header(1, 0)
			x.call.Stream = append(x.call.Stream, prefixed(s, args)...)
			r.rpc.ServeRPC(x)
		} else {
			x = r.raw(0, args, chunk%5000)
		}
		if !x.done {
			t.Fatal("no reply")
		}
		res := new(nfs4.CompoundRes)
		if err := decodeReply(x.reply, res); err != nil {
			if _, rpc := err.(replyError); !rpc || err.Error() == "bytes after the result" {
				t.Fatalf("% x: %v", x.reply, err)
			}
			return
		}
		if n := len(res.Ops); n > 0 {
			for i := range n - 1 {
				if st, _, _ := res.Ops[i].Status(); st != 0 {
					t.Fatalf("goes on after %s", res.Ops[i].Body)
				}
			}
			if st, _, _ := res.Ops[n-1].Status(); st != uint32(res.Status) {
				t.Fatalf("%d, the whole %d", st, res.Status)
			}
		}
	})
}

// prefixed puts a SEQUENCE of the session before the operations of a COMPOUND.
func prefixed(s *session, args []byte) []byte {
	var a nfs4.CompoundArgs
	if len(args) < 12 {
		return args
	}
	a.Minorversion = 1 + uint32(args[7]&1)
	a.Ops = []nfs4.Op{s.sequence()}
	b := a.Append(nil)
	// The count of operations, and everything after it.
	n := uint32(args[8])<<24 | uint32(args[9])<<16 | uint32(args[10])<<8 | uint32(args[11])
	n++
	b[8], b[9], b[10], b[11] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return append(b, args[12:]...)
}
