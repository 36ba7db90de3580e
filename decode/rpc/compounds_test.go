package rpc_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
)

// maker makes COMPOUNDs and their replies by chance, of few files and names, so that they meet again. Some replies end with a failure, or
// earlier than they should; data of some is in chunks.
type maker struct {
	*rand.Rand
	tx            transaction.Transaction
	call, reply   []byte
	removed       uint32 // bytes of the call that are in chunks
	callback      bool
	inChunks      bool
	walks         bool // there is one name, and most operations change the current file
	one           int  // the next step of a COMPOUND that does one thing; 0 of one that does anything
	calls, replys int  // operations
	// Where their numbers stand.
	counted, answered int
}

func (m *maker) pick(list ...string) []byte { return []byte(list[m.IntN(len(list))]) }

func (m *maker) handle() []byte {
	return m.pick("root", "a directory", "another one", "file 1", "file 2", "")
}

func (m *maker) name() []byte { return m.pick("a", "b", "c", "c", "") }

// data is an item, and whether it is in a chunk.
func (m *maker) data() xdr.Data {
	n := uint32(m.IntN(9))
	if m.inChunks && m.IntN(2) == 0 {
		return xdr.Data{Length: n, Chunk: 1}
	}
	return xdr.Data{Length: n, Inline: make([]byte, n)}
}

// operation makes an operation that File or Learn looks at, or any other one with empty arguments and results.
func (m *maker) operation() (op nfs4.NfsOpnum4, args, result xdr.Message) {
	ok := xdr.Message(&nfs4.Status4res{})
	switch m.one++; m.one {
	case 2:
		return nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: m.handle()}, ok
	case 4:
		return nfs4.OP_GETFH, xdr.Void{}, &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: m.handle()}}
	case 3:
	default:
		m.one = 0
	}
	kinds := 20
	if m.walks {
		kinds = 12
	}
	switch m.IntN(kinds) {
	case 0, 1:
		return nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: m.handle()}, ok
	case 2, 3:
		return nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: m.name()}, ok
	case 4, 5:
		return nfs4.OP_GETFH, xdr.Void{}, &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: m.handle()}}
	case 6:
		return nfs4.OP_OPEN, m.open(), &nfs4.OPEN4res{}
	case 7:
		a := &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4DIR}, Objname: m.name()}
		switch m.IntN(4) {
		case 0, 1:
			a.Objtype = nfs4.Createtype4{Type: nfs4.NF4LNK, Linkdata: m.data()}
		case 2:
			a.Objtype.Type = nfs4.NF4BLK + nfs4.NfsFtype4(m.IntN(2))
		}
		return nfs4.OP_CREATE, a, &nfs4.CREATE4res{}
	case 8:
		return nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: m.name()}, &nfs4.REMOVE4res{}
	case 9:
		return nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: m.name(), Newname: m.name()}, &nfs4.RENAME4res{}
	case 10:
		return nfs4.OP_SAVEFH, xdr.Void{}, ok
	case 11:
		return nfs4.OP_RESTOREFH, xdr.Void{}, ok
	case 12:
		return nfs4.OP_READ, &nfs4.READ4args{Offset: m.Uint64(), Count: m.Uint32()},
			&nfs4.READ4res{Resok4: nfs4.READ4resok{Eof: m.IntN(2) == 0, Data: m.data()}}
	case 13:
		return nfs4.OP_WRITE, &nfs4.WRITE4args{Offset: m.Uint64(), Stable: nfs4.StableHow4(m.IntN(4)), Data: m.data()},
			&nfs4.WRITE4res{Resok4: nfs4.WRITE4resok{Count: m.Uint32()}}
	case 14:
		return nfs4.OP_COMMIT, &nfs4.COMMIT4args{Offset: m.Uint64(), Count: m.Uint32()}, &nfs4.COMMIT4res{}
	case 15:
		r := &nfs4.READDIR4res{}
		for range m.IntN(4) {
			a := nfs4.Attrs{Mask: nfs4.NewBitmap4(nfs4.FATTR4_SIZE, nfs4.FATTR4_FILEHANDLE, nfs4.FATTR4_FILEID), Filehandle: m.handle()}
			r.Resok4.Reply.Entries = append(r.Resok4.Reply.Entries, nfs4.Entry4{Name: m.name(), Attrs: a.Fattr4()})
		}
		return nfs4.OP_READDIR, &nfs4.READDIR4args{}, r
	}
	for {
		op := nfs4.NfsOpnum4(m.IntN(80))
		if args, result := body(new(nfs4.CompoundArgs), op), body(new(nfs4.CompoundRes), op); args != nil && result != nil {
			return op, args, result
		}
	}
}

