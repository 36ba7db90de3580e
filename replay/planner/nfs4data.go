package planner

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// dataOps are the operations on the content of files.
var dataOps = opTable{
	nfs4.OP_COMMIT:         op4(commit4),
	nfs4.OP_READ:           op4(read4),
	nfs4.OP_WRITE:          op4(write4),
	nfs4.OP_ALLOCATE:       op4(allocate4),
	nfs4.OP_COPY:           op4(copy4),
	nfs4.OP_COPY_NOTIFY:    op4(copyNotify4),
	nfs4.OP_DEALLOCATE:     op4(deallocate4),
	nfs4.OP_IO_ADVISE:      op4(ioAdvise4),
	nfs4.OP_OFFLOAD_CANCEL: op4(offloadCancel4),
	nfs4.OP_OFFLOAD_STATUS: op4(offloadStatus4),
	nfs4.OP_READ_PLUS:      op4(readPlus4),
	nfs4.OP_SEEK:           op4(seek4),
	nfs4.OP_WRITE_SAME:     op4(writeSame4),
	nfs4.OP_CLONE:          op4(clone4),
	nfs4.OP_GETXATTR:       op4(getxattr4),
	nfs4.OP_SETXATTR:       op4(setxattr4),
	nfs4.OP_LISTXATTRS:     op4(listxattrs4),
	nfs4.OP_REMOVEXATTR:    op4(removexattr4),
}

func read4(c *compound, a *nfs4.READ4args, r *nfs4.READ4res) {
	o := c.Current.real()
	opened4(c, "stateid", &a.Stateid, o, nfs4.OPEN4_SHARE_ACCESS_READ)
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	if c.executed {
		c.effects.reading(o, a.Offset, a.Count, r != nil && r.Resok4.Eof)
	}
	if r != nil {
		c.content.read(o, a.Offset, r.Resok4.Data.Length, item(c.v, r.Resok4.Data, true), r.Resok4.Eof)
	}
}

func readPlus4(c *compound, a *nfs4.READ_PLUS4args, r *nfs4.READ_PLUS4res) {
	o := c.Current.real()
	opened4(c, "rpa_stateid", &a.RpaStateid, o, nfs4.OPEN4_SHARE_ACCESS_READ)
	c.form.u64("rpa_offset", a.RpaOffset)
	c.form.u32("rpa_count", a.RpaCount)
	if c.executed {
		c.effects.reading(o, a.RpaOffset, a.RpaCount, true)
	}
	if r == nil {
		return
	}
	parts := r.RpResok4.RprContents
	for i := range parts {
		if p := &parts[i]; p.RpcContent == nfs4.NFS4_CONTENT_DATA {
			c.content.read(o, p.RpcData.DOffset, p.RpcData.DData.Length, item(c.v, p.RpcData.DData, true), r.RpResok4.RprEof && i == len(parts)-1)
		}
	}
}

func seek4(c *compound, a *nfs4.SEEK4args, _ *nfs4.SEEK4res) {
	o := c.Current.real()
	opened4(c, "sa_stateid", &a.SaStateid, o, nfs4.OPEN4_SHARE_ACCESS_READ)
	c.form.u64("sa_offset", a.SaOffset)
	c.form.u32("sa_what", uint32(a.SaWhat))
	if c.executed {
		c.effects.reading(o, a.SaOffset, 0, true)
	}
}

