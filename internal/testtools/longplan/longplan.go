// Package longplan makes plans of any length, as a capture of a busy mount would give them: two
// connections, NFSv3 and NFSv4.1, calls that read and write files and ask for attributes and names,
// several of them in flight at a time. A plan is written as it is made, so that its length costs no
// memory.
package longplan

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Options of Write.
type Options struct {
	Calls int
	Files int // 1000; each has Size bytes
	Size  uint32
	// InFlight is how many calls are in flight at a time (8), and Apart how long after another one a
	// call begins, in nanoseconds (1000).
	InFlight int
	Apart    int64
	// Bare leaves out of the header what later programs have added to it.
	Bare bool
	// Claimed is how many calls the header says that there are, if not Calls.
	Claimed int
}

// Write writes a plan.
func Write(w *plan.Writer, o Options) error {
	if o.Files <= 0 {
		o.Files = 1000
	}
	if o.Size == 0 {
		o.Size = 4096
	}
	if o.InFlight <= 0 {
		o.InFlight = 8
	}
	if o.Apart <= 0 {
		o.Apart = 1000
	}
	m := &maker{Options: o, changed: make([]int, o.Files)}
	if err := w.Tables(m.tables()); err != nil {
		return err
	}
	for id := 1; id <= o.Calls; id++ {
		if err := w.Op(m.op(id)); err != nil {
			return err
		}
	}
	return nil
}

// Make writes a plan to a writer, without compression.
func Make(out io.Writer, o Options) error {
	w := plan.NewWriter(out)
	if err := Write(w, o); err != nil {
		return err
	}
	return w.Close()
}

// IDs in the tables.
const (
	base      = 1
	firstFile = 2 // object
	over3     = 1 // connection
	over4     = 2
)

type maker struct {
	Options
	changed []int // the latest op that has changed a file
}

func (m *maker) tables() *plan.Tables {
	claimed := m.Claimed
	if claimed == 0 {
		claimed = m.Calls
	}
	n4 := m.Calls / 8
	t := &plan.Tables{
		Header: plan.Header{
			Format: plan.Format, Tool: "longplan", Sources: []string{"made up"}, Payload: plan.Pattern, Fabrics: []string{"rocev2"},
			Duration: int64(m.Calls) * m.Apart,
			Summary: &plan.Summary{
				Transactions: claimed, Ops: plan.Counts{Exact: claimed}, Roles: map[plan.Role]int{plan.Workload: claimed},
				Programs: map[string]int{"nfs3": claimed - n4, "nfs4.1": n4}, Prepared: m.Files, PreparedBytes: uint64(m.Files) * uint64(m.Size),
			},
			Facts: &plan.Facts{Examples: []plan.Example{{Connection: over4, Credential: 1}, {Client: 1, Connection: over4, Credential: 1}}},
		},
		Servers: []plan.Server{{ID: 1, Addr: "192.0.2.1", Versions: []string{"3", "4.1"}}},
		Connections: []plan.Connection{
			{ID: over3, Fabric: "rocev2", Client: "192.0.2.2:700", Server: 1, Address: "192.0.2.1:20049", Ops: m.Calls - n4, MaxInFlight: m.InFlight},
			{ID: over4, Fabric: "rocev2", Client: "192.0.2.2:701", Server: 1, Address: "192.0.2.1:20049", Ops: n4, MaxInFlight: m.InFlight},
		},
		Credentials: []plan.Credential{{ID: 1, Flavor: "sys", Machine: "longplan"}},
		Clients:     []plan.Client{{ID: 1, Server: 1, Addr: "192.0.2.2", Minor: 1, Owner: "longplan", Class: plan.Exact}},
		Sessions:    []plan.Session{{ID: 1, Client: 1, Slots: 16, Class: plan.Exact}},
		Objects:     []plan.Object{{ID: base, Server: 1, Type: "dir", Origin: plan.Before, Base: true, NameClass: plan.Exact}},
	}
	if m.Bare {
		t.Header.Facts = nil
	}
	mode := uint32(0o644)
	for i := range m.Files {
		t.Objects = append(t.Objects, plan.Object{ID: firstFile + i, Server: 1, Type: "file", Origin: plan.Before, Path: name(i), Parent: base, Name: name(i),
			NameClass: plan.Exact, Mode: &mode, Size: uint64(m.Size), SizeClass: plan.Exact})
	}
	return t
}

