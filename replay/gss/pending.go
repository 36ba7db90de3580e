package gss

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// pending is a call from the layer above, and what is sent for it.
type pending struct {
	r       *Requester
	user    *transport.Call
	call    transport.Call
	g       *secContext
	queued  time.Time
	tries   int
	do      bool
	counted bool // in Requester.inFlight
	seqs    []uint32
	number  [4]byte // one of seqs, on the wire

	header oncrpc.Call
	reply  oncrpc.Reply
	cred   []byte
	token  []byte
	stream []byte
	items  []transport.Item
	opened rpc.Opened
	plain  []byte
	doneFn func(*transport.Call)
	again  func(*transport.Call)
}

func newPending() *pending {
	p := &pending{}
	p.doneFn, p.again = p.done, p.resend
	return p
}

var pendings sync.Pool

// kept is the largest size in bytes of buffers that are kept for other calls.
const kept = 2 << 20

func (p *pending) begin(r *Requester, c *transport.Call) {
	p.r, p.user, p.g, p.tries, p.do, p.counted = r, c, nil, 0, false, false
	p.seqs = p.seqs[:0]
	p.queued = time.Now()
	c.Err, c.Reply, c.Times = nil, transport.Message{}, transport.Times{Queued: p.queued}
	if c.XID == 0 {
		c.XID = r.xid()
	}
}

// send starts the call. Its end is done.
func (p *pending) send(g *secContext) {
	p.tries++
	if err := p.build(g); err != nil {
		p.fail(err)
		return
	}
	p.call.Done = p.doneFn
	p.r.inner.Start(&p.call)
}

// build makes the call that is sent.
func (p *pending) build(g *secContext) error {
	c := p.user
	p.g, p.seqs = g, p.seqs[:0]
	p.call = transport.Call{XID: c.XID, MaxReply: c.MaxReply + replyOverhead, User: c.User, Again: p.again, Timeout: c.Timeout}
	if c.Timeout > 0 {
		if p.call.Timeout -= time.Since(p.queued); p.call.Timeout <= 0 {
			return transport.ErrTimeout
		}
	}
	if err := p.header.Decode(c.Stream, len(c.Stream)); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrMessage, err)
	}
	if p.r.Reduces() {
		p.call.Results, p.call.Layout = c.Results, c.Layout
	} else {
		for _, b := range c.Results {
			p.call.MaxReply += (len(b) + 3) &^ 3
		}
	}
	return p.encode()
}

// resend is called before the call is sent on another connection: the server may have seen its
// sequence number, and would then drop it silently. The encoding with the new number has the same
// length.
func (p *pending) resend(*transport.Call) {
	if len(p.seqs) < maxResend {
		_ = p.encode()
	}
}

// maxResend is how many sequence numbers of one call are remembered. After that, calls are
// repeated unchanged.
const maxResend = 16

// Overhead of a reply in bytes: the verifier, and either the sequence number, two
// lengths and the checksum, or a length and a Wrap token.
const replyOverhead = krb5.MaxMIC + max(12+krb5.MaxMIC, 4+krb5.MaxWrap+4) + 3

// encode protects the call under the next sequence number.
func (p *pending) encode() error {
	g, c := p.g, p.user
	at := p.header.Size()
	if at > len(c.Stream) || len(c.Items) > 0 && int(c.Items[0].Position) < at {
		return transport.ErrMessage
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	seq := g.number()
	p.seqs = append(p.seqs, seq)
	cred := oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSData, Sequence: seq, Service: p.r.o.Service, Handle: g.handle}
	p.cred = cred.Append(p.cred[:0])
	b := append(p.stream[:0], c.Stream[:24]...)
	binary.BigEndian.PutUint32(b, c.XID)
	b = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: p.cred}.Append(b)
	p.token = g.session.MIC(p.token[:0], b)
	b = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: p.token}.Append(b)
	body := transport.Message{Stream: c.Stream[at:]}
	p.items = p.items[:0]
	shift := uint32(len(b)) // items are as far from the header as before
	if !p.r.Reduces() {
		shift = 0
	}
	for _, it := range c.Items {
		p.items = append(p.items, transport.Item{Position: it.Position - uint32(at) + shift, Data: it.Data})
	}
	p.call.Items = nil
	switch p.r.o.Service {
	case oncrpc.ServiceIntegrity:
		body.Items = p.items
		start := len(b)
		b = xdr.AppendUint32(b, 0)
		b = body.AppendWhole(xdr.AppendUint32(b, seq))
		binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
		p.token = g.session.MIC(p.token[:0], b[start+4:])
		b = xdr.AppendOpaque(b, p.token)
	case oncrpc.ServicePrivacy:
		body.Items = p.items
		start := len(b)
		b = xdr.AppendUint32(b, 0)
		var token int
		b, token = g.session.BeginWrap(b)
		b = body.AppendWhole(xdr.AppendUint32(b, seq))
		b = g.session.EndWrap(b, token)
		n := len(b) - start - 4
		binary.BigEndian.PutUint32(b[start:], uint32(n))
		b = append(b, padding[:-n&3]...)
	default:
		b = append(b, body.Stream...)
		p.call.Items = p.items
	}
	p.stream, p.call.Stream = b, b
	return nil
}

