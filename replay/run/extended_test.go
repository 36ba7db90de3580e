package run_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// extended adds calls to a sample's plan that no sample has: data read again after a change, a
// hole in written data, writes followed by a COMMIT, names that already exist, extended
// attributes that are read, locks that are denied.
func extended(t testing.TB, w *workload.Workload) *workload.Workload {
	t.Helper()
	x := &extension{w: w}
	for _, o := range w.Ops {
		if id := big(o); id != 0 {
			x.file, x.like = id, o
		}
	}
	if x.file == 0 {
		t.Fatal("nothing of 1 MiB is written")
	}
	if x.like.Compound == nil {
		x.v3()
	} else {
		w.Ops = w.Ops[:len(w.Ops)-2] // they end the session
		x.v42()
	}
	return w
}

// big is the file that a 1 MiB WRITE goes to.
func big(o *plan.Op) int {
	is := func(list []plan.Field) bool {
		for i := range list {
			if d := list[i].Data; d != nil && d.Length == 1<<20 {
				return true
			}
		}
		return false
	}
	if o.Compound == nil {
		if is(o.Args) {
			return workload.ObjectAt(o, -1)
		}
		return 0
	}
	for i := range o.Compound.Ops {
		if is(o.Compound.Ops[i].Args) {
			return workload.ObjectAt(o, i)
		}
	}
	return 0
}

type extension struct {
	w    *workload.Workload
	file int
	like *plan.Op // whose connection and user serve
}

func num(name string, v uint64) plan.Field {
	return plan.Field{N: name, Kind: plan.FieldU32, Value: v}
}
func long(name string, v uint64) plan.Field {
	return plan.Field{N: name, Kind: plan.FieldU64, Value: v}
}
func raw(name string, b []byte) plan.Field { return plan.Field{N: name, Kind: plan.FieldRaw, Bytes: b} }
func handle(id int) plan.Field {
	return plan.Field{N: "object", Kind: plan.FieldHandle, Ref: id}
}

// add appends an op, which waits for the one before it.
func (x *extension) add(o plan.Op, status uint32, data ...plan.Result) *plan.Op {
	last := x.w.Ops[len(x.w.Ops)-1]
	o.ID, o.XID = last.ID+1, last.XID+1
	o.Connection, o.Credential, o.Program, o.Version = x.like.Connection, x.like.Credential, x.like.Program, x.like.Version
	o.Role, o.Class, o.Time, o.Latency, o.Service = plan.Workload, plan.Exact, last.Time+1e6, 1e5, -1
	o.Deps = []plan.Dep{{Op: last.ID, Kind: plan.DepSize}}
	o.Expect = &plan.Expect{Status: status, Data: data}
	x.w.Ops = append(x.w.Ops, &o)
	return x.w.Ops[len(x.w.Ops)-1]
}

func (x *extension) payload(n uint32, offset uint64) plan.Field {
	return plan.Field{N: "data", Kind: plan.FieldData, Data: &plan.Payload{Length: n, Source: plan.Pattern, Object: x.file, Offset: offset}}
}

