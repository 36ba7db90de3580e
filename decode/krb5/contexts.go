package krb5

import (
	"encoding/binary"
	"sync"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Options are the limits of Contexts. Zero stands for the value in parentheses.
type Options struct {
	Contexts int // contexts remembered, those used last (1024; some 13 KiB each)
}

// Contexts follows the security contexts of a capture and opens what they protect. Without a keytab it opens
// nothing, but Summary reports which key would.
type Contexts struct {
	mu      sync.Mutex
	keytab  *Keytab
	table   table
	summary Summary
	result  oncrpc.GSSInitResult
	reader  xdr.Reader
}

// Summary counts the contexts of a capture.
type Summary struct {
	Opened  uint64 // something of them was decrypted or verified
	Closed  uint64 // something of them could not be decrypted, for lack of the key
	Unknown uint64 // the same, but their creation was not captured or was given up
	Evicted uint64 // given up because there were too many
	Refused uint64 // transactions with a wrong checksum or a malformed token

	// Service, KVNO and EType are the key that the first of Closed needs; empty if
	// its tokens could not be read.
	Service string
	KVNO    uint32
	EType   EType
	// Problem is why the first of Closed could not be opened with the keytab.
	Problem string
}

// New makes Contexts. The keytab may be nil.
func New(keytab *Keytab, opt Options) *Contexts {
	if opt.Contexts <= 0 {
		opt.Contexts = 1024
	}
	return &Contexts{keytab: keytab, table: table{places: make(map[place]*context), limit: opt.Contexts}}
}

// Summary counts what has been seen so far.
func (c *Contexts) Summary() Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.summary
	s.Evicted = c.table.evicted
	return s
}

// Unwrap implements rpc.Unwrapper.
func (c *Contexts) Unwrap(v *rpc.View) {
	if v.Call().GSS.Handle == nil {
		return // malformed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch v.Call().GSS.Proc {
	case oncrpc.GSSInit, oncrpc.GSSContinueInit:
		c.create(v)
	case oncrpc.GSSData, oncrpc.GSSDestroy:
		c.use(v)
	}
}

// use opens a transaction of a context.
func (c *Contexts) use(v *rpc.View) {
	tx, g := v.Tx, &v.Call().GSS
	x := c.table.find(tx, g.Handle)
	if x == nil {
		if len(g.Handle) > maxHandle {
			return
		}
		x = &context{place: at(tx, g.Handle), state: unknown}
		c.table.add(x)
	}
	x, genuine, verdict := choose(x, v)
	c.table.touch(x)
	if x.state != keyed {
		c.unread(x, v)
		return
	}
	v.Principal = x.client
	if !genuine {
		if verdict == good {
			tx.Note(transaction.Note{Kind: transaction.KRB5NoVerifier})
		} else {
			tx.Note(wrongVerifier(transaction.PartCall, verdict))
		}
	} else {
		c.sequence(x, v)
	}
	c.open(x, &v.CallOpened, v.CallBody(), v.Call().Payload, initiator, transaction.PartCall, v)
	if v.ReplyErr != nil {
		return
	}
	if v.Reply().Stat == oncrpc.Accepted && v.Reply().Verf.Flavor == oncrpc.RPCSecGSS {
		binary.BigEndian.PutUint32(x.number[:], g.Sequence)
		if verdict := x.mic(v.Reply().Verf.Body, x.number[:], acceptor); verdict != good {
			tx.Note(wrongVerifier(transaction.PartReply, verdict))
		}
	}
	c.open(x, &v.ReplyOpened, v.ReplyBody(), v.Reply().Payload, acceptor, transaction.PartReply, v)
	if g.Proc == oncrpc.GSSDestroy && genuine && v.Reply().Succeeded() {
		x.destroyed = tx.Reply.Last.Number
	}
	if v.CallOpened.How != rpc.NotOpened && !x.opened {
		x.opened = true
		c.summary.Opened++
	}
}

func wrongVerifier(of transaction.NotePart, v verdict) transaction.Note {
	return transaction.Note{Kind: transaction.KRB5Verifier, Part: of, Why: v.String()}
}

