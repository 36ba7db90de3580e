package check

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/units"
)

// offloadRules judge operations that go on after their replies (RFC 7862, section 15): of each, somebody must tell the end.
type offloadRules struct {
	*replyRules
	open map[delegation]*offload
}

// offload is an operation that goes on; f is nil if its end was told before its reply.
type offload struct {
	f     *Finding
	asked int // times that the client asked how far it is
}

// maxOffloads is how many are remembered.
const maxOffloads = 1024

// take takes what a transaction says of such operations.
func (c *offloadRules) take(v *rpc.View) {
	tx := v.Tx
	if c.on[ruleOffload] == Off || !tx.Named || tx.Program < nfs4.NFS4_CALLBACK && (tx.Program != nfs4.NFS4_PROGRAM || tx.Version != 4) {
		return
	}
	if v.Clean() && !slices.ContainsFunc(v.Numbers(), func(n uint32) bool {
		switch nfs4.NfsOpnum4(n) {
		case nfs4.OP_COPY, nfs4.OP_WRITE_SAME, nfs4.OP_OFFLOAD_STATUS, nfs4.OP_OFFLOAD_CANCEL:
			return true
		}
		return tx.Program >= nfs4.NFS4_CALLBACK
	}) {
		return
	}
	for _, o := range v.Operations() {
		if a, ok := o.Args.(*nfs4.CB_OFFLOAD4args); ok {
			c.ended(delegation{tx.Connection.Tenant, a.CoaStateid.Other})
		}
		if o.Status == "" || o.Code != uint32(nfs4.NFS4_OK) {
			continue
		}
		switch r := o.Result.(type) {
		case *nfs4.COPY4res:
			c.begun(v, o.Name, r.CrResok4.CrResponse.WrCallbackId)
		case *nfs4.WRITE_SAME4res:
			c.begun(v, o.Name, r.Resok4.WrCallbackId)
		case *nfs4.OFFLOAD_CANCEL4res:
			if a, ok := o.Args.(*nfs4.OFFLOAD_CANCEL4args); ok {
				c.ended(delegation{tx.Connection.Tenant, a.OcaStateid.Other})
			}
		case *nfs4.OFFLOAD_STATUS4res:
			a, ok := o.Args.(*nfs4.OFFLOAD_STATUS4args)
			if !ok {
				continue
			}
			key := delegation{tx.Connection.Tenant, a.OsaStateid.Other}
			if len(r.OsrResok4.OsrComplete) > 0 {
				c.ended(key)
			} else if x := c.open[key]; x != nil {
				x.asked++
			}
		}
	}
}

// begun notes an operation that goes on under a state id.
func (c *offloadRules) begun(v *rpc.View, name string, ids []nfs4.Stateid4) {
	if len(ids) == 0 {
		return
	}
	key := delegation{v.Tx.Connection.Tenant, ids[0].Other}
	switch {
	case c.open[key] != nil: // ended before its reply
		delete(c.open, key)
		c.ok(ruleOffload)
	case len(c.open) >= maxOffloads:
		c.skip(ruleOffload, Limit)
	default:
		f := c.about(v, ruleOffload, Responder)
		f.Expected = "CB_OFFLOAD with the outcome"
		f.Seen = fmt.Sprintf("%s goes on as state id %s", name, hex.EncodeToString(ids[0].Other[:]))
		c.open[key] = &offload{f: f}
	}
}

// ended notes that the outcome of an operation was told.
func (c *offloadRules) ended(key delegation) {
	x := c.open[key]
	switch {
	case x == nil && len(c.open) < maxOffloads:
		c.open[key] = new(offload)
	case x != nil && x.f != nil:
		delete(c.open, key)
		c.ok(ruleOffload)
	}
}

// unreported reports operations whose end was never reported. now is the last packet.
func (c *offloadRules) unreported(now rdma.Ref) {
	var list []*Finding
	for _, x := range c.open {
		if x.f == nil {
			continue
		}
		x.f.Reaction = fmt.Sprintf("no word of its end in the %s to the end of the capture", units.Duration(max(now.Time-x.f.Ref.Time, 0)))
		if x.asked > 0 {
			x.f.Reaction += fmt.Sprintf("; the client asked %s with OFFLOAD_STATUS", units.Times(x.asked))
		}
		list = append(list, x.f)
	}
	c.reportAll(list)
	clear(c.open)
}