func (x *extension) v3() {
	read := func() {
		x.add(plan.Op{What: "READ again", Procedure: nfs3.NFSPROC3_READ, Args: []plan.Field{handle(x.file), long("offset", 0), num("count", 65536)}}, 0,
			plan.Result{Length: 65536})
	}
	size := func(n uint64) {
		a := nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: n}}
		x.add(plan.Op{What: "SETATTR size", Procedure: nfs3.NFSPROC3_SETATTR, Modifies: true,
			Args: []plan.Field{handle(x.file), raw("new_attributes", a.Append(nil)), num("check", 0)}}, 0)
	}
	write := func(offset uint64) {
		x.add(plan.Op{What: "WRITE unstable", Procedure: nfs3.NFSPROC3_WRITE, Modifies: true,
			Args: []plan.Field{handle(x.file), long("offset", offset), num("count", 5000), num("stable", 0), x.payload(5000, offset)}}, 0)
	}
	read()
	size(30000)
	size(1 << 20)
	read()
	write(100000)
	write(200000)
	write(1001)
	write(1<<20 + 5000)
	x.add(plan.Op{What: "COMMIT", Procedure: nfs3.NFSPROC3_COMMIT, Modifies: true, Args: []plan.Field{handle(x.file), long("offset", 0), num("count", 0)}}, 0)
	parent, name := x.there()
	where := []plan.Field{handle(parent), {N: "name", Kind: plan.FieldName, Text: name}}
	x.add(plan.Op{What: "MKDIR of what exists", Procedure: nfs3.NFSPROC3_MKDIR, Modifies: true,
		Args: append(append([]plan.Field{}, where...), raw("attributes", (&nfs3.Sattr3{}).Append(nil)))}, uint32(nfs3.NFS3ERR_EXIST))
	x.add(plan.Op{What: "CREATE of what exists", Procedure: nfs3.NFSPROC3_CREATE, Modifies: true,
		Args: append(append([]plan.Field{}, where...), num("mode", uint64(nfs3.GUARDED)), raw("obj_attributes", (&nfs3.Sattr3{}).Append(nil)))}, uint32(nfs3.NFS3ERR_EXIST))
	x.add(plan.Op{What: "RENAME to a name that is taken", Procedure: nfs3.NFSPROC3_RENAME, Modifies: true,
		Args: []plan.Field{handle(parent), {N: "name", Kind: plan.FieldName, Text: "w3"}, handle(parent), {N: "name", Kind: plan.FieldName, Text: "fsynced"}}}, 0)
	x.locks()
}

// locks adds calls of NLM by two owners, like those of the sample.
func (x *extension) locks() {
	var like *plan.Op
	for _, o := range x.w.Ops {
		if o.Program == nlm.NLM_PROG && o.Procedure == nlm.NLM_LOCK {
			like = o
		}
	}
	was := x.like
	x.like = like
	defer func() { x.like = was }()
	owner := func(svid int32) int {
		x.w.Tables.Owners = append(x.w.Tables.Owners, plan.Owner{ID: len(x.w.Tables.Owners) + 1, Kind: plan.OwnerNLM, Host: "extended", Svid: svid, Bytes: []byte{byte(svid)}})
		return len(x.w.Tables.Owners)
	}
	a, b := owner(1), owner(2)
	call := func(what string, procedure uint32, owner int, offset uint64, st nlm.Nlm4Stats) {
		f := []plan.Field{raw("cookie", xdr.AppendOpaque(nil, []byte{1}))}
		if procedure == nlm.NLM_LOCK {
			f = append(f, num("block", 0), num("exclusive", 1))
		}
		f = append(f, plan.Field{N: "caller_name", Kind: plan.FieldLockHost, Ref: owner}, handle(x.file), plan.Field{N: "oh", Kind: plan.FieldLockOwner, Ref: owner},
			plan.Field{N: "svid", Kind: plan.FieldSvid, Ref: owner}, long("l_offset", offset), long("l_len", 100))
		if procedure == nlm.NLM_LOCK {
			f = append(f, num("reclaim", 0), num("state", 3))
		}
		o := x.add(plan.Op{What: what, Procedure: procedure, Args: f}, uint32(st))
		o.Expect.Results = (&nlm.Nlm4Res{Cookie: []byte{1}, Stat: nlm.Nlm4Stat{Stat: st}}).Append(nil)
	}
	call("LOCK", nlm.NLM_LOCK, a, 0, nlm.NLM4_GRANTED)
	call("LOCK of what is locked", nlm.NLM_LOCK, b, 50, nlm.NLM4_DENIED)
	call("LOCK of what is free", nlm.NLM_LOCK, b, 1000, nlm.NLM4_GRANTED)
	call("UNLOCK", nlm.NLM_UNLOCK, a, 0, nlm.NLM4_GRANTED)
	call("LOCK of what is free again", nlm.NLM_LOCK, b, 50, nlm.NLM4_GRANTED)
}

// there is the location of the file.
func (x *extension) there() (parent int, name string) {
	o := &x.w.Tables.Objects[x.file-1]
	return o.Parent, o.Name
}