// shut is the note that the keys of the context are not known, and why.
func (x *context) shut() transaction.Note {
	return transaction.Note{Kind: transaction.KRB5ContextClosed, Why: x.problem}
}

// choose takes the context of a call from those of its handle. The verifier of a
// call is over its header up to the credential (RFC 2203, section 5.3.1), which
// tells them apart. If it fits none, genuine is false, and verdict is why.
func choose(first *context, v *rpc.View) (x *context, genuine bool, verdict verdict) {
	for x = first; x != nil; x = x.older {
		if x.state != keyed || v.Call().Verf.Flavor != oncrpc.RPCSecGSS {
			continue
		}
		if verdict = x.mic(v.Call().Verf.Body, header(v), initiator); verdict == good {
			return x, true, good
		}
	}
	for x = first; x.older != nil && x.state != keyed; x = x.older {
	}
	return x, false, verdict
}

// header is the part of a call that its verifier is over.
func header(v *rpc.View) []byte {
	n := 24 + v.Call().Cred.Size()
	return v.Tx.Call.Payload[:min(n, len(v.Tx.Call.Payload))]
}

// unread notes that a context's keys are not known.
func (c *Contexts) unread(x *context, v *rpc.View) {
	if v.CallBody().Kind != oncrpc.BodyPrivacy && (c.keytab == nil || v.CallBody().Kind != oncrpc.BodyIntegrity) {
		return
	}
	if !x.needed {
		x.needed = true
		x.told = whichOf(v.Tx)
		switch {
		case x.state == unknown:
			c.summary.Unknown++
		case c.summary.Closed == 0:
			c.summary.Service, c.summary.KVNO, c.summary.EType = x.ticket.service, x.ticket.kvno, x.ticket.etype
			c.summary.Problem = x.problem
			fallthrough
		default:
			c.summary.Closed++
		}
	}
	if c.keytab == nil || x.told != whichOf(v.Tx) {
		return
	}
	if x.state == unknown {
		why := transaction.KRB5ContextUnknown
		if c.table.evicted > 0 {
			why = transaction.KRB5ContextForgotten
		}
		v.Tx.Note(transaction.Note{Kind: why})
	} else {
		v.Tx.Note(x.shut())
	}
}

// body opens arguments or results.
func (x *context) body(out *rpc.Opened, b *oncrpc.Body, payload []byte, s side, seq uint32) verdict {
	verdict := good
	switch {
	case b.Malformed:
	case b.Kind == oncrpc.BodyIntegrity:
		verdict = x.integrity(out, b, payload, s, seq)
	case b.Kind == oncrpc.BodyPrivacy:
		verdict = x.unwrap(b.Data, b.Length, s, seq, out)
	}
	if verdict != good && verdict != cut && out.How == rpc.NotOpened {
		out.How = rpc.Refused
	}
	return verdict
}

// open opens arguments or results, and notes what is wrong with them.
func (c *Contexts) open(x *context, out *rpc.Opened, b *oncrpc.Body, payload []byte, s side, what transaction.NotePart, v *rpc.View) {
	switch verdict := x.body(out, b, payload, s, v.Call().GSS.Sequence); verdict {
	case good:
	case cut:
		if out.How == rpc.Prefix {
			v.Tx.Note(transaction.Note{Kind: transaction.KRB5Unverified, Part: what})
		}
	default:
		v.Tx.Note(transaction.Note{Kind: transaction.KRB5Body, Part: what, Why: verdict.String()})
		if tx := whichOf(v.Tx); x.refused != tx {
			x.refused = tx
			c.summary.Refused++
		}
	}
}

// integrity verifies the checksum of rpc_gss_integ_data: it is over the sequence
// number and the arguments or results (RFC 2203, section 5.3.2.2).
func (x *context) integrity(out *rpc.Opened, b *oncrpc.Body, payload []byte, s side, seq uint32) verdict {
	if len(b.Data) < b.Length || b.Checksum == nil {
		return cut
	}
	n := 8 + b.Length
	if len(payload) < n {
		return cut
	}
	if v := x.mic(b.Checksum, payload[4:n], s); v != good {
		return v
	}
	out.How = rpc.Verified
	if b.Sequence != seq {
		return wrongSequence
	}
	return good
}
