package callback

import (
	"bytes"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Recall is a delegation that the server wants back.
type Recall struct {
	Stateid nfs4.Stateid4
	Handle  []byte
}

// Handler answers a server's calls. It promises to return what is recalled, and leaves
// that to its owner. The zero Handler answers, and tells nobody.
type Handler struct {
	// Recalled is called, if set, after the answer to CB_RECALLs. It does not block.
	Recalled func([]Recall)
	// Cached returns the change attribute and the size that the client has of a file with a delegation, for CB_GETATTR; ok is false if it has
	// none. It may block. Nil stands for a client that has none.
	Cached func(handle []byte) (change, size uint64, ok bool)
	// Null is called, if set, after the answer to a CB_NULL. It does not block.
	Null func()
}

var _ transport.Handler = Handler{}

// Procedures of the callback program (RFC 8881, section 20).
const (
	procNull     = 0
	procCompound = 1
)

// ServeRPC implements transport.Handler.
func (h Handler) ServeRPC(x transport.Exchange) {
	m := x.Call()
	var call oncrpc.Call
	if err := call.Decode(m.Stream, len(m.Stream)); err != nil {
		x.Drop()
		return
	}
	at := call.Size()
	reply := oncrpc.Reply{XID: call.XID, Stat: oncrpc.Accepted}
	switch {
	case call.Procedure == procNull:
		x.Reply(&transport.Message{Stream: reply.Append(nil)})
		if h.Null != nil {
			h.Null()
		}
		return
	case call.Procedure != procCompound || at > len(m.Stream):
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
	answer := func(args *nfs4.CbCompoundArgs) {
		res, recalls := h.compound(args)
		x.Reply(&transport.Message{Stream: res.Append(reply.Append(nil))})
		if len(recalls) > 0 && h.Recalled != nil {
			h.Recalled(recalls)
		}
	}
	if h.Cached == nil || !slices.ContainsFunc(args.Ops, func(o nfs4.Op) bool { return o.Number == uint32(nfs4.OP_CB_GETATTR) }) {
		answer(&args)
		return
	}
	// Replies that the owner waits for may come over this connection.
	own := new(nfs4.CbCompoundArgs)
	stream := bytes.Clone(m.Stream[at:])
	r.Reset(stream, len(stream))
	own.Decode(&r)
	go answer(own)
}

// compound executes CB_COMPOUND.
func (h Handler) compound(args *nfs4.CbCompoundArgs) (res nfs4.CbCompoundRes, recalls []Recall) {
	res.Tag = args.Tag
	for i := range args.Ops {
		op := nfs4.Op{Number: args.Ops[i].Number}
		status := nfs4.NFS4_OK
		switch a := args.Ops[i].Body.(type) {
		case *nfs4.CB_SEQUENCE4args:
			op.Body = &nfs4.CB_SEQUENCE4res{CsrResok4: nfs4.CB_SEQUENCE4resok{CsrSessionid: a.CsaSessionid, CsrSequenceid: a.CsaSequenceid,
				CsrSlotid: a.CsaSlotid, CsrHighestSlotid: a.CsaHighestSlotid, CsrTargetHighestSlotid: a.CsaHighestSlotid}}
		case *nfs4.CB_RECALL4args:
			recalls = append(recalls, Recall{a.Stateid, append([]byte(nil), a.Fh...)})
			op.Body = &nfs4.Status4res{}
		case *nfs4.CB_GETATTR4args:
			r := h.getattr(a)
			status, op.Body = r.Status, r
		default:
			status = nfs4.NFS4ERR_NOTSUPP
			op.Body = &nfs4.Status4res{Status: status}
		}
		res.Ops = append(res.Ops, op)
		if res.Status = status; status != nfs4.NFS4_OK {
			break
		}
	}
	return res, recalls
}

// getattr executes CB_GETATTR (RFC 8881, section 20.1): of what a server may ask for, the client has the change attribute and the size. It has
// changed nothing that the server does not know, since the plan's calls are its only ones.
func (h Handler) getattr(args *nfs4.CB_GETATTR4args) *nfs4.CB_GETATTR4res {
	if h.Cached == nil {
		return &nfs4.CB_GETATTR4res{Status: nfs4.NFS4ERR_BADHANDLE}
	}
	change, size, ok := h.Cached(args.Fh)
	if !ok {
		return &nfs4.CB_GETATTR4res{Status: nfs4.NFS4ERR_BADHANDLE}
	}
	var a nfs4.Attrs
	if args.AttrRequest.Has(nfs4.FATTR4_CHANGE) {
		a.Change, a.Mask = change, a.Mask.With(nfs4.FATTR4_CHANGE)
	}
	if args.AttrRequest.Has(nfs4.FATTR4_SIZE) {
		a.Size, a.Mask = size, a.Mask.With(nfs4.FATTR4_SIZE)
	}
	return &nfs4.CB_GETATTR4res{Resok4: nfs4.CB_GETATTR4resok{ObjAttributes: a.Fattr4()}}
}
