package parquet

import (
	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// party is the values of a connection in one direction.
type party struct {
	settled *rdma.Connection // the connection, if it does not change
	id      int
	fabric  rdma.Fabric
	from    rdma.Side
	back    bool
	first   int64
	ends    [2]rdma.End
	values  []value
}

// parted counts a row of the transaction's connection.
func (e *encoder) parted(v *rpc.View) {
	tx, r := v.Tx, &e.runs[fields.OfParties]
	c := tx.Connection
	i := 2 * uint(c.ID)
	if tx.Backward {
		i++
	}
	p := &e.parties[i%uint(len(e.parties))]
	known := p.values != nil && p.from == tx.From && p.back == tx.Backward && (p.settled == c && c.Settled ||
		p.id == c.ID && p.fabric == c.Fabric && p.first == c.First.Time && p.ends[0].Is(&c.Ends[0]) && p.ends[1].Is(&c.Ends[1]))
	if !known || p != e.party {
		r.flush()
		e.party = p
		if !known {
			*p = party{nil, c.ID, c.Fabric, tx.From, tx.Backward, c.First.Time, c.Ends, e.valuesOf(r.list, v)}
			if c.Settled {
				p.settled = c
			}
		}
		r.values = p.values
	}
	r.rows++
}

// framing is what rows of a run of OfProgram have in common.
type framing struct {
	program, version, minor uint32
	call, reply             rpcrdma.Type
	asked, granted          uint32 // credits
	reached                 [2]transaction.Delivery
	named, compound         bool
	typed                   [2]bool // there is a type of the header
}

// framed counts a row of what was called, and of the headers. RPCSEC_GSS and its like have rows of their own, and what a kernel has recorded.
func (e *encoder) framed(v *rpc.View) {
	tx, r := v.Tx, &e.runs[fields.OfProgram]
	if !v.Clean() && (tx.Kernel != nil || v.Wrapped() != "" || v.Principal != "" || v.Opening() != rpc.NotOpened) {
		e.own(r, v)
		return
	}
	x := framing{
		program: tx.Program, version: tx.Version, named: tx.Named, reached: [...]transaction.Delivery{tx.CallDelivery(), tx.ReplyDelivery()},
		asked: tx.Call.Credits(), granted: tx.Reply.Credits(),
	}
	x.call, x.typed[0] = headerType(&tx.Call)
	x.reply, x.typed[1] = headerType(&tx.Reply)
	x.minor, x.compound = v.MinorVersion()
	if r.values == nil || x != e.framing {
		e.begin(r, v)
		e.framing = x
	}
	r.rows++
}

func headerType(m *transaction.Message) (rpcrdma.Type, bool) {
	if m.Seen() && m.Transport && m.Header.Fixed() {
		return m.Header.Type, true
	}
	return 0, false
}

// alike is a set of what rows are alike in.
type alike uint8

const (
	isPlain alike = 1 << iota
	isClean
	isShort
	isBare
	isUnknown   // what was lost is not known
	isUndivided // the time is not divided

	isCommon = isPlain | isClean | isShort | isBare
)

// common counts a row of what most transactions have in common, or lack.
func (e *encoder) common(v *rpc.View) {
	tx, x := v.Tx, alike(0)
	if plain(&tx.Call) && plain(&tx.Reply) && tx.Reads|tx.Writes == 0 && tx.ReadBytes|tx.WriteBytes == 0 {
		x |= isPlain
	}
	if tx.State == transaction.Complete && tx.Kernel == nil && tx.Retransmits|len(tx.Notes) == 0 && tx.Credits|tx.Slots == 0 && !tx.Reply.Invalidates &&
		(tx.Blame == nil || tx.Blame.Lossless()) {
		x |= isClean
	}
	if tx.Blame == nil {
		x |= isUnknown
	}
	if p := e.reader.Phases(v); p == nil || !p.Divided() {
		x |= isUndivided | isShort
	} else if p.CallTransfer|p.ArgumentPull|p.PullWait|p.ResultPush|p.ReplyTransfer == 0 {
		x |= isShort
	}
	if f := v.File(); f == nil || f.To == nil && !f.HasRange && !f.HasMoved && f.Stable == "" && !f.EOF {
		x |= isBare
	}
	if x == e.alike && x&isCommon == isCommon {
		e.rowsAlike++
		return
	}
	e.countAlike()
	changed := x ^ e.alike
	e.alike = x
	e.count(fields.OfPlain, v, x&isPlain != 0, false)
	e.count(fields.OfClean, v, x&isClean != 0, changed&isUnknown != 0)
	e.count(fields.OfShort, v, x&isShort != 0, changed&isUndivided != 0)
	e.count(fields.OfBare, v, x&isBare != 0, false)
}

// countAlike lets the runs count rows that were alike.
func (e *encoder) countAlike() {
	if e.rowsAlike == 0 {
		return
	}
	for _, s := range [...]fields.Scope{fields.OfPlain, fields.OfClean, fields.OfShort, fields.OfBare} {
		e.runs[s].rows += e.rowsAlike
	}
	e.rowsAlike = 0
}

// count counts a row of a scope, or appends one with values of its own. If others is set, the rows before had other values.
func (e *encoder) count(s fields.Scope, v *rpc.View, same, others bool) {
	r := &e.runs[s]
	if others {
		r.flush()
		r.values = nil
	}
	if !same {
		e.own(r, v)
		return
	}
	if r.values == nil {
		e.begin(r, v)
	}
	r.rows++
}

// plain reports whether a message has no chunks.
func plain(m *transaction.Message) bool { return !m.Transport || m.Header.Plain() }
