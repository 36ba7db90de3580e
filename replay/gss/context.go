package gss

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// maxSequence is the sequence number at which a context has to be replaced (RFC 2203,
// section 5.3.3.1).
const maxSequence = 0x80000000

// maxHandle bounds the handles that servers choose: a credential has 400 bytes.
const maxHandle = 256

// rounds is how many replies of a server the creation of a context may take. Kerberos needs one.
const rounds = 3

// secContext is a security context with a server.
type secContext struct {
	handle []byte
	window uint32
	end    time.Time

	mu      sync.Mutex
	session *krb5.Session
	seq     uint32 // the last one that was used
}

// usable reports whether calls can be started with the context.
func (g *secContext) usable(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seq < maxSequence-1 && now.Before(g.end)
}

// number takes the next sequence number. g.mu is held.
func (g *secContext) number() uint32 {
	g.seq++
	return g.seq
}

// CreateError is a context that a server did not want to create.
type CreateError struct {
	Major, Minor uint32 // of GSS-API; 0: see Status
	Status       string // of RPC
}

func (e *CreateError) Error() string {
	if e.Status != "" {
		return "the server refused to create a security context: " + e.Status
	}
	name := krb5MajorName(e.Major)
	return fmt.Sprintf("the server refused to create a security context: %s (minor status %d): it may lack the key of the service, or the clocks differ", name, e.Minor)
}

func krb5MajorName(major uint32) string {
	if n := oncrpc.GSSMajorName(major); n != "" {
		return n
	}
	return fmt.Sprintf("major status %#x", major)
}

// create makes a context (RFC 2203, section 5.2).
func (r *Requester) create(ctx context.Context) (*secContext, error) {
	t, err := r.o.Tickets(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if !now.Before(t.End) {
		return nil, fmt.Errorf("the ticket of %s for %s has expired at %s: get another one (kinit)", t.Client.String(), t.Service, t.End.Format(time.RFC3339))
	}
	c := creation{r: r, ticket: t, cred: oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSInit, Service: r.o.Service}}
	if err := c.begin(); err != nil {
		return nil, err
	}
	for range rounds {
		done, err := c.round(ctx)
		if err != nil {
			return nil, err
		}
		if done {
			// A context is renewed before its end, so that a call in flight at that time is not
			// refused.
			margin := min(t.End.Sub(now)/10, 30*time.Second)
			return &secContext{handle: c.cred.Handle, window: c.result.Window, session: c.session, end: t.End.Add(-margin)}, nil
		}
	}
	return nil, errors.New("the server does not end the creation of the security context")
}

// creation is a context under construction.
type creation struct {
	r       *Requester
	ticket  *krb5.Ticket
	request *krb5.Request
	session *krb5.Session
	cred    oncrpc.GSSCred
	token   []byte
	result  oncrpc.GSSInitResult
	call    transport.Call
}

func (c *creation) begin() (err error) {
	if c.request, err = krb5.NewRequest(c.ticket, time.Now()); err == nil {
		c.token = c.request.Token()
	}
	return err
}

// encode makes the call of a round.
func (c *creation) encode() {
	h := oncrpc.Call{XID: c.call.XID, RPCVersion: oncrpc.Version, Program: c.r.o.Program, Version: c.r.o.Version}
	h.Cred = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: c.cred.Append(nil)}
	c.call.Stream = xdr.AppendOpaque(h.Append(c.call.Stream[:0]), c.token)
}

// round sends a token and receives the answer. done says that the context is complete.
func (c *creation) round(ctx context.Context) (done bool, err error) {
	r := c.r
	c.call = transport.Call{XID: r.xid(), MaxReply: maxInitReply, Timeout: r.o.Timeout}
	c.encode()
	if c.cred.Proc == oncrpc.GSSInit {
		// A server accepts an Authenticator once. After a lost connection it is unknown whether
		// it did; the next attempt uses a new one of the same length.
		c.call.Again = func(*transport.Call) {
			old, request, n := c.token, c.request, len(c.call.Stream)
			if c.begin() == nil {
				if c.encode(); len(c.call.Stream) == n {
					return
				}
			}
			c.token, c.request = old, request
			c.encode()
		}
	}
	if err := r.inner.Do(ctx, &c.call); err != nil {
		return false, fmt.Errorf("creating a security context: %w", err)
	}
	m := &c.call.Reply
	var h oncrpc.Reply
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil {
		return false, fmt.Errorf("creating a security context: %w", err)
	}
	if !h.Succeeded() {
		status := h.Status()
		if h.Stat == oncrpc.Denied && h.Reject == oncrpc.AuthError {
			status += " " + h.AuthStat.String()
		}
		return false, &CreateError{Status: status}
	}
	if len(m.Items) > 0 || !c.result.Decode(h.Payload) {
		return false, errors.New("creating a security context: the reply is malformed")
	}
	res := &c.result
	if res.Major > 1 {
		return false, &CreateError{Major: res.Major, Minor: res.Minor}
	}
	if len(res.Handle) == 0 || len(res.Handle) > maxHandle {
		return false, fmt.Errorf("creating a security context: a handle of %d bytes", len(res.Handle))
	}
	c.cred.Handle = slices.Clone(res.Handle)
	if c.session == nil && len(res.Token) > 0 {
		if c.session, err = c.request.Finish(res.Token); err != nil {
			return false, err
		}
	}
	if res.Major == 1 { // GSS_S_CONTINUE_NEEDED
		c.cred.Proc, c.token = oncrpc.GSSContinueInit, nil
		return false, nil
	}
	if c.session == nil {
		return false, errors.New("the server did not prove who it is: there is no AP-REP")
	}
	// The verifier is over the window (section 5.2.3.1).
	var window [4]byte
	binary.BigEndian.PutUint32(window[:], res.Window)
	if h.Verf.Flavor != oncrpc.RPCSecGSS || c.session.Verify(h.Verf.Body, window[:]) != nil {
		return false, errors.New("creating a security context: the reply's verifier is wrong")
	}
	if res.Window == 0 {
		return false, errors.New("creating a security context: a sequence window of zero")
	}
	return true, nil
}

// maxInitReply is the largest reply to a call that creates a context, in bytes.
const maxInitReply = 4096

// destroy tells the server that a context is no longer needed. The outcome does not matter: the
// server eventually forgets the context by itself.
func (r *Requester) destroy(g *secContext) {
	ctx, cancel := context.WithTimeout(context.Background(), destroyTime)
	defer cancel()
	g.mu.Lock()
	cred := oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSDestroy, Sequence: g.number(), Service: oncrpc.ServiceNone, Handle: g.handle}
	c := transport.Call{XID: r.xid(), MaxReply: maxInitReply, Timeout: destroyTime}
	h := oncrpc.Call{XID: c.XID, RPCVersion: oncrpc.Version, Program: r.o.Program, Version: r.o.Version}
	h.Cred = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: cred.Append(nil)}
	c.Stream = h.Append(nil)
	c.Stream = c.Stream[:24+h.Cred.Size()]
	verf := oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: g.session.MIC(nil, c.Stream)}
	c.Stream = verf.Append(c.Stream)
	g.mu.Unlock()
	_ = r.inner.Do(ctx, &c)
}

const destroyTime = time.Second
