package check

import "github.com/rpcrdma/toolkit/decode/oncrpc"

// Services of RPCSEC_GSS: what they mean for the messages of a connection.
var gssMeaning = [...]string{
	oncrpc.ServiceNone:      "authentication only: bodies can be read, their items may travel in chunks",
	oncrpc.ServiceIntegrity: "bodies can be read, but no item may travel in its own chunk",
	oncrpc.ServicePrivacy:   "bodies are encrypted: they cannot be read, and no item may travel in its own chunk",
	oncrpc.ServiceChannel:   "protection left to the channel: bodies can be read, their items may travel in chunks",
}

// secured tells once of each service of RPCSEC_GSS that a connection uses. The
// service of a call that makes or ends a context means nothing for its body.
func (t *txCheck) secured() {
	g := &t.v.Call.GSS
	if t.v.CallErr != nil || t.v.Call.Cred.Flavor != oncrpc.RPCSecGSS || g.Handle == nil || g.Proc != oncrpc.GSSData {
		return
	}
	if g.Service < oncrpc.ServiceNone || g.Service > oncrpc.ServiceChannel || t.c.on[ruleGSS] == Off {
		return
	}
	if t.k.services&(1<<g.Service) != 0 {
		return
	}
	t.k.services |= 1 << g.Service
	f := t.finding(ruleGSS, aboutCall, "bodies that can be read and reduced", g.Service.String()+", "+gssMeaning[g.Service])
	t.faults-- // it is none
	f.Reaction, f.CallKey, f.ReplyKey = "", "", ""
	t.c.report(f)
}