// open makes an OPEN that creates in any way, and claims anything.
func (m *maker) open() *nfs4.OPEN4args {
	how := nfs4.Createhow4{Mode: nfs4.Createmode4(m.IntN(4))}
	attributes := nfs4.Attrs{Mask: nfs4.NewBitmap4(nfs4.FATTR4_SIZE, nfs4.FATTR4_FILEHANDLE), Filehandle: m.handle()}
	how.Createattrs = attributes.Fattr4()
	how.ChCreateboth.CvaAttrs = how.Createattrs
	return &nfs4.OPEN4args{
		Owner:   nfs4.StateOwner4{Owner: m.name()},
		Openhow: nfs4.Openflag4{Opentype: nfs4.Opentype4(m.IntN(2)), How: how},
		Claim: nfs4.OpenClaim4{
			Claim: nfs4.OpenClaimType4(max(m.IntN(16)-9, 0)), File: m.name(), FileDelegatePrev: m.name(),
			DelegateCurInfo: nfs4.OpenClaimDelegateCur4{File: m.name()},
		},
	}
}

// callbackOperation makes an operation of a callback, whose number another operation may have, too.
func (m *maker) callbackOperation() (op nfs4.NfsOpnum4, args, result xdr.Message) {
	for {
		op := nfs4.NfsOpnum4(m.IntN(20))
		if args, result := body(new(nfs4.CbCompoundArgs), op), body(new(nfs4.CbCompoundRes), op); args != nil && result != nil {
			return op, args, result
		}
	}
}

// body is an operation of which all is empty; nil if it cannot be.
func body(m xdr.Message, op nfs4.NfsOpnum4) xdr.Message {
	head := 8 // of results: status and tag
	switch m.(type) {
	case *nfs4.CompoundArgs:
		head = 8 // tag and minor version
	case *nfs4.CbCompoundArgs:
		head = 12
	}
	b := xdr.AppendUint32(xdr.AppendUint32(make([]byte, head), 1), uint32(op))
	var r xdr.Reader
	r.Reset(append(b, make([]byte, 300)...), 0)
	m.Decode(&r)
	var list []nfs4.Op
	switch m := m.(type) {
	case *nfs4.CompoundArgs:
		list = m.Ops
	case *nfs4.CompoundRes:
		list = m.Ops
	case *nfs4.CbCompoundArgs:
		list = m.Ops
	case *nfs4.CbCompoundRes:
		list = m.Ops
	}
	if r.Failed() || len(list) != 1 {
		return nil
	}
	return list[0].Body
}

// addCall appends an operation, and says where its data would be.
func (m *maker) addCall(op nfs4.NfsOpnum4, args xdr.Message) {
	at := len(m.call) + 4
	m.call = args.Append(xdr.AppendUint32(m.call, uint32(op)))
	m.calls++
	var d xdr.Data
	switch a := args.(type) {
	case *nfs4.WRITE4args:
		d, at = a.Data, len(m.call)
	case *nfs4.CREATE4args:
		d, at = a.Objtype.Linkdata, at+8 // behind type and length
	}
	if d.Chunk > 0 {
		h := &m.tx.Call.Header
		h.Reads = append(h.Reads, rpcrdma.ReadSegment{Position: uint32(at) + m.removed, Segment: rpcrdma.Segment{Length: d.Length}})
		m.removed += (d.Length + 3) &^ 3
	}
}

