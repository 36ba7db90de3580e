package guard_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// captured are the arguments of a call of a real capture.
type captured struct {
	program, version, procedure uint32
	args                        []byte
}

func readCaptured(tb testing.TB) (list []captured) {
	tb.Helper()
	text, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c captured
		var args string
		if n, _ := fmt.Sscan(line, &c.program, &c.version, &c.procedure, &args); n < 3 || line[0] == '#' {
			continue
		}
		if c.args, err = hex.DecodeString(args); err != nil {
			tb.Fatal(err)
		}
		list = append(list, c)
	}
	if len(list) < 100 {
		tb.Fatalf("only %d calls", len(list))
	}
	return list
}

func (c *captured) decode() xdr.Message {
	p := nfs.Lookup(c.program, c.version).Procedure(c.procedure)
	if p == nil {
		return nil
	}
	m := p.NewArgs()
	var r xdr.Reader
	r.Reset(c.args, len(c.args))
	if m.Decode(&r); r.Failed() {
		return nil
	}
	return m
}

// script reads the choices of an input. At its end all are 0.
type script struct{ b []byte }

func (s *script) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	v := s.b[0]
	s.b = s.b[1:]
	return v
}

// of chooses one of n.
func (s *script) of(n int) int {
	if n <= 0 {
		return 0
	}
	v := int(s.byte())
	if n > 256 {
		v |= int(s.byte()) << 8
	}
	return v % n
}

// names are what a mutation may put into the place of a name.
var names = []string{"file", "dir", "deep", "new", "canary", "beside", "canary2", "base", "..", ".", "", "../canary", "a/b", "x\x00", "..\x00"}

// donors are operations that captures do not have, or that harm.
func donors(f *fixture) []nfs4.Op {
	attrs := sized(1)
	return []nfs4.Op{
		op(nfs4.OP_PUTROOTFH), op(nfs4.OP_PUTPUBFH), put(f.root), put(f.base), put(f.file), put(f.dir), put(f.canary), put(f.beside),
		op(nfs4.OP_SAVEFH), op(nfs4.OP_RESTOREFH), op(nfs4.OP_LOOKUPP), op(nfs4.OP_GETFH),
		lookup("dir"), lookup("canary"), lookup(".."), lookup("base"), lookup("beside"), lookup("file"),
		remove("canary"), remove("file"), remove("canary2"), remove("beside"), remove("base"), remove("deep"),
		op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("canary"), Newname: []byte("file")}),
		op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("file"), Newname: []byte("canary")}),
		op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("dir"), Newname: []byte("new")}),
		op(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte("new")}),
		op(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte("..")}),
		op(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4DIR}, Objname: []byte("new")}),
		op(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4LNK, Linkdata: xdr.Data{Length: 9, Inline: []byte("../canary")}}, Objname: []byte("new")}),
		op(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: attrs}),
		op(nfs4.OP_WRITE, &nfs4.WRITE4args{Data: xdr.Data{Length: 4, Inline: []byte("dead")}}),
		op(nfs4.OP_OPEN, opens("canary", true)), op(nfs4.OP_OPEN, opens("file", true)), op(nfs4.OP_OPEN, opens("new", true)), op(nfs4.OP_OPEN, opens("file", false)),
		op(nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{Createdir: true}),
		op(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaKey: []byte("k"), SxaValue: []byte("v")}),
		op(nfs4.OP_REMOVEXATTR, &nfs4.REMOVEXATTR4args{RxaName: []byte("k")}),
		op(nfs4.OP_ALLOCATE, &nfs4.ALLOCATE4args{AaLength: 100}), op(nfs4.OP_DEALLOCATE, &nfs4.DEALLOCATE4args{DaLength: 3}),
		op(nfs4.OP_COPY, &nfs4.COPY4args{CaSynchronous: true}), op(nfs4.OP_CLONE, &nfs4.CLONE4args{}),
		op(nfs4.OP_WRITE_SAME, &nfs4.WRITE_SAME4args{}),
		op(nfs4.OP_SECINFO, &nfs4.SECINFO4args{Name: []byte("file")}),
		op(nfs4.OP_READDIR, &nfs4.READDIR4args{Dircount: 4096, Maxcount: 8192, AttrRequest: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.FATTR4_FILEHANDLE)}}),
		{Number: 99}, op(nfs4.OP_ILLEGAL),
	}
}

