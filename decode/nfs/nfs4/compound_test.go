package nfs4

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// compound encodes a COMPOUND that announces n operations.
func compound(n uint32, ops ...Op) []byte {
	m := CompoundArgs{Minorversion: 2, Operations: Operations{Ops: ops}}
	b := m.Append(nil)
	copy(b[8:], xdr.AppendUint32(nil, n))
	return b
}

func TestOperations(t *testing.T) {
	putfh := Op{uint32(OP_PUTFH), &PUTFH4args{Object: []byte("handle")}}
	write := Op{uint32(OP_WRITE), &WRITE4args{Offset: 7, Data: xdr.Data{Length: 9, Inline: []byte("some data")}}}
	getfh := Op{uint32(OP_GETFH), xdr.Void{}}
	illegal := Op{uint32(OP_ILLEGAL), xdr.Void{}}
	tests := []struct {
		name   string
		b      []byte
		full   int // length on the wire, if the capture cut it
		kind   xdr.Kind
		cut    bool
		ops    int
		failed int
		op     uint32
	}{
		{"complete", compound(3, putfh, getfh, write), 0, xdr.None, false, 3, 0, 0},
		{"no operations", compound(0), 0, xdr.None, false, 0, 0, 0},
		{"illegal", compound(2, illegal, getfh), 0, xdr.None, false, 2, 0, 0},
		{"more announced than there are", compound(1<<31, putfh, getfh), 0, xdr.Short, false, 2, 2, 0},
		{"undefined number", compound(3, putfh, Op{99, nil}, getfh), 0, xdr.Value, false, 1, 1, 99},
		{"number 0", compound(2, putfh, Op{0, nil}), 0, xdr.Value, false, 1, 1, 0},
		{"number 10045", compound(1, Op{10045, nil}), 0, xdr.Value, false, 0, 0, 10045},
		{"cut in the data", compound(2, putfh, write)[:72], 76, xdr.Short, true, 2, 1, uint32(OP_WRITE)},
		{"cut before the data's length", compound(2, putfh, write)[:60], 76, xdr.Short, true, 1, 1, uint32(OP_WRITE)},
		{"cut in a handle", compound(2, putfh, getfh)[:20], 80, xdr.Short, true, 0, 0, uint32(OP_PUTFH)},
		{"handle too long", compound(1, Op{uint32(OP_PUTFH), &PUTFH4args{Object: make([]byte, 132)}}), 0, xdr.Range, false, 0, 0, uint32(OP_PUTFH)},
		{"cut in the count", compound(2, putfh)[:10], 100, xdr.Short, true, 0, 0, 0},
	}
	var m CompoundArgs
	for _, c := range tests {
		var r xdr.Reader
		r.Reset(c.b, max(c.full, len(c.b)))
		m.Decode(&r)
		kind := xdr.None
		if e, ok := r.Err().(*xdr.Error); ok {
			kind = e.Kind
			if e.Field == "" {
				t.Errorf("%s: %v has no field", c.name, e)
			}
		}
		if kind != c.kind || r.Cut() != c.cut {
			t.Errorf("%s: %v, cut %v", c.name, r.Err(), r.Cut())
		}
		if len(m.Ops) != c.ops || m.Incomplete != (c.kind != xdr.None) || m.FailedAt != c.failed || m.FailedOp != c.op {
			t.Errorf("%s: %d operations, incomplete %v at %d in op %d", c.name, len(m.Ops), m.Incomplete, m.FailedAt, m.FailedOp)
		}
		if c.ops > 0 && c.name != "illegal" && !bytes.Equal(m.Ops[0].Body.(*PUTFH4args).Object, []byte("handle")) {
			t.Errorf("%s: the first operation is lost", c.name)
		}
	}
}

func TestCutWriteShowsItsOffset(t *testing.T) {
	b := compound(1, Op{uint32(OP_WRITE), &WRITE4args{Offset: 7, Data: xdr.Data{Length: 9, Inline: []byte("some data")}}})
	var r xdr.Reader
	r.Reset(b[:len(b)-8], len(b))
	var m CompoundArgs
	m.Decode(&r)
	w, ok := m.Ops[0].Body.(*WRITE4args)
	if !ok || w.Offset != 7 || w.Data.Length != 9 || string(w.Data.Inline) != "some" || !m.Incomplete {
		t.Errorf("%+v", w)
	}
}

