package judge

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// READ_PLUS (RFC 7862, section 15.10) returns parts of a file as bytes or as holes. Which zeros it shows as holes, and into how many
// parts it divides a range, is up to the server.

// contents is the name of the field that holds the parts.
const contents = "rpr_contents"

// contents compares how many bytes all parts have together.
func (c *comparison) contents(want, have int32, path []string) {
	w, h := c.want.covered(want), c.have.covered(have)
	if w != h {
		c.differs(append(path, contents), fmt.Sprintf("%d bytes", w), fmt.Sprintf("%d bytes", h), place{})
	} else if !c.same(want, have) {
		c.equivalent.add(verdict.Holes)
	}
}

// covered is the number of bytes of all parts below a node.
func (t *tree) covered(parent int32) (n uint64) {
	first, end := t.children(parent)
	for i := first; i < end; i++ {
		if x := &t.nodes[i]; x.name == "d_data" || x.name == "di_length" {
			n += x.num
		}
	}
	return n
}

// first finds the first child with a name; -1 if there is none.
func (t *tree) first(parent int32, name string) int32 {
	first, end := t.children(parent)
	for i := first; i < end; i = t.nodes[i].end {
		if t.nodes[i].name == name {
			return i
		}
	}
	return -1
}

// part is a piece of data of a result.
type part struct {
	at     int // index of the operation
	offset uint64
	data   xdr.Data
}

// readsPlus reports whether a call has a READ_PLUS.
func readsPlus(o *plan.Op) bool {
	if o.Compound == nil {
		return false
	}
	for i := range o.Compound.Ops {
		if o.Compound.Ops[i].Op == uint32(nfs4.OP_READ_PLUS) {
			return true
		}
	}
	return false
}

// plus compares the parts that READ_PLUS has returned: with captured ones of the same place and length, and with what this run has
// written there. A hole reads as zeros.
func (j *Judge) plus(v *verdict.Judgement, r *Reply) {
	res, ok := r.Result.(*nfs4.CompoundRes)
	if !ok {
		return
	}
	judge := func(p *part) {
		if p.offset+uint64(p.data.Length) < p.offset {
			return // no file reaches there
		}
		want := plan.Result{At: p.at, Offset: p.offset}
		for i := range r.Op.Expect.Data {
			if x := &r.Op.Expect.Data[i]; x.At == p.at && x.Offset == p.offset && x.Length == p.data.Length {
				want = *x
			}
		}
		if why, how := j.piece(r, &want, p.data); why.Code != verdict.None {
			v.Worsen(how, why)
		}
	}
	for i := range res.Ops {
		body, ok := res.Ops[i].Body.(*nfs4.READ_PLUS4res)
		if !ok || body.RpStatus != nfs4.NFS4_OK {
			continue
		}
		for k := range body.RpResok4.RprContents {
			switch x := &body.RpResok4.RprContents[k]; x.RpcContent {
			case nfs4.NFS4_CONTENT_DATA:
				judge(&part{i, x.RpcData.DOffset, x.RpcData.DData})
			case nfs4.NFS4_CONTENT_HOLE:
				j.hole(v, r, i, x.RpcHole.DiOffset, x.RpcHole.DiLength)
			}
		}
	}
}

// zeros stands for a piece of a hole.
var zeros [64 << 10]byte

// maxHole is how much of a hole is compared: no READ_PLUS asks for more.
const maxHole = 16 << 20

func (j *Judge) hole(v *verdict.Judgement, r *Reply, at int, offset, length uint64) {
	if offset+length < offset {
		return
	}
	object := objectOf(r.Op, at)
	l := j.history(r.Clone).expected
	either := func(from, to uint64) bool { return j.meanwhile(l, r.Op, object, from, to) }
	for done := uint64(0); done < min(length, maxHole); done += uint64(len(zeros)) {
		n := min(length-done, uint64(len(zeros)))
		if where, code := l.Compare(object, offset+done, zeros[:n], either); code != verdict.None {
			v.Worsen(verdict.Different, verdict.Reason{Code: code, N: where})
			return
		}
	}
}
