package run

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// ServeRPC answers the server's calls to the client (CB_NULL, CB_COMPOUND). A
// delegation that it recalls is given back at once.
func (b backward) ServeRPC(x transport.Exchange) {
	m := x.Call()
	var h oncrpc.Call
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil {
		x.Drop()
		return
	}
	at := h.Size()
	reply := oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}
	switch {
	case h.Procedure == 0:
		x.Reply(&transport.Message{Stream: reply.Append(nil)})
		return
	case h.Procedure != 1 || at > len(m.Stream):
		reply.Accept = oncrpc.ProcUnavail
		x.Reply(&transport.Message{Stream: reply.Append(nil)})
		return
	}
	var r xdr.Reader
	r.Reset(m.Stream[at:], len(m.Stream)-at)
	var args nfs4.CbCompoundArgs
	args.Decode(&r)
	if r.Err() != nil {
		reply.Accept = oncrpc.GarbageArgs
		x.Reply(&transport.Message{Stream: reply.Append(nil)})
		return
	}
	res := nfs4.CbCompoundRes{Tag: args.Tag}
	var recalls []recall
	for i := range args.Ops {
		op := nfs4.Op{Number: args.Ops[i].Number}
		status := nfs4.NFS4_OK
		switch a := args.Ops[i].Body.(type) {
		case *nfs4.CB_SEQUENCE4args:
			op.Body = &nfs4.CB_SEQUENCE4res{CsrResok4: nfs4.CB_SEQUENCE4resok{CsrSessionid: a.CsaSessionid, CsrSequenceid: a.CsaSequenceid,
				CsrSlotid: a.CsaSlotid, CsrHighestSlotid: a.CsaHighestSlotid, CsrTargetHighestSlotid: a.CsaHighestSlotid}}
		case *nfs4.CB_RECALL4args:
			recalls = append(recalls, recall{a.Stateid, append([]byte(nil), a.Fh...)})
			op.Body = &nfs4.Status4res{}
		default:
			status = nfs4.NFS4ERR_NOTSUPP
			op.Body = &nfs4.Status4res{Status: status}
		}
		res.Ops = append(res.Ops, op)
		if res.Status = status; status != nfs4.NFS4_OK {
			break
		}
	}
	x.Reply(&transport.Message{Stream: res.Append(reply.Append(nil))})
	if len(recalls) > 0 {
		b.e.mu.Lock()
		b.e.recalled = append(b.e.recalled, recalls...)
		b.e.mu.Unlock()
		b.e.poke()
	}
}
