package rpc

import (
	"errors"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Malformed calls report for each part of the transaction's messages that could
// not be decoded although all of it was captured: the number of the message's
// last packet, the part, and what is wrong, and for arguments and results that contradict each other or themselves (see Contradiction and ArgsContradiction). Parts that the capture has cut or
// lacks are not malformed.
func (v *View) Malformed(report func(packet uint64, part string, err error)) {
	if !v.Undecoded() {
		return
	}
	tx := v.Tx
	if why := v.Contradiction(); why != "" {
		report(tx.Reply.Last.Number, "results", errors.New(why))
	}
	if why := v.ArgsContradiction(); why != "" {
		report(tx.Call.Last.Number, "arguments", errors.New(why))
	}
	if err := v.ArgsBodyErr(); err != nil {
		report(tx.Call.Last.Number, "arguments", err)
	}
	if err := v.ResultBodyErr(); err != nil {
		report(tx.Reply.Last.Number, "results", err)
	}
	if v.ArgsErr != nil && !v.ArgsCut {
		report(tx.Call.Last.Number, "arguments", v.ArgsErr)
	}
	if v.CallErr != nil && tx.Call.Seen() && !v.call.Cut && whole(&tx.Call) {
		report(tx.Call.Last.Number, "call header", v.CallErr)
	}
	if part, err := v.ReplyFault(); err != nil {
		report(tx.Reply.Last.Number, part, err)
	}
}

// Parts of a message.
const (
	PartResults     = "results"
	PartReplyHeader = "reply header"
)

// ReplyFault returns the part of the reply that could not be decoded although all of it was captured, and why; nil if there is none.
func (v *View) ReplyFault() (part string, err error) {
	switch {
	case v.ResultErr != nil && !v.ResultCut:
		return PartResults, v.ResultErr
	case v.ReplyErr != nil && v.ReplyErr != ErrNotSeen && !v.reply.Cut && whole(&v.Tx.Reply):
		return PartReplyHeader, v.ReplyErr
	}
	return "", nil
}

// whole reports whether all of a message was captured. An RDMA_NOMSG without a chunk that holds the message has none (RFC 8166, section
// 3.5.3), and nothing of it can be missing.
func whole(m *transaction.Message) bool {
	if m.Cut || len(m.Payload) != m.PayloadLength {
		return false
	}
	h := &m.Header
	return m.PayloadLength > 0 || m.Transport && !h.Cut && h.Version == rpcrdma.Version1 && h.Type == rpcrdma.TypeNoMsg
}

// Undecoded reports whether a part of the transaction's messages could not be decoded, since it is malformed, cut, or was not captured, or makes no
// sense (see Contradiction and ArgsContradiction).
func (v *View) Undecoded() bool { return !v.Clean() && v.undecoded() }

// undecoded is Undecoded for a transaction that is not Clean.
func (v *View) undecoded() bool {
	return v.Tx.Kernel == nil && (v.ArgsErr != nil || v.ResultErr != nil || v.CallErr != nil || v.ReplyErr != nil ||
		v.Contradiction() != "" || v.ArgsContradiction() != "" || v.ArgsBodyErr() != nil || v.ResultBodyErr() != nil)
}

// Faults of the bodies of RPCSEC_GSS (RFC 2203, section 5.3.2).
var (
	errBody     = errors.New("lengths of the RPCSEC_GSS body contradict the size of the message")
	errChecksum = errors.New("checksum of the RPCSEC_GSS body is missing, or contradicts the size of the message")
	errSequence = errors.New("sequence number of the RPCSEC_GSS body is not that of the credential")
)

// ArgsBodyErr is what is wrong with how RPCSEC_GSS wraps the arguments, if they are wrapped. The sequence number stands in the credential, too, so
// that nobody can exchange it (RFC 2203, section 5.3.3.1).
func (v *View) ArgsBodyErr() error {
	b := v.CallBody()
	switch {
	case b.Malformed:
		return errBody
	case b.Unsealed:
		return errChecksum
	case b.Kind == oncrpc.BodyIntegrity && b.Data != nil && b.Sequence != v.call.GSS.Sequence:
		return errSequence
	}
	return nil
}

// ResultBodyErr is ArgsBodyErr for the results. Their sequence number may be that of another transmission of the call, which is sealed anew each time.
func (v *View) ResultBodyErr() error {
	switch b := v.ReplyBody(); {
	case b.Malformed:
		return errBody
	case b.Unsealed:
		return errChecksum
	}
	return nil
}
