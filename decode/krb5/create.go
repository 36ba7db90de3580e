package krb5

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// create follows the creation of a context (RFC 2203, section 5.2).
func (c *Contexts) create(v *rpc.View) {
	tx := v.Tx
	if v.ReplyErr != nil || !v.Reply().Succeeded() || !c.result.Decode(v.ReplyBody().Data) {
		return
	}
	r := &c.result
	if r.Major > 1 || len(r.Handle) == 0 || len(r.Handle) > maxHandle {
		return // refused; 1 is GSS_S_CONTINUE_NEEDED
	}
	var x *context
	for x = c.table.find(tx, r.Handle); x != nil; x = x.older {
		if x.made == whichOf(tx) {
			break
		}
	}
	if x == nil {
		x = &context{place: at(tx, r.Handle), made: whichOf(tx)}
		if v.Call().GSS.Proc == oncrpc.GSSContinueInit {
			c.proceed(x, v)
		} else {
			c.begin(x, v)
		}
		c.table.add(x)
	}
	x.window = r.Window
	v.Principal = x.client
	if x.state == closed {
		if c.keytab != nil {
			tx.Note(x.shut())
		}
		return
	}
	// The verifier of the reply is over the sequence window (RFC 2203, section
	// 5.2.3.1), if the context is complete.
	if r.Major == 0 && v.Reply().Verf.Flavor == oncrpc.RPCSecGSS {
		binary.BigEndian.PutUint32(x.number[:], r.Window)
		if verdict := x.mic(v.Reply().Verf.Body, x.number[:], acceptor); verdict != good {
			tx.Note(wrongVerifier(transaction.PartReply, verdict))
		}
	}
}

// begin takes the first tokens of a context.
func (c *Contexts) begin(x *context, v *rpc.View) {
	c.reader.Reset(v.CallBody().Data, v.CallBody().Length)
	token := c.reader.Opaque(0)
	x.state = closed
	if c.reader.Failed() {
		x.problem = "the token that creates the context is cut or malformed"
		return
	}
	var req apReq
	if id, body, ok := initial(token); !ok || id != tokenAPReq || !req.decode(body) {
		x.problem = "the token that creates the context is not an AP-REQ of Kerberos"
		return
	}
	x.ticket = ticket{printable(req.service), req.ticket.kvno, req.ticket.etype}
	if c.keytab == nil {
		return
	}
	if req.userToUser {
		x.problem = "the ticket is encrypted with a session key (user-to-user), which is in no keytab"
		return
	}
	part, ok := c.keytab.open(req.service, &req.ticket)
	if !ok {
		x.problem = c.keytab.lacks(req.service, &req.ticket)
		return
	}
	session, client, ok := encTicketPart(part)
	if !ok {
		x.problem = "the ticket is malformed"
		return
	}
	x.client = printable(client)
	x.session = clone(session)
	x.initiator.key = x.session
	b, ok := x.session.decrypt(req.authenticator.cipher, usageAuthenticator)
	if !ok {
		x.problem = fmt.Sprintf("the Authenticator cannot be decrypted with the ticket's session key (%v)", session.EType)
		return
	}
	sub, has, ok := subkey(b, tagAuthenticator, 6)
	if !ok {
		x.problem = "the Authenticator is malformed"
		return
	}
	if has {
		x.initiator.key = clone(sub)
	}
	if !x.initiator.key.usable() {
		x.problem = fmt.Sprintf("contexts of %v are not supported", x.initiator.key.EType)
		return
	}
	x.state = keyed
	c.answer(x)
}

// answer takes the AP-REP of a reply, if there is one.
func (c *Contexts) answer(x *context) {
	if len(c.result.Token) == 0 {
		return // no mutual authentication
	}
	id, body, ok := initial(c.result.Token)
	if !ok || id != tokenAPRep {
		return // the tokens that need it will tell
	}
	e, ok := apRep(body)
	if !ok {
		return
	}
	b, ok := x.session.decrypt(e.cipher, usageAPRep)
	if !ok {
		return
	}
	if sub, has, ok := subkey(b, tagEncAPRepPart, 2); ok && has {
		x.acceptor.key = clone(sub)
		if !x.acceptor.key.usable() {
			x.state, x.problem = closed, fmt.Sprintf("contexts of %v are not supported", sub.EType)
		}
	}
}

// proceed takes a further round of a creation: RPCSEC_GSS_CONTINUE_INIT names the
// context by the handle of the round before.
func (c *Contexts) proceed(x *context, v *rpc.View) {
	from := c.table.find(v.Tx, v.Call().GSS.Handle)
	if from == nil {
		x.state, x.problem = closed, "the first round of the context's creation was not captured"
		return
	}
	x.state, x.problem, x.ticket, x.client = from.state, from.problem, from.ticket, from.client
	x.session, x.initiator.key, x.acceptor.key = from.session, from.initiator.key, from.acceptor.key
	if x.state == keyed {
		c.answer(x)
	}
}

func clone(k Key) Key { return Key{k.EType, slices.Clone(k.Value)} }