// parts are pointers to the handles and names of arguments.
func parts(m xdr.Message) (handles, named []*[]byte) {
	h := func(p *[]byte) { handles = append(handles, p) }
	n := func(p *[]byte) { named = append(named, p) }
	where := func(w *nfs3.Diropargs3) { h(&w.Dir.Data); n(&w.Name) }
	switch m := m.(type) {
	case *nfs3.GETATTR3args:
		h(&m.Object.Data)
	case *nfs3.SETATTR3args:
		h(&m.Object.Data)
	case *nfs3.LOOKUP3args:
		where(&m.What)
	case *nfs3.ACCESS3args:
		h(&m.Object.Data)
	case *nfs3.READ3args:
		h(&m.File.Data)
	case *nfs3.WRITE3args:
		h(&m.File.Data)
	case *nfs3.CREATE3args:
		where(&m.Where)
	case *nfs3.MKDIR3args:
		where(&m.Where)
	case *nfs3.SYMLINK3args:
		where(&m.Where)
	case *nfs3.MKNOD3args:
		where(&m.Where)
	case *nfs3.REMOVE3args:
		where(&m.Object)
	case *nfs3.RMDIR3args:
		where(&m.Object)
	case *nfs3.RENAME3args:
		where(&m.From)
		where(&m.To)
	case *nfs3.LINK3args:
		h(&m.File.Data)
		where(&m.Link)
	case *nfs3.READDIR3args:
		h(&m.Dir.Data)
	case *nfs3.READDIRPLUS3args:
		h(&m.Dir.Data)
	case *nfs3.COMMIT3args:
		h(&m.File.Data)
	case *nfsacl.SETACL3args:
		h(&m.Fh.Data)
	case *nfsacl.GETACL3args:
		h(&m.Fh.Data)
	case *nfs4.CompoundArgs:
		for i := range m.Ops {
			switch a := m.Ops[i].Body.(type) {
			case *nfs4.PUTFH4args:
				h(&a.Object)
			case *nfs4.LOOKUP4args:
				n(&a.Objname)
			case *nfs4.REMOVE4args:
				n(&a.Target)
			case *nfs4.RENAME4args:
				n(&a.Oldname)
				n(&a.Newname)
			case *nfs4.LINK4args:
				n(&a.Newname)
			case *nfs4.CREATE4args:
				n(&a.Objname)
			case *nfs4.OPEN4args:
				n(&a.Claim.File)
			}
		}
	}
	return handles, named
}

// fuzzer runs one input.
type fuzzer struct {
	*fixture
	s        script
	seeds    []captured
	pool     [][]byte // handles, those of replies at the end
	session1 [16]byte
	seq      uint32
	client0  uint64
	client1  uint64
	stateid  nfs4.Stateid4
	passed   int
	refused  []error
}

// localize puts what this server knows into the place of what the captured one
// knew: handles by chance, sessions, clients and state ids of our own.
func (z *fuzzer) localize(m xdr.Message) {
	handles, _ := parts(m)
	for _, h := range handles {
		*h = z.pool[int(checksum(*h))%3] // base, file, dir
	}
	c, ok := m.(*nfs4.CompoundArgs)
	if !ok {
		return
	}
	for i := range c.Ops {
		z.own(c, &c.Ops[i])
	}
}

// own makes an operation one of our clients.
func (z *fuzzer) own(c *nfs4.CompoundArgs, o *nfs4.Op) {
	id := z.client0
	if c.Minorversion > 0 {
		id = z.client1
	}
	switch a := o.Body.(type) {
	case *nfs4.SEQUENCE4args:
		*a = nfs4.SEQUENCE4args{SaSessionid: z.session1, SaSequenceid: z.seq + 1}
	case *nfs4.OPEN4args:
		a.Owner.Clientid = id
	case *nfs4.WRITE4args:
		a.Stateid = nfs4.Stateid4{}
	case *nfs4.SETATTR4args:
		a.Stateid = nfs4.Stateid4{}
	case *nfs4.CLOSE4args:
		a.OpenStateid = z.stateid
	case *nfs4.LOCK4args:
		a.Locker.OpenOwner.OpenStateid = z.stateid
		a.Locker.OpenOwner.LockOwner.Clientid = id
	case *nfs4.EXCHANGE_ID4args:
		a.EiaClientowner.CoOwnerid = []byte(owner + "again")
	case *nfs4.SETCLIENTID4args:
		a.Client.Id = []byte(owner + "again")
		a.Callback.CbLocation.NaRAddr = []byte("0.0.0.0.0.0")
	case *nfs4.RENEW4args:
		a.Clientid = id
	}
}