func TestFailedOperationIsShown(t *testing.T) {
	b := compound(2, Op{uint32(OP_GETFH), xdr.Void{}}, Op{uint32(OP_READ), xdr.Void{}})
	var r xdr.Reader
	r.Reset(b, len(b))
	var m CompoundArgs
	m.Decode(&r)
	const want = "tag: \"\"\nminorversion: 2\nGETFH[0] void\nREAD[1] READ4args\n"
	if got := show(m.Walk); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestResultEndsWithFailure(t *testing.T) {
	failed := 0
	for _, s := range seeds(t) {
		if s.kind != "reply" {
			continue
		}
		var r xdr.Reader
		s.reset(&r)
		var m CompoundRes
		m.Decode(&r)
		code, symbol := m.StatusCode()
		for i, op := range m.Ops {
			want := uint32(NFS4_OK)
			if i == len(m.Ops)-1 {
				want = code
			}
			if c, name, ok := op.Status(); c != want || !ok || c == code && name != symbol {
				t.Errorf("%s: %s: %d %s, want %d", s.name, OpName(op.Number), c, name, want)
			}
		}
		if code != uint32(NFS4_OK) {
			failed++
		}
	}
	if failed < 5 {
		t.Errorf("only %d replies tell a failure", failed)
	}
}

func TestStatusIsOfResultsOnly(t *testing.T) {
	for slot, op := range cbOps {
		if op.name == "" {
			continue
		}
		o := Op{Number: uint32(slot), Body: op.newArgs()}
		if _, _, ok := o.Status(); ok {
			t.Errorf("arguments of %s have a status", op.name)
		}
		o.Body = op.newRes()
		if _, _, ok := o.Status(); !ok {
			t.Errorf("result of %s has no status", op.name)
		}
	}
	for slot, op := range foreOps {
		if op.name == "" {
			continue
		}
		o := Op{Number: uint32(slot), Body: op.newArgs()}
		if _, _, ok := o.Status(); ok {
			t.Errorf("arguments of %s have a status", op.name)
		}
		o.Body = op.newRes()
		if _, _, ok := o.Status(); !ok {
			t.Errorf("result of %s has no status", op.name)
		}
	}
}

// TestReducedReply places the data of two READs and a link text in three
// chunks.
func TestReducedReply(t *testing.T) {
	read := func(n uint32) Op {
		return Op{uint32(OP_READ), &READ4res{Resok4: READ4resok{Eof: true, Data: xdr.Data{Length: n, Chunk: 1}}}}
	}
	m := CompoundRes{Operations: Operations{Ops: []Op{
		read(5000), read(10),
		{uint32(OP_READLINK), &READLINK4res{Resok4: READLINK4resok{Link: xdr.Data{Length: 3, Chunk: 1}}}},
	}}}
	b := m.Append(nil)
	var r xdr.Reader
	r.Reset(b, len(b))
	r.ReduceReply([]xdr.Reduced{{Length: 5000}, {Length: 12}, {Length: 4}})
	var got CompoundRes
	got.Decode(&r)
	if r.Err() != nil || len(got.Ops) != 3 {
		t.Fatalf("%v, %d operations", r.Err(), len(got.Ops))
	}
	a, c, l := got.Ops[0].Body.(*READ4res), got.Ops[1].Body.(*READ4res), got.Ops[2].Body.(*READLINK4res)
	if a.Resok4.Data.Chunk != 1 || c.Resok4.Data.Chunk != 2 || l.Resok4.Link.Chunk != 3 || c.Resok4.Data.Length != 10 {
		t.Errorf("%+v %+v %+v", a.Resok4.Data, c.Resok4.Data, l.Resok4.Link)
	}
}

// TestReadPlus decodes data in the reply and data in a chunk.
func TestReadPlus(t *testing.T) {
	res := READ_PLUS4res{RpResok4: ReadPlusRes4{RprContents: []ReadPlusContent{
		{RpcContent: NFS4_CONTENT_DATA, RpcData: Data4{DOffset: 1, DData: xdr.Data{Length: 3, Inline: []byte("abc")}}},
		{RpcContent: NFS4_CONTENT_HOLE, RpcHole: DataInfo4{DiOffset: 4, DiLength: 4096}},
	}}}
	const inline = `rp_status: NFS4_OK 0
rp_resok4 read_plus_res4
  rpr_eof: false
  rpr_contents[0] read_plus_content
    rpc_content: NFS4_CONTENT_DATA 0
    rpc_data data4
      d_offset: 1
      d_data: 3 bytes, 3 inline, chunk 0
  rpr_contents[1] read_plus_content
    rpc_content: NFS4_CONTENT_HOLE 1
    rpc_hole data_info4
      di_offset: 4
      di_length: 4096
`
	var got READ_PLUS4res
	b := res.Append(nil)
	var r xdr.Reader
	r.Reset(b, len(b))
	got.Decode(&r)
	if s := show(got.Walk); s != inline || r.Err() != nil {
		t.Errorf("%v\n%s", r.Err(), s)
	}
	res.RpResok4.RprContents[0].RpcData.DData = xdr.Data{Length: 3, Chunk: 1}
	b = res.Append(nil)
	r.Reset(b, len(b))
	r.ReduceReply([]xdr.Reduced{{Length: 3}})
	got.Decode(&r)
	if d := got.RpResok4.RprContents[0].RpcData.DData; d.Chunk != 1 || r.Err() != nil || r.Remaining() != 0 {
		t.Errorf("%v %+v", r.Err(), d)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{OpName(25), "READ"}, {OpName(75), "REMOVEXATTR"}, {OpName(10044), "ILLEGAL"}, {OpName(0), "op 0"}, {OpName(999), "op 999"},
		{CbOpName(15), "CB_OFFLOAD"}, {CbOpName(10044), "CB_ILLEGAL"}, {CbOpName(25), "op 25"},
		{StatusName(0), "NFS4_OK"}, {StatusName(10096), "NFS4ERR_XATTR2BIG"}, {StatusName(19), "19"},
		{AttrName(82), "xattr_support"}, {AttrName(86), "open_arguments"}, {AttrName(92), "posix_access_acl"}, {AttrName(93), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestShareAccess(t *testing.T) {
	for v, want := range map[ShareAccess4]string{
		0:          "",
		1:          "OPEN4_SHARE_ACCESS_READ",
		3:          "OPEN4_SHARE_ACCESS_BOTH",
		0x0401:     "OPEN4_SHARE_ACCESS_READ|OPEN4_SHARE_ACCESS_WANT_NO_DELEG",
		0x0500:     "OPEN4_SHARE_ACCESS_WANT_CANCEL",
		0x300302:   "OPEN4_SHARE_ACCESS_WRITE|OPEN4_SHARE_ACCESS_WANT_ANY_DELEG|OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS|OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION",
		0x80000600: "",
	} {
		if got := v.Symbols(); got != want {
			t.Errorf("%#x: %q, want %q", uint32(v), got, want)
		}
	}
}

// TestRefillAllocatesNothing decodes every kind of real message again.
func TestRefillAllocatesNothing(t *testing.T) {
	var args CompoundArgs
	var res CompoundRes
	var cbArgs CbCompoundArgs
	var cbRes CbCompoundRes
	var r xdr.Reader
	for _, s := range seeds(t) {
		var n float64
		switch s.kind {
		case "call":
			n = testing.AllocsPerRun(10, func() { s.reset(&r); args.Decode(&r) })
		case "reply":
			n = testing.AllocsPerRun(10, func() { s.reset(&r); res.Decode(&r) })
		case "cbcall":
			n = testing.AllocsPerRun(10, func() { s.reset(&r); cbArgs.Decode(&r) })
		case "cbreply":
			n = testing.AllocsPerRun(10, func() { s.reset(&r); cbRes.Decode(&r) })
		}
		if n != 0 || r.Err() != nil {
			t.Errorf("%s: %v allocations, %v", s.name, n, r.Err())
		}
	}
}

// TestHostileCountsCostLittle decodes messages with false counts.
func TestHostileCountsCostLittle(t *testing.T) {
	many := make([]byte, 12, 12+1<<20)
	copy(many[8:], xdr.AppendUint32(nil, 1<<30))
	for len(many) < cap(many) {
		many = xdr.AppendUint32(many, uint32(OP_GETFH))
	}
	var m CompoundArgs
	var r xdr.Reader
	r.Reset(many, len(many))
	m.Decode(&r)
	if len(m.Ops) != 1<<18 || !m.Incomplete {
		t.Errorf("%d operations", len(m.Ops))
	}
	// Their memory is not kept for the next message.
	r.Reset(many[:0], 0)
	m.Decode(&r)
	if cap(m.Ops) > 1<<17 {
		t.Errorf("%d slots are kept", cap(m.Ops))
	}
	lookups := make([]byte, 12, 12+1<<16)
	copy(lookups[8:], xdr.AppendUint32(nil, 1<<30))
	for len(lookups) < cap(lookups) {
		lookups = xdr.AppendUint32(xdr.AppendUint32(lookups, uint32(OP_LOOKUP)), 0)
	}
	r.Reset(lookups, len(lookups))
	m.Decode(&r)
	if n := len(m.free[OP_LOOKUP]); n != keepOps || len(m.Ops) != 1<<13 {
		t.Errorf("%d bodies are kept of %d", n, len(m.Ops))
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		name, kind string
		ops        []string
	}{
		{"READ call", "call", []string{"SEQUENCE", "PUTFH", "READ"}},
		{"READ reply", "reply", []string{"SEQUENCE", "PUTFH", "READ"}},
		{"WRITE call", "call", []string{"SEQUENCE", "PUTFH", "WRITE", "GETATTR"}},
		{"GETATTR reply", "reply", []string{"SEQUENCE", "PUTFH", "GETATTR"}},
		{"OPEN reply", "reply", []string{"SEQUENCE", "PUTFH", "OPEN", "GETFH", "ACCESS", "GETATTR"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := find(b, c.kind, c.ops...)
			var args CompoundArgs
			var res CompoundRes
			var r xdr.Reader
			b.ReportAllocs()
			b.SetBytes(int64(len(s.data)))
			for b.Loop() {
				s.reset(&r)
				if s.kind == "call" {
					args.Decode(&r)
				} else {
					res.Decode(&r)
				}
			}
		})
	}
}

// TestNoMinorversion cuts COMPOUNDs at each byte: the minor version is known from its last byte on.
func TestNoMinorversion(t *testing.T) {
	for _, tag := range []string{"", "a tag", "four"} {
		ops := Operations{Ops: []Op{{uint32(OP_ILLEGAL), xdr.Void{}}}}
		whole := CompoundArgs{Tag: []byte(tag), Minorversion: 2, Operations: ops}
		callback := CbCompoundArgs{Tag: []byte(tag), Minorversion: 2, Operations: Operations{Ops: []Op{{uint32(OP_CB_ILLEGAL), xdr.Void{}}}}}
		known := xdr.SizeOpaque(len(tag)) + 4
		for _, full := range []int{0, 1000} { // malformed, cut
			for n, b := range [][]byte{whole.Append(nil), callback.Append(nil)} {
				for size := range len(b) + 1 {
					var r xdr.Reader
					var args CompoundArgs
					var cb CbCompoundArgs
					r.Reset(b[:size], full)
					if n == 1 {
						cb.Decode(&r)
						args.Minorversion, args.NoMinorversion = cb.Minorversion, cb.NoMinorversion
					} else {
						args.Decode(&r)
					}
					if args.NoMinorversion != (size < known) || !args.NoMinorversion && args.Minorversion != 2 {
						t.Errorf("tag %q, %d of %d bytes: minor version %d, unknown %t", tag, size, len(b), args.Minorversion, args.NoMinorversion)
					}
				}
			}
		}
	}
}