func (m *maker) addReply(op nfs4.NfsOpnum4, result xdr.Message, status nfs4.Nfsstat4) {
	at := len(m.reply) + 4
	if status != nfs4.NFS4_OK && op != nfs4.OP_CREATE && m.IntN(2) == 0 {
		result = &nfs4.Status4res{} // of many, nothing follows
	}
	m.reply = result.Append(xdr.AppendUint32(m.reply, uint32(op)))
	copy(m.reply[at:], xdr.AppendUint32(nil, uint32(status)))
	if r, ok := result.(*nfs4.READ4res); ok && r.Resok4.Data.Chunk > 0 {
		h := &m.tx.Reply.Header
		h.Writes = append(h.Writes, rpcrdma.WriteChunk{{Length: r.Resok4.Data.Length}})
	}
	m.replys++
}

// begin begins a transaction, with no operations.
func (m *maker) begin() {
	m.tx = transaction.Transaction{Named: true, Program: nfs4.NFS4_PROGRAM, Version: nfs4.NFS_V4, Procedure: nfs4.NFSPROC4_COMPOUND, Connection: new(rdma.Connection)}
	m.removed, m.calls, m.replys = 0, 0, 0
	if m.callback {
		m.tx.Program, m.tx.Version, m.tx.Procedure = nfs4.NFS4_CALLBACK, nfs4.NFS_CB, nfs4.CB_COMPOUND
	}
	m.call = xdr.AppendUint32(nil, 1)
	for _, word := range []uint32{0, 2, m.tx.Program, m.tx.Version, m.tx.Procedure, 0, 0, 0, 0, 0, 1} { // no credentials; minor version 1
		m.call = xdr.AppendUint32(m.call, word)
	}
	if m.callback {
		m.call = xdr.AppendUint32(m.call, 0)
	}
	m.reply = xdr.AppendUint32(nil, 1)
	for range 7 { // with status and tag
		m.reply = xdr.AppendUint32(m.reply, 0)
	}
	m.reply[7] = 1 // REPLY
	m.counted, m.answered = len(m.call), len(m.reply)
	m.call, m.reply = append(m.call, 0, 0, 0, 0), append(m.reply, 0, 0, 0, 0)
}

// make makes a transaction.
func (m *maker) make() *transaction.Transaction {
	m.callback, m.inChunks, m.walks = m.IntN(10) == 0, m.IntN(2) == 0, m.IntN(3) == 0
	m.begin()
	m.one = m.IntN(2)
	goesOn := m.IntN(8) == 0 // after a failure
	status, over := nfs4.NFS4_OK, false
	for range m.IntN(12) {
		op, args, result := m.operation()
		if m.callback {
			op, args, result = m.callbackOperation()
		}
		m.addCall(op, args)
		if m.IntN(200) == 0 {
			op, _, result = m.operation()
		}
		if over = over || m.IntN(30) == 0; over {
			continue
		}
		if m.IntN(12) == 0 {
			status = nfs4.NFS4ERR_STALE
			over = !goesOn
		}
		m.addReply(op, result, status)
		if goesOn {
			status = nfs4.NFS4_OK
		}
	}
	if m.IntN(10) == 0 {
		status = nfs4.NFS4_OK // whatever its operations say
	}
	return m.end(status)
}

// end ends a transaction.
func (m *maker) end(status nfs4.Nfsstat4) *transaction.Transaction {
	copy(m.call[m.counted:], xdr.AppendUint32(nil, uint32(m.calls)))
	copy(m.reply[m.answered:], xdr.AppendUint32(nil, uint32(m.replys)))
	copy(m.reply[24:], xdr.AppendUint32(nil, uint32(status)))
	for i, x := range []*transaction.Message{&m.tx.Call, &m.tx.Reply} {
		x.First = rdma.Ref{Number: uint64(i) + 1, Time: int64(i)}
		x.Last, x.Transport = x.First, m.inChunks
		x.Payload = [][]byte{m.call, m.reply}[i]
		x.PayloadLength = len(x.Payload)
	}
	return &m.tx
}

