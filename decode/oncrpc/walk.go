package oncrpc

import "github.com/rpcrdma/toolkit/decode/xdr"

// Walk shows the header to v under the names of RFC 5531.
func (c *Call) Walk(v xdr.Visitor) {
	v.Begin("rpc", "rpc_msg", -1)
	v.Uint("xid", uint64(c.XID))
	v.Enum("mtype", uint32(TypeCall), TypeCall.String())
	v.Begin("cbody", "call_body", -1)
	v.Uint("rpcvers", uint64(c.RPCVersion))
	v.Uint("prog", uint64(c.Program))
	v.Uint("vers", uint64(c.Version))
	v.Uint("proc", uint64(c.Procedure))
	c.Cred.walk(v, "cred", true)
	c.Verf.walk(v, "verf", false)
	v.End()
	v.End()
}

// Walk shows the header to v under the names of RFC 5531.
func (r *Reply) Walk(v xdr.Visitor) {
	v.Begin("rpc", "rpc_msg", -1)
	v.Uint("xid", uint64(r.XID))
	v.Enum("mtype", uint32(TypeReply), TypeReply.String())
	v.Begin("rbody", "reply_body", -1)
	v.Enum("reply_stat", uint32(r.Stat), r.Stat.String())
	switch {
	case r.Stat == Accepted:
		r.Verf.walk(v, "verf", false)
		v.Enum("accept_stat", uint32(r.Accept), r.Accept.String())
		if r.Accept == ProgMismatch {
			r.walkVersions(v)
		}
	case r.Stat == Denied:
		v.Enum("reject_stat", uint32(r.Reject), r.Reject.String())
		switch r.Reject {
		case RPCMismatch:
			r.walkVersions(v)
		case AuthError:
			v.Enum("auth_stat", uint32(r.AuthStat), r.AuthStat.String())
		}
	}
	v.End()
	v.End()
}

func (r *Reply) walkVersions(v xdr.Visitor) {
	v.Begin("mismatch_info", "mismatch_info", -1)
	v.Uint("low", uint64(r.Low))
	v.Uint("high", uint64(r.High))
	v.End()
}

// Walk shows a credential to v, in full for the flavors that are known.
func (a Auth) walk(v xdr.Visitor, field string, cred bool) {
	v.Begin(field, "opaque_auth", -1)
	v.Enum("flavor", uint32(a.Flavor), a.Flavor.String())
	var sys Sys
	var gss GSSCred
	switch {
	case cred && a.Flavor == AuthSys && sys.Decode(a.Body):
		sys.Walk(v)
	case cred && a.Flavor == RPCSecGSS && gss.Decode(a.Body):
		gss.Walk(v)
	default:
		v.Bytes("body", a.Body)
	}
	v.End()
}

// Walk shows the fields of the credential to v.
func (s *Sys) Walk(v xdr.Visitor) {
	v.Uint("stamp", uint64(s.Stamp))
	v.String("machinename", s.Machine)
	v.Uint("uid", uint64(s.UID))
	v.Uint("gid", uint64(s.GID))
	for _, g := range s.GIDs[:s.Count] {
		v.Uint("gids", uint64(g))
	}
}

// Walk shows the fields of the credential to v.
func (c *GSSCred) Walk(v xdr.Visitor) {
	v.Uint("version", uint64(c.Version))
	v.Enum("gss_proc", uint32(c.Proc), c.Proc.String())
	v.Uint("seq_num", uint64(c.Sequence))
	v.Enum("service", uint32(c.Service), c.Service.String())
	v.Bytes("handle", c.Handle)
}

// Walk shows the fields of the result to v.
func (g *GSSInitResult) Walk(v xdr.Visitor) {
	v.Bytes("handle", g.Handle)
	v.Enum("gss_major", g.Major, GSSMajorName(g.Major))
	v.Uint("gss_minor", uint64(g.Minor))
	v.Uint("seq_window", uint64(g.Window))
	v.Bytes("gss_token", g.Token)
}

// Walk shows the wrapping of a protected body to v. The arguments or results
// inside are not shown, and nothing of what is not there.
func (b *Body) Walk(v xdr.Visitor) {
	switch b.Kind {
	case BodyIntegrity:
		if b.Data == nil {
			return
		}
		v.Begin("gss", "rpc_gss_integ_data", -1)
		v.Uint("seq_num", uint64(b.Sequence))
		if b.Checksum != nil {
			v.Bytes("checksum", b.Checksum)
		}
		v.End()
	case BodyPrivacy:
		v.Begin("gss", "rpc_gss_priv_data", -1)
		v.Bytes("databody_priv", b.Data)
		v.End()
	case BodyUnknown:
		v.Begin("gss", "opaque", -1)
		v.Bytes("data", b.Data)
		v.End()
	}
}
