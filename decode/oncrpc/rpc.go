// Package oncrpc decodes and encodes the headers of ONC remote procedure calls (RFC 5531) with their
// authentication flavors, RPCSEC_GSS (RFC 2203, RFC 5403, RFC 7861) among them. It finds the records of RPC
// over TCP, and distinguishes RPC from other traffic.
package oncrpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Version is the only version of the RPC protocol.
const Version = 2

// MsgType is msg_type (RFC 5531, section 9).
type MsgType uint32

// Message types.
const (
	TypeCall  MsgType = 0
	TypeReply MsgType = 1
)

var msgTypeNames = [...]string{"CALL", "REPLY"}

func (t MsgType) String() string { return name(msgTypeNames[:], uint32(t)) }

// ReplyStat is reply_stat.
type ReplyStat uint32

// Reply states.
const (
	Accepted ReplyStat = 0
	Denied   ReplyStat = 1
)

var replyStatNames = [...]string{"MSG_ACCEPTED", "MSG_DENIED"}

func (s ReplyStat) String() string { return name(replyStatNames[:], uint32(s)) }

// AcceptStat is accept_stat: what became of an accepted call.
type AcceptStat uint32

// Accept states.
const (
	Success      AcceptStat = 0
	ProgUnavail  AcceptStat = 1
	ProgMismatch AcceptStat = 2 // Reply.Low and Reply.High are the versions served
	ProcUnavail  AcceptStat = 3
	GarbageArgs  AcceptStat = 4
	SystemErr    AcceptStat = 5
)

var acceptStatNames = [...]string{
	"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR",
}

func (s AcceptStat) String() string { return name(acceptStatNames[:], uint32(s)) }

// RejectStat is reject_stat: why a call was denied.
type RejectStat uint32

// Reject states.
const (
	RPCMismatch RejectStat = 0 // Reply.Low and Reply.High are the RPC versions served
	AuthError   RejectStat = 1
)

var rejectStatNames = [...]string{"RPC_MISMATCH", "AUTH_ERROR"}

func (s RejectStat) String() string { return name(rejectStatNames[:], uint32(s)) }

// AuthStat is auth_stat: why authentication failed.
type AuthStat uint32

// Authentication states.
const (
	AuthOK             AuthStat = 0
	AuthBadCred        AuthStat = 1
	AuthRejectedCred   AuthStat = 2
	AuthBadVerf        AuthStat = 3
	AuthRejectedVerf   AuthStat = 4
	AuthTooWeak        AuthStat = 5
	AuthInvalidResp    AuthStat = 6
	AuthFailed         AuthStat = 7
	AuthGSSCredProblem AuthStat = 13
	AuthGSSCtxProblem  AuthStat = 14
)

var authStatNames = [...]string{
	"AUTH_OK", "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF", "AUTH_REJECTEDVERF",
	"AUTH_TOOWEAK", "AUTH_INVALIDRESP", "AUTH_FAILED", "AUTH_KERB_GENERIC", "AUTH_TIMEEXPIRE",
	"AUTH_TKT_FILE", "AUTH_DECODE", "AUTH_NET_ADDR", "RPCSEC_GSS_CREDPROBLEM", "RPCSEC_GSS_CTXPROBLEM",
}

func (s AuthStat) String() string { return name(authStatNames[:], uint32(s)) }

// name is the n-th of names; empty if there is none.
func name(names []string, n uint32) string {
	if uint64(n) < uint64(len(names)) {
		return names[n]
	}
	return ""
}

// message is what calls and replies have in common when they are decoded.
type message struct {
	// Cut says that the capture ends within the header.
	Cut bool
	// Length is the size of the header in bytes, as far as it was decoded.
	Length int
	// Payload is what follows the header, as far as it was captured.
	Payload []byte
	// PayloadLength is the size of the payload on the wire in bytes.
	PayloadLength int

	err xdr.Error
}

func (m *message) fail(k xdr.Kind, off, full, have int, field string) error {
	m.err = xdr.Error{Kind: k, Offset: off, Field: field}
	m.Cut = k == xdr.Short && full > have
	m.Length = off
	return &m.err
}

func (m *message) reset() {
	m.Cut, m.Length, m.Payload, m.PayloadLength = false, 0, nil, 0
	m.err.Kind = xdr.None
}

func (m *message) payload(b []byte, off, full int) {
	m.Length = off
	m.Payload = b[off:len(b):len(b)]
	m.PayloadLength = full - off
}

// auth decodes an opaque_auth at off and returns the offset after it.
func (m *message) auth(a *Auth, b []byte, off, full int, field string) (int, error) {
	if len(b)-off < 8 {
		return off, m.fail(xdr.Short, off, full, len(b), field)
	}
	a.Flavor = Flavor(binary.BigEndian.Uint32(b[off:]))
	n := binary.BigEndian.Uint32(b[off+4:])
	if n > maxAuth {
		return off, m.fail(xdr.Range, off+4, full, len(b), field)
	}
	off += 8
	end := off + (int(n)+3)&^3
	if end <= len(b) {
		a.Body = b[off : off+int(n) : off+int(n)]
		return end, nil
	}
	if end > full {
		return off, m.fail(xdr.Range, off-4, full, len(b), field)
	}
	return off, m.fail(xdr.Short, off, full, len(b), field)
}
