package planner

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

const samples = "../../samples"

// build makes a plan from a capture and returns the plan's name.
func build(t testing.TB, name string, opt Options) string {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := filepath.Join(t.TempDir(), "a.json")
	opt.Sources = []string{name}
	if _, err := Build(context.Background(), r, out, decode.Options{}, opt); err != nil {
		t.Fatal(err)
	}
	return out
}

// loaded is a whole plan.
type loaded struct {
	*plan.Tables
	ops   []*plan.Op
	skips []*plan.Skip
	isOp  []bool // of each line, in their order: an op, or a skip
	name  string
	text  []byte     // of the file, which may be compressed
	above [][]uint64 // for reaches
}

func load(t testing.TB, name string) *loaded {
	t.Helper()
	text := readFile(t, name)
	r, err := plan.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := &loaded{Tables: &r.Tables, name: name, text: text}
	for {
		o, s, err := r.Next()
		if err == io.EOF {
			return l
		}
		if err != nil {
			t.Fatal(err)
		}
		l.isOp = append(l.isOp, o != nil)
		if o != nil {
			l.ops = append(l.ops, o)
		} else {
			l.skips = append(l.skips, s)
		}
	}
}

// each calls f for every field of an op.
func each(o *plan.Op, f func(*plan.Field)) {
	for i := range o.Args {
		f(&o.Args[i])
	}
	if o.Compound != nil {
		for i := range o.Compound.Ops {
			for j := range o.Compound.Ops[i].Args {
				f(&o.Compound.Ops[i].Args[j])
			}
		}
	}
}

// scene makes transactions by hand and a plan from them.
type scene struct {
	t    *testing.T
	b    *Builder
	out  string
	view rpc.View
	conn *rdma.Connection
	now  int64
	xid  uint32
	n    uint64
	// program of the calls; 0 is NFS
	program uint32
	// cut is how many bytes the capture lacks at the end of the calls.
	cut int
	// copies says that the next calls were sent before, on another connection.
	copies bool
	// lost says that the capture lacks the next calls altogether, and has their replies.
	lost bool
}

func newScene(t *testing.T) *scene {
	t.Helper()
	out := filepath.Join(t.TempDir(), "a.json")
	b, err := NewBuilder(out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &scene{t: t, b: b, out: out, now: 1e18, conn: &rdma.Connection{ID: 1, Fabric: rdma.TCP, Ends: [2]rdma.End{
		{Addr: netip.MustParseAddr("192.0.2.2"), Port: 700},
		{Addr: netip.MustParseAddr("192.0.2.1"), Port: 2049},
	}}}
}

// call adds a call with its reply, nil for none, 1 µs after the one before. It
// takes 1 µs, or as long as given.
func (s *scene) call(version, procedure uint32, args, result xdr.Message, took ...int64) {
	s.t.Helper()
	d := int64(1000)
	if len(took) > 0 {
		d = took[0]
	}
	s.now += 1000
	s.add(version, procedure, args, result, s.now, s.now+d)
	if len(took) == 0 {
		s.now += d
	}
}

func (s *scene) add(version, procedure uint32, args, result xdr.Message, start, end int64) {
	s.t.Helper()
	s.xid++
	program := uint32(nfs4.NFS4_PROGRAM)
	if s.program != 0 {
		program = s.program
	}
	c := oncrpc.Call{XID: s.xid, RPCVersion: 2, Program: program, Version: version, Procedure: procedure}
	tx := &transaction.Transaction{
		Connection: s.conn, XID: s.xid, Program: program, Version: version, Procedure: procedure, Named: true,
	}
	if s.copies {
		tx.Note(transaction.Note{Kind: transaction.ResentFrom, N: 1})
	}
	s.n++
	tx.Call.Payload = args.Append(c.Append(nil))
	tx.Call.PayloadLength = len(tx.Call.Payload)
	if s.cut > 0 {
		tx.Call.Payload, tx.Call.Cut = tx.Call.Payload[:tx.Call.PayloadLength-s.cut], true
	}
	tx.Call.First = rdma.Ref{Time: start, Number: s.n}
	tx.Call.Last = tx.Call.First
	if result != nil {
		s.n++
		b := xdr.AppendUint32(nil, s.xid)
		b = xdr.AppendUint32(b, 1) // REPLY
		b = append(b, make([]byte, 16)...)
		tx.Reply.Payload = result.Append(b)
		tx.Reply.PayloadLength = len(tx.Reply.Payload)
		tx.Reply.First = rdma.Ref{Time: end, Number: s.n}
		tx.Reply.Last = tx.Reply.First
	} else {
		tx.State = transaction.NoReply
	}
	if s.lost {
		tx.Call, tx.Named, tx.Program, tx.Version, tx.Procedure = transaction.Message{}, false, 0, 0, 0
	}
	s.view.Set(tx)
	if s.view.ArgsErr != nil && s.cut == 0 && !s.lost || result != nil && s.view.ResultErr != nil {
		s.t.Fatalf("made by hand and not readable: %v, %v", s.view.ArgsErr, s.view.ResultErr)
	}
	if err := s.b.Add(&s.view); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) plan() *loaded {
	s.t.Helper()
	if _, err := s.b.Finish(); err != nil {
		s.t.Fatal(err)
	}
	return load(s.t, s.out)
}

// object finds the object of a path.
func (l *loaded) object(t *testing.T, path string) *plan.Object {
	t.Helper()
	for i := range l.Objects {
		if l.Objects[i].Path == path {
			return &l.Objects[i]
		}
	}
	t.Fatalf("no object %q", path)
	return nil
}

// reaches reports whether an op has to wait for another one.
func (l *loaded) reaches(from, to int) bool {
	for n := len(l.above); n < from; n++ {
		up := make([]uint64, n/64+1)
		for _, d := range l.ops[n].Deps {
			if d.Kind.Optional() {
				continue
			}
			for i, w := range l.above[d.Op-1] {
				up[i] |= w
			}
			up[(d.Op-1)/64] |= 1 << ((d.Op - 1) % 64)
		}
		l.above = append(l.above, up)
	}
	return to < from && l.above[from-1][(to-1)/64]>>((to-1)%64)&1 != 0
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
