package text

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// rpcCall writes the RPC header of a call, on one line or with all of its fields.
func (t *Tree) rpcCall(b []byte, v *rpc.View) []byte {
	f := &t.fields
	f.reset(t.full())
	c := v.Call()
	stage := readUntil(v.CallErr)
	if t.full() {
		if stage > readNothing {
			c.Walk(f)
			f.until(v.CallErr)
			b = t.layout(b, f, 4)
		}
	} else if stage > readNothing {
		b = append(b, "    rpc: CALL, program "...)
		b = strconv.AppendUint(b, uint64(c.Program), 10)
		b = append(b, " ("...)
		b = append(b, v.ProgramName()...)
		b = append(b, ") version "...)
		b = strconv.AppendUint(b, uint64(c.Version), 10)
		b = append(b, ", procedure "...)
		b = strconv.AppendUint(b, uint64(c.Procedure), 10)
		b = append(b, " ("...)
		b = append(b, v.ProcedureName()...)
		b = append(b, ')')
		if stage > readFixed {
			b = append(b, "\n    credential: "...)
			b = t.auth(b, &c.Cred, true)
		}
		if stage > readAuth {
			b = t.verifier(b, &c.Verf)
		}
		b = append(b, '\n')
	}
	if v.Principal != "" {
		b = append(b, "    principal: "...)
		b = append(b, v.Principal...)
		b = append(b, '\n')
	}
	b = t.failure(b, v.CallErr, c.Cut)
	b = t.wrapping(b, v.CallBody())
	b = t.failure(b, v.ArgsBodyErr(), false)
	return t.opened(b, &v.CallOpened)
}

// How much of an RPC header was read: all items up to this one.
const (
	readNothing = iota
	readFixed   // of a call: all before the credential; of a reply: that it is one
	readAuth    // the credential; or, of a reply, whether it was accepted
	readVerifier
	readOutcome // accept_stat, or reject_stat
	readWhole
)

// readUntil tells from the field in which decoding an RPC header failed what was read. What was not is zero, which would be a success of a
// reply (RFC 5531, section 9).
func readUntil(err error) int {
	e, ok := err.(*xdr.Error)
	if !ok {
		return readWhole
	}
	switch e.Field {
	case "call_body", "reply_body":
		return readNothing
	case "mtype", "rpcvers", "cred", "stat":
		return readFixed
	case "verf", "reject_stat":
		return readAuth
	case "accept_stat":
		return readVerifier
	}
	return readOutcome
}

// rpcReply writes the RPC header of a reply.
func (t *Tree) rpcReply(b []byte, v *rpc.View) []byte {
	f := &t.fields
	f.reset(t.full())
	r := v.Reply()
	stage := readUntil(v.ReplyErr)
	if t.full() {
		if stage > readNothing {
			r.Walk(f)
			f.until(v.ReplyErr)
			b = t.layout(b, f, 4)
		}
	} else if stage > readNothing {
		b = append(b, "    rpc: REPLY"...)
		if stage > readFixed {
			b = append(b, ", "...)
			b = append(b, r.Stat.String()...)
		}
		if stage > readVerifier {
			b = append(b, ", "...)
			b = append(b, r.Status()...)
		}
		if stage == readWhole && r.Stat == oncrpc.Denied && r.Reject == oncrpc.AuthError {
			b = append(b, ", "...)
			b = append(b, xdr.EnumString(uint32(r.AuthStat), r.AuthStat.String())...)
		}
		if stage == readWhole && r.High != 0 {
			b = append(b, ", versions "...)
			b = strconv.AppendUint(b, uint64(r.Low), 10)
			b = append(b, " to "...)
			b = strconv.AppendUint(b, uint64(r.High), 10)
		}
		if r.Stat == oncrpc.Accepted && stage > readAuth {
			b = t.verifier(b, &r.Verf)
		}
		b = append(b, '\n')
	}
	b = t.failure(b, v.ReplyErr, r.Cut)
	b = t.wrapping(b, v.ReplyBody())
	b = t.failure(b, v.ResultBodyErr(), false)
	return t.opened(b, &v.ReplyOpened)
}

// auth writes a credential or verifier on the same line.
func (t *Tree) auth(b []byte, a *oncrpc.Auth, cred bool) []byte {
	if s := a.Flavor.String(); s != "" {
		b = append(b, s...)
	} else {
		b = append(b, "flavor "...)
		b = strconv.AppendUint(b, uint64(a.Flavor), 10)
	}
	var sys oncrpc.Sys
	var gss oncrpc.GSSCred
	f := &t.fields
	f.reset(false)
	switch {
	case cred && a.Flavor == oncrpc.AuthSys && sys.Decode(a.Body):
		sys.Walk(f)
	case cred && a.Flavor == oncrpc.RPCSecGSS && gss.Decode(a.Body):
		gss.Walk(f)
	case len(a.Body) > 0:
		f.Bytes("body", a.Body)
	default:
		return b
	}
	b = append(b, ", "...)
	return t.row(b, f, 0, len(f.nodes), len("    credential: AUTH_SYS, "), 6)
}

// verifier writes a verifier, on its own line if it is not empty.
func (t *Tree) verifier(b []byte, a *oncrpc.Auth) []byte {
	if len(a.Body) > 0 {
		b = append(b, "\n    verifier: "...)
	} else {
		b = append(b, "; verifier: "...)
	}
	return t.auth(b, a, false)
}

// wrapping writes the RPCSEC_GSS wrapping of arguments or results.
func (t *Tree) wrapping(b []byte, body *oncrpc.Body) []byte {
	f := &t.fields
	f.reset(t.full())
	body.Walk(f)
	if body.Kind == oncrpc.BodyInit && len(body.Data) > 0 {
		t.context(f, body)
	}
	return t.layout(b, f, 4)
}

// opened describes the result of unwrapping a body with a keytab.
func (t *Tree) opened(b []byte, o *rpc.Opened) []byte {
	switch o.How {
	case rpc.Verified:
		return append(b, "    checksum verified\n"...)
	case rpc.Decrypted:
		b = append(b, "    decrypted, checksum verified: "...)
	case rpc.Prefix:
		b = append(b, "    decrypted as far as it was captured, checksum not verified: "...)
	case rpc.Refused:
		return append(b, "    not opened: wrong checksum or malformed token\n"...)
	default:
		return b
	}
	b = strconv.AppendInt(b, int64(o.Length), 10)
	return append(b, " bytes\n"...)
}

// context shows the token, or the result, of a call that creates an RPCSEC_GSS context (RFC 2203, section
// 5.2.2).
func (t *Tree) context(f *fields, body *oncrpc.Body) {
	var result oncrpc.GSSInitResult
	f.Begin("gss", "", -1)
	if result.Decode(body.Data) {
		result.Walk(f)
	} else {
		var r xdr.Reader
		r.Reset(body.Data, body.Length)
		f.Bytes("gss_token", r.Opaque(0))
	}
	f.End()
}
