package run

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/internal/callback"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// prober waits for the CB_NULLs with which an NFSv4.0 server checks whether its client can be
// called. Before that the server gives no delegation.
type prober struct {
	listener  *callback.Listener // nil if callbacks make no difference
	waiting   []*call            // SETCLIENTID_CONFIRMs that wait for a CB_NULL
	confirmed int                // how many there were
	silent    bool               // the server does not call
}

func (p *prober) close() { _ = p.listener.Close() }

// wanted reports whether a call that has its reply must wait for a CB_NULL.
func (p *prober) wanted(c *call, res xdr.Message) bool {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	return p.listener != nil && !p.silent && ok && r.Status == nfs4.NFS4_OK && o.Compound != nil && o.Compound.Minor == 0 &&
		workload.Has(o, nfs4.OP_SETCLIENTID_CONFIRM)
}
