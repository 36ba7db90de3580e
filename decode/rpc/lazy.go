package rpc

import (
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// pending is what of a clean transaction was not asked for yet, and so not decoded.
type pending uint8

const (
	pendingCall pending = 1 << iota
	pendingReply
	pendingArgs
	pendingResult
)

// setClean sets what is the same for all clean transactions.
func (v *View) setClean() {
	v.CallErr, v.ReplyErr, v.ArgsErr, v.ResultErr = nil, nil, nil, nil
	v.ArgsCut, v.ResultCut = false, false
	v.CallOpened.reset()
	v.ReplyOpened.reset()
	v.Principal = ""
}

// Clean reports whether Set has found nothing that needs more than the fast path: both headers without RPCSEC_GSS and verifiers, a call that was executed,
// arguments and results without an error. It is not true after SetAll.
func (v *View) Clean() bool { return v.clean != nil }

// Done reports whether the transaction is Clean, and no failure: then Status is the same for all such transactions of a procedure.
func (v *View) Done() bool { return v.clean != nil && !v.projection.Failed }

// Call is the RPC header of the call. If CallErr is set, it holds what came before the error.
func (v *View) Call() *oncrpc.Call {
	if v.pending&pendingCall != 0 {
		v.readCall()
	}
	return &v.call
}

// Reply is the RPC header of the reply. If ReplyErr is set, it holds what came before the error.
func (v *View) Reply() *oncrpc.Reply {
	if v.pending&pendingReply != 0 {
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
	if v.pending&pendingArgs != 0 {
		v.readArgs()
	}
	return v.args
}

// Result is the results; nil if they could not be decoded at all.
func (v *View) Result() xdr.Message {
	if v.pending&pendingResult != 0 {
		v.readResult()
	}
	return v.result
}

func (v *View) readCall() {
	v.pending &^= pendingCall
	m := &v.Tx.Call
	v.CallErr = v.call.Decode(m.Payload, m.PayloadLength)
	v.call.BodyInto(&v.callBody)
}

func (v *View) readReply() {
	v.pending &^= pendingReply
	m := &v.Tx.Reply
	v.ReplyErr = v.reply.Decode(m.Payload, m.PayloadLength)
	v.reply.BodyInto(oncrpc.Protection{}, &v.replyBody)
}

func (v *View) readArgs() {
	v.Call()
	v.pending &^= pendingArgs
	v.decodeArgs(v.clean)
}

func (v *View) readResult() {
	v.Reply()
	v.pending &^= pendingResult
	v.decodeResult(v.clean)
}
