package judge

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// results compares the fields.
func (j *Judge) results(v *verdict.Judgement, r *Reply) {
	want, why := j.captured(r.Op)
	if want == nil {
		if why != verdict.None {
			v.Worsen(verdict.Equivalent, verdict.Reason{Code: why})
		}
		return
	}
	if none, modeOnly := keepsNone(want, r.Result); modeOnly {
		v.Worsen(verdict.Equivalent, verdict.Reason{Code: verdict.ModeOnly})
		return
	} else if none && !j.history(r.Clone).expected.Asked(objectOf(r.Op, -1)).Mode {
		v.Worsen(verdict.Explained, verdict.Reason{Code: verdict.NoACLKept})
		return
	}
	c := &j.cmp
	c.subject.reading = r.Op.Compound == nil && r.Op.Program == nfs3.NFS_PROGRAM && r.Op.Procedure == nfs3.NFSPROC3_READ
	c.want.fill(want)
	c.subject.limited = j.limited(r, want)
	if r.RootReplaced {
		c.want.rename("PUTROOTFH", "PUTFH")
	}
	if r.Closes {
		c.want.rename("DELEGRETURN", "CLOSE")
	}
	if normalACL(want, r.Result) {
		c.equivalent.add(verdict.ACLOrder)
		c.want.fill(want)
	}
	c.have.fill(r.Result)
	c.run()
	j.listing(v, r, want)
	for left := uint64(c.equivalent); left != 0; left &= left - 1 {
		v.Worsen(verdict.Equivalent, verdict.Reason{Code: verdict.Code(bits.TrailingZeros64(left))})
	}
	for _, why := range c.explained {
		if why.Code == verdict.Squashed {
			j.history(r.Clone).squash = why.Now
		}
		v.Worsen(verdict.Explained, why)
	}
	for _, d := range c.different {
		v.Worsen(verdict.Different, d)
	}
}

// limited reports whether a READ of NFSv3 returned the server's maximum, and less than the captured READ.
func (j *Judge) limited(r *Reply, want xdr.Message) bool {
	w, ok := want.(*nfs3.READ3res)
	h, ok2 := r.Result.(*nfs3.READ3res)
	return ok && ok2 && !h.Resok.Eof && h.Resok.Count < w.Resok.Count && h.Resok.Count == j.history(r.Clone).rtmax
}

// captured decodes the captured results of an op. If there are none to compare, it returns nil
// and the reason.
func (j *Judge) captured(o *plan.Op) (xdr.Message, verdict.Code) {
	x, p := o.Expect, workload.Codec(o)
	if p == nil || x.Results == nil {
		if x.Partial {
			return nil, verdict.PartialResults
		}
		return nil, verdict.None
	}
	want := j.want.Of(p)
	j.sizes = j.sizes[:0]
	for i := range x.Data {
		j.sizes = append(j.sizes, xdr.Reduced{Length: x.Data[i].Length})
	}
	j.reader.Reset(x.Results, len(x.Results))
	j.reader.ReduceReply(j.sizes)
	want.Decode(&j.reader)
	switch {
	case j.reader.Err() == nil:
		return want, verdict.None
	case x.Partial:
		return nil, verdict.PartialResults
	}
	return nil, verdict.UnreadableResults
}

// directory reports whether operation i is about a directory.
func (j *Judge) directory(i int) bool {
	id := workload.ObjectAt(j.reply.Op, i)
	return id > 0 && j.load.Tables.Objects[id-1].Type == "dir"
}

// prepared reports whether the object of operation i was made before the replay.
func (j *Judge) prepared(i int) bool {
	id := workload.ObjectAt(j.reply.Op, i)
	return id > 0 && j.load.Tables.Objects[id-1].Origin == plan.Before
}

// moment is the reason why the reply may describe an object at a different time.
func (j *Judge) moment() verdict.Reason { return j.moments.reason(j.reply.Op, j.reply.again()) }

// exclusive reports whether an op creates a file exclusively: its attributes are then
// not defined before a SETATTR (RFC 1813, section 3.3.8; RFC 8881, section 18.16.3).
func (j *Judge) exclusive(at int) bool {
	o := j.reply.Op
	if o.Compound == nil {
		if o.Program == nfs3.NFS_PROGRAM && o.Version == nfs3.NFS_V3 && o.Procedure == nfs3.NFSPROC3_CREATE {
			for i := range o.Args {
				if a := &o.Args[i]; strings.HasSuffix(a.N, "mode") && a.Kind == plan.FieldU32 {
					return a.Value == uint64(nfs3.EXCLUSIVE)
				}
			}
		}
		return false
	}
	for i := 0; i <= at && i < len(o.Compound.Ops); i++ {
		if c := &o.Compound.Ops[i]; nfs4.NfsOpnum4(c.Op) == nfs4.OP_OPEN {
			opentype, mode := openHow(c)
			return opentype == nfs4.OPEN4_CREATE && (mode == nfs4.EXCLUSIVE4 || mode == nfs4.EXCLUSIVE4_1)
		}
	}
	return false
}

// openHow reads the openflag4 of an OPEN.
func openHow(c *plan.CompoundOp) (nfs4.Opentype4, nfs4.Createmode4) {
	for i := range c.Args {
		a := &c.Args[i]
		switch {
		case a.N == "openhow" && a.Kind == plan.FieldRaw && len(a.Bytes) >= 8:
			return nfs4.Opentype4(binary.BigEndian.Uint32(a.Bytes)), nfs4.Createmode4(binary.BigEndian.Uint32(a.Bytes[4:]))
		case a.N == "openhow" && a.Kind == plan.FieldRaw && len(a.Bytes) >= 4:
			return nfs4.Opentype4(binary.BigEndian.Uint32(a.Bytes)), 0
		case a.N == "opentype" || a.N == "openhow":
			return nfs4.Opentype4(a.Value), 0
		}
	}
	// An OPEN in an unknown form may create a file.
	return nfs4.OPEN4_CREATE, 0
}
