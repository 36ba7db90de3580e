package planner

import (
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// call is the transaction being added.
type call struct {
	b          *Builder
	v          *rpc.View
	conn       *connection
	server     int
	before     int64 // how much earlier it was sent for the first time
	start, end int64 // ns from the start of the plan; end is -1 without a reply
	ok         bool  // the reply says that it succeeded
	replied    bool  // and its results are known
	op         *plan.Op
	reasons    []plan.Reason
	deps       order.Deps
	form       form
	scratch    []byte
	compound   compound
	act        ops.Act // of the current procedure or operation

	granted *blocked // NLM: the LOCK that this GRANTED is for

	client *client // NFSv4: of the session, or of the client id seen last
	minor  uint32

	wrote  *obj   // what it has written to
	objs   []*obj // that its reply may tell about
	path   string // of its object, for readers
	detail string
}

// Add adds a transaction. Transactions have to come in the order of their calls.
func (b *Builder) Add(v *rpc.View) error {
	if b.err != nil {
		return b.err
	}
	b.summary.Transactions++
	tx := v.Tx
	if !b.started {
		b.started, b.start = true, tx.First().Time
		b.end = b.start
	}
	c := &b.call
	*c = call{b: b, v: v, form: c.form, deps: c.deps, reasons: c.reasons[:0], scratch: c.scratch, objs: c.objs[:0]}
	c.conn = b.connection(v)
	if tx.Call.Seen() && !tx.Backward && !c.conn.called {
		c.conn.called, c.conn.first = true, tx.XID
	}
	c.server = b.ids.real(b.t.Connections[c.conn.id-1].Server)
	c.before = 0
	c.start, c.end = tx.First().Time-b.start, -1
	if tx.Reply.Seen() {
		c.end = max(tx.Reply.Last.Time-b.start, c.start)
		b.end = max(b.end, tx.Reply.Last.Time)
	}
	if c.asynchronous() {
		c.end = max(c.end, c.start) // it is over when it is sent: later calls may rely on it
	}
	b.end = max(b.end, tx.First().Time)
	if class, reason := c.judge(); reason != "" {
		b.skip(c, class, reason)
		return b.err
	}
	b.ids.look(c)
	c.add()
	return b.err
}

// Reasons why nothing is known of what a call did.
const (
	notCaptured = "its call was not captured"
	noHeader    = "the header of the call could not be read"
)

// judge says why a transaction is not replayed.
func (c *call) judge() (plan.Class, string) {
	v, tx := c.v, c.v.Tx
	switch {
	case c.callsBack() && tx.Call.Seen() && v.CallErr == nil:
		return c.judgeLock()
	case tx.Backward || tx.Named && v.Program != nil && v.Program.Name == "nfs_cb":
		return plan.Exact, "a callback: the server's call to its client"
	case !tx.Call.Seen():
		return plan.Impossible, notCaptured
	case v.CallErr != nil:
		return plan.Impossible, noHeader
	case !tx.Named:
		return plan.Impossible, "the program of the call is not known"
	}
	if v.Call().Protection().Kind() == oncrpc.BodyInit || v.Call().GSS.Proc == oncrpc.GSSDestroy && v.Call().Cred.Flavor == oncrpc.RPCSecGSS {
		return plan.Exact, "set-up and tear-down of an RPCSEC_GSS context"
	}
	if c.nlm() {
		return c.judgeLock()
	}
	if tx.Program != nfs4.NFS4_PROGRAM && !c.acl3() {
		return c.other()
	}
	if tx.Version != 3 && tx.Version != 4 {
		return plan.Impossible, "NFS version " + strconv.FormatUint(uint64(tx.Version), 10) + " is not replayed"
	}
	if v.Procedure == nil {
		return plan.Impossible, "an unknown procedure"
	}
	if reason := c.unreadable(); reason != "" {
		return plan.Impossible, reason
	}
	if c.again() {
		return plan.Exact, "sent again: replayed once"
	}
	return "", ""
}

// other judges the programs other than NFS.
func (c *call) other() (plan.Class, string) {
	v := c.v
	name := v.ProgramName()
	switch name {
	case "mount":
		c.mounted()
		return plan.Exact, "MOUNT: the executor mounts by itself"
	case "portmap", "rpcbind":
		return plan.Exact, name + ": the executor is told the port"
	case "nfsacl":
		return plan.Exact, "NFSACL version 2, and GETXATTRDIR, are not replayed"
	case "nsm":
		return plan.Exact, "NSM: this run has its own names, and does not restart"
	}
	if v.Program == nil {
		return plan.Impossible, "program " + name + " is not known"
	}
	return plan.Impossible, "program " + name + " is not replayed"
}

// unreadable says why the arguments of a call cannot be used.
func (c *call) unreadable() string {
	v, tx := c.v, c.v.Tx
	switch v.CallBody().Kind {
	case oncrpc.BodyPrivacy:
		if v.Args() == nil {
			return "its arguments are encrypted (RPCSEC_GSS privacy)"
		}
	case oncrpc.BodyUnknown:
		return "its arguments are protected in an unknown way"
	}
	if a, ok := v.Args().(*nfs4.CompoundArgs); ok && len(a.Ops) > maxOperations {
		return "a COMPOUND of more than " + strconv.Itoa(maxOperations) + " operations"
	}
	switch {
	case v.Args() != nil && v.ArgsErr == nil:
	case v.Args() != nil && v.ArgsCut && c.cutInData():
	case v.ArgsCut || tx.Call.Cut || tx.State == transaction.Incomplete:
		return plan.ReasonCut
	default:
		return "its arguments are malformed"
	}
	return ""
}

// maxOperations bounds the operations of a COMPOUND, which becomes one line of the plan. Servers
// accept some dozens.
const maxOperations = 1 << 13

// cutInData reports whether the arguments lack only the end of their data, which comes last.
func (c *call) cutInData() bool {
	a, ok := c.v.Args().(*nfs3.WRITE3args)
	return ok && a.Data.Length > 0 && a.Data.Length == a.Count
}

// mounted learns the root of a mount from a reply of MOUNT.
func (c *call) mounted() {
	a, ok := c.v.Args().(*mount.DirpathMessage)
	if !ok {
		return
	}
	if r, ok := c.v.Result().(*mount.Mountres3); ok && c.v.ResultErr == nil && r.FhsStatus == mount.MNT3_OK {
		if c.b.ids.handle(c, r.Mountinfo.Fhandle) {
			c.server = c.b.ids.real(c.server)
		}
		if o := c.b.space.of(c.server, r.Mountinfo.Fhandle); o != nil && o.origin == plan.Before {
			o.isBase, o.own().base, o.typ, o.nameClass = true, string(a.Dirpath), "dir", plan.Exact
			c.b.room.take(len(a.Dirpath))
		}
	}
}

// service is how long the server took for a call, in nanoseconds; -1 if that is not known.
func service(tx *transaction.Transaction) int64 {
	if p, ok := tx.Phases(); ok && p.Divided() {
		return int64(p.Server)
	}
	return -1
}

// add makes an op of the transaction.
func (c *call) add() {
	b, v, tx := c.b, c.v, c.v.Tx
	b.ops++
	c.op = &plan.Op{
		ID: b.ops, XID: tx.XID, Connection: c.conn.id, Program: tx.Program, Version: tx.Version, Procedure: tx.Procedure,
		Role: plan.Workload, Class: plan.Exact, Time: c.start, Latency: -1, Service: -1, Before: max(0, c.before),
	}
	o := c.op
	c.deps.Begin(order.Flight{Op: o.ID, End: c.end}, c.start, &b.uses)
	if !c.acl3() && !c.nlm() {
		b.version(c.server, strings.TrimPrefix(c.program(), "nfs"))
	}
	o.Credential = c.credential()
	c.conn.advance(c.start)
	if c.conn.last.Op != 0 {
		o.After, o.Think = c.conn.last.Op, c.start-c.conn.last.End
	}
	if c.end >= 0 {
		o.Latency = c.end - c.start
		o.Service = service(tx)
		c.conn.add(o.ID, c.end)
	} else {
		c.worse(plan.Inferred, "no reply captured: its outcome is not compared")
	}
	x := &b.t.Connections[c.conn.id-1]
	if x.Ops == 0 {
		x.First = c.start
	}
	x.Ops++
	x.Last = max(x.Last, c.end, c.start)
	x.MaxInFlight = max(x.MaxInFlight, len(c.conn.inFlight))

	// Of truncated results the beginning counts: the status and the handle.
	readable := v.ResultErr == nil || v.ResultCut && len(v.ReplyBody().Data) >= 4
	c.replied = v.ReplyErr == nil && tx.Reply.Seen() && v.Reply().Succeeded() && v.Result() != nil && readable
	b.space.deaf = v.ResultErr != nil && tx.Version == 3
	c.ok = c.replied && !v.StatusFailed()
	c.layout(x)
	reason := ""
	switch s, _ := v.Result().(xdr.Status); {
	case tx.Procedure == 0:
		o.Role = plan.Ping
	case c.nlm():
		reason = c.locking()
	case tx.Version == 4:
		reason = c.nfs4()
	case c.replied && s != nil && putOff3(s):
		reason = putOff
	default:
		c.nfs3()
	}
	if reason != "" {
		b.ops--
		b.unadd(c)
		if reason == lostState {
			b.skip(c, plan.Impossible, reason)
		} else {
			b.skip(c, plan.Exact, reason)
		}
		return
	}
	switch {
	case c.granted != nil:
		c.expectGranted()
	case c.asynchronous():
	default:
		c.expect()
	}
	o.What = c.what()
	b.write(c)
}

// putOff3 reports NFS3ERR_JUKEBOX.
func putOff3(s xdr.Status) bool {
	code, _ := s.StatusCode()
	return code == uint32(nfs3.NFS3ERR_JUKEBOX)
}

// unadd undoes the counting of add.
func (b *Builder) unadd(c *call) {
	b.t.Connections[c.conn.id-1].Ops--
	f := c.conn.inFlight
	for i := range f {
		if f[i].Op == c.op.ID {
			c.conn.inFlight = append(f[:i], f[i+1:]...)
			return
		}
	}
}

// acts notes whether a procedure or operation may change something. A COPY from
// another server, which is never replayed, does.
func (c *call) acts(e *ops.Entry, args xdr.Message) {
	if e == nil {
		return
	}
	e.Act(args, &c.act)
	if c.act.Class == ops.Changes || c.act.Class == ops.Never && e.Class == ops.Changes {
		c.op.Modifies = true
	}
}

func (c *call) worse(class plan.Class, reason string) {
	for _, r := range c.reasons {
		if r.Reason == reason {
			return
		}
	}
	c.reasons = append(c.reasons, plan.Reason{Class: class, Reason: reason})
}

// saw notes an object that the reply may tell about.
func (c *call) saw(o *obj) {
	if o = o.real(); o != nil && len(c.objs) < 16 {
		c.objs = append(c.objs, o)
	}
}

func (c *call) clientAddr() string { return c.v.Tx.Client().Addr.String() }
