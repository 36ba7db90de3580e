package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Operation is one operation of a COMPOUND.
type Operation struct {
	Name   string
	Number uint32
	Status string // empty if the reply does not have it
	Code   uint32
	Args   xdr.Message // nil if only the reply has the operation
	Result xdr.Message // nil if only the call has it
}

// compounds returns the two arrays of operations; either may be nil.
func (v *View) compounds() (args, res *nfs4.Operations, callback bool) {
	switch a := v.Args.(type) {
	case *nfs4.CompoundArgs:
		args = &a.Operations
	case *nfs4.CbCompoundArgs:
		args, callback = &a.Operations, true
	}
	switch r := v.Result.(type) {
	case *nfs4.CompoundRes:
		res = &r.Operations
	case *nfs4.CbCompoundRes:
		res, callback = &r.Operations, true
	}
	return args, res, callback
}

// MinorVersion is the minor version of an NFSv4 COMPOUND.
func (v *View) MinorVersion() (uint32, bool) {
	switch a := v.Args.(type) {
	case *nfs4.CompoundArgs:
		return a.Minorversion, true
	case *nfs4.CbCompoundArgs:
		return a.Minorversion, true
	}
	return 0, false
}

// Operations lists the operations of an NFSv4 COMPOUND in order; empty for
// all other procedures. It is valid until the next Set.
func (v *View) Operations() []Operation {
	if v.opsDone {
		return v.ops
	}
	v.opsDone = true
	v.ops = v.ops[:0]
	args, res, callback := v.compounds()
	n := 0
	if args != nil {
		n = len(args.Ops)
	}
	if res != nil {
		n = max(n, len(res.Ops))
	}
	for i := range n {
		var o Operation
		if args != nil && i < len(args.Ops) {
			o.Number, o.Args = args.Ops[i].Number, args.Ops[i].Body
		}
		if res != nil && i < len(res.Ops) {
			r := &res.Ops[i]
			if o.Args == nil {
				o.Number = r.Number
			}
			o.Result = r.Body
			if code, symbol, ok := r.Status(); ok {
				o.Code, o.Status = code, xdr.EnumString(code, symbol)
			}
		}
		if callback {
			o.Name = nfs4.CbOpName(o.Number)
		} else {
			o.Name = nfs4.OpName(o.Number)
		}
		v.ops = append(v.ops, o)
	}
	// An operation that could not be decoded still has a name.
	if args != nil && args.Incomplete && args.FailedOp != 0 && args.FailedAt >= n {
		o := Operation{Number: args.FailedOp, Name: nfs4.OpName(args.FailedOp)}
		if callback {
			o.Name = nfs4.CbOpName(o.Number)
		}
		v.ops = append(v.ops, o)
	}
	return v.ops
}

// file4 draws a File from a COMPOUND: of its operations the one that says
// most.
func (v *View) file4() {
	f := &v.file
	var current []byte
	for _, o := range v.Operations() {
		ok := o.Result != nil && o.Code == uint32(nfs4.NFS4_OK)
		switch a := o.Args.(type) {
		case *nfs4.PUTFH4args:
			current = a.Object
			if f.Handle == nil {
				f.Handle = current
			}
		case *nfs4.LOOKUP4args:
			f.Handle, f.Name = current, a.Objname
		case *nfs4.OPEN4args:
			f.Handle = current
			switch a.Claim.Claim {
			case nfs4.CLAIM_NULL:
				f.Name = a.Claim.File
			case nfs4.CLAIM_DELEGATE_CUR:
				f.Name = a.Claim.DelegateCurInfo.File
			case nfs4.CLAIM_DELEGATE_PREV:
				f.Name = a.Claim.FileDelegatePrev
			}
		case *nfs4.CREATE4args:
			f.Handle, f.Name = current, a.Objname
			if a.Objtype.Type == nfs4.NF4LNK {
				f.To = a.Objtype.Linkdata.Inline
			}
		case *nfs4.REMOVE4args:
			f.Handle, f.Name = current, a.Target
		case *nfs4.RENAME4args:
			f.Handle, f.Name, f.To = current, a.Oldname, a.Newname
		case *nfs4.LINK4args:
			f.To = a.Newname
		case *nfs4.SECINFO4args:
			f.Handle, f.Name = current, a.Name
		case *nfs4.READ4args:
			f.Handle = current
			f.span(a.Offset, uint64(a.Count))
			if r, is := o.Result.(*nfs4.READ4res); is && ok {
				f.moved(uint64(r.Resok4.Data.Length))
				f.EOF = r.Resok4.Eof
			}
		case *nfs4.WRITE4args:
			f.Handle = current
			f.span(a.Offset, uint64(a.Data.Length))
			f.Stable = a.Stable.Symbol()
			if r, is := o.Result.(*nfs4.WRITE4res); is && ok {
				f.moved(uint64(r.Resok4.Count))
			}
		case *nfs4.COMMIT4args:
			f.Handle = current
			f.span(a.Offset, uint64(a.Count))
		case *nfs4.LOCK4args:
			f.Handle = current
			f.span(a.Offset, a.Length)
		case *nfs4.LOCKT4args:
			f.Handle = current
			f.span(a.Offset, a.Length)
		case *nfs4.LOCKU4args:
			f.Handle = current
			f.span(a.Offset, a.Length)
		case *nfs4.READ_PLUS4args:
			f.Handle = current
			f.span(a.RpaOffset, uint64(a.RpaCount))
		case *nfs4.ALLOCATE4args:
			f.Handle = current
			f.span(a.AaOffset, a.AaLength)
		case *nfs4.DEALLOCATE4args:
			f.Handle = current
			f.span(a.DaOffset, a.DaLength)
		case *nfs4.SEEK4args:
			f.Handle = current
			f.span(a.SaOffset, 0)
		case *nfs4.COPY4args:
			f.Handle = current
			f.span(a.CaDstOffset, a.CaCount)
		case *nfs4.CLONE4args:
			f.Handle = current
			f.span(a.ClDstOffset, a.ClCount)
		case *nfs4.GETXATTR4args:
			f.Handle, f.Name = current, a.GxaName
		case *nfs4.SETXATTR4args:
			f.Handle, f.Name = current, a.SxaKey
		case *nfs4.REMOVEXATTR4args:
			f.Handle, f.Name = current, a.RxaName
		case *nfs4.CB_RECALL4args:
			f.Handle = a.Fh
		case *nfs4.CB_GETATTR4args:
			f.Handle = a.Fh
		}
		if r, is := o.Result.(*nfs4.GETFH4res); is && ok {
			current = r.Resok4.Object
			if f.Name != nil {
				f.Result = current
			} else if f.Handle == nil {
				f.Handle = current
			}
		}
	}
}
