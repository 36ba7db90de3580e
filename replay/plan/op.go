package plan

import (
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Role is what an op is for.
type Role string

// Roles.
const (
	// Workload is what the applications wanted.
	Workload Role = "workload"
	// Mounting is the walk from the root of the server to the base.
	Mounting Role = "mount"
	// Sessions sets up and tears down client ids and sessions.
	Sessions Role = "session"
	// Keepalive renews a lease and does nothing else.
	Keepalive Role = "keepalive"
	// Ping is a NULL call.
	Ping Role = "null"
)

// Op is one call.
type Op struct {
	ID         int    `json:"id"` // 1, 2, … in the order of the calls
	XID        uint32 `json:"xid"`
	Connection int    `json:"conn"`
	Credential int    `json:"cred"`
	Program    uint32 `json:"prog"`
	Version    uint32 `json:"vers"`
	Procedure  uint32 `json:"proc"`
	// What is for readers: "nfs3 READ d1/small @0+8192". It has no effect.
	What     string   `json:"what"`
	Role     Role     `json:"role"`
	Class    Class    `json:"class"`
	Reasons  []string `json:"reasons,omitempty"`  // why it is not exact
	Modifies bool     `json:"modifies,omitempty"` // it may change what is on the server
	// Granted: the captured server called its client (NLM GRANTED). The op is a LOCK that asks
	// once more, when the server has called here or a while has passed.
	Granted bool `json:"granted,omitempty"`

	// Times in nanoseconds. Time counts from Header.Start.
	Time    int64 `json:"time"`
	Latency int64 `json:"latency"` // first packet of the call to last of the reply; -1 if there is none
	Service int64 `json:"service"` // the part of it in which nothing was on the wire; -1 if not known
	// Before is how much earlier the client had sent the call for the first time, over another connection: the
	// captured server may have executed it since, and have repeated its reply. 0 if there is no such copy.
	Before int64 `json:"before,omitempty"`
	// After is the op whose reply came last before this call on the same
	// connection, 0 if there is none; Think is the time between.
	After int   `json:"after,omitempty"`
	Think int64 `json:"think,omitempty"`

	Deps []Dep `json:"deps,omitempty"`

	// Args are the arguments of an NFSv3 procedure; Compound those of NFSv4.
	Args     []Field   `json:"args,omitempty"`
	Compound *Compound `json:"compound,omitempty"`
	// Binds say what the reply gives a value to.
	Binds []Bind `json:"binds,omitempty"`

	Layout *Layout `json:"layout,omitempty"`
	Expect *Expect `json:"expect,omitempty"`
}

// Compound is an NFSv4 COMPOUND.
type Compound struct {
	Tag      string       `json:"tag,omitempty"`
	TagBytes []byte       `json:"tag_bytes,omitempty"` // if it is not UTF-8
	Minor    uint32       `json:"minor"`
	Ops      []CompoundOp `json:"ops"`
}

// CompoundOp is one operation of a COMPOUND.
type CompoundOp struct {
	Op   uint32  `json:"op"`
	Name string  `json:"name"` // for readers
	Args []Field `json:"args,omitempty"`
}

// DepKind is why an op has to wait for another one's reply.
type DepKind string

// Kinds of dependencies.
const (
	DepCreate  DepKind = "create"  // it uses an object, or a name, that the other makes
	DepName    DepKind = "name"    // barrier of a RENAME, REMOVE, LINK … on the same name
	DepRange   DepKind = "range"   // overlapping byte ranges, one of them written
	DepSize    DepKind = "size"    // a truncation, or attributes after a change
	DepCommit  DepKind = "commit"  // COMMIT after WRITE
	DepState   DepKind = "state"   // a state id that comes from there, or is changed there
	DepSeqid   DepKind = "seqid"   // the same owner's sequence (NFSv4.0)
	DepSlot    DepKind = "slot"    // the same slot of a session
	DepCookie  DepKind = "cookie"  // READDIR goes on
	DepClient  DepKind = "client"  // client id, session
	DepProgram DepKind = "program" // the call came after the reply, nothing else
)

// Optional reports kinds of edges that an executor need not keep. They must not
// make others superfluous.
func (k DepKind) Optional() bool { return k == DepProgram || k == DepSlot }

// Dep is an edge of the dependency graph: the op may be sent when the reply of
// Op is there. Edges point backwards: Op is less than the op's own ID.
type Dep struct {
	Op   int     `json:"op"`
	Kind DepKind `json:"kind"`
}

// Bind says which symbol gets its value from the reply.
type Bind struct {
	// At is the index of the operation in the COMPOUND; 0 for NFSv3.
	At   int       `json:"at"`
	Kind FieldKind `json:"kind"`
	Ref  int       `json:"ref"`
	// Name is the directory entry of a READDIR or READDIRPLUS whose handle it is.
	Name      string `json:"name,omitempty"`
	NameBytes []byte `json:"name_bytes,omitempty"`
	// State tells for FieldState which of a reply's state ids it is.
	State StateKind `json:"state,omitempty"`
}

// Layout is how the call was laid out: sizes in bytes, one number for each
// segment (transport.Layout).
type Layout struct {
	PositionZero []uint32   `json:"position_zero,omitempty"`
	Reads        [][]uint32 `json:"reads,omitempty"`
	Writes       [][]uint32 `json:"writes,omitempty"`
	Reply        []uint32   `json:"reply,omitempty"`
	// CallSend and ReplySend are the sizes of the two Sends in bytes, transport
	// headers included.
	CallSend  int `json:"call_send"`
	ReplySend int `json:"reply_send,omitempty"`
	// Used are bytes that the reply used of each Write chunk and of the Reply
	// chunk.
	UsedWrites []uint32 `json:"used_writes,omitempty"`
	UsedReply  uint32   `json:"used_reply,omitempty"`
	Credits    uint32   `json:"credits,omitempty"` // asked by this call
	Granted    uint32   `json:"granted,omitempty"` // by its reply
}

// Transport is the layout as the transport wants it.
func (l *Layout) Transport() *transport.Layout {
	if l == nil {
		return nil
	}
	return &transport.Layout{PositionZero: l.PositionZero, Reads: l.Reads, Writes: l.Writes, Reply: l.Reply}
}

// Expect is the reply as captured.
type Expect struct {
	// RPC is the outcome of the RPC layer; empty if the procedure was executed
	// ("PROG_MISMATCH", "ERR_CHUNK" …).
	RPC string `json:"rpc,omitempty"`
	// Status is the status of the procedure, or of the whole COMPOUND.
	Status     uint32 `json:"status"`
	StatusName string `json:"status_name,omitempty"`
	// Ops are the statuses of a COMPOUND's operations, as many as were executed.
	Ops []uint32 `json:"ops,omitempty"`
	// Results are the results in XDR, without the bytes of Data.
	Results []byte `json:"results,omitempty"`
	// Partial says that Results could not be read to their end, so that only
	// what stands beside them can be compared.
	Partial bool     `json:"partial,omitempty"`
	Data    []Result `json:"data,omitempty"`
}

// Reduced is the list of data items that Results lacks, for
// xdr.Reader.ReduceReply.
func (x *Expect) Reduced(dst []xdr.Reduced) []xdr.Reduced {
	for i := range x.Data {
		dst = append(dst, xdr.Reduced{Length: x.Data[i].Length})
	}
	return dst
}

// Result is a piece of data that a reply returned: of READ, of READLINK.
type Result struct {
	At     int    `json:"at"` // index of the operation in the COMPOUND
	Offset uint64 `json:"offset"`
	Length uint32 `json:"length"`
	EOF    bool   `json:"eof,omitempty"`
	// Hash is HashData of the bytes; empty if the capture lacks some.
	Hash string `json:"hash,omitempty"`
	// Text is a link's target.
	Text []byte `json:"text,omitempty"`
}

// Skip is a transaction that is not replayed.
type Skip struct {
	XID        uint32 `json:"xid"`
	Connection int    `json:"conn"`
	Time       int64  `json:"time"`
	What       string `json:"what"`
	Class      Class  `json:"class"` // Impossible, or Exact if nothing is lost
	// Reason is for readers. Code is set where the executor has to know it.
	Reason string   `json:"reason"`
	Code   SkipCode `json:"code,omitempty"`
	// Touches are what a call of which the capture lacks a part may have changed. If there
	// are none it may have changed anything, unless Reads says that it changes nothing.
	Touches []Touch `json:"touches,omitempty"`
	Reads   bool    `json:"reads,omitempty"`
}

// Touch is something that a call may have changed.
type Touch struct {
	// Object is what it may have changed; of a name the directory that it is in; 0 for
	// any.
	Object int `json:"object,omitempty"`
	// Named: a name in the directory, and what it leads to. Without a name, any.
	Named     bool   `json:"named,omitempty"`
	Name      string `json:"name,omitempty"`
	NameBytes []byte `json:"name_bytes,omitempty"` // if it is not UTF-8
	// Ranged: Length bytes at Offset, and what follows from that: size and times.
	// Otherwise all of the object.
	Ranged bool   `json:"ranged,omitempty"`
	Offset uint64 `json:"offset,omitempty"`
	Length uint64 `json:"length,omitempty"`
}

// SkipCode is a reason that an executor has to know.
type SkipCode string

// SkipCut means that the call was not captured as a whole, so that what it did is not known.
const SkipCut SkipCode = "cut"

// ReasonCut is SkipCut in words.
const ReasonCut = "the capture lacks a part of its arguments"

// Cut reports whether the call was not captured as a whole. Older plans have no
// codes.
func (s *Skip) Cut() bool {
	return s.Class == Impossible && (s.Code == SkipCut || s.Code == "" && s.Reason == ReasonCut)
}

// EachField calls f for all arguments.
func (o *Op) EachField(f func(*Field)) {
	for i := range o.Args {
		f(&o.Args[i])
	}
	if o.Compound == nil {
		return
	}
	for i := range o.Compound.Ops {
		for k := range o.Compound.Ops[i].Args {
			f(&o.Compound.Ops[i].Args[k])
		}
	}
}
