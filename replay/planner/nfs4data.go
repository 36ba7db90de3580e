package planner

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// dataOps are the operations on the content of files.
var dataOps = opTable{
	nfs4.OP_COMMIT:         op4((*call).commit4),
	nfs4.OP_READ:           op4((*call).read4),
	nfs4.OP_WRITE:          op4((*call).write4),
	nfs4.OP_ALLOCATE:       op4((*call).allocate4),
	nfs4.OP_COPY:           op4((*call).copy4),
	nfs4.OP_COPY_NOTIFY:    op4((*call).copyNotify4),
	nfs4.OP_DEALLOCATE:     op4((*call).deallocate4),
	nfs4.OP_IO_ADVISE:      op4((*call).ioAdvise4),
	nfs4.OP_OFFLOAD_CANCEL: op4((*call).offloadCancel4),
	nfs4.OP_OFFLOAD_STATUS: op4((*call).offloadStatus4),
	nfs4.OP_READ_PLUS:      op4((*call).readPlus4),
	nfs4.OP_SEEK:           op4((*call).seek4),
	nfs4.OP_WRITE_SAME:     op4((*call).writeSame4),
	nfs4.OP_CLONE:          op4((*call).clone4),
	nfs4.OP_GETXATTR:       op4((*call).getxattr4),
	nfs4.OP_SETXATTR:       op4((*call).setxattr4),
	nfs4.OP_LISTXATTRS:     op4((*call).listxattrs4),
	nfs4.OP_REMOVEXATTR:    op4((*call).removexattr4),
}

func (c *call) read4(a *nfs4.READ4args, r *nfs4.READ4res) {
	o := c.compound.Current.real()
	c.opened4("stateid", &a.Stateid, o, nfs4.OPEN4_SHARE_ACCESS_READ)
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	if c.executed() {
		c.reading(o, a.Offset, a.Count, r != nil && r.Resok4.Eof)
	}
	if r != nil {
		c.read(o, a.Offset, r.Resok4.Data, r.Resok4.Eof)
	}
}

func (c *call) readPlus4(a *nfs4.READ_PLUS4args, r *nfs4.READ_PLUS4res) {
	o := c.compound.Current.real()
	c.opened4("rpa_stateid", &a.RpaStateid, o, nfs4.OPEN4_SHARE_ACCESS_READ)
	c.form.u64("rpa_offset", a.RpaOffset)
	c.form.u32("rpa_count", a.RpaCount)
	if c.executed() {
		c.reading(o, a.RpaOffset, a.RpaCount, true)
	}
	if r == nil {
		return
	}
	parts := r.RpResok4.RprContents
	for i := range parts {
		if p := &parts[i]; p.RpcContent == nfs4.NFS4_CONTENT_DATA {
			c.read(o, p.RpcData.DOffset, p.RpcData.DData, r.RpResok4.RprEof && i == len(parts)-1)
		}
	}
}

func (c *call) seek4(a *nfs4.SEEK4args, _ *nfs4.SEEK4res) {
	o := c.compound.Current.real()
	c.opened4("sa_stateid", &a.SaStateid, o, nfs4.OPEN4_SHARE_ACCESS_READ)
	c.form.u64("sa_offset", a.SaOffset)
	c.form.u32("sa_what", uint32(a.SaWhat))
	if c.executed() {
		c.reading(o, a.SaOffset, 0, true)
	}
}