// TestCompounds: a View that reads what it is asked for says of any COMPOUND what one says that decodes all at once, and learns the same.
func TestCompounds(t *testing.T) {
	m := maker{Rand: rand.New(rand.NewPCG(1, 2))}
	v, all := rpc.View{Names: &rpc.Names{}}, rpc.View{Names: &rpc.Names{}}
	usual, ranges, results := 0, 0, 0
	kinds := map[uint64]string{}
	for i := range 6_000 {
		tx := m.make()
		all.SetAll(tx)
		v.Set(tx)
		if v.Clean() {
			usual++
		}
		if kind := v.CompoundKind(); kind != 0 && v.Done() {
			what := fmt.Sprint(v.Tx.Program, v.Steps())
			if was, ok := kinds[kind]; ok && was != what {
				t.Fatalf("kind %d is %s, and was %s", kind, what, was)
			}
			kinds[kind] = what
		}
		if i%2 == 0 {
			holds.Demand(t, &v, &all, uint64(i))
			if f := v.File(); f != nil && f.HasRange {
				ranges++
			} else if f != nil && f.Result != nil {
				results++
			}
		}
		v.Learn()
		all.Learn()
		if !rpc.SameNames(v.Names, all.Names) {
			t.Fatalf("COMPOUND %d: other names are learned from %+v", i, v.Steps())
		}
	}
	if usual < 3000 || ranges < 300 || results < 30 || len(kinds) < 100 {
		t.Errorf("%d usual COMPOUNDs, %d with a range, %d with a handle as result", usual, ranges, results)
	}
	t.Logf("%d usual COMPOUNDs, %d with a range, %d with a handle as result", usual, ranges, results)
}

// TestRestored comes back to a file whose handle was found under the name that the COMPOUND is about by now: it is not a result of that, also if
// it is asked for in vain.
func TestRestored(t *testing.T) {
	var m maker
	m.begin()
	for _, x := range []struct {
		op           nfs4.NfsOpnum4
		args, result xdr.Message
	}{
		{nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: []byte("directory")}, &nfs4.Status4res{}},
		{nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte("name")}, &nfs4.Status4res{}},
		{nfs4.OP_GETFH, xdr.Void{}, &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: []byte("file")}}},
		{nfs4.OP_SAVEFH, xdr.Void{}, &nfs4.Status4res{}},
		{nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: []byte("directory")}, &nfs4.Status4res{}},
		{nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte("name")}, &nfs4.Status4res{}},
		{nfs4.OP_RESTOREFH, xdr.Void{}, &nfs4.Status4res{}},
	} {
		m.addCall(x.op, x.args)
		m.addReply(x.op, x.result, nfs4.NFS4_OK)
	}
	var v, all rpc.View
	for _, status := range []nfs4.Nfsstat4{nfs4.NFS4_OK, nfs4.NFS4ERR_STALE} {
		tx := m.end(status)
		v.Set(tx)
		all.SetAll(tx)
		holds.Demand(t, &v, &all, 0)
		if f := v.File(); !v.Clean() || string(f.Name) != "name" || f.Result != nil {
			t.Errorf("%t: %+v", v.Clean(), f)
		}
		m.addCall(nfs4.OP_GETFH, xdr.Void{})
		m.reply = xdr.AppendUint32(xdr.AppendUint32(m.reply, uint32(nfs4.OP_GETFH)), uint32(nfs4.NFS4ERR_STALE))
		m.replys++
	}
}

