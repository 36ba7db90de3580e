package planner

import (
	"strings"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/plan"
)

func (c *call) credential() int {
	b, call := c.b, c.v.Call()
	var x plan.Credential
	switch call.Cred.Flavor {
	case oncrpc.AuthSys:
		var s oncrpc.Sys
		x.Flavor = "sys"
		if s.Decode(call.Cred.Body) {
			x.Machine, x.UID, x.GID = strings.ToValidUTF8(string(s.Machine), "?"), s.UID, s.GID
			x.GIDs = append(x.GIDs, s.GIDs[:s.Count]...)
		}
	case oncrpc.RPCSecGSS:
		x.Flavor, x.Note = "gss", "who it was is not in the capture"
		if call.Protection().Kind() == oncrpc.BodyIntegrity {
			c.worse(plan.Inferred, "RPCSEC_GSS integrity: replayed with another credential")
		} else {
			c.worse(plan.Inferred, "RPCSEC_GSS: replayed with another credential")
		}
	case oncrpc.AuthNone:
		x.Flavor = "none"
	default:
		x.Flavor, x.Note = "none", "was "+call.Cred.Flavor.String()
	}
	k := call.Cred.Flavor.String() + string(call.Cred.Body)
	if x.Flavor == "gss" {
		k = "gss"
		if p := c.v.Principal; p != "" {
			k, x.Note = "gss "+p, "Kerberos principal "+p
		}
	} else if x.Flavor == "sys" && len(call.Cred.Body) >= 4 {
		k = "sys" + string(call.Cred.Body[4:]) // without the stamp
	}
	if id := b.creds[k]; id != 0 {
		return id
	}
	if len(b.creds) > 0 && (len(b.creds) >= maxStates || b.room.full()) {
		b.limit("more credentials than are followed")
		return 1
	}
	x.ID = len(b.t.Credentials) + 1
	b.t.Credentials = append(b.t.Credentials, x)
	b.creds[k] = x.ID
	b.room.take(credentialSize + 2*len(k))
	return x.ID
}