func checksum(b []byte) (n uint32) {
	for _, c := range b {
		n = n*31 + uint32(c)
	}
	return n
}

// call makes the next call of the script, nil at its end.
func (z *fuzzer) call() *client.Call {
	if len(z.s.b) == 0 {
		return nil
	}
	seed := &z.seeds[z.s.of(len(z.seeds))]
	m := seed.decode()
	if m == nil {
		return &client.Call{}
	}
	z.localize(m)
	if c, ok := m.(*nfs4.CompoundArgs); ok && c.Minorversion > 0 && len(c.Ops) > 0 {
		if _, ok := c.Ops[0].Body.(*nfs4.SEQUENCE4args); ok {
			z.seq++
		}
	}
	flips := 0
	for range z.s.of(6) {
		flips += z.mutate(m)
	}
	call := z.build(seed.program, seed.version, seed.procedure, m)
	b := call.Stream
	for range flips {
		b = z.damage(b)
	}
	call.Message = transport.Message{Stream: b}
	return call
}

// mutate changes a part of arguments; it returns how often the bytes are to be
// damaged instead.
func (z *fuzzer) mutate(m xdr.Message) int {
	handles, named := parts(m)
	c, _ := m.(*nfs4.CompoundArgs)
	kind := z.s.of(12)
	switch {
	case kind == 0:
		return 1
	case kind >= 10 && c != nil:
		z.raid(c)
	case kind <= 2 && len(handles) > 0:
		*handles[z.s.of(len(handles))] = z.pool[z.s.of(len(z.pool))]
	case kind <= 4 && len(named) > 0:
		*named[z.s.of(len(named))] = []byte(names[z.s.of(len(names))])
	case c == nil:
		return 1
	case kind <= 7:
		all := donors(z.fixture)
		o := all[z.s.of(len(all))]
		z.own(c, &o)
		c.Ops = slices.Insert(slices.Clone(c.Ops), z.s.of(len(c.Ops)+1), o)
	case kind == 8 && len(c.Ops) > 0:
		i, j := z.s.of(len(c.Ops)), z.s.of(len(c.Ops))
		c.Ops = slices.Clone(c.Ops)
		c.Ops[i], c.Ops[j] = c.Ops[j], c.Ops[i]
	case len(c.Ops) > 0:
		i := z.s.of(len(c.Ops))
		c.Ops = slices.Delete(slices.Clone(c.Ops), i, i+1)
	default:
		c.Minorversion = uint32(z.s.of(4))
	}
	return 0
}

// raids are ways to somewhere, and what does harm there.
func (f *fixture) raids() (ways, harm []nfs4.Op) {
	ways = []nfs4.Op{
		put(f.base), put(f.root), put(f.file), put(f.canary), put(f.dir), op(nfs4.OP_PUTROOTFH), op(nfs4.OP_PUTPUBFH),
		op(nfs4.OP_LOOKUPP), lookup(".."), lookup("dir"), lookup("beside"), op(nfs4.OP_SAVEFH), op(nfs4.OP_SAVEFH), op(nfs4.OP_RESTOREFH), op(nfs4.OP_RESTOREFH),
		op(nfs4.OP_GETFH),
	}
	harm = []nfs4.Op{
		remove("canary"), remove("canary2"), op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("canary"), Newname: []byte("new")}),
		op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("file"), Newname: []byte("new")}), op(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte("new")}),
		op(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: sized(1)}), op(nfs4.OP_OPEN, opens("canary", true)), op(nfs4.OP_CLONE, &nfs4.CLONE4args{}),
		op(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4DIR}, Objname: []byte("new")}),
		op(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaKey: []byte("k")}),
	}
	return ways, harm
}

// raid puts a way to somewhere, and harm there, behind the operations that come
// first, or behind all.
func (z *fuzzer) raid(c *nfs4.CompoundArgs) {
	ways, harm := z.raids()
	var add []nfs4.Op
	for range 1 + z.s.of(4) {
		add = append(add, ways[z.s.of(len(ways))])
	}
	o := harm[z.s.of(len(harm))]
	z.own(c, &o)
	at := len(c.Ops)
	if z.s.byte()&1 == 1 {
		at = min(at, 1) // behind SEQUENCE
	}
	c.Ops = slices.Insert(slices.Clone(c.Ops), at, append(add, o)...)
}

