package rpc

// Malformed calls report for each part of the transaction's messages that could
// not be decoded although all of it was captured: the number of the message's
// last packet, the part, and what is wrong. Parts that the capture has cut or
// lacks are not malformed.
func (v *View) Malformed(report func(packet uint64, part string, err error)) {
	if !v.Undecoded() {
		return
	}
	tx := v.Tx
	if v.ArgsErr != nil && !v.ArgsCut {
		report(tx.Call.Last.Number, "arguments", v.ArgsErr)
	}
	if v.ResultErr != nil && !v.ResultCut {
		report(tx.Reply.Last.Number, "results", v.ResultErr)
	}
	if v.CallErr != nil && tx.Call.Seen() && !v.call.Cut && !tx.Call.Cut && len(tx.Call.Payload) == tx.Call.PayloadLength && tx.Call.PayloadLength > 0 {
		report(tx.Call.Last.Number, "call header", v.CallErr)
	}
	if v.ReplyErr != nil && v.ReplyErr != ErrNotSeen && !v.reply.Cut && !tx.Reply.Cut && len(tx.Reply.Payload) == tx.Reply.PayloadLength && tx.Reply.PayloadLength > 0 {
		report(tx.Reply.Last.Number, "reply header", v.ReplyErr)
	}
}

// Undecoded reports whether a part of the transaction's messages could not be decoded: it is malformed, cut, or was not captured.
func (v *View) Undecoded() bool {
	return !v.Usual() && (v.ArgsErr != nil || v.ResultErr != nil || v.CallErr != nil || v.ReplyErr != nil)
}
