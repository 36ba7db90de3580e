package check

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// recalls are the delegations that were recalled and not yet returned.
type recalls []*recall

// delegation identifies a delegation: by the part of the stateid that does not change (RFC 8881, section 8.2.2), and the
// network, since servers of two tenants may use equal ones.
type delegation struct {
	tenant  uint64
	stateid [12]byte
}

// find returns the recall of a delegation between two hosts, nil if there is none. Two servers may use equal stateids in one
// network. But a client may return a delegation to another address of the server, so that one address in common is enough
// where no recall has both.
func (l recalls) find(d delegation, client, server netip.Addr) *recall {
	var near *recall
	for _, r := range l {
		switch {
		case r.of != d:
		case r.client == client && r.server == server:
			return r
		case r.client == client || r.server == server:
			near = r
		}
	}
	return near
}

type recall struct {
	of             delegation
	client, server netip.Addr
	f              *Finding
	at             int64 // when the call was seen
	sent           int
	answer         string // status of the latest callback that got an error
	agreed         bool   // a later one got none
	race           string // with the reply that grants the delegation
	failed         string // of the latest DELEGRETURN that did not succeed
}

// maxRecalls is how many recalls are remembered.
const maxRecalls = 1024

// maxPath is how many columns of a path are shown: names on the wire can have any length.
const maxPath = 60

// plain reports whether a fabric carries RPC without RDMA.
func plain(f rdma.Fabric) bool { return f == rdma.TCP || f == rdma.UDP }

// recalled records the delegations that a callback recalls. Callbacks of NFSv4.0 come over TCP; they count if
// the delegation is returned over RDMA.
func (c *callbackRules) recalled(v *rpc.View) {
	if c.on[ruleRecalled] == Off || !v.Tx.Named || v.Tx.Program < nfs4.NFS4_CALLBACK {
		return // to ask for the arguments is to decode them
	}
	if _, ok := v.Args().(*nfs4.CbCompoundArgs); !ok {
		return
	}
	tx := v.Tx
	for _, o := range v.Operations() {
		a, ok := o.Args.(*nfs4.CB_RECALL4args)
		if !ok || a.Fh == nil {
			continue
		}
		of, client, server := delegation{tx.Connection.Tenant, a.Stateid.Other}, tx.Server().Addr, tx.Client().Addr
		r := c.recalls.find(of, client, server)
		if r == nil {
			if len(c.recalls) >= maxRecalls {
				c.skip(ruleRecalled, Limit)
				continue
			}
			r = &recall{of: of, client: client, server: server, at: tx.Call.Last.Time}
			r.f = &Finding{
				Rule: &rules[ruleRecalled], Ref: tx.Call.Last, Connection: tx.Connection.Resolve().ID, Fabric: tx.Connection.Fabric,
				HasXID: true, XID: tx.XID, Backward: tx.Backward, Program: program(v), Operation: text.Operation(v),
				CallFrame: tx.Call.Last.Number, ReplyFrame: tx.Reply.Last.Number,
				By: Requester, From: tx.Client(), To: tx.Server(),
				Expected: "the client to return the delegation",
			}
			b := fmt.Appendf(nil, "recall of stateid %s, ", hex.EncodeToString(a.Stateid.Other[:]))
			b = text.Handle(b, a.Fh)
			if v.Names != nil {
				if p := v.Names.Of(tx).AppendPath(nil, a.Fh); len(p) > 0 {
					// Combining marks have no width, so there could be any number of them.
					p = p[max(0, len(p)-4*maxPath):]
					b = append(b, " ("...)
					b = append(b, text.Shorten(p, maxPath)...)
					b = append(b, ')')
				}
			}
			r.f.Seen = string(b)
			c.recalls = append(c.recalls, r)
		}
		r.sent++
		answer := ""
		if o.Code != uint32(nfs4.NFS4_OK) {
			answer = o.Status
		} else if v.StatusFailed() { // the RPC was refused
			answer = v.Status()
		}
		if answer != "" {
			r.answer, r.agreed = answer, false
		} else if tx.Reply.Seen() {
			r.agreed = true
		}
		if how := c.race(v, of, answer != ""); how != "" {
			r.race = how
		}
	}
}

// returned looks for delegations that a call returns.
func (c *callbackRules) returned(v *rpc.View) {
	if _, ok := v.Args().(*nfs4.CompoundArgs); !ok {
		return
	}
	tx := v.Tx
	for _, o := range v.Operations() {
		a, ok := o.Args.(*nfs4.DELEGRETURN4args)
		if !ok {
			continue
		}
		r := c.recalls.find(delegation{tx.Connection.Tenant, a.DelegStateid.Other}, tx.Client().Addr, tx.Server().Addr)
		if r == nil {
			continue
		}
		what := fmt.Sprintf("DELEGRETURN after %v in frame %d, xid %08x", time.Duration(tx.Call.First.Time-r.at).Round(time.Microsecond), tx.Call.First.Number, tx.XID)
		switch {
		case !tx.Reply.Seen():
			r.failed = what + ": no reply"
		case o.Status == "":
			r.failed = what + ": not executed"
		case o.Code != uint32(nfs4.NFS4_OK):
			r.failed = what + ": " + o.Status
		default:
			if !plain(r.f.Fabric) || !plain(tx.Connection.Fabric) {
				c.report(r.finding(what + ": " + o.Status))
			}
			c.recalls = slices.DeleteFunc(c.recalls, func(o *recall) bool { return o == r })
		}
	}
}

// finding is the finding of the recall; then is how it ended.
func (r *recall) finding(then string) *Finding {
	if r.sent > 1 {
		r.f.Seen += fmt.Sprintf("; sent %d times", r.sent)
	}
	if r.race != "" {
		r.f.Seen += "; " + r.race
	}
	if r.answer != "" {
		r.f.Seen += "; the client answered " + r.answer
		if r.agreed {
			r.f.Seen += ", then NFS4_OK"
		}
	}
	r.f.Reaction = then
	return r.f
}

// unreturned reports delegations that are still out at the end of the capture.
func (c *callbackRules) unreturned() {
	left := make([]*recall, 0, len(c.recalls))
	for _, r := range c.recalls {
		if !plain(r.f.Fabric) {
			left = append(left, r)
		}
	}
	slices.SortFunc(left, func(a, b *recall) int {
		return cmp.Or(cmp.Compare(a.f.Ref.Number, b.f.Ref.Number), cmp.Compare(a.f.Seen, b.f.Seen))
	})
	for _, r := range left {
		then := "not returned after it in the capture"
		if r.failed != "" {
			then += "; last " + r.failed
		}
		if slices.Contains(c.astray, r.f.Connection) {
			then += "; the server sent it on a connection that is not bound to its backchannel"
		}
		c.report(r.finding(then))
	}
	c.recalls = nil
}
