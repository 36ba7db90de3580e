package check

import (
	"encoding/hex"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// pathDown are the flags of SEQUENCE with which a server says that it cannot call back (RFC 8881, section 18.46.3).
const pathDown = nfs4.SEQ4_STATUS_CB_PATH_DOWN | nfs4.SEQ4_STATUS_CB_PATH_DOWN_SESSION

// down is what the replies of a session say of its backchannel.
type down struct {
	replies, set, behind int // behind: set in replies after BIND_CONN_TO_SESSION
	flags                uint32
	now, bound           bool
	refused              bool     // CREATE_SESSION asked for a backchannel, and none was granted
	f                    *Finding // of the first
}

// leastDown is how many replies must say so: a client takes a moment to bind another connection.
const leastDown = 3

// channelState takes what a reply says of the backchannel of its session.
func (c *replyRules) channelState(v *rpc.View, args, result xdr.Message) {
	a, asked := args.(*nfs4.CompoundArgs)
	r, ok := result.(*nfs4.CompoundRes)
	if !asked || !ok || len(r.Ops) == 0 || len(a.Ops) == 0 {
		return
	}
	switch o := r.Ops[0].Body.(type) {
	case *nfs4.BIND_CONN_TO_SESSION4res:
		if x := c.down[o.BctsrResok4.BctsrSessid]; x != nil && o.BctsrStatus == nfs4.NFS4_OK {
			x.bound = true
		}
	case *nfs4.CREATE_SESSION4res:
		wanted, ok := a.Ops[0].Body.(*nfs4.CREATE_SESSION4args)
		granted := &o.CsrResok4
		if !ok || o.CsrStatus != nfs4.NFS4_OK || wanted.CsaFlags&^granted.CsrFlags&nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN == 0 {
			return
		}
		if x := c.channelOf(granted.CsrSessionid); x != nil && x.f == nil {
			x.refused, x.f = true, c.about(v, ruleChannelDown, Responder)
		}
	case *nfs4.SEQUENCE4res:
		if o.SrStatus != nfs4.NFS4_OK {
			return
		}
		ok := &o.SrResok4
		x := c.channelOf(ok.SrSessionid)
		if x == nil {
			return
		}
		x.replies++
		if x.now = ok.SrStatusFlags&pathDown != 0; !x.now {
			return
		}
		x.set++
		x.flags |= ok.SrStatusFlags & pathDown
		if x.bound {
			x.behind++
		}
		if x.f == nil {
			x.f = c.about(v, ruleChannelDown, Responder)
		}
	}
}

// channelOf returns what is known of a session, and makes it if it is new; nil beyond the limit.
func (c *replyRules) channelOf(session [16]byte) *down {
	x := c.down[session]
	if x == nil && len(c.down) < maxChannels {
		x = new(down)
		c.down[session] = x
	}
	return x
}

// channelsDown reports the sessions whose server could not call back at the end.
func (c *replyRules) channelsDown() {
	var list []*Finding
	for session, x := range c.down {
		down := x.now && x.set >= leastDown && (x.set == x.replies || x.behind > 0)
		if refused := x.refused && !x.bound; !down && !refused {
			c.ok(ruleChannelDown)
			continue
		}
		x.f.Expected = "a backchannel of session " + hex.EncodeToString(session[:]) + " that works"
		if down {
			x.f.Seen = fmt.Sprintf("%s in %d of %d replies", nfs4.SequenceStatusName(x.flags), x.set, x.replies)
			if x.behind > 0 {
				x.f.Seen += fmt.Sprintf(", %d of them after BIND_CONN_TO_SESSION", x.behind)
			}
		} else {
			x.f.Seen = "none: the client asked for one, CREATE_SESSION granted none, and no connection was bound to one"
		}
		list = append(list, x.f)
	}
	c.reportAll(list)
	clear(c.down)
}
