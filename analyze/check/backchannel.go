package check

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/units"
)

// callbackRules judge callbacks: their connections, and whether delegations that they recall are returned.
type callbackRules struct {
	*verdicts
	recalls  recalls
	grants   []grant // oldest first
	channels map[channel]*backchannel
	unread   map[*rdma.Connection]bool // connections with COMPOUNDs that cannot be read
	astray   []int                     // connections with callbacks that no backchannel was bound to
}

// channel is a connection as a session uses it.
type channel struct {
	connection *rdma.Connection
	session    [16]byte
}

// backchannel is what is known of callbacks of a session on a connection.
type backchannel struct {
	bound bool
	calls int
	f     *Finding // of the first callback
}

// maxChannels is how many are remembered.
const maxChannels = 4096

// channel returns what is known of a session on a connection, and makes it if it is new; nil beyond the limit.
func (c *callbackRules) channel(k *rdma.Connection, session [16]byte) *backchannel {
	key := channel{k.Resolve(), session}
	b := c.channels[key]
	if b == nil {
		if len(c.channels) >= maxChannels {
			return nil
		}
		b = new(backchannel)
		c.channels[key] = b
	}
	return b
}

// binds takes what COMPOUNDs say of the backchannels of sessions (RFC 8881, sections 18.34 and 18.36).
func (c *callbackRules) binds(v *rpc.View) {
	tx := v.Tx
	if c.on[ruleCallbackUnbound] == Off || !tx.Named || tx.Program != nfs4.NFS4_PROGRAM || tx.Version != 4 || plain(tx.Connection.Fabric) {
		return
	}
	if v.Clean() && !slices.ContainsFunc(v.Numbers(), func(n uint32) bool {
		return n == uint32(nfs4.OP_CREATE_SESSION) || n == uint32(nfs4.OP_BIND_CONN_TO_SESSION)
	}) {
		return
	}
	if a, ok := v.Args().(*nfs4.CompoundArgs); tx.Procedure == 1 && (!ok || a.Incomplete || v.MoreOperations()) {
		if k := tx.Connection.Resolve(); len(c.unread) < maxChannels {
			c.unread[k] = true
		}
		return
	}
	for _, o := range v.Operations() {
		if o.Status == "" || o.Code != uint32(nfs4.NFS4_OK) {
			continue
		}
		switch r := o.Result.(type) {
		case *nfs4.CREATE_SESSION4res:
			if r.CsrResok4.CsrFlags&nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN != 0 {
				if b := c.channel(tx.Connection, r.CsrResok4.CsrSessionid); b != nil {
					b.bound = true
				}
			}
		case *nfs4.BIND_CONN_TO_SESSION4res:
			if r.BctsrResok4.BctsrDir != nfs4.CDFS4_FORE {
				if b := c.channel(tx.Connection, r.BctsrResok4.BctsrSessid); b != nil {
					b.bound = true
				}
			}
		}
	}
}

// callback takes a callback of a session.
func (c *callbackRules) callback(v *rpc.View) {
	tx := v.Tx
	if c.on[ruleCallbackUnbound] == Off || !tx.Named || tx.Program < nfs4.NFS4_CALLBACK || plain(tx.Connection.Fabric) {
		return
	}
	if _, ok := v.Args().(*nfs4.CbCompoundArgs); !ok {
		return
	}
	ops := v.Operations()
	if len(ops) == 0 {
		return
	}
	a, ok := ops[0].Args.(*nfs4.CB_SEQUENCE4args)
	if !ok {
		return
	}
	b := c.channel(tx.Connection, a.CsaSessionid)
	if b == nil {
		c.skip(ruleCallbackUnbound, Limit)
		return
	}
	if b.calls++; b.f != nil {
		return
	}
	k := tx.Connection.Resolve()
	b.f = &Finding{
		Rule: &rules[ruleCallbackUnbound], Ref: tx.Call.Last, Connection: k.ID, Fabric: k.Fabric,
		HasXID: true, XID: tx.XID, Backward: tx.Backward, Program: program(v), Operation: text.Operation(v),
		CallFrame: tx.Call.Last.Number, ReplyFrame: tx.Reply.Last.Number,
		By: Requester, From: tx.Client(), To: tx.Server(),
		Expected: fmt.Sprintf("a connection that CREATE_SESSION or BIND_CONN_TO_SESSION bound to the backchannel of session %s", hex.EncodeToString(a.CsaSessionid[:])),
	}
	if !tx.Reply.Seen() {
		b.f.Reaction = "no reply"
	}
}

// unbound reports the callbacks of a connection to which no backchannel was bound. One of which the capture lacks a part, or that has calls that
// cannot be read, is not judged.
func (c *callbackRules) unbound(k *rdma.Connection) {
	var list []*backchannel
	for key, b := range c.channels {
		if key.connection != k {
			continue
		}
		delete(c.channels, key)
		switch x := key.connection; {
		case b.f == nil:
		case b.bound:
			c.ok(ruleCallbackUnbound)
		case !x.Setup[0].Seen() || !x.Setup[1].Seen():
			c.skip(ruleCallbackUnbound, MidStream)
		case x.Sent[0].Gaps|x.Sent[1].Gaps != 0:
			c.skip(ruleCallbackUnbound, Gaps)
		case c.unread[x]:
			c.skip(ruleCallbackUnbound, Protected)
		default:
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *backchannel) int { return cmp.Compare(a.f.Ref.Number, b.f.Ref.Number) })
	for _, b := range list {
		b.f.Seen = units.Plural(b.calls, "callback") + " on a connection that it only uses for calls"
		c.report(b.f)
		c.astray = append(c.astray, b.f.Connection)
	}
	delete(c.unread, k)
}
