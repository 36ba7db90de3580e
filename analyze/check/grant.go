package check

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// grant is a delegation that a call got. A recall may overtake its reply: the client cannot know the delegation before (RFC 8881, section 2.10.6.3).
type grant struct {
	of             delegation
	client, server netip.Addr
	connection     *rdma.Connection
	xid            uint32
	reply          rdma.Ref // its last packet
	ack            rdma.Ref // of the reply, if that was captured
	call           nfs4.ReferringCall4
	session        [16]byte
}

// maxGrants is how many are remembered: the newest.
const maxGrants = 1024

// granted records the delegations that a call got.
func (c *callbackRules) granted(v *rpc.View) {
	tx := v.Tx
	if c.on[ruleRecalled] == Off || !tx.Named || tx.Program != nfs4.NFS4_PROGRAM || tx.Version != 4 || !tx.Reply.Seen() {
		return
	}
	if !slices.ContainsFunc(v.Numbers(), func(n uint32) bool {
		return n == uint32(nfs4.OP_OPEN) || n == uint32(nfs4.OP_GET_DIR_DELEGATION) || n == uint32(nfs4.OP_WANT_DELEGATION)
	}) {
		return
	}
	g := grant{client: tx.Client().Addr, server: tx.Server().Addr, connection: tx.Connection.Resolve(), xid: tx.XID, reply: tx.Reply.Last, ack: tx.Times.Ack}
	for _, o := range v.Operations() {
		if a, ok := o.Args.(*nfs4.SEQUENCE4args); ok {
			g.session, g.call = a.SaSessionid, nfs4.ReferringCall4{RcSequenceid: a.SaSequenceid, RcSlotid: a.SaSlotid}
		}
		if o.Status == "" || o.Code != uint32(nfs4.NFS4_OK) {
			continue
		}
		var id *nfs4.Stateid4
		switch r := o.Result.(type) {
		case *nfs4.OPEN4res:
			id = r.Resok4.Delegation.Stateid()
		case *nfs4.WANT_DELEGATION4res:
			id = r.WdrResok4.Stateid()
		case *nfs4.GET_DIR_DELEGATION4res:
			if r.GddrResNonFatal4.GddrnfStatus == nfs4.GDD4_OK {
				id = &r.GddrResNonFatal4.GddrnfResok4.GddrStateid
			}
		}
		if id == nil {
			continue
		}
		if len(c.grants) >= maxGrants {
			c.grants = slices.Delete(c.grants, 0, maxGrants/2)
		}
		g.of = delegation{tx.Connection.Tenant, id.Other}
		c.grants = append(c.grants, g)
	}
}

// race tells how a recall and the reply that granted the delegation were under way together; empty if they were not. confused means that the
// client did not accept the recall.
func (c *callbackRules) race(v *rpc.View, of delegation, confused bool) string {
	tx := v.Tx
	for i := len(c.grants) - 1; i >= 0; i-- {
		g := &c.grants[i]
		if g.of != of || g.client != tx.Server().Addr || g.server != tx.Client().Addr {
			continue
		}
		sent, same := tx.Call.First, tx.Connection.Resolve() == g.connection
		when := time.Duration(sent.Time - g.reply.Time)
		var how string
		switch {
		case sent.Number <= g.reply.Number:
			how = fmt.Sprintf("sent %v before the reply that grants the delegation", -when)
		case !same && g.ack.Seen() && sent.Number < g.ack.Number:
			how = fmt.Sprintf("sent %v after the reply that grants the delegation, on another connection, before the client acknowledged that reply", when)
		case confused && when < time.Second:
			how = fmt.Sprintf("sent %v after the reply that grants the delegation", when)
		default:
			return ""
		}
		how += fmt.Sprintf(" (frame %d, xid %08x)", g.reply.Number, g.xid)
		if a, ok := v.Operations()[0].Args.(*nfs4.CB_SEQUENCE4args); ok {
			named := slices.ContainsFunc(a.CsaReferringCallLists, func(l nfs4.ReferringCallList4) bool {
				return l.RclSessionid == g.session && slices.Contains(l.RclReferringCalls, g.call)
			})
			if named {
				how += "; CB_SEQUENCE names that call as a referring one"
			} else {
				how += "; CB_SEQUENCE does not name that call as a referring one"
			}
		}
		return how
	}
	return ""
}