func write4(c *compound, a *nfs4.WRITE4args, _ *nfs4.WRITE4res) {
	o := c.Current.real()
	opened4(c, "stateid", &a.Stateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u64("offset", a.Offset)
	c.form.u32("stable", uint32(a.Stable))
	fills4(c, o, a.Offset, uint64(a.Data.Length))
	c.form.data("data", c.content.payload(c.space.ref(o), a.Offset, a.Data.Length, item(c.v, a.Data, false), &c.reasons), a.Data)
}

func writeSame4(c *compound, a *nfs4.WRITE_SAME4args, _ *nfs4.WRITE_SAME4res) {
	o := c.Current.real()
	opened4(c, "wsa_stateid", &a.WsaStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u32("wsa_stable", uint32(a.WsaStable))
	c.form.raw("wsa_adb", &a.WsaAdb)
	fills4(c, o, a.WsaAdb.AdbOffset, order.Forever-a.WsaAdb.AdbOffset)
}

func commit4(c *compound, a *nfs4.COMMIT4args, _ *nfs4.COMMIT4res) {
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	if c.executed {
		c.effects.committing(c.Current.real(), a.Offset, a.Count)
	}
	c.op.Modifies = true // it is left out where nothing may be written
}

func allocate4(c *compound, a *nfs4.ALLOCATE4args, _ *nfs4.Status4res) {
	o := c.Current.real()
	opened4(c, "aa_stateid", &a.AaStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u64("aa_offset", a.AaOffset)
	c.form.u64("aa_length", a.AaLength)
	fills4(c, o, a.AaOffset, a.AaLength)
}

func deallocate4(c *compound, a *nfs4.DEALLOCATE4args, _ *nfs4.Status4res) {
	o := c.Current.real()
	opened4(c, "da_stateid", &a.DaStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u64("da_offset", a.DaOffset)
	c.form.u64("da_length", a.DaLength)
	fills4(c, o, a.DaOffset, a.DaLength)
}

func copy4(c *compound, a *nfs4.COPY4args, r *nfs4.COPY4res) {
	f := &c.form
	from, o := c.Saved.real(), c.Current.real()
	opened4(c, "ca_src_stateid", &a.CaSrcStateid, from, nfs4.OPEN4_SHARE_ACCESS_READ)
	opened4(c, "ca_dst_stateid", &a.CaDstStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	f.u64("ca_src_offset", a.CaSrcOffset)
	f.u64("ca_dst_offset", a.CaDstOffset)
	f.u64("ca_count", a.CaCount)
	f.bool("ca_consecutive", a.CaConsecutive)
	f.bool("ca_synchronous", a.CaSynchronous)
	f.u32("ca_source_server", uint32(len(a.CaSourceServer)))
	for i := range a.CaSourceServer {
		f.raw("ca_source_server", &a.CaSourceServer[i])
		c.reasons.add(plan.Inferred, "COPY from another server")
	}
	copies4(c, from, a.CaSrcOffset, o, a.CaDstOffset, a.CaCount)
	if r != nil {
		for i := range r.CrResok4.CrResponse.WrCallbackId {
			c.ids.given(c.at, &r.CrResok4.CrResponse.WrCallbackId[i], plan.CopyState, o, nil)
		}
	}
}

func clone4(c *compound, a *nfs4.CLONE4args, _ *nfs4.Status4res) {
	from, o := c.Saved.real(), c.Current.real()
	opened4(c, "cl_src_stateid", &a.ClSrcStateid, from, nfs4.OPEN4_SHARE_ACCESS_READ)
	opened4(c, "cl_dst_stateid", &a.ClDstStateid, o, nfs4.OPEN4_SHARE_ACCESS_WRITE)
	c.form.u64("cl_src_offset", a.ClSrcOffset)
	c.form.u64("cl_dst_offset", a.ClDstOffset)
	c.form.u64("cl_count", a.ClCount)
	copies4(c, from, a.ClSrcOffset, o, a.ClDstOffset, a.ClCount)
}

func ioAdvise4(c *compound, a *nfs4.IO_ADVISE4args, _ *nfs4.IO_ADVISE4res) {
	c.ids.stateid("iaa_stateid", &a.IaaStateid, plan.OpenState, c.Current.real(), order.Reads)
	c.form.u64("iaa_offset", a.IaaOffset)
	c.form.u64("iaa_count", a.IaaCount)
	c.form.raw("iaa_hints", &a.IaaHints)
}

func offloadCancel4(c *compound, a *nfs4.OFFLOAD_CANCEL4args, _ *nfs4.Status4res) {
	c.ids.stateid("oca_stateid", &a.OcaStateid, plan.CopyState, c.Current.real(), order.Writes)
}

func offloadStatus4(c *compound, a *nfs4.OFFLOAD_STATUS4args, _ *nfs4.OFFLOAD_STATUS4res) {
	c.ids.stateid("osa_stateid", &a.OsaStateid, plan.CopyState, c.Current.real(), order.Reads)
}

func copyNotify4(c *compound, a *nfs4.COPY_NOTIFY4args, _ *nfs4.COPY_NOTIFY4res) {
	c.ids.stateid("cna_src_stateid", &a.CnaSrcStateid, plan.OpenState, c.Current.real(), order.Reads)
	c.form.raw("cna_destination_server", &a.CnaDestinationServer)
}

func getxattr4(c *compound, a *nfs4.GETXATTR4args, _ *nfs4.GETXATTR4res) {
	xattr(c, false)
	c.form.raw("arguments", a)
	c.about.detail = string(a.GxaName)
}

func setxattr4(c *compound, a *nfs4.SETXATTR4args, _ *nfs4.SETXATTR4res) {
	xattr(c, true)
	c.form.raw("arguments", a)
	c.about.detail = string(a.SxaKey)
}

func listxattrs4(c *compound, a *nfs4.LISTXATTRS4args, r *nfs4.LISTXATTRS4res) {
	xattr(c, false)
	o := c.Current.real()
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
		c.reasons.add(plan.Inferred, "a cookie from before the capture")
		c.form.u64("lxa_cookie", a.LxaCookie)
	}
	c.form.u32("lxa_maxcount", a.LxaMaxcount)
	if r != nil && o != nil && !r.LxrValue.LxrEof && onlyListing(c.ops) {
		c.space.rememberXattrs(o, c.op.ID, r.LxrValue.LxrCookie)
	}
}

func removexattr4(c *compound, a *nfs4.REMOVEXATTR4args, _ *nfs4.REMOVEXATTR4res) {
	xattr(c, true)
	c.form.raw("arguments", a)
	c.about.detail = string(a.RxaName)
}

// xattr reads an extended attribute of the current file, or changes one.
func xattr(c *compound, change bool) {
	switch {
	case !c.executed:
	case change:
		c.effects.alters(c.Current)
	default:
		c.effects.inspects(c.Current)
	}
}

// copies4 is COPY and CLONE; a count of 0 means up to the end.
func copies4(c *compound, from *obj, source uint64, to *obj, destination, count uint64) {
	if c.executed {
		c.effects.copied(from, source, count)
	}
	if count == 0 {
		count = order.Forever - destination
	}
	fills4(c, to, destination, count)
}

// fills4 is the change of a range, if it was executed.
func fills4(c *compound, o *obj, offset, count uint64) {
	if c.executed {
		c.effects.writing(o, offset, count)
	}
}

// opened4 adds the state id of an open with which a file is read or written.
func opened4(c *compound, n string, id *nfs4.Stateid4, o *obj, access uint32) {
	c.ids.stateid(n, id, plan.OpenState, o, order.Reads).wants(access)
}

// wants notes which access a state from before the capture must allow.
func (x *state) wants(access uint32) {
	if x != nil && x.DefinedBy == 0 {
		x.Access |= access
	}
}
