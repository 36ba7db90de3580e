package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// data4 are the operations on the content of files.
func (c *call) data4(x *rpc.Operation) bool {
	f, p := &c.form, &c.compound
	o := p.cur.real()
	run := c.executed()
	// write adds the change of a range.
	write := func(o *obj, offset, count uint64) {
		c.op.Modifies = true
		if run {
			c.writing(o, offset, count)
		}
	}
	switch a := x.Args.(type) {
	case *nfs4.READ4args:
		st := c.stateid("stateid", &a.Stateid, plan.OpenState, o, reads)
		st.wants(nfs4.OPEN4_SHARE_ACCESS_READ)
		f.u64("offset", a.Offset)
		f.u32("count", a.Count)
		r, is := x.Result.(*nfs4.READ4res)
		is = is && c.ok
		if run {
			c.reading(o, a.Offset, a.Count, is && r.Resok4.Eof)
		}
		if is {
			c.read(o, a.Offset, r.Resok4.Data, r.Resok4.Eof)
		}
	case *nfs4.READ_PLUS4args:
		st := c.stateid("rpa_stateid", &a.RpaStateid, plan.OpenState, o, reads)
		st.wants(nfs4.OPEN4_SHARE_ACCESS_READ)
		f.u64("rpa_offset", a.RpaOffset)
		f.u32("rpa_count", a.RpaCount)
		if run {
			c.reading(o, a.RpaOffset, a.RpaCount, true)
		}
	case *nfs4.WRITE4args:
		st := c.stateid("stateid", &a.Stateid, plan.OpenState, o, reads)
		st.wants(nfs4.OPEN4_SHARE_ACCESS_WRITE)
		f.u64("offset", a.Offset)
		f.u32("stable", uint32(a.Stable))
		write(o, a.Offset, uint64(a.Data.Length))
		f.data("data", c.payload(o, a.Offset, a.Data), a.Data)
	case *nfs4.COMMIT4args:
		f.u64("offset", a.Offset)
		f.u32("count", a.Count)
		if run {
			c.committing(o, a.Offset, a.Count)
		}
		c.op.Modifies = true
	case *nfs4.ALLOCATE4args:
		st := c.stateid("aa_stateid", &a.AaStateid, plan.OpenState, o, reads)
		st.wants(nfs4.OPEN4_SHARE_ACCESS_WRITE)
		f.u64("aa_offset", a.AaOffset)
		f.u64("aa_length", a.AaLength)
		write(o, a.AaOffset, a.AaLength)
	case *nfs4.DEALLOCATE4args:
		st := c.stateid("da_stateid", &a.DaStateid, plan.OpenState, o, reads)
		st.wants(nfs4.OPEN4_SHARE_ACCESS_WRITE)
		f.u64("da_offset", a.DaOffset)
		f.u64("da_length", a.DaLength)
		write(o, a.DaOffset, a.DaLength)
	case *nfs4.SEEK4args:
		st := c.stateid("sa_stateid", &a.SaStateid, plan.OpenState, o, reads)
		st.wants(nfs4.OPEN4_SHARE_ACCESS_READ)
		f.u64("sa_offset", a.SaOffset)
		f.u32("sa_what", uint32(a.SaWhat))
		if run {
			c.reading(o, a.SaOffset, 0, true)
		}
	case *nfs4.COPY4args:
		from := p.saved.real()
		c.stateid("ca_src_stateid", &a.CaSrcStateid, plan.OpenState, from, reads).wants(nfs4.OPEN4_SHARE_ACCESS_READ)
		c.stateid("ca_dst_stateid", &a.CaDstStateid, plan.OpenState, o, reads).wants(nfs4.OPEN4_SHARE_ACCESS_WRITE)
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
		if run {
			c.copied(from, a.CaSrcOffset, a.CaCount)
		}
		if a.CaCount == 0 {
			write(o, a.CaDstOffset, forever-a.CaDstOffset)
		} else {
			write(o, a.CaDstOffset, a.CaCount)
		}
		if r, is := x.Result.(*nfs4.COPY4res); is && c.ok {
			for i := range r.CrResok4.CrResponse.WrCallbackId {
				c.b.states.result(c, p.at, &r.CrResok4.CrResponse.WrCallbackId[i], plan.CopyState, o, nil)
			}
		}
	case *nfs4.CLONE4args:
		from := p.saved.real()
		c.stateid("cl_src_stateid", &a.ClSrcStateid, plan.OpenState, from, reads).wants(nfs4.OPEN4_SHARE_ACCESS_READ)
		c.stateid("cl_dst_stateid", &a.ClDstStateid, plan.OpenState, o, reads).wants(nfs4.OPEN4_SHARE_ACCESS_WRITE)
		f.u64("cl_src_offset", a.ClSrcOffset)
		f.u64("cl_dst_offset", a.ClDstOffset)
		f.u64("cl_count", a.ClCount)
		if run {
			c.copied(from, a.ClSrcOffset, a.ClCount)
		}
		if a.ClCount == 0 {
			write(o, a.ClDstOffset, forever-a.ClDstOffset)
		} else {
			write(o, a.ClDstOffset, a.ClCount)
		}
	case *nfs4.WRITE_SAME4args:
		c.stateid("wsa_stateid", &a.WsaStateid, plan.OpenState, o, reads).wants(nfs4.OPEN4_SHARE_ACCESS_WRITE)
		f.u32("wsa_stable", uint32(a.WsaStable))
		f.raw("wsa_adb", &a.WsaAdb)
		write(o, a.WsaAdb.AdbOffset, forever-a.WsaAdb.AdbOffset)
	case *nfs4.IO_ADVISE4args:
		c.stateid("iaa_stateid", &a.IaaStateid, plan.OpenState, o, reads)
		f.u64("iaa_offset", a.IaaOffset)
		f.u64("iaa_count", a.IaaCount)
		f.raw("iaa_hints", &a.IaaHints)
	case *nfs4.GETXATTR4args:
		c.xattr(run, false)
		f.raw("arguments", a)
		c.detail = string(a.GxaName)
	case *nfs4.SETXATTR4args:
		c.xattr(run, true)
		f.raw("arguments", a)
		c.detail = string(a.SxaKey)
	case *nfs4.LISTXATTRS4args:
		c.xattr(run, false)
		f.raw("arguments", a)
		if a.LxaCookie != 0 {
			c.worse(plan.Inferred, "the cookie of LISTXATTRS is sent as captured")
		}
	case *nfs4.REMOVEXATTR4args:
		c.xattr(run, true)
		f.raw("arguments", a)
		c.detail = string(a.RxaName)
	default:
		return false
	}
	return true
}

func (c *call) xattr(run, change bool) {
	if change {
		c.op.Modifies = true
	}
	if !run {
		return
	}
	if change {
		c.alters(c.compound.cur)
	} else {
		c.inspects(c.compound.cur)
	}
}

// copied is the source of COPY and CLONE.
func (c *call) copied(o *obj, offset, count uint64) {
	if o = o.real(); o == nil {
		return
	}
	if o.created != 0 {
		c.must(o.created, plan.DepCreate)
	}
	end := offset + count
	if count == 0 || end < offset {
		end = forever
	}
	c.use(&o.own().bytes, offset, end, reads, plan.DepRange)
}

// wants notes what a state that was there before the capture must allow.
func (x *state) wants(access uint32) {
	if x != nil && x.DefinedBy == 0 {
		x.Access |= access
	}
}