func (c *call) write4(a *nfs4.WRITE4args, _ *nfs4.WRITE4res) {
	o := c.compound.Current.real()
	c.opened4("stateid", &a.Stateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u64("offset", a.Offset)
	c.form.u32("stable", uint32(a.Stable))
	c.fills4(o, a.Offset, uint64(a.Data.Length))
	c.form.data("data", c.payload(o, a.Offset, a.Data), a.Data)
}

func (c *call) writeSame4(a *nfs4.WRITE_SAME4args, _ *nfs4.WRITE_SAME4res) {
	o := c.compound.Current.real()
	c.opened4("wsa_stateid", &a.WsaStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u32("wsa_stable", uint32(a.WsaStable))
	c.form.raw("wsa_adb", &a.WsaAdb)
	c.fills4(o, a.WsaAdb.AdbOffset, order.Forever-a.WsaAdb.AdbOffset)
}

func (c *call) commit4(a *nfs4.COMMIT4args, _ *nfs4.COMMIT4res) {
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	if c.executed() {
		c.committing(c.compound.Current.real(), a.Offset, a.Count)
	}
	c.op.Modifies = true // see committing
}

func (c *call) allocate4(a *nfs4.ALLOCATE4args, _ *nfs4.Status4res) {
	o := c.compound.Current.real()
	c.opened4("aa_stateid", &a.AaStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u64("aa_offset", a.AaOffset)
	c.form.u64("aa_length", a.AaLength)
	c.fills4(o, a.AaOffset, a.AaLength)
}

func (c *call) deallocate4(a *nfs4.DEALLOCATE4args, _ *nfs4.Status4res) {
	o := c.compound.Current.real()
	c.opened4("da_stateid", &a.DaStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u64("da_offset", a.DaOffset)
	c.form.u64("da_length", a.DaLength)
	c.fills4(o, a.DaOffset, a.DaLength)
}

func (c *call) copy4(a *nfs4.COPY4args, r *nfs4.COPY4res) {
	f := &c.form
	from, o := c.compound.Saved.real(), c.compound.Current.real()
	c.opened4("ca_src_stateid", &a.CaSrcStateid, from, nfs4.OPEN4_SHARE_ACCESS_READ)
	c.opened4("ca_dst_stateid", &a.CaDstStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	f.u64("ca_src_offset", a.CaSrcOffset)
	f.u64("ca_dst_offset", a.CaDstOffset)
	f.u64("ca_count", a.CaCount)
	f.bool("ca_consecutive", a.CaConsecutive)
	f.bool("ca_synchronous", a.CaSynchronous)
	f.u32("ca_source_server", uint32(len(a.CaSourceServer)))
	for i := range a.CaSourceServer {
		f.raw("ca_source_server", &a.CaSourceServer[i])
		c.worse(plan.Inferred, "COPY from another server")
	}
	c.copies4(from, a.CaSrcOffset, o, a.CaDstOffset, a.CaCount)
	if r != nil {
		for i := range r.CrResok4.CrResponse.WrCallbackId {
			c.b.states.result(c, c.compound.at, &r.CrResok4.CrResponse.WrCallbackId[i], plan.CopyState, o, nil)
		}
	}
}

func (c *call) clone4(a *nfs4.CLONE4args, _ *nfs4.Status4res) {
	from, o := c.compound.Saved.real(), c.compound.Current.real()
	c.opened4("cl_src_stateid", &a.ClSrcStateid, from, nfs4.OPEN4_SHARE_ACCESS_READ)
	c.opened4("cl_dst_stateid", &a.ClDstStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u64("cl_src_offset", a.ClSrcOffset)
	c.form.u64("cl_dst_offset", a.ClDstOffset)
	c.form.u64("cl_count", a.ClCount)
	c.copies4(from, a.ClSrcOffset, o, a.ClDstOffset, a.ClCount)
}

func (c *call) ioAdvise4(a *nfs4.IO_ADVISE4args, _ *nfs4.IO_ADVISE4res) {
	c.stateid("iaa_stateid", &a.IaaStateid, plan.OpenState, c.compound.Current.real(), order.Reads)
	c.form.u64("iaa_offset", a.IaaOffset)
	c.form.u64("iaa_count", a.IaaCount)
	c.form.raw("iaa_hints", &a.IaaHints)
}

func (c *call) offloadCancel4(a *nfs4.OFFLOAD_CANCEL4args, _ *nfs4.Status4res) {
	c.stateid("oca_stateid", &a.OcaStateid, plan.CopyState, c.compound.Current.real(), order.Writes)
}

func (c *call) offloadStatus4(a *nfs4.OFFLOAD_STATUS4args, _ *nfs4.OFFLOAD_STATUS4res) {
	c.stateid("osa_stateid", &a.OsaStateid, plan.CopyState, c.compound.Current.real(), order.Reads)
}

func (c *call) copyNotify4(a *nfs4.COPY_NOTIFY4args, _ *nfs4.COPY_NOTIFY4res) {
	c.stateid("cna_src_stateid", &a.CnaSrcStateid, plan.OpenState, c.compound.Current.real(), order.Reads)
	c.form.raw("cna_destination_server", &a.CnaDestinationServer)
}

func (c *call) getxattr4(a *nfs4.GETXATTR4args, _ *nfs4.GETXATTR4res) {
	c.xattr(false)
	c.form.raw("arguments", a)
	c.detail = string(a.GxaName)
}

func (c *call) setxattr4(a *nfs4.SETXATTR4args, _ *nfs4.SETXATTR4res) {
	c.xattr(true)
	c.form.raw("arguments", a)
	c.detail = string(a.SxaKey)
}

func (c *call) listxattrs4(a *nfs4.LISTXATTRS4args, r *nfs4.LISTXATTRS4res) {
	c.xattr(false)
	o := c.compound.Current.real()
	from, known := cookie{}, false
	if o != nil {
		from, known = o.xattrs[a.LxaCookie]
	}
	switch {
	case a.LxaCookie == 0:
		c.form.u64("lxa_cookie", 0)
	case known:
		c.deps.Needs(from.op, plan.DepCookie)
		c.form.symbol(plan.Field{N: "lxa_cookie", Kind: plan.FieldCookie, Op: from.op, Zero: true}, binary.BigEndian.AppendUint64(nil, a.LxaCookie))
	default:
		c.worse(plan.Inferred, "a cookie from before the capture")
		c.form.u64("lxa_cookie", a.LxaCookie)
	}
	c.form.u32("lxa_maxcount", a.LxaMaxcount)
	if r != nil && o != nil && !r.LxrValue.LxrEof && c.onlyListing() {
		c.rememberXattrs(o, r.LxrValue.LxrCookie)
	}
}

func (c *call) removexattr4(a *nfs4.REMOVEXATTR4args, _ *nfs4.REMOVEXATTR4res) {
	c.xattr(true)
	c.form.raw("arguments", a)
	c.detail = string(a.RxaName)
}

// xattr reads an extended attribute of the current file, or changes one.
func (c *call) xattr(change bool) {
	switch {
	case !c.executed():
	case change:
		c.alters(c.compound.Current)
	default:
		c.inspects(c.compound.Current)
	}
}

// copies4 is COPY and CLONE; a count of 0 means up to the end.
func (c *call) copies4(from *obj, source uint64, to *obj, destination, count uint64) {
	if c.executed() {
		c.copied(from, source, count)
	}
	if count == 0 {
		count = order.Forever - destination
	}
	c.fills4(to, destination, count)
}

// fills4 is the change of a range, if it was executed.
func (c *call) fills4(o *obj, offset, count uint64) {
	if c.executed() {
		c.writing(o, offset, count)
	}
}

// opened4 adds the state id of an open with which a file is read or written.
func (c *call) opened4(n string, id *nfs4.Stateid4, o *obj, access uint32) {
	c.stateid(n, id, plan.OpenState, o, order.Reads).wants(access)
}

// wants notes which access a state from before the capture must allow.
func (x *state) wants(access uint32) {
	if x != nil && x.DefinedBy == 0 {
		x.Access |= access
	}
}