// compound adds a COMPOUND on the file.
func (x *extension) compound(what string, object int, modifies bool, status uint32, data []plan.Result, ops ...plan.CompoundOp) *plan.Op {
	sequence := plan.CompoundOp{Op: uint32(nfs4.OP_SEQUENCE), Name: "SEQUENCE", Args: []plan.Field{{N: "sa_sessionid", Kind: plan.FieldSession, Ref: 1},
		{N: "sa_sequenceid", Kind: plan.FieldSequence, Ref: 1}, {N: "sa_slotid", Kind: plan.FieldSlot, Ref: 1}, {N: "sa_highest_slotid", Kind: plan.FieldHighest, Ref: 1}, num("sa_cachethis", 0)}}
	put := plan.CompoundOp{Op: uint32(nfs4.OP_PUTFH), Name: "PUTFH", Args: []plan.Field{handle(object)}}
	o := x.add(plan.Op{What: "nfs4.2 " + what, Procedure: 1, Modifies: modifies, Compound: &plan.Compound{Minor: 2, Ops: append([]plan.CompoundOp{sequence, put}, ops...)}}, status, data...)
	o.Expect.Ops = make([]uint32, 2+len(ops))
	o.Expect.Ops[1+len(ops)] = status
	return o
}

func op4(n nfs4.NfsOpnum4, args ...plan.Field) plan.CompoundOp {
	return plan.CompoundOp{Op: uint32(n), Name: n.String(), Args: args}
}

