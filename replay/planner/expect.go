package planner

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// expect is the reply that a replay should get; nil without one in the capture. reason says what cannot be compared.
func expect(v *rpc.View, results bool) (x *plan.Expect, reason string) {
	if !v.Tx.Reply.Seen() {
		return nil, ""
	}
	x = &plan.Expect{}
	if v.ReplyErr != nil || !v.Reply().Succeeded() {
		if x.RPC = v.Status(); x.RPC == "" {
			x.RPC = "unreadable"
			x.Partial = true
			reason = "the reply could not be read: its outcome is not compared"
		}
		return x, reason
	}
	if s, ok := v.Result().(xdr.Status); ok && v.Result() != nil {
		x.Status, _ = s.StatusCode()
		x.StatusName = v.Status()
	}
	if v.Result() == nil || v.ResultErr != nil {
		x.Partial = true
		reason = "a part of the reply could not be read: that is not compared"
	}
	if v.Result() == nil {
		return x, reason
	}
	moveData(v, x)
	if !x.Partial && results {
		x.Results = v.Result().Append(nil)
	}
	return x, reason
}

// moveData moves the data of READ, READ_PLUS and READLINK from the results into the reply's expectation.
func moveData(v *rpc.View, x *plan.Expect) {
	n := 0
	take := func(at int, offset uint64, d *xdr.Data, eof, text bool) {
		n++
		b := item(v, *d, true)
		r := plan.Result{At: at, Offset: offset, Length: d.Length, EOF: eof}
		if len(b) == int(d.Length) {
			r.Hash = plan.HashData(b)
			if text {
				r.Text = bytes.Clone(b)
			}
		}
		x.Data = append(x.Data, r)
		d.Chunk, d.Inline = n, nil
	}
	switch r := v.Result().(type) {
	case *nfs3.READ3res:
		if a, ok := v.Args().(*nfs3.READ3args); ok && r.Status == nfs3.NFS3_OK {
			take(0, a.Offset, &r.Resok.Data, r.Resok.Eof, false)
		}
	case *nfs3.READLINK3res:
		if r.Status == nfs3.NFS3_OK {
			take(0, 0, &r.Resok.Data, false, true)
		}
	case *nfs4.CompoundRes:
		ops := v.Operations()
		for i := range r.Ops {
			st, _, _ := r.Ops[i].Status()
			x.Ops = append(x.Ops, st)
			if st != 0 {
				continue
			}
			switch y := r.Ops[i].Body.(type) {
			case *nfs4.READ4res:
				offset := uint64(0)
				if i < len(ops) {
					if a, ok := ops[i].Args.(*nfs4.READ4args); ok {
						offset = a.Offset
					}
				}
				take(i, offset, &y.Resok4.Data, y.Resok4.Eof, false)
			case *nfs4.READ_PLUS4res:
				parts := y.RpResok4.RprContents
				for k := range parts {
					if p := &parts[k]; p.RpcContent == nfs4.NFS4_CONTENT_DATA {
						take(i, p.RpcData.DOffset, &p.RpcData.DData, y.RpResok4.RprEof && k == len(parts)-1, false)
					}
				}
			case *nfs4.READLINK4res:
				take(i, 0, &y.Resok4.Link, false, true)
			}
		}
	}
}
