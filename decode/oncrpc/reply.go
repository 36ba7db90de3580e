package oncrpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Reply is the header of a reply (RFC 5531, section 9):
//
//	 0         4         8         12
//	+---------+---------+---------+
//	| XID     | REPLY 1 | Stat    |
//	+---------+---------+---------+---------+
//	| accepted: Flavor  | Length  | Verf …  | Accept stat [, Low, High]
//	+---------+---------+---------+---------+
//	| denied: Reject stat, then Low and High, or Auth stat
//	+---------------------------------------+
//
// Decode refills it; its slices alias the message.
type Reply struct {
	XID       uint32
	Stat      ReplyStat
	Verf      Auth       // accepted
	Accept    AcceptStat // accepted
	Reject    RejectStat // denied
	AuthStat  AuthStat   // denied with AuthError
	Low, High uint32     // ProgMismatch, RPCMismatch

	message
}

const replyFixed = 12

// Decode reads the header at the start of b, the captured part of a message
// of full bytes (a full less than len(b) counts as len(b)).
//
// An error is an *xdr.Error that belongs to r; the fields before the error
// are valid. If r.Cut is set as well, the header is well-formed as far as it
// was captured.
func (r *Reply) Decode(b []byte, full int) error {
	if full < len(b) {
		full = len(b)
	}
	if SuccessHeader(b) == 0 {
		return r.decode(b, full)
	}
	// The usual reply: a success, without a verifier.
	r.XID, r.Stat, r.Accept = binary.BigEndian.Uint32(b), Accepted, Success
	r.Reject, r.AuthStat, r.Low, r.High, r.Verf.Flavor = 0, 0, 0, 0, AuthNone
	r.Cut, r.err.Kind = false, xdr.None
	r.Length, r.PayloadLength = minAccepted, full-minAccepted
	r.Payload = b[minAccepted:len(b):len(b)]
	r.Verf.Body = r.Payload[:0:0]
	return nil
}

// decode is Decode for replies that are cut or malformed, that have a verifier, or that say anything but success.
func (r *Reply) decode(b []byte, full int) error {
	r.reset()
	r.XID, r.Stat, r.Verf, r.Accept, r.Reject = 0, 0, Auth{}, 0, 0
	r.AuthStat, r.Low, r.High = 0, 0, 0
	if len(b) < replyFixed {
		if len(b) >= 4 {
			r.XID = binary.BigEndian.Uint32(b)
		}
		return r.fail(xdr.Short, len(b)&^3, full, len(b), "reply_body")
	}
	r.XID = binary.BigEndian.Uint32(b)
	if MsgType(binary.BigEndian.Uint32(b[4:])) != TypeReply {
		return r.fail(xdr.Value, 4, full, len(b), "mtype")
	}
	r.Stat = ReplyStat(binary.BigEndian.Uint32(b[8:]))
	switch r.Stat {
	case Accepted:
		return r.accepted(b, full)
	case Denied:
		return r.denied(b, full)
	}
	return r.fail(xdr.Value, 8, full, len(b), "stat")
}

func (r *Reply) accepted(b []byte, full int) error {
	off, err := r.auth(&r.Verf, b, replyFixed, full, "verf")
	if err != nil {
		return err
	}
	if len(b)-off < 4 {
		return r.fail(xdr.Short, off, full, len(b), "accept_stat")
	}
	r.Accept = AcceptStat(binary.BigEndian.Uint32(b[off:]))
	if r.Accept > SystemErr {
		return r.fail(xdr.Value, off, full, len(b), "accept_stat")
	}
	off += 4
	if r.Accept == ProgMismatch {
		if off, err = r.versions(b, off, full); err != nil {
			return err
		}
	}
	r.payload(b, off, full)
	return nil
}

func (r *Reply) denied(b []byte, full int) (err error) {
	off := replyFixed
	if len(b)-off < 4 {
		return r.fail(xdr.Short, off, full, len(b), "reject_stat")
	}
	r.Reject = RejectStat(binary.BigEndian.Uint32(b[off:]))
	off += 4
	switch r.Reject {
	case RPCMismatch:
		if off, err = r.versions(b, off, full); err != nil {
			return err
		}
	case AuthError:
		if len(b)-off < 4 {
			return r.fail(xdr.Short, off, full, len(b), "auth_stat")
		}
		r.AuthStat = AuthStat(binary.BigEndian.Uint32(b[off:]))
		off += 4
	default:
		return r.fail(xdr.Value, off-4, full, len(b), "reject_stat")
	}
	r.payload(b, off, full)
	return nil
}

func (r *Reply) versions(b []byte, off, full int) (int, error) {
	if len(b)-off < 8 {
		return off, r.fail(xdr.Short, off, full, len(b), "mismatch_info")
	}
	r.Low = binary.BigEndian.Uint32(b[off:])
	r.High = binary.BigEndian.Uint32(b[off+4:])
	return off + 8, nil
}

// Succeeded reports whether the call was executed, so that results follow.
func (r *Reply) Succeeded() bool { return r.Stat == Accepted && r.Accept == Success }

// Status is the name of the outcome: SUCCESS, or the RPC-level failure (PROG_UNAVAIL, …, RPC_MISMATCH,
// AUTH_ERROR). AuthStat details the last one.
func (r *Reply) Status() string {
	if r.Stat == Denied {
		return r.Reject.String()
	}
	return r.Accept.String()
}

// Size is the encoded size of the header in bytes.
func (r *Reply) Size() int {
	if r.Stat == Denied {
		if r.Reject == RPCMismatch {
			return replyFixed + 12
		}
		return replyFixed + 8
	}
	n := replyFixed + r.Verf.Size() + 4
	if r.Accept == ProgMismatch {
		n += 8
	}
	return n
}

// Append encodes the header.
func (r *Reply) Append(b []byte) []byte {
	b = xdr.AppendUint32(b, r.XID)
	b = xdr.AppendUint32(b, uint32(TypeReply))
	b = xdr.AppendUint32(b, uint32(r.Stat))
	if r.Stat == Denied {
		b = xdr.AppendUint32(b, uint32(r.Reject))
		if r.Reject == RPCMismatch {
			b = xdr.AppendUint32(b, r.Low)
			return xdr.AppendUint32(b, r.High)
		}
		return xdr.AppendUint32(b, uint32(r.AuthStat))
	}
	b = r.Verf.Append(b)
	b = xdr.AppendUint32(b, uint32(r.Accept))
	if r.Accept == ProgMismatch {
		b = xdr.AppendUint32(b, r.Low)
		b = xdr.AppendUint32(b, r.High)
	}
	return b
}