var padding [4]byte

// done is the transport's Done.
func (p *pending) done(*transport.Call) {
	if p.counted {
		p.counted = false
		p.r.landed()
	}
	if !p.take() {
		p.r.enqueue(p)
		return
	}
	r := p.r
	p.end()
	r.pump()
}

// take examines the reply, or the failure. It returns false if the call must be sent again with
// another context.
func (p *pending) take() bool {
	c := p.user
	c.Times.Sent, c.Times.Replied = p.call.Times.Sent, p.call.Times.Replied
	if c.Err = p.call.Err; c.Err != nil {
		return true
	}
	m, h := &p.call.Reply, &p.reply
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil {
		c.Err = fmt.Errorf("%w: the RPC header: %w", transport.ErrBadReply, err)
		return true
	}
	if h.Stat == oncrpc.Denied {
		if h.Reject == oncrpc.AuthError && stale(h.AuthStat) {
			p.r.drop(p.g)
			if p.tries < maxTries {
				return false
			}
		}
		c.Reply = *m
		return true
	}
	c.Err = p.open(m)
	return true
}

// stale reports whether a server does not, or no longer, know the context (RFC 2203,
// section 5.3.3.3).
func stale(s oncrpc.AuthStat) bool {
	switch s {
	case oncrpc.AuthGSSCredProblem, oncrpc.AuthGSSCtxProblem, oncrpc.AuthRejectedCred, oncrpc.AuthRejectedVerf:
		return true
	}
	return false
}

// open checks the verifier of an accepted reply and opens its results.
func (p *pending) open(m *transport.Message) error {
	h, c, g := &p.reply, p.user, p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	seq, ok := p.verified(h)
	if !ok {
		return fmt.Errorf("%w: its verifier is wrong: the reply is forged, damaged, or to another call", transport.ErrBadReply)
	}
	if !h.Succeeded() || p.r.Reduces() {
		c.Reply = *m
		return nil
	}
	if len(m.Items) > 0 {
		return fmt.Errorf("%w: protected results in Write chunks", transport.ErrBadReply)
	}
	var results []byte
	switch p.r.o.Service {
	case oncrpc.ServiceIntegrity:
		body, sum, ok := integrity(h.Payload)
		if !ok || g.session.Verify(sum, body) != nil {
			return fmt.Errorf("%w: its checksum is wrong", transport.ErrBadReply)
		}
		if binary.BigEndian.Uint32(body) != seq {
			return fmt.Errorf("%w: %w", transport.ErrBadReply, krb5.ErrSequence)
		}
		results = body[4:]
	case oncrpc.ServicePrivacy:
		var rd xdr.Reader
		rd.Reset(h.Payload, len(h.Payload))
		token := rd.Opaque(0)
		if rd.Failed() || rd.Remaining() > 0 {
			return fmt.Errorf("%w: its results are no encrypted data", transport.ErrBadReply)
		}
		if err := g.session.Unwrap(token, seq, &p.opened); err != nil {
			return fmt.Errorf("%w: %w", transport.ErrBadReply, err)
		}
		results = p.opened.Data
	}
	plain := oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted, Accept: oncrpc.Success}
	p.plain = append(plain.Append(p.plain[:0]), results...)
	c.Reply = transport.Message{Stream: p.plain}
	return nil
}

// verified finds the sequence number that the reply's verifier covers (RFC 2203, section
// 5.3.3.2): that of the call, or of one of its retransmissions. g.mu is held.
func (p *pending) verified(h *oncrpc.Reply) (seq uint32, ok bool) {
	if h.Verf.Flavor != oncrpc.RPCSecGSS {
		return 0, false
	}
	for _, seq := range p.seqs {
		binary.BigEndian.PutUint32(p.number[:], seq)
		if p.g.session.Verify(h.Verf.Body, p.number[:]) == nil {
			return seq, true
		}
	}
	return 0, false
}

// integrity splits rpc_gss_integ_data into the bytes that the checksum covers, and the checksum.
func integrity(b []byte) (body, sum []byte, ok bool) {
	var r xdr.Reader
	r.Reset(b, len(b))
	body, sum = r.Opaque(0), r.Opaque(0)
	return body, sum, !r.Failed() && r.Remaining() == 0 && len(body) >= 4 && len(body)%4 == 0
}

// fail ends a call that was not sent.
func (p *pending) fail(err error) {
	if p.counted {
		p.counted = false
		p.r.landed()
	}
	p.user.Err = err
	p.end()
}

// end returns the call to the layer above.
func (p *pending) end() {
	c := p.user
	if c.Release != nil {
		c.Release()
	}
	if c.Done != nil {
		c.Done(c)
	}
	if p.do {
		return // the reply stays where it is
	}
	if cap(p.stream) > kept {
		p.stream = nil
	}
	if cap(p.plain) > kept {
		p.plain = nil
	}
	clear(p.items)
	p.call, p.user, p.g, p.r = transport.Call{}, nil, nil, nil
	pendings.Put(p)
}
