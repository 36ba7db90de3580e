package providers

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/replay/gss/accept"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfsacl"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nlm"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Server is the built-in NFS server: versions 3, 4.0, 4.1 and 4.2, NFSACL, MOUNT, NLM and
// NSM, from one store.
type Server struct {
	rpc   *nfsserver.Server
	nfs4  *nfs4.Server
	nlm   *nlm.Server
	store store.Store
	gss   *accept.Handler // nil without Kerberos
}

var _ transport.Handler = (*Server)(nil)

// ServerOptions are the options of the parts of a Server.
type ServerOptions struct {
	RPC   nfsserver.Options
	V3    v3.Options
	V4    nfs4.Options
	Mount mountd.Options
	// NLM has the options of locks of NFSv3. Without a Dial, clients are called back on the
	// connection that they have made; see DialClient.
	NLM nlm.Options
	// Kerberos is used if it has a keytab.
	Kerberos accept.Options
}

// NewServer makes a server of a store. Close closes the store, too.
func NewServer(st store.Store, o ServerOptions) *Server {
	if o.V4.Dial == nil {
		o.V4.Dial = dialCallback
	}
	s := &Server{rpc: nfsserver.New(o.RPC), nfs4: nfs4.New(st, o.V4), store: st}
	s.nlm = nlm.New(st, s.nfs4.Table(), o.NLM)
	others := s.nfs4.Guarded()
	for _, p := range []nfsserver.Program{v3.New(others, o.V3), nfsacl.New(others)} {
		p.Guarded = true // NFSv4 has its own way to say so
		s.rpc.Register(p)
	}
	s.rpc.Register(mountd.New(st, o.Mount))
	s.rpc.Register(s.nfs4.Program())
	for _, p := range s.nlm.Programs() {
		s.rpc.Register(p)
	}
	if o.Kerberos.Keytab != nil {
		s.gss = accept.New(s.rpc, o.Kerberos)
	}
	return s
}

// dialCallback connects to a client of NFSv4.0.
func dialCallback(ctx context.Context, at netip.AddrPort, maxReply int, timeout time.Duration) (transport.Requester, error) {
	return tcprpc.Dial(ctx, at.String(), tcprpc.Options{
		MaxRecord: maxReply, MaxCalls: 1, DialTimeout: timeout, Timeout: timeout, RecordTimeout: timeout, ReplyTimeout: timeout,
	})
}

// ServeRPC implements transport.Handler.
func (s *Server) ServeRPC(x transport.Exchange) {
	if s.gss != nil {
		s.gss.ServeRPC(x)
		return
	}
	s.rpc.ServeRPC(x)
}

// Kerberos counts contexts and calls with RPCSEC_GSS; false if the server has no keytab.
func (s *Server) Kerberos() (accept.Stats, bool) {
	if s.gss == nil {
		return accept.Stats{}, false
	}
	return s.gss.Stats(), true
}

// Locks counts what the lock manager holds.
func (s *Server) Locks() nlm.Counts { return s.nlm.Counts() }

// Stats counts calls.
func (s *Server) Stats() nfsserver.Stats { return s.rpc.Stats() }

// Close ends the server. Its listeners are closed first.
func (s *Server) Close() error {
	s.rpc.Close()
	s.nlm.Close()
	s.nfs4.Close()
	return errors.Join(s.store.Close())
}