// damage changes bytes: one, a word, some more, some less, a whole operation behind
// the end, or a number of operations that is not true.
func (z *fuzzer) damage(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	switch z.s.of(8) {
	case 0, 1:
		b[z.s.of(len(b))] ^= 1 << (z.s.byte() & 7)
	case 2:
		if at := z.s.of(len(b) / 4); at*4+4 <= len(b) {
			binary.BigEndian.PutUint32(b[at*4:], uint32(z.s.byte()))
		}
	case 3:
		b = append(b, make([]byte, z.s.of(8))...)
	case 4:
		b = b[:len(b)-z.s.of(min(len(b), 8))]
	case 5:
		all := donors(z.fixture)
		o := all[z.s.of(len(all))]
		b = binary.BigEndian.AppendUint32(b, o.Number)
		if o.Body != nil {
			b = o.Body.Append(b)
		}
	case 6: // another number of operations
		var h oncrpc.Call
		if h.Decode(b, len(b)) == nil && len(b) >= h.Size()+4 {
			tag := int(binary.BigEndian.Uint32(b[h.Size():]))
			if at := h.Size() + 8 + (tag+3)&^3; tag < 1024 && at+4 <= len(b) {
				b[at+3] += z.s.byte()
			}
		}
	case 7:
		at := z.s.of(len(b)/4+1) * 4
		all := donors(z.fixture)
		o := all[z.s.of(len(all))]
		extra := binary.BigEndian.AppendUint32(nil, o.Number)
		if o.Body != nil {
			extra = o.Body.Append(extra)
		}
		b = slices.Insert(b, min(at, len(b)), extra...)
	}
	return b
}

// run executes a script: what passes the guard is executed.
func (z *fuzzer) run(t *testing.T) {
	z.pool = [][]byte{z.base, z.file, z.dir, z.root, z.canary, z.beside, z.canary2, {}, []byte("garbage")}
	z.client1, z.session1 = z.session("fuzz")
	z.client0 = z.client40("fuzz")
	z.must(z.v3(nfs3.NFSPROC3_READDIRPLUS, &nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: z.base}, Dircount: 4096, Maxcount: 8192}), &nfs3.READDIRPLUS3res{})
	before := z.outside()
	within := ""
	if !z.fixture.write {
		within = z.within()
	}
	var done [][]byte
	for range 6 {
		c := z.call()
		if c == nil {
			break
		}
		z.wire.apart = z.s.byte()&1 == 1
		calls := z.wire.calls
		err := z.sent.Do(context.Background(), &c.Call)
		var refused *guard.Refused
		switch {
		case errors.As(err, &refused):
			if z.wire.calls != calls {
				t.Fatal("sent although refused")
			}
			z.refused = append(z.refused, refused)
			continue
		case err != nil:
			continue // the server waits for something
		}
		z.passed++
		done = append(done, slices.Clone(c.Stream))
		z.collect(c)
	}
	if after := z.outside(); after != before {
		t.Fatalf("what is outside has changed, by one of\n%s\nbefore %q\nafter  %q", hexes(done), before, after)
	}
	if !z.fixture.write {
		if after := z.within(); after != within {
			t.Fatalf("the base has changed without leave, by one of\n%s\nbefore %q\nafter  %q", hexes(done), within, after)
		}
	}
}

func hexes(list [][]byte) (s string) {
	for _, b := range list {
		s += hex.EncodeToString(b) + "\n"
	}
	return s
}

// collect keeps handles of replies for the calls that follow.
func (z *fuzzer) collect(c *client.Call) {
	add := func(h []byte) {
		if len(h) > 0 && len(z.pool) < 64 {
			z.pool = append(z.pool, slices.Clone(h))
		}
	}
	var res nfs4.CompoundRes
	var found nfs3.LOOKUP3res
	switch {
	case c.Decode(&res) == nil && len(res.Ops) > 0:
		for i := range res.Ops {
			switch r := res.Ops[i].Body.(type) {
			case *nfs4.GETFH4res:
				add(r.Resok4.Object)
			case *nfs4.OPEN4res:
				if r.Status == nfs4.NFS4_OK {
					z.stateid = r.Resok4.Stateid
				}
			}
		}
	case c.Decode(&found) == nil && found.Status == 0:
		add(found.Resok.Object.Data)
	}
}

