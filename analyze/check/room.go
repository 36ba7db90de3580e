package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// demand is how much room the results that a call asks for may take outside of Write chunks.
type demand struct {
	bytes uint64
	why   string // what asks for most of it
	most  uint64
}

func (d *demand) add(bytes uint64, why string) {
	d.bytes += bytes
	if bytes > d.most {
		d.most, d.why = bytes, why
	}
}

// named finds an unsigned number by its name.
type named struct {
	items
	name  string
	value uint64
}

// Uint implements xdr.Visitor.
func (n *named) Uint(name string, value uint64) {
	if name == n.name {
		n.value = value
	}
}

// aclRoom is what an ACL may take: no argument bounds it.
const aclRoom = 64 << 10

// acls are the attributes of any length that a client asks for by name.
var acls = [...]uint32{nfs4.FATTR4_ACL, nfs4.FATTR4_DACL, nfs4.FATTR4_SACL, nfs4.FATTR4_POSIX_DEFAULT_ACL, nfs4.FATTR4_POSIX_ACCESS_ACL}

// demands is what the arguments of the call ask for.
func (t *txCheck) demands() (d demand) {
	offered := 0 // Write chunks
	for _, w := range t.call.Writes {
		if len(w) > 0 {
			offered++
		}
	}
	add := func(e *ops.Entry, name string, args xdr.Message) {
		if e == nil || args == nil {
			return
		}
		r := &e.Reply
		if a, ok := args.(*nfs4.GETATTR4args); ok {
			for _, n := range acls {
				if a.AttrRequest.Has(n) {
					d.add(aclRoom, fmt.Sprintf("GETATTR of %s: up to any length", nfs4.AttrName(n)))
				}
			}
		}
		for _, bound := range [...]string{r.Rest, r.Item} {
			if bound == "" || bound == r.Item && (r.Items == ops.ManyItems || offered > 0) {
				continue
			}
			n := named{name: bound}
			args.Walk(&n)
			d.add(n.value, fmt.Sprintf("%s with %s %d", name, bound, n.value))
		}
		if r.Items != ops.NoItem && offered > 0 {
			offered--
			return
		}
		if r.Room > 0 {
			d.add(uint64(r.Room), fmt.Sprintf("%s: up to %d bytes", name, r.Room))
		}
	}
	tx := t.tx
	if a, ok := t.v.Args().(*nfs4.CompoundArgs); ok {
		for i := range a.Ops {
			add(ops.Operation(a.Ops[i].Number), nfs4.OpName(a.Ops[i].Number), a.Ops[i].Body)
		}
		return d
	}
	add(ops.Procedure(tx.Program, tx.Version, tx.Procedure), t.v.ProcedureName(), t.v.Args())
	return d
}

// replyHeader is the size of what precedes the results of a call without authentication (RFC 5531, section 9).
const replyHeader = 24

// roomRefused blames a refused call on the requester, if the results that it asks for may not fit into the room that it offers. It returns
// false if they fit, or if that is not known.
func (t *txCheck) roomRefused() bool {
	if t.c.on[ruleReplyRoom] == Off {
		return false
	}
	if _, ok := t.readableArgs(); !ok || t.v.ArgsErr != nil {
		return false
	}
	h := t.call
	room, what := h.Reply.Length(), fmt.Sprintf("Reply chunk of %d bytes", h.Reply.Length())
	if !h.HasReply {
		limit, ok := t.threshold(t.responder())
		if !ok {
			return false
		}
		inline := rpcrdma.Header{Version: rpcrdma.Version1, Writes: h.Writes}
		room, what = uint64(limit)-min(uint64(limit), uint64(inline.Size())), fmt.Sprintf("no Reply chunk, and %d bytes fit inline", limit)
	}
	d := t.demands()
	if d.bytes == 0 || d.bytes+replyHeader <= room {
		return false
	}
	t.breach(ruleReplyRoom, aboutCall, func() (string, string) {
		return fmt.Sprintf("a Reply chunk for %d bytes: %s", d.bytes+replyHeader, d.why), what + "; refused with ERR_CHUNK"
	})
	return true
}