// TestCutCompounds cuts COMPOUNDs anywhere. What they are grouped by is then what it would be without the cut, or says that it may be
// something else. If all operations are known, so is the file, or it is known that its name is missing.
func TestCutCompounds(t *testing.T) {
	m := maker{Rand: rand.New(rand.NewPCG(3, 4))}
	whole, cut := rpc.View{Names: &rpc.Names{}}, rpc.View{Names: &rpc.Names{}}
	sure, unsure, unnamed := 0, 0, 0
	for range 5000 {
		tx := m.make()
		tx.Reply = transaction.Message{}
		whole.SetAll(tx)
		want, count := whole.OperationGroup(), len(whole.Steps())
		if whole.MoreOperations() {
			t.Fatalf("%v: there are no more", whole.Steps())
		}
		tx.Call.Payload = tx.Call.Payload[:m.counted+4+m.IntN(len(m.call)-m.counted-3)]
		cut.SetAll(tx)
		got := cut.OperationGroup()
		if more := len(cut.Steps()) < count; more != cut.MoreOperations() {
			t.Fatalf("%v of %v: more is %v", cut.Steps(), whole.Steps(), cut.MoreOperations())
		}
		if a, b := whole.File(), cut.File(); !cut.MoreOperations() && count > 0 && a != nil && b != nil {
			switch {
			case b.Unnamed && b.Name == nil && string(cut.AppendPath(nil)) == "":
				unnamed++
			case b.Unnamed || !bytes.Equal(a.Name, b.Name) || b.Handle != nil && !bytes.Equal(a.Handle, b.Handle):
				t.Fatalf("%v: file %+v, uncut %+v", whole.Steps(), b, a)
			}
		}
		listed := string(cut.AppendOperation(nil))
		if len(cut.Steps()) > 0 && cut.MoreOperations() != strings.HasSuffix(listed, "+?") {
			t.Fatalf("%v of %v are listed as %s", cut.Steps(), whole.Steps(), listed)
		}
		switch name, open := strings.CutSuffix(got, "+?"); {
		case open && cut.MoreOperations() && name != want:
			unsure++
		case open && cut.MoreOperations() || len(cut.Steps()) == 0:
		case got == want:
			sure++
		default:
			t.Fatalf("%v are grouped as %s, %v as %s", cut.Steps(), got, whole.Steps(), want)
		}
	}
	if sure < 1000 || unsure < 200 || unnamed < 100 {
		t.Errorf("%d are certain, %d would have another name, %d have none", sure, unsure, unnamed)
	}
}

// TestCutBoth: what the call lacks, the reply may have.
func TestCutBoth(t *testing.T) {
	var m maker
	for _, x := range []struct {
		name        string
		call, reply int // bytes of the operations; below zero: not captured
		group       string
	}{
		{"all", 100, 100, "CLOSE"},
		{"the reply has the rest", 8, 100, "CLOSE"},
		{"neither has it", 8, 8, "GETATTR+?"},
		{"no operation", 0, 0, "COMPOUND"},
		{"the call is there, the reply is not", 100, -1, "CLOSE"},
		{"half of each", 8, 20, "GETATTR+?"},
	} {
		m.begin()
		for _, op := range []nfs4.NfsOpnum4{nfs4.OP_GETATTR, nfs4.OP_CLOSE} {
			m.addCall(op, body(new(nfs4.CompoundArgs), op))
			m.addReply(op, body(new(nfs4.CompoundRes), op), nfs4.NFS4_OK)
		}
		tx := m.end(nfs4.NFS4_OK)
		tx.Call.Payload = m.call[:min(m.counted+4+x.call, len(m.call))]
		if x.reply < 0 {
			tx.Reply = transaction.Message{}
		} else {
			tx.Reply.Payload = m.reply[:min(m.answered+4+x.reply, len(m.reply))]
		}
		var v rpc.View
		v.SetAll(tx)
		if got := v.OperationGroup(); got != x.group {
			t.Errorf("%s: %s, want %s", x.name, got, x.group)
		}
		if n := testing.AllocsPerRun(10, func() { v.OperationGroup() }); n > 0 {
			t.Errorf("%s: %v allocations", x.name, n)
		}
	}
}
