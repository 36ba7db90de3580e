package rpc

import (
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// demand is what of a usual transaction was not asked for yet, and so not decoded.
type demand uint8

const (
	demandCall demand = 1 << iota
	demandReply
	demandArgs
	demandResult
)

// settle sets what is the same for all usual transactions.
func (v *View) settle() {
	v.CallErr, v.ReplyErr, v.ArgsErr, v.ResultErr = nil, nil, nil, nil
	v.ArgsCut, v.ResultCut = false, false
	v.CallOpened.reset()
	v.ReplyOpened.reset()
	v.Principal = ""
}

// Clean reports whether Set has found nothing that needs more than the fast path: both headers without RPCSEC_GSS and verifiers, a call that was executed,
// arguments and results without an error. It is not true after SetAll.
func (v *View) Clean() bool { return v.usual != nil }

// Done reports whether the transaction is Clean, and no failure: then Status is the same for all such transactions of a procedure.
func (v *View) Done() bool { return v.usual != nil && !v.brief.Failed }

// Call is the RPC header of the call. If CallErr is set, it holds what came before the error.
func (v *View) Call() *oncrpc.Call {
	if v.demand&demandCall != 0 {
		v.readCall()
	}
	return &v.call
}

// Reply is the RPC header of the reply. If ReplyErr is set, it holds what came before the error.
func (v *View) Reply() *oncrpc.Reply {
	if v.demand&demandReply != 0 {
		v.readReply()
	}
	return &v.reply
}

// CallBody delimits the arguments.
func (v *View) CallBody() *oncrpc.Body {
	v.Call()
	return &v.callBody
}

// ReplyBody delimits the results.
func (v *View) ReplyBody() *oncrpc.Body {
	v.Reply()
	return &v.replyBody
}

// Args are the arguments; nil if they could not be decoded at all: not seen, encrypted, or of an unknown procedure.
func (v *View) Args() xdr.Message {
	if v.demand&demandArgs != 0 {
		v.readArgs()
	}
	return v.args
}

// Result is the results; nil if they could not be decoded at all.
func (v *View) Result() xdr.Message {
	if v.demand&demandResult != 0 {
		v.readResult()
	}
	return v.result
}

func (v *View) readCall() {
	v.demand &^= demandCall
	m := &v.Tx.Call
	v.CallErr = v.call.Decode(m.Payload, m.PayloadLength)
	v.call.BodyInto(&v.callBody)
}

func (v *View) readReply() {
	v.demand &^= demandReply
	m := &v.Tx.Reply
	v.ReplyErr = v.reply.Decode(m.Payload, m.PayloadLength)
	v.reply.BodyInto(oncrpc.Protection{}, &v.replyBody)
}

func (v *View) readArgs() {
	v.Call()
	v.demand &^= demandArgs
	v.decodeArgs(v.usual)
}

func (v *View) readResult() {
	v.Reply()
	v.demand &^= demandResult
	v.decodeResult(v.usual)
}
