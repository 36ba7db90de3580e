package rpc

import (
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// projection reads as little of a transaction as View needs before it is asked for anything: fields of the headers, the arguments and the
// results are checked, as far as a View would find an error in them, but not kept. The zero projection is ready for use.
type projection struct {
	// Procedure is what was called, and Failed says that its status is a failure: what View.Procedure and View.Failed
	// say.
	Procedure *xdr.Procedure
	Failed    bool
	// Of a COMPOUND, Minor is the minor version, and Operation what View.OperationGroup says.
	Compound  bool
	Minor     uint32
	Operation string

	catalog catalog
	body    body
	kind    *kind // of a COMPOUND
	good    int   // how many operations, from the first one on, have succeeded
	walk    follower
	steps   []Step

	// For View: what was passed over, where in the messages it starts, and how many bytes follow it.
	messages             *messages
	argsAt, resultAt     int
	argsLeft, resultLeft int
}

// set looks at a transaction. It is true for one that was seen as a whole, has the usual headers (see oncrpc.CallHeader),
// and arguments and results without an error. Any other is left to a View.
func (b *projection) set(tx *transaction.Transaction) bool {
	if !tx.Named || !tx.Call.Seen() || !tx.Reply.Seen() || tx.ReplyLost() {
		return false
	}
	m := b.catalog.known(tx)
	if m == nil {
		_, m = b.catalog.find(tx)
	}
	if m == nil || !m.projectable {
		return false
	}
	r := &b.body.reader // of whole messages: what is at a place in the arguments is there in the call
	args := oncrpc.CallHeader(tx.Call.Payload)
	if args == 0 {
		return false
	}
	r.Reset(tx.Call.Payload, len(tx.Call.Payload))
	if mayReduce(&tx.Call) {
		b.body.reduceCall(&tx.Call.Header)
	}
	argsEnd, ok := r.Skips(m.skipArgs, args)
	if !ok {
		return false
	}
	results := oncrpc.SuccessHeader(tx.Reply.Payload)
	if results == 0 {
		return false
	}
	r.Reset(tx.Reply.Payload, len(tx.Reply.Payload))
	if mayReduce(&tx.Reply) {
		if tx.Reply.Header.Type == rpcrdma.TypeError {
			return false
		}
		b.body.reduceReply(&tx.Reply.Header)
	}
	resultEnd, ok := r.Skips(m.skipResult, results)
	if !ok {
		return false
	}
	b.messages = m
	if b.Compound = m.compound; m.compound && !(b.compound(m, tx.Reply.Payload, results) && b.agrees(tx)) {
		return false
	}
	b.Procedure = m.procedure
	b.argsAt, b.resultAt = args, results
	b.argsLeft, b.resultLeft = len(tx.Call.Payload)-argsEnd, len(tx.Reply.Payload)-resultEnd
	b.Failed = m.procedure.StatusFirst && word3(tx.Reply.Payload, results) != 0
	if m.pair != unpaired && !b.Failed {
		return m.pair.agrees(tx.Call.Payload, args, tx.Reply.Payload, results)
	}
	return true
}

// compound says what a COMPOUND consists of. It is false if the reply, whose results are at a place, contradicts the call or itself: see
// View.Contradiction.
func (b *projection) compound(m *messages, reply []byte, at int) bool {
	o := m.outline
	if !o.answered() {
		return false
	}
	done, listed, status := o.results.Succeeded(reply), len(o.results.Numbers), word3(reply, at)
	switch {
	case status == 0:
		if done < len(o.args.Numbers) {
			return false
		}
	case listed > 0 && (done < listed-1 || done == listed || word3(reply, o.results.At(done)) != status):
		return false
	}
	b.Minor, b.kind, b.good = o.args.Minor, o.kind(), done
	if b.Operation = b.kind.operation; b.Operation == "" {
		b.Operation = m.procedure.Name
	}
	return true
}

// mayReduce reports whether parts of a message may be in chunks.
func mayReduce(m *transaction.Message) bool { return m.Transport && !m.Header.Plain() }
