package planner

import (
	"strings"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// credentials are the table of those who made calls.
type credentials struct {
	ids   map[string]int
	list  []plan.Credential
	room  *room
	limit func(what string)
}

// of is the number of the credential of a call.
func (t *credentials) of(v *rpc.View, why *reasons) int {
	call := v.Call()
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
			why.add(plan.Inferred, "RPCSEC_GSS integrity: replayed with another credential")
		} else {
			why.add(plan.Inferred, "RPCSEC_GSS: replayed with another credential")
		}
	case oncrpc.AuthNone:
		x.Flavor = "none"
	default:
		x.Flavor, x.Note = "none", "was "+call.Cred.Flavor.String()
	}
	k := call.Cred.Flavor.String() + string(call.Cred.Body)
	if x.Flavor == "gss" {
		k = "gss"
		if p := v.Principal; p != "" {
			k, x.Note = "gss "+p, "Kerberos principal "+p
		}
	} else if x.Flavor == "sys" && len(call.Cred.Body) >= 4 {
		k = "sys" + string(call.Cred.Body[4:]) // without the stamp
	}
	if id := t.ids[k]; id != 0 {
		return id
	}
	if len(t.ids) > 0 && (len(t.ids) >= maxStates || t.room.full()) {
		t.limit("more credentials than are followed")
		return 1
	}
	x.ID = len(t.list) + 1
	t.list = append(t.list, x)
	t.ids[k] = x.ID
	t.room.take(credentialSize + 2*len(k))
	return x.ID
}
