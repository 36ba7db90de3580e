package check

import "github.com/rpcrdma/toolkit/decode/oncrpc"

// gssMeaning explains what each RPCSEC_GSS service means for the messages of a connection.
var gssMeaning = [...]string{
	oncrpc.ServiceNone:      "authentication only: bodies can be read, their items may travel in chunks",
	oncrpc.ServiceIntegrity: "bodies can be read, but no item may travel in its own chunk",
	oncrpc.ServicePrivacy:   "bodies are encrypted: they cannot be read, and no item may travel in its own chunk",
	oncrpc.ServiceChannel:   "protection left to the channel: bodies can be read, their items may travel in chunks",
}

// secured reports each RPCSEC_GSS service of a connection once. The service of a call that creates or
// destroys a context does not apply to its body.
func (t *txCheck) secured() {
	if t.v.Clean() {
		return // without RPCSEC_GSS
	}
	g := &t.v.Call().GSS
	if t.v.CallErr != nil || t.v.Call().Cred.Flavor != oncrpc.RPCSecGSS || g.Handle == nil || g.Proc != oncrpc.GSSData {
		return
	}
	if g.Service < oncrpc.ServiceNone || g.Service > oncrpc.ServiceChannel || t.c.on[ruleGSS] == Off {
		return
	}
	if t.k.services&(1<<g.Service) != 0 {
		return
	}
	t.k.services |= 1 << g.Service
	f := t.finding(ruleGSS, aboutCall, "", func() (string, string) {
		return "bodies that can be read and reduced", g.Service.String() + ", " + gssMeaning[g.Service]
	})
	t.faults-- // not a fault
	f.Reaction, f.CallKey, f.ReplyKey = "", "", ""
	t.c.report(f)
}