func name(i int) string { return fmt.Sprintf("file-%06d", i) }

// op is a call.
func (m *maker) op(id int) *plan.Op {
	k := (id * 7919) % m.Files
	file := firstFile + k
	o := &plan.Op{ID: id, XID: uint32(id), Connection: over3, Credential: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Role: plan.Workload, Class: plan.Exact,
		Time: int64(id) * m.Apart, Latency: int64(m.InFlight) * m.Apart * 9 / 10, Service: -1, Expect: &plan.Expect{}}
	// The reply of the previous call of this kind was the last before it.
	if o.After = id - m.InFlight; o.After < 0 {
		o.After = 0
	}
	handle := plan.Field{N: "object", Kind: plan.FieldHandle, Ref: file}
	wait := func() {
		if d := m.changed[k]; d > 0 && d <= id-m.InFlight {
			o.Deps = append(o.Deps, plan.Dep{Op: d, Kind: plan.DepRange})
		}
	}
	number := func(n string, v uint64) plan.Field { return plan.Field{N: n, Kind: plan.FieldU32, Value: v} }
	switch id % 8 {
	case 0:
		o.Connection, o.Version, o.Procedure = over4, 4, 1
		o.What = "nfs4.1 GETATTR " + name(k)
		o.Compound = &plan.Compound{Minor: 1, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_SEQUENCE), Name: "SEQUENCE", Args: []plan.Field{
				{N: "sa_sessionid", Kind: plan.FieldSession, Ref: 1}, {N: "sa_sequenceid", Kind: plan.FieldSequence, Ref: 1},
				{N: "sa_slotid", Kind: plan.FieldSlot, Ref: 1, Value: uint64(id / 8 % 16)}, {N: "sa_highest_slotid", Kind: plan.FieldHighest, Ref: 1, Value: 15},
				number("sa_cachethis", 0)}},
			{Op: uint32(nfs4.OP_PUTFH), Name: "PUTFH", Args: []plan.Field{handle}},
			{Op: uint32(nfs4.OP_GETATTR), Name: "GETATTR", Args: []plan.Field{{N: "attr_request", Kind: plan.FieldRaw, Bytes: bitmap(0x18)}}},
		}}
		o.Expect.Ops = []uint32{0, 0, 0}
	case 1:
		o.Procedure, o.What, o.Modifies = nfs3.NFSPROC3_WRITE, "nfs3 WRITE "+name(k), true
		at := uint64(id/8%4) * uint64(m.Size) / 4
		n := m.Size / 4
		o.Args = []plan.Field{handle, {N: "offset", Kind: plan.FieldU64, Value: at}, number("count", uint64(n)), number("stable", uint64(nfs3.FILE_SYNC)),
			{N: "data", Kind: plan.FieldData, Data: &plan.Payload{Length: n, Source: plan.Pattern, Object: file, Offset: at}}}
		wait()
		m.changed[k] = id
	case 2, 3:
		o.Procedure, o.What = nfs3.NFSPROC3_READ, "nfs3 READ "+name(k)
		n := m.Size / 4
		at := uint64(id/8%4) * uint64(n)
		o.Args = []plan.Field{handle, {N: "offset", Kind: plan.FieldU64, Value: at}, number("count", uint64(n))}
		o.Expect.Data = []plan.Result{{Offset: at, Length: n}}
		wait()
	case 4:
		o.Procedure, o.What = nfs3.NFSPROC3_LOOKUP, "nfs3 LOOKUP "+name(k)
		o.Args = []plan.Field{{N: "dir", Kind: plan.FieldHandle, Ref: base}, {N: "name", Kind: plan.FieldName, Text: name(k), Ref: file}}
		o.Binds = []plan.Bind{{Kind: plan.FieldHandle, Ref: file}}
	case 5:
		o.Procedure, o.What = nfs3.NFSPROC3_ACCESS, "nfs3 ACCESS "+name(k)
		o.Args = []plan.Field{handle, number("access", 0x1f)}
	default:
		o.Procedure, o.What = nfs3.NFSPROC3_GETATTR, "nfs3 GETATTR "+name(k)
		o.Args = []plan.Field{handle}
	}
	return o
}

// bitmap is a bitmap4 of one word.
func bitmap(word uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 1), word)
}
