package judge

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// chain is a listing of a directory over several calls, each of which continues where the
// previous one ended. No name may come twice, unless the directory changes meanwhile.
type chain struct {
	names map[string]struct{}
	// changes is how often this run had changed the directory when the listing began.
	changes int
}

// Limits of chains.
const (
	maxChains = 16
	maxListed = 1 << 13 // names of one
)

// listed checks that no name comes twice in a listing, in one reply or in several.
func (j *Judge) listed(v *verdict.Judgement, r *Reply) {
	at := readdir(r.Op)
	n, name := entriesOf(r.Result)
	if n == 0 {
		return
	}
	h := j.history(r.Clone)
	dir := objectOf(r.Op, at)
	c := h.follow(r.Op, at)
	if c == nil || c.changes != h.changes[dir] {
		c = &chain{names: map[string]struct{}{}, changes: h.changes[dir]}
	}
	for i := range n {
		s := string(name(i))
		if _, twice := c.names[s]; twice {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.NameTwice, Detail: s})
			break
		}
		if len(c.names) < maxListed {
			c.names[s] = struct{}{}
		}
	}
	if len(h.chains) < maxChains {
		h.chains[r.Op.ID] = c
	}
}

// follow is the listing that a READDIR continues; nil if it starts a new one.
func (h *history) follow(o *plan.Op, at int) *chain {
	list := o.Args
	if at >= 0 {
		list = o.Compound.Ops[at].Args
	}
	for i := range list {
		// If it continues in the middle of the earlier reply, names come again.
		if f := &list[i]; f.Kind == plan.FieldCookie && f.Zero {
			c := h.chains[f.Op]
			delete(h.chains, f.Op)
			return c
		}
	}
	return nil
}

// entriesOf are the names in a result that lists a directory.
func entriesOf(res xdr.Message) (int, func(i int) []byte) {
	switch m := res.(type) {
	case *nfs3.READDIR3res:
		return len(m.Resok.Reply.Entries), func(i int) []byte { return m.Resok.Reply.Entries[i].Name }
	case *nfs3.READDIRPLUS3res:
		return len(m.Resok.Reply.Entries), func(i int) []byte { return m.Resok.Reply.Entries[i].Name }
	case *nfs4.CompoundRes:
		for i := range m.Ops {
			if r, ok := m.Ops[i].Body.(*nfs4.READDIR4res); ok && r.Status == 0 {
				return len(r.Resok4.Reply.Entries), func(i int) []byte { return r.Resok4.Reply.Entries[i].Name }
			}
		}
	}
	return 0, nil
}
