package accept

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Options of a Handler.
type Options struct {
	// Keytab has the keys of the service.
	Keytab *krb5.Keytab
	// Users maps principals to users; nil: everybody is nobody.
	Users Users
	// Contexts is how many contexts are kept; 0 stands for 4096. If there are too many, the
	// source with the most contexts loses its least recently used one.
	Contexts int
	// Log, if set, gets the reasons for refused contexts, at most once a second.
	Log func(format string, args ...any)
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// Window is the sequence window of contexts (RFC 2203, section 5.3.3.1), that of Linux.
const Window = 128

// maxSequence is the first sequence number that is refused.
const maxSequence = 0x80000000

// maxInit bounds a token that creates a context, in bytes. It has room for tickets with the
// largest authorization data that Windows issues.
const maxInit = 66 << 10

// Handler answers calls that create and destroy contexts, and passes the others on.
type Handler struct {
	o     Options
	next  transport.Handler
	table table
	used  replays
	seed  maphash.Seed
	// creators bounds how many contexts are created at a time. The transport bounds the waiting
	// calls, as it bounds all calls.
	creators chan struct{}

	stats  struct{ created, refused, calls, forged, repeated, unknown atomic.Uint64 }
	logged atomic.Int64
}

// Stats are counts since the start of a Handler.
type Stats struct {
	Contexts uint64 // created
	Refused  uint64 // not created
	Evicted  uint64 // given up, because there were too many
	Calls    uint64 // that passed
	Forged   uint64 // calls with a wrong verifier or a wrong body
	Repeated uint64 // calls with a used or too old sequence number
	Unknown  uint64 // calls of a context that is unknown, or no longer known
}

// New makes a Handler that passes calls on to next.
func New(next transport.Handler, o Options) *Handler {
	if o.Contexts <= 0 {
		o.Contexts = 4096
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &Handler{o: o, next: next, seed: maphash.MakeSeed(), creators: make(chan struct{}, 8)}
	h.table.limit = o.Contexts
	return h
}

// Stats returns the counts.
func (h *Handler) Stats() Stats {
	s := &h.stats
	return Stats{
		Contexts: s.created.Load(), Refused: s.refused.Load(), Evicted: h.table.evictions(), Calls: s.calls.Load(),
		Forged: s.forged.Load(), Repeated: s.repeated.Load(), Unknown: s.unknown.Load(),
	}
}

// ServeRPC implements transport.Handler.
func (h *Handler) ServeRPC(x transport.Exchange) {
	b := x.Call().Stream
	// The flavor of the credential, which follows six words.
	if len(b) < 32 || binary.BigEndian.Uint32(b[4:]) != uint32(oncrpc.TypeCall) || oncrpc.Flavor(binary.BigEndian.Uint32(b[24:])) != oncrpc.RPCSecGSS {
		h.next.ServeRPC(x)
		return
	}
	c, _ := calls.Get().(*call)
	if c == nil {
		c = newCall()
	}
	c.h, c.x = h, x
	c.serve()
}

// log logs why a context was refused, at a limited rate, since peers choose how often that
// happens.
func (h *Handler) log(peer transport.Peer, err error) {
	now := h.o.Now().Unix()
	if last := h.logged.Load(); h.o.Log == nil || last == now || !h.logged.CompareAndSwap(last, now) {
		return
	}
	h.o.Log("Kerberos: a context for %s was refused: %v", peer.Remote.Addr(), err)
}

// call is one call with RPCSEC_GSS, and the Exchange for the server behind.
type call struct {
	h *Handler
	x transport.Exchange

	header oncrpc.Call
	opened rpc.Opened
	ctx    *secContext
	seq    uint32
	kind   oncrpc.Service
	user   uint32
	number [4]byte // seq, on the wire

	stream  []byte
	items   []transport.Item
	message transport.Message

	plain    oncrpc.Reply // of the server
	token    []byte
	out      []byte
	outItems []transport.Item
	reply    transport.Message
	release  func() // of the server's reply, if its memory is used
}

func newCall() *call {
	c := &call{}
	c.reply.Release = c.released
	return c
}

var calls sync.Pool

// kept is how large buffers may be to be kept for other calls, in bytes.
const kept = 1<<20 + 64<<10

func (c *call) serve() {
	m := c.x.Call()
	h := &c.header
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil || h.GSS.Handle == nil {
		c.deny(oncrpc.AuthBadCred)
		return
	}
	if h.RPCVersion != oncrpc.Version {
		// The server behind answers that; it checks the version first.
		x, next := c.x, c.h.next
		c.free()
		next.ServeRPC(x)
		return
	}
	if h.GSS.Version != 1 {
		c.deny(oncrpc.AuthBadCred)
		return
	}
	switch h.GSS.Proc {
	case oncrpc.GSSInit:
		// Keys are tried and users looked up, which may use the network.
		go func() {
			h := c.h
			h.creators <- struct{}{}
			defer func() { <-h.creators }()
			c.create(m)
		}()
	case oncrpc.GSSData, oncrpc.GSSDestroy:
		c.data(m)
	default:
		// Kerberos needs no second round, so there is nothing to continue.
		c.deny(oncrpc.AuthBadCred)
	}
}

// create answers RPCSEC_GSS_INIT (RFC 2203, section 5.2).
func (c *call) create(m *transport.Message) {
	h := &c.header
	if h.Procedure != 0 || len(h.GSS.Handle) != 0 || len(m.Items) > 0 || h.Verf.Flavor != oncrpc.AuthNone {
		c.deny(oncrpc.AuthBadCred)
		return
	}
	var r xdr.Reader
	r.Reset(h.Payload, len(h.Payload))
	token := r.Opaque(maxInit)
	if r.Failed() || r.Remaining() > 0 {
		c.accepted(oncrpc.GarbageArgs, nil, nil)
		return
	}
	now := c.h.o.Now()
	a, err := c.h.o.Keytab.Accept(token, now, c.h.used.fresh(now))
	if err != nil {
		c.h.stats.refused.Add(1)
		c.h.log(c.x.Peer(), err)
		res := oncrpc.GSSInitResult{Major: major(err)}
		c.accepted(oncrpc.Success, nil, res.Append(nil))
		return
	}
	g := c.h.context(a)
	g.source = c.x.Peer().Source()
	c.h.table.add(g, now)
	c.h.stats.created.Add(1)
	res := oncrpc.GSSInitResult{Handle: g.handle[:], Window: Window, Token: a.Token}
	var window [4]byte
	binary.BigEndian.PutUint32(window[:], Window)
	g.mu.Lock()
	c.token = g.session.MIC(c.token[:0], window[:])
	g.mu.Unlock()
	c.accepted(oncrpc.Success, c.token, res.Append(nil))
}

// major is the status of GSS-API for a token that was refused (RFC 2744, section 3.9.1).
func major(err error) uint32 {
	const (
		noCred             = 7 << 16
		defectiveToken     = 9 << 16
		credentialsExpired = 11 << 16
		failure            = 13 << 16
		duplicateToken     = 1 << 1
	)
	switch {
	case errors.Is(err, krb5.ErrKey):
		return noCred
	case errors.Is(err, krb5.ErrMalformed):
		return defectiveToken
	case errors.Is(err, krb5.ErrExpired), errors.Is(err, krb5.ErrSkew):
		return credentialsExpired
	case errors.Is(err, krb5.ErrReplay):
		return failure | duplicateToken
	}
	return failure
}

// data checks and opens a call of a context (section 5.3.3).
func (c *call) data(m *transport.Message) {
	h, stats := &c.header, &c.h.stats
	now := c.h.o.Now()
	g := c.h.table.find(h.GSS.Handle, now)
	if g == nil {
		stats.unknown.Add(1)
		c.deny(oncrpc.AuthGSSCredProblem)
		return
	}
	c.ctx, c.seq, c.kind, c.user = g, h.GSS.Sequence, h.GSS.Service, g.user
	signed := 24 + h.Cred.Size()
	g.mu.Lock()
	genuine := h.Verf.Flavor == oncrpc.RPCSecGSS && signed <= len(m.Stream) && g.session.Verify(h.Verf.Body, m.Stream[:signed]) == nil
	fresh := genuine && c.seq < maxSequence && g.window.take(c.seq)
	g.mu.Unlock()
	switch {
	case !genuine:
		stats.forged.Add(1)
		c.deny(oncrpc.AuthGSSCredProblem)
		return
	case c.seq >= maxSequence:
		c.deny(oncrpc.AuthGSSCtxProblem)
		return
	case !fresh:
		// The call is dropped silently (section 5.3.3.1): an attacker who repeats it must not
		// learn anything, and its sender has received the reply.
		stats.repeated.Add(1)
		c.drop()
		return
	}
	if h.GSS.Proc == oncrpc.GSSDestroy {
		if h.Procedure != 0 {
			c.deny(oncrpc.AuthBadCred)
			return
		}
		verifier := c.verifier()
		c.h.table.remove(g)
		c.accepted(oncrpc.Success, verifier, nil)
		return
	}
	if !c.open(m, h.Payload) {
		if c.kind < oncrpc.ServiceNone || c.kind > oncrpc.ServicePrivacy {
			c.deny(oncrpc.AuthBadCred)
			return
		}
		stats.forged.Add(1)
		c.accepted(oncrpc.GarbageArgs, c.verifier(), nil)
		return
	}
	stats.calls.Add(1)
	c.h.next.ServeRPC(c)
}

// open turns the protected call into a plain one.
func (c *call) open(m *transport.Message, payload []byte) bool {
	h, g := &c.header, c.ctx
	plain := oncrpc.Call{XID: h.XID, RPCVersion: oncrpc.Version, Program: h.Program, Version: h.Version, Procedure: h.Procedure}
	plain.Cred = g.cred
	c.stream = plain.Append(c.stream[:0])
	c.items = c.items[:0]
	switch c.kind {
	case oncrpc.ServiceNone:
		shift := uint32(len(c.stream) - h.Size())
		for _, it := range m.Items {
			c.items = append(c.items, transport.Item{Position: it.Position + shift, Data: it.Data})
		}
		c.stream = append(c.stream, payload...)
	case oncrpc.ServiceIntegrity, oncrpc.ServicePrivacy:
		if len(m.Items) > 0 {
			return false // none of it is eligible for a chunk
		}
		args, ok := c.args(payload)
		if !ok {
			return false
		}
		c.stream = append(c.stream, args...)
	default:
		return false
	}
	c.message = transport.Message{Stream: c.stream, Items: c.items}
	return true
}

// args are the arguments in a body with integrity or privacy (sections 5.3.2.2, 5.3.2.3).
func (c *call) args(payload []byte) ([]byte, bool) {
	g := c.ctx
	var r xdr.Reader
	r.Reset(payload, len(payload))
	if c.kind == oncrpc.ServiceIntegrity {
		body, sum := r.Opaque(0), r.Opaque(0)
		if r.Failed() || r.Remaining() > 0 || len(body) < 4 || len(body)%4 != 0 {
			return nil, false
		}
		g.mu.Lock()
		err := g.session.Verify(sum, body)
		g.mu.Unlock()
		return body[4:], err == nil && binary.BigEndian.Uint32(body) == c.seq
	}
	token := r.Opaque(0)
	if r.Failed() || r.Remaining() > 0 {
		return nil, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session.Unwrap(token, c.seq, &c.opened) != nil || len(c.opened.Data)%4 != 0 {
		return nil, false
	}
	return c.opened.Data, true
}

// verifier is the MIC of the sequence number, as in every reply.
func (c *call) verifier() []byte {
	binary.BigEndian.PutUint32(c.number[:], c.seq)
	c.ctx.mu.Lock()
	defer c.ctx.mu.Unlock()
	c.token = c.ctx.session.MIC(c.token[:0], c.number[:])
	return c.token
}

// accepted answers with MSG_ACCEPTED. A nil verifier is none.
func (c *call) accepted(stat oncrpc.AcceptStat, verifier, results []byte) {
	r := oncrpc.Reply{XID: c.header.XID, Stat: oncrpc.Accepted, Accept: stat}
	if verifier != nil {
		r.Verf = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: verifier}
	}
	c.out = append(r.Append(c.out[:0]), results...)
	c.answer()
}

// deny answers with MSG_DENIED.
func (c *call) deny(stat oncrpc.AuthStat) {
	r := oncrpc.Reply{XID: binary.BigEndian.Uint32(c.x.Call().Stream), Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: stat}
	c.out = r.Append(c.out[:0])
	c.answer()
}

// answer sends the contents of out.
func (c *call) answer() {
	c.reply.Stream = c.out
	c.x.Reply(&c.reply)
}

func (c *call) drop() {
	x := c.x
	c.free()
	x.Drop()
}

// released takes the call back when its reply was sent.
func (c *call) released() {
	if f := c.release; f != nil {
		c.release = nil
		f()
	}
	c.free()
}

func (c *call) free() {
	if cap(c.stream) > kept {
		c.stream = nil
	}
	if cap(c.out) > kept {
		c.out = nil
	}
	if cap(c.opened.Buffer(0)) > kept {
		c.opened = rpc.Opened{}
	}
	clear(c.items)
	clear(c.outItems)
	c.opened.Data = nil
	c.header.Cred, c.header.Verf, c.header.GSS = oncrpc.Auth{}, oncrpc.Auth{}, oncrpc.GSSCred{}
	c.message, c.reply.Stream, c.reply.Items = transport.Message{}, nil, nil
	c.h, c.x, c.ctx = nil, nil, nil
	calls.Put(c)
}
