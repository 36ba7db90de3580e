// Package nfs4 serves NFSv4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2 (RFC 7862, RFC
// 8276) from a store. The root of the store is the root of the export: a client
// mounts "server:/". There are no layouts, no ACLs and no named
// attributes. Users are numbers in text, as Linux sends them with AUTH_SYS.
//
// Package state keeps what the server remembers about clients.
package nfs4

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/backchannel"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Options are the choices of a Server.
type Options struct {
	// Lease is how long the state of a silent client is kept: 90 s.
	Lease time.Duration
	// Courtesy is how long after that its opens, locks and delegations stay, unless they conflict
	// with another client or their room is needed. 0 is until the reaper's next round.
	Courtesy time.Duration
	// Grace is how long after the start only reclaims are answered; 0 is not at
	// all, unless there are Recovered clients: then it is a lease. Without Stable, all reclaims
	// are accepted.
	Grace time.Duration
	// Stable, if set, remembers which clients have state, and Recovered are those that an
	// earlier instance has remembered. They may reclaim, in a grace period.
	Stable    state.Stable
	Recovered []state.Identity
	// RecoveredHosts: there are NFSv3 hosts, too, that may reclaim locks.
	RecoveredHosts bool
	// Limits bound what clients can make the server remember.
	Limits state.Limits
	// MaxIO is the largest READ and WRITE in bytes: 1 MiB. Larger ones are cut.
	MaxIO uint32
	// MaxCopy is how much the COPYs of one COMPOUND copy at most, in bytes: 64
	// MiB. The client asks again for the rest.
	MaxCopy uint64
	// Owner is so_major_id and the server scope, which distinguish servers (RFC 8881, section
	// 2.10.4). Empty: a unique name.
	Owner string
	// Names finds the number of a user or a group by its name, without the domain; nil: no names
	// are known. It may be called from any goroutine.
	Names func(name string, group bool) (id uint32, ok bool)
	// Dial connects to clients of NFSv4.0, for callbacks; without it, they get no
	// delegations.
	Dial backchannel.Dial
	// NoDelegations: files are never delegated to clients.
	NoDelegations bool
	// NoMinor0, NoMinor1 and NoMinor2 leave a minor version out.
	NoMinor0, NoMinor1, NoMinor2 bool
	// Now is the clock of leases; nil is time.Now.
	Now func() time.Time
	// NoReaper: the caller calls Reap from time to time.
	NoReaper bool
}

// Server serves a store.
type Server struct {
	opt   Options
	store store.Store
	info  *store.Info
	root  store.Handle
	table *state.Table
	back  *backchannel.Manager
	owner []byte

	supported [3]attrSet // by minor version

	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// New returns a server of a store, which the caller closes.
func New(st store.Store, opt Options) *Server {
	if opt.MaxIO == 0 {
		opt.MaxIO = 1 << 20
	}
	if opt.MaxCopy == 0 {
		opt.MaxCopy = 64 << 20
	}
	s := &Server{opt: opt, store: st, info: st.Info(), root: st.Root(), stop: make(chan struct{})}
	s.table = state.New(state.Options{
		Lease: opt.Lease, Courtesy: opt.Courtesy, Grace: opt.Grace, Limits: opt.Limits, Now: opt.Now, Stable: opt.Stable, Recovered: opt.Recovered, RecoveredHosts: opt.RecoveredHosts,
		Hold: st.Hold, Unhold: st.Unhold,
	})
	s.back = backchannel.New(backchannel.Options{
		Timeout: max(s.table.Lease()/10, time.Second),
		Handle:  s.info.Handles.Append,
		Dial:    opt.Dial,
		Up:      func(c *backchannel.Channel) { s.table.Delegations.RecallAgain(c) },
	})
	if s.owner = []byte(opt.Owner); len(s.owner) == 0 {
		s.owner = binary.BigEndian.AppendUint32([]byte("rpcrdma-toolkit "), s.table.Boot())
	}
	s.attributes()
	if !opt.NoReaper {
		s.stopped.Go(s.reaper)
	}
	return s
}

// Program is the server as a program of an RPC server.
func (s *Server) Program() nfsserver.Program {
	return nfsserver.Program{
		Name: "nfs", Number: nfs4.NFS4_PROGRAM, Version: nfs4.NFS_V4,
		NewState: func() any { return newCompound(s) },
		Procedures: []nfsserver.Procedure{
			nfs4.NFSPROC4_NULL:     {Name: "NULL", Do: func(c *nfsserver.Call) { c.Send() }, Inline: true},
			nfs4.NFSPROC4_COMPOUND: {Name: "COMPOUND", Do: func(c *nfsserver.Call) { c.State.(*compound).serve(c) }},
		},
	}
}

// Table is where the locks of files are, for other protocols that lock them.
func (s *Server) Table() *state.Table { return s.table }

// State returns counts of what the server remembers.
func (s *Server) State() state.Counts { return s.table.Counts() }

// Reap drops what belongs to clients that have been silent for longer than a
// lease.
func (s *Server) Reap() { s.table.Reap() }

func (s *Server) reaper() {
	t := time.NewTicker(max(s.table.Lease()/4, time.Second))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.table.Reap()
		case <-s.stop:
			return
		}
	}
}

// Close forgets all clients. It is called when no more calls come.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.stop)
		s.stopped.Wait()
		s.back.Close()
		s.table.Close()
	})
}
