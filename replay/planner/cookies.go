package planner

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// cookie is where a READDIR ended, or passed.
type cookie struct {
	op    int
	entry int
	last  bool
	verf  [8]byte
}

// end is where a READDIR of a client ended.
type end struct {
	by    lister
	value uint64
}

// lister identifies who continues a listing. Several clients may list a directory at the same time, and the file system gives
// all of them the same cookies. A client may have several connections (nconnect), but a mount has one version and one transport.
type lister struct {
	client         netip.Addr
	version, minor uint32
	fabric         rdma.Fabric
}

func listerOf(tx *transaction.Transaction, minor uint32) lister {
	return lister{client: tx.Client().Addr, version: tx.Version, minor: minor, fabric: tx.Connection.Fabric}
}

// maxCookies bounds the cookies that are remembered of one directory,
// maxAllCookies those of all.
const (
	maxCookies    = 1 << 14
	maxAllCookies = 1 << 17
)

// cookies adds cookie and verifier of a READDIR.
func (c *call) cookies(d *obj, by lister, value uint64, verf [8]byte) {
	d = d.real()
	if value == 0 || d == nil {
		c.form.u64("cookie", value)
		c.form.rawBytes("cookieverf", verf[:])
		return
	}
	from, ok := d.ends[end{by, value}]
	if !ok {
		from, ok = d.cookies[value]
	}
	if !ok {
		c.reasons.add(plan.Inferred, "a cookie from before the capture")
		c.form.u64("cookie", value)
		c.form.rawBytes("cookieverf", verf[:])
		return
	}
	c.deps.Needs(from.op, plan.DepCookie)
	c.form.symbol(plan.Field{N: "cookie", Kind: plan.FieldCookie, Op: from.op, Value: uint64(from.entry), Zero: from.last},
		binary.BigEndian.AppendUint64(nil, value))
	if verf == from.verf {
		c.form.symbol(plan.Field{N: "cookieverf", Kind: plan.FieldCookieVerf, Op: from.op}, verf[:])
	} else {
		c.form.rawBytes("cookieverf", verf[:])
	}
}

// remember keeps the cookies that a READDIR returned.
func (s *space) remember(d *obj, op int, by lister, n int, of func(i int) uint64, verf [8]byte) {
	if s.cookies+n > maxAllCookies {
		for _, o := range s.objects {
			if o.cookies != nil || o.xattrs != nil {
				o.own().cookies, o.own().ends, o.own().xattrs = nil, nil, nil
			}
		}
		s.cookies = 0
	}
	d = d.real()
	if len(d.cookies)+n > maxCookies {
		s.cookies -= len(d.cookies) + len(d.ends)
		clear(d.cookies)
		clear(d.ends)
	}
	if d.cookies == nil {
		d.own().cookies, d.own().ends = map[uint64]cookie{}, map[end]cookie{}
	}
	before := len(d.cookies) + len(d.ends)
	for i := range min(n, maxCookies) {
		x := cookie{op: op, entry: i, last: i == n-1, verf: verf}
		if d.cookies[of(i)] = x; x.last {
			d.ends[end{by, of(i)}] = x
		}
	}
	s.cookies += len(d.cookies) + len(d.ends) - before
}

// rememberXattrs keeps the cookie with which a listing of extended attributes goes on. A
// reply has one, and the next reply has another in its place.
func (s *space) rememberXattrs(o *obj, op int, value uint64) {
	if s.cookies >= maxAllCookies || len(o.xattrs) >= maxCookies {
		s.cookies -= len(o.xattrs)
		clear(o.xattrs)
	}
	if s.cookies >= maxAllCookies {
		return
	}
	if o.xattrs == nil {
		o.own().xattrs = map[uint64]cookie{}
	}
	before := len(o.xattrs)
	o.xattrs[value] = cookie{op: op, last: true}
	s.cookies += len(o.xattrs) - before
}

// onlyListing reports whether the COMPOUND has only one operation that lists names: an op
// has one list of cookies.
func onlyListing(list []rpc.Operation) bool {
	n := 0
	for i := range list {
		switch nfs4.NfsOpnum4(list[i].Number) {
		case nfs4.OP_READDIR, nfs4.OP_LISTXATTRS:
			n++
		}
	}
	return n == 1
}
