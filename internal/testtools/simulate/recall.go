package simulate

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// delegation is one that the holder is asked for.
type delegation struct {
	call     *Call // the OPEN that waits
	waiting  *job  // that is answered when the delegation is back
	returned bool
}

// recall asks for the delegation that is in the way of an OPEN, and reports whether the call has to wait.
func (s *nfsd) recall(j job) bool {
	r := s.n.Recall
	if r == nil || j.call.Op != Open || j.call.client.base != 0 || !s.n.chance(r.Rate, "recall", uint64(j.call.Index)) {
		return false
	}
	d := j.call.delegation
	if d == nil {
		d = &delegation{call: j.call}
		j.call.delegation = d
		s.callBack(d)
	}
	if d.returned {
		return false
	}
	if r.Wait == 0 {
		d.waiting = &j
		s.busy--
		s.start()
		return true
	}
	j.call.delayed, j.call.again = true, r.Wait
	return false
}

// returned goes on with the OPEN that has waited.
func (s *nfsd) returned(d *delegation) {
	d.returned = true
	if d.waiting != nil {
		s.line = append(s.line, *d.waiting)
		d.waiting = nil
	}
}

// callBack sends CB_RECALL to the holder.
func (s *nfsd) callBack(d *delegation) {
	s.recalls++
	c := s.holder.conns[0]
	call := &Call{Index: recallCalls + s.recalls, Op: recalled, client: s.holder, conn: c, xid: 0x77000000 + uint32(s.recalls), delegation: d}
	q := oncrpc.Call{XID: call.xid, RPCVersion: 2, Program: 0x40000000, Version: 1, Procedure: 1}
	q.Cred = oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys}
	b := xdr.AppendOpaque(q.Append(nil), nil)
	b = xdr.AppendUint32(b, 1) // minor version
	b = xdr.AppendUint32(b, 0) // identifier, of NFSv4.0
	b = xdr.AppendUint32(b, 2)
	b = xdr.AppendUint32(b, uint32(nfs4.OP_CB_SEQUENCE))
	b = (&nfs4.CB_SEQUENCE4args{CsaSessionid: session(call), CsaSequenceid: uint32(s.recalls)}).Append(b)
	b = xdr.AppendUint32(b, uint32(nfs4.OP_CB_RECALL))
	b = (&nfs4.CB_RECALL4args{Stateid: stateid, Fh: handle(d.call)}).Append(b)
	h := rpcrdma.Header{XID: call.xid, Version: rpcrdma.Version1, Credits: 16, Type: rpcrdma.TypeMsg}
	c.ends[1].add(&request{kind: sendRequest, data: append(h.Append(nil), b...), call: call, role: roleBackward})
}

// giveBack answers a callback, and returns the delegation in time.
func (cl *client) giveBack(call *Call) {
	b := (&oncrpc.Reply{XID: call.xid}).Append(nil)
	b = xdr.AppendUint32(b, 0)
	b = xdr.AppendOpaque(b, nil)
	b = xdr.AppendUint32(b, 2)
	b = xdr.AppendUint32(xdr.AppendUint32(b, uint32(nfs4.OP_CB_SEQUENCE)), 0)
	b = (&nfs4.CB_SEQUENCE4resok{CsrSessionid: session(call), CsrSequenceid: uint32(call.Index - recallCalls)}).Append(b)
	b = xdr.AppendUint32(xdr.AppendUint32(b, uint32(nfs4.OP_CB_RECALL)), 0)
	h := rpcrdma.Header{XID: call.xid, Version: rpcrdma.Version1, Credits: 16, Type: rpcrdma.TypeMsg}
	call.conn.ends[0].add(&request{kind: sendRequest, data: append(h.Append(nil), b...), call: call, role: roleBackward})
	hold := cl.n.around(cl.n.Recall.Hold, 0.3, "hold", uint64(call.Index))
	cl.n.after(hold, func() {
		back := &Call{Index: call.Index, Op: Delegreturn, client: cl, conn: call.conn, Issued: cl.n.now, delegation: call.delegation}
		cl.enter(back)
	})
}