func (x *extension) v42() {
	anonymous := plan.Field{N: "stateid", Kind: plan.FieldState0, Text: "anonymous"}
	read := func() {
		x.compound("READ again", x.file, false, 0, []plan.Result{{At: 2, Length: 65536}}, op4(nfs4.OP_READ, anonymous, long("offset", 0), num("count", 65536)))
	}
	write := func(offset uint64) {
		x.compound("WRITE unstable", x.file, true, 0, nil, op4(nfs4.OP_WRITE, anonymous, long("offset", offset), num("stable", 0), x.payload(5000, offset)))
	}
	read()
	x.compound("DEALLOCATE", x.file, true, 0, nil, op4(nfs4.OP_DEALLOCATE, anonymous, long("da_offset", 4096), long("da_length", 8192)))
	read()
	write(100000)
	write(200000)
	write(1001)
	write(1<<20 + 5000)
	x.compound("COMMIT", x.file, true, 0, nil, op4(nfs4.OP_COMMIT, long("offset", 0), num("count", 0)))

	parent, name := x.there()
	where := plan.Field{N: "objname", Kind: plan.FieldName, Text: name}
	none := (&nfs4.Fattr4{}).Append(nil)
	x.compound("CREATE of what exists", parent, true, uint32(nfs4.NFS4ERR_EXIST), nil, op4(nfs4.OP_CREATE, num("type", uint64(nfs4.NF4DIR)), where, raw("createattrs", none)))
	open := func(how []byte, share uint64, claim ...plan.Field) plan.CompoundOp {
		return op4(nfs4.OP_OPEN, append([]plan.Field{num("seqid", 0), num("share_access", share), num("share_deny", 0), {N: "clientid", Kind: plan.FieldClient, Ref: 1},
			{N: "owner", Kind: plan.FieldText, Text: "extended"}, raw("openhow", how)}, claim...)...)
	}
	guarded := append(xdr.AppendUint32(xdr.AppendUint32(nil, uint32(nfs4.OPEN4_CREATE)), uint32(nfs4.GUARDED4)), none...)
	x.compound("RENAME to a name that is taken", parent, true, 0, nil, plan.CompoundOp{Op: uint32(nfs4.OP_SAVEFH), Name: "SAVEFH"},
		op4(nfs4.OP_RENAME, plan.Field{N: "oldname", Kind: plan.FieldName, Text: "w3"}, plan.Field{N: "newname", Kind: plan.FieldName, Text: "fsynced"}))
	x.compound("OPEN of what exists", parent, true, uint32(nfs4.NFS4ERR_EXIST), nil, open(guarded, nfs4.OPEN4_SHARE_ACCESS_BOTH, num("claim", 0), where))

	x.w.Tables.Objects = append(x.w.Tables.Objects, plan.Object{ID: len(x.w.Tables.Objects) + 1, Type: "symlink", Parent: parent, Name: "soft", Origin: plan.Created})
	soft := x.compound("CREATE soft", parent, true, 0, nil, op4(nfs4.OP_CREATE, num("type", uint64(nfs4.NF4LNK)),
		plan.Field{N: "linkdata", Kind: plan.FieldData, Data: &plan.Payload{Length: 6, Source: plan.Captured, Text: []byte("target")}},
		plan.Field{N: "objname", Kind: plan.FieldName, Text: "soft"}, raw("createattrs", none)), op4(nfs4.OP_GETFH))
	soft.Binds = []plan.Bind{{At: 3, Kind: plan.FieldHandle, Ref: len(x.w.Tables.Objects)}}

	key := xdr.AppendOpaque(nil, []byte("colour"))
	value := xdr.AppendOpaque(nil, []byte("green"))
	shape := append(xdr.AppendOpaque(nil, []byte("shape")), xdr.AppendOpaque(nil, []byte("round"))...) // which stays
	x.compound("SETXATTR", x.file, true, 0, nil, op4(nfs4.OP_SETXATTR, num("sxa_option", 0), raw("arguments", shape)))
	x.compound("SETXATTR", x.file, true, 0, nil, op4(nfs4.OP_SETXATTR, num("sxa_option", 0), raw("arguments", append(append([]byte{}, key...), value...))))
	got := x.compound("GETXATTR", x.file, false, 0, nil, op4(nfs4.OP_GETXATTR, raw("arguments", key)))
	got.Expect.Results = results(nfs4.OP_GETXATTR, 0, value)
	x.compound("REMOVEXATTR", x.file, true, 0, nil, op4(nfs4.OP_REMOVEXATTR, raw("arguments", key)))
	x.compound("GETXATTR", x.file, false, uint32(nfs4.NFS4ERR_NOXATTR), nil, op4(nfs4.OP_GETXATTR, raw("arguments", key)))

	state := func(kind plan.StateKind) int {
		x.w.Tables.States = append(x.w.Tables.States, plan.State{ID: len(x.w.Tables.States) + 1, Kind: kind, Client: 1, Object: x.file, Class: plan.Exact})
		return len(x.w.Tables.States)
	}
	opened, locked := state(plan.OpenState), state(plan.LockState)
	o := x.compound("OPEN", x.file, true, 0, nil, open(xdr.AppendUint32(nil, 0), nfs4.OPEN4_SHARE_ACCESS_BOTH|nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG, num("claim", uint64(nfs4.CLAIM_FH))))
	o.Binds = []plan.Bind{{At: 2, Kind: plan.FieldState, Ref: opened, State: plan.OpenState}}
	lock := func(owner string, offset uint64) plan.CompoundOp {
		return op4(nfs4.OP_LOCK, num("locktype", uint64(nfs4.WRITE_LT)), num("reclaim", 0), long("offset", offset), long("length", 100), num("new_lock_owner", 1), num("open_seqid", 0),
			plan.Field{N: "open_stateid", Kind: plan.FieldState, Ref: opened, Zero: true}, num("lock_seqid", 0), plan.Field{N: "clientid", Kind: plan.FieldClient, Ref: 1},
			plan.Field{N: "owner", Kind: plan.FieldText, Text: owner})
	}
	o = x.compound("LOCK", x.file, true, 0, nil, lock("first", 0))
	o.Binds = []plan.Bind{{At: 2, Kind: plan.FieldState, Ref: locked, State: plan.LockState}}
	x.compound("LOCK of what is locked", x.file, true, uint32(nfs4.NFS4ERR_DENIED), nil, lock("second", 0))
	x.compound("LOCK of what is free", x.file, true, 0, nil, lock("third", 1000))
	x.compound("LOCKU", x.file, true, 0, nil, op4(nfs4.OP_LOCKU, num("locktype", uint64(nfs4.WRITE_LT)), num("seqid", 0), plan.Field{N: "lock_stateid", Kind: plan.FieldState, Ref: locked, Zero: true}, long("offset", 0), long("length", 100)))
	x.compound("LOCK of what is free again", x.file, true, 0, nil, lock("second", 0))
}

// results makes the results of a COMPOUND with SEQUENCE, PUTFH and an operation.
func results(n nfs4.NfsOpnum4, status uint32, body []byte) []byte {
	var c nfs4.CompoundRes
	c.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_SEQUENCE), Body: &nfs4.SEQUENCE4res{}}, {Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.Status4res{}}}
	b := c.Append(nil)
	b[11] = 3 // operations: after the status and the empty tag
	return append(xdr.AppendUint32(xdr.AppendUint32(b, uint32(n)), status), body...)
}
