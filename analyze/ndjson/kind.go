package ndjson

import (
	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// kind is what transactions have in common: the attributes of fields.OfProgram and fields.OfKind, those of other scopes that have one value, and which of
// the others there are.
type kind struct {
	called            uint64 // stamp of the compound.Kind
	status            string
	call, reply       uint32 // types of the headers
	asked, granted    uint32 // credits
	delivery          [2]transaction.Delivery
	parts             parts
	same              scopes
	unknown, backward bool // what was lost is not known; a callback
}

// scopes is a set of fields.Scope.
type scopes uint8

func (s scopes) has(x fields.Scope) bool { return s>>x&1 != 0 }

// noHeader is the type of a message without a transport header.
const noHeader = 1<<32 - 1

// template returns the template of a transaction's kind; the general one if it has none.
func (e *Encoder) template(v *rpc.View) *template {
	var k kind
	if !e.common(&k, v) {
		return general()
	}
	at := &e.templates[k.slot()]
	if *at == nil || (*at).kind != k {
		*at = e.newTemplate(v, k)
	}
	return *at
}

// slot is where the template of a kind is kept.
func (k *kind) slot() uint32 {
	x := uint32(len(k.status))<<24 ^ uint32(k.parts)<<8 ^ uint32(k.same) ^ k.asked<<4 ^ k.granted<<12
	return (x ^ uint32(k.called)*0x85ebca6b) * 0x9e3779b1 >> 22
}

// common sets what a transaction has in common with others. It is false for tunnels, for messages that are protected or cannot be read,
// and for headers of no type.
func (e *Encoder) common(k *kind, v *rpc.View) bool {
	tx := v.Tx
	k.delivery = [...]transaction.Delivery{tx.CallDelivery(), tx.ReplyDelivery()}
	k.backward, k.unknown = tx.Backward, tx.Blame == nil
	k.asked, k.granted = tx.Call.Credits(), tx.Reply.Credits()
	k.same = 1<<fields.OfProgram | 1<<fields.OfKind
	var call, reply bool
	if k.call, call = headerType(&tx.Call); !call {
		return false
	}
	if k.reply, reply = headerType(&tx.Reply); !reply {
		return false
	}
	if tx.Connection.Tunnel != nil || tx.Kernel != nil || !tx.Named || !v.Clean() && !legible(v) {
		return false
	}
	called := e.kinds.Of(v)
	if called == nil {
		return false
	}
	k.called = called.Stamp
	k.status = v.Status()
	if plain(&tx.Call) && plain(&tx.Reply) && tx.Reads|tx.Writes == 0 && tx.ReadBytes|tx.WriteBytes == 0 {
		k.same |= 1 << fields.OfPlain
	}
	if tx.State == transaction.Complete && tx.Retransmits|len(tx.Notes) == 0 && tx.Credits|tx.Slots == 0 && !tx.Reply.Invalidates &&
		(tx.Blame == nil || tx.Blame.Lossless()) {
		k.same |= 1 << fields.OfClean
	}
	if p := e.reader.Phases(v); p != nil && p.CallTransfer|p.ArgumentPull|p.PullWait|p.ResultPush|p.ReplyTransfer == 0 {
		k.same |= 1 << fields.OfShort
	}
	k.parts = e.partsOf(v)
	return true
}

// parts is a set of attributes of objects that are there, or not, alike in all transactions of a kind.
type parts uint16

const (
	timed parts = 1 << iota
	divided
	acked
	file
	handled
	named
	placed
	renamed
	resulted
	ranged
	stable
	moved
	atEnd
	recorded // by a kernel: such transactions have no kind
)

var partOf = map[string]parts{
	"latency_ns": timed, "latency_ns.total": timed, "latency_ns.ack": acked,
	"latency_ns.call_transfer": divided, "latency_ns.argument_pull": divided, "latency_ns.pull_wait": divided,
	"latency_ns.server": divided, "latency_ns.result_push": divided, "latency_ns.reply_transfer": divided,
	"file": file, "file.filehandle": handled, "file.name": named, "file.path": placed, "file.to": renamed, "file.new_filehandle": resulted,
	"file.offset": ranged, "file.count": ranged, "file.stable": stable, "file.moved": moved, "file.eof": atEnd,
	"kernel": recorded, "kernel.side": recorded, "kernel.operation": recorded, "kernel.queued_ns": recorded, "kernel.credit_wait_ns": recorded,
	"kernel.registration_ns": recorded, "kernel.round_trip_ns": recorded, "kernel.total_ns": recorded, "kernel.wakeup_ns": recorded,
	"kernel.dispatch_ns": recorded, "kernel.execution_ns": recorded, "kernel.transmissions": recorded,
}

// partsOf returns the parts of the phases and of the file.
func (e *Encoder) partsOf(v *rpc.View) (has parts) {
	set := func(there bool, p parts) {
		if there {
			has |= p
		}
	}
	if p := e.reader.Phases(v); p != nil {
		has = timed
		set(p.Server >= 0, divided)
		set(p.Ack >= 0, acked)
	}
	if f := v.File(); f != nil {
		has |= file
		set(f.Handle != nil, handled)
		set(f.Name != nil, named)
		set(e.reader.Path(v) != nil, placed)
		set(f.To != nil, renamed)
		set(f.Result != nil, resulted)
		set(f.HasRange, ranged)
		set(f.Stable != "", stable)
		set(f.HasMoved, moved)
		set(f.HasMoved && f.EOF, atEnd)
	}
	return has
}

// legible reports of a transaction that rpc.View has not found usual whether it is a call that is known, without any protection.
func legible(v *rpc.View) bool {
	return v.Procedure != nil && v.Args() != nil && v.Wrapped() == "" && v.Opening() == rpc.NotOpened && v.Principal == ""
}

// headerType is the type of a message's header. It is false for one that was cut before it.
func headerType(m *transaction.Message) (uint32, bool) {
	if !m.Seen() || !m.Transport {
		return noHeader, true
	}
	return uint32(m.Header.Type), m.Header.Fixed()
}

// plain reports whether a message has no chunks.
func plain(m *transaction.Message) bool { return !m.Transport || m.Header.Plain() }

// connection is one as it was when its text was made: it may change, and its memory may be used for another one.
type connection struct {
	text     []byte
	settled  *rdma.Connection // the connection, if it does not change
	id       int
	fabric   rdma.Fabric
	first    int64
	ends     [2]rdma.End
	from     rdma.Side
	backward bool
}

// parties returns the text of the attributes of fields.OfParties. There is no tunnel.
func (e *Encoder) parties(v *rpc.View) []byte {
	c, from, backward := v.Tx.Connection, v.Tx.From, v.Tx.Backward
	i := uint(2 * c.ID)
	if backward {
		i++
	}
	p := &e.ends[i%uint(len(e.ends))]
	if p.from == from && p.backward == backward && (p.settled == c && c.Settled ||
		p.text != nil && p.id == c.ID && p.fabric == c.Fabric && p.first == c.First.Time && p.ends[0].Is(&c.Ends[0]) && p.ends[1].Is(&c.Ends[1])) {
		return p.text
	}
	*p = connection{
		text: ofParties().append(e, p.text[:0], v), id: c.ID, fabric: c.Fabric, first: c.First.Time, ends: c.Ends, from: from, backward: backward,
	}
	if c.Settled {
		p.settled = c
	}
	return p.text
}