// FuzzGuard sends sequences of calls made of real ones: operations inserted,
// dropped and swapped, handles and names of objects outside in the place of
// others, bytes damaged. Whatever passes is executed by the built-in server, and
// changes nothing outside of the base; and nothing at all without leave to write.
//
// An input is a list of choices: the first says whether writing is allowed.
func FuzzGuard(f *testing.F) {
	seeds := readCaptured(f)
	for i := range seeds {
		for _, write := range []byte{0, 1} {
			seed := []byte{write, byte(i), 0}
			if len(seeds) > 256 {
				seed = []byte{write, byte(i), byte(i >> 8), 0}
			}
			f.Add(seed)
			// The same call with other handles, operations inserted, and damage.
			for _, kind := range []byte{1, 3, 5} {
				f.Add([]byte{write, byte(i), 2, kind, 4, byte(i), kind, 3, 0, 1})
			}
			f.Add([]byte{write, byte(i), 1, 10, byte(i), byte(i + 1), byte(i + 2), byte(i + 3), byte(i + 4), byte(i), byte(i)})
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := script{b}
		z := &fuzzer{fixture: newFixture(t, s.byte()&1 == 1), s: s, seeds: seeds}
		z.s.b = b[min(1, len(b)):]
		defer z.close()
		z.run(t)
	})
}

// TestSeedsPass: most real calls pass with their own handles. A fuzz target whose
// calls are all refused would find nothing.
func TestSeedsPass(t *testing.T) {
	seeds := readCaptured(t)
	passed := 0
	for i := range seeds {
		if len(seeds) > 256 {
			t.Fatal("an index is more than a byte now")
		}
		z := &fuzzer{fixture: newFixture(t, true), s: script{[]byte{byte(i), 0}}, seeds: seeds}
		z.run(t)
		passed += z.passed
		if len(z.refused) > 0 {
			t.Logf("procedure %d of %d: %v", seeds[i].procedure, seeds[i].program, z.refused)
		}
		z.close()
	}
	t.Logf("%d of %d calls passed", passed, len(seeds))
	if passed < len(seeds)*3/4 {
		t.Errorf("only %d of %d calls passed", passed, len(seeds))
	}
}

// TestRaids goes all ways of up to two operations, with nothing saved and with
// handles inside and outside, and then does harm. What passes is executed.
func TestRaids(t *testing.T) {
	var z *fuzzer
	before := ""
	fresh := func() {
		if z != nil {
			z.close()
		}
		z = &fuzzer{fixture: newFixture(t, true)}
		z.must(z.v3(nfs3.NFSPROC3_READDIRPLUS, &nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: z.base}, Dircount: 4096, Maxcount: 8192}), &nfs3.READDIRPLUS3res{})
		z.client0 = z.client40("raid")
		before = z.outside()
	}
	fresh()
	tried, passed := 0, 0
	var try func(list []nfs4.Op, depth int)
	try = func(list []nfs4.Op, depth int) {
		ways, harm := z.raids()
		for _, o := range harm {
			minor := uint32(0)
			if e := ops.Operation(o.Number); e.Minor > 0 {
				minor = 2
			}
			args := compound(minor, append(slices.Clone(list), o)...)
			z.own(args, &args.Ops[len(list)])
			c := z.build(nfs4.NFS4_PROGRAM, nfs4.NFS_V4, nfs4.NFSPROC4_COMPOUND, args)
			tried++
			if z.guard.Check(&c.Message) != nil {
				continue
			}
			passed++
			if err := z.wire.Do(context.Background(), &c.Call); err != nil {
				t.Fatal(err)
			}
			if after := z.outside(); after != before {
				names := ""
				for _, o := range args.Ops {
					names += fmt.Sprintf(" %s%+v", nfs4.OpName(o.Number), o.Body)
				}
				t.Errorf("outside has changed by%s", names)
			}
			fresh()
		}
		if depth == 0 || t.Failed() {
			return
		}
		for _, o := range ways {
			try(append(slices.Clone(list), o), depth-1)
		}
	}
	save := op(nfs4.OP_SAVEFH)
	for _, first := range [][]nfs4.Op{nil, {put(z.root), save}, {put(z.base), save}, {put(z.canary), save}} {
		try(first, 2)
	}
	z.close()
	t.Logf("%d of %d raids passed", passed, tried)
	if passed < tried/50 {
		t.Errorf("only %d of %d passed: this tests nothing", passed, tried)
	}
}
