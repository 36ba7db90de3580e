package workload

import (
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Codec finds the codec of an op; nil if its program or procedure is not known.
func Codec(o *plan.Op) *xdr.Procedure {
	p := nfs.Lookup(o.Program, o.Version)
	if p == nil {
		return nil
	}
	return p.Procedure(o.Procedure)
}

// Results keeps one result of each procedure, to be decoded into again and again.
type Results map[*xdr.Procedure]xdr.Message

// Of returns the result of a procedure; Void if p is nil.
func (m Results) Of(p *xdr.Procedure) xdr.Message {
	if p == nil {
		return xdr.Void{}
	}
	r := m[p]
	if r == nil {
		r = p.NewResult()
		m[p] = r
	}
	return r
}
