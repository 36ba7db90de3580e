package guard

import (
	"bytes"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// maxMinor is the highest known minor version of NFSv4.
const maxMinor = 2

// compound decides on the operations of a COMPOUND, one after the other.
func (c *checker) compound(g *Guard, m xdr.Message) *Refused {
	args, ok := m.(*nfs4.CompoundArgs)
	if !ok {
		return &Refused{Reason: NeverReplayed, What: "this kind of COMPOUND"}
	}
	if args.Minorversion > maxMinor {
		return &Refused{Reason: Unknown, What: fmt.Sprintf("NFSv4.%d", args.Minorversion)}
	}
	for i := range args.Ops {
		op := &args.Ops[i]
		e := ops.Operation(op.Number)
		if e == nil || uint32(e.Minor) > args.Minorversion {
			return &Refused{Reason: Unknown, What: fmt.Sprintf("%s of NFSv4.%d", nfs4.OpName(op.Number), args.Minorversion)}
		}
		name := nfs4.OpName(op.Number)
		if f := attributes(op.Body); f != nil {
			if r := c.attributes(name, f); r != nil {
				return r
			}
		}
		e.Act(op.Body, &c.act)
		if r := c.judge(g, name, op.Body); r != nil {
			return r
		}
		if what := g.foreign(e, args.Minorversion, op.Body); what != "" {
			return &Refused{Reason: Foreign, What: name, Detail: what}
		}
		c.walk.Step(op.Number, op.Body)
		c.lesson.ofOperation(i, args.Minorversion, op, c.walk.Current.inside)
	}
	return nil
}

// attributes returns the attributes that an operation sets or compares.
func attributes(m xdr.Message) *nfs4.Fattr4 {
	switch m := m.(type) {
	case *nfs4.SETATTR4args:
		return &m.ObjAttributes
	case *nfs4.CREATE4args:
		return &m.Createattrs
	case *nfs4.VERIFY4args:
		return &m.ObjAttributes
	case *nfs4.NVERIFY4args:
		return &m.ObjAttributes
	case *nfs4.OPEN4args:
		if m.Openhow.Opentype != nfs4.OPEN4_CREATE {
			return nil
		}
		switch m.Openhow.How.Mode {
		case nfs4.UNCHECKED4, nfs4.GUARDED4:
			return &m.Openhow.How.Createattrs
		case nfs4.EXCLUSIVE4_1:
			return &m.Openhow.How.ChCreateboth.CvaAttrs
		}
	}
	return nil
}

// attributes decodes attribute values, which have no length of their own (RFC 8881, section
// 3.3.7): each must be known, to the last byte.
func (c *checker) attributes(name string, f *nfs4.Fattr4) *Refused {
	a := &c.attrs
	if err := a.Decode(f); err != nil {
		return &Refused{Reason: Malformed, What: name, Detail: err.Error()}
	}
	if a.Partial {
		return &Refused{Reason: Undefined, What: name, Detail: "an attribute, or bytes behind the last"}
	}
	if c.encoded = a.AppendValues(c.encoded[:0]); !bytes.Equal(c.encoded, f.AttrVals) {
		return &Refused{Reason: Ambiguous, What: name, Detail: "its attributes"}
	}
	return nil
}
