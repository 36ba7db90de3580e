// Package nfsserver answers RPC calls. It is the part of a server that NFSv3, MOUNT and
// NFSv4 share: RPC (RFC 5531), credentials, duplicate requests and connections. Registered
// programs execute the procedures: packages v3, mountd and nfs4 below this one.
//
// A Server is a transport.Handler, and one Server can serve any number of
// transports at a time.
package nfsserver

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Program is one version of an RPC program. Programs of the same number serve
// several versions.
type Program struct {
	Name    string // "nfs"
	Number  uint32
	Version uint32
	// Procedures are indexed by number. One without Do is unavailable.
	Procedures []Procedure
	// Guarded says that calls, except for NULL, need one of Options.Flavors.
	Guarded bool
	// NewState makes the working memory of a call of this program (Call.State). It is used
	// for one call at a time.
	NewState func() any
}

// Procedure is a procedure of a Program.
type Procedure struct {
	Name string
	// Do answers a call with one of Call.Send, Call.Fail and Call.Drop, before
	// it returns or later, from any goroutine.
	Do func(c *Call)
	// Cached: the procedure is not idempotent, so that a duplicate of a call must get the
	// same reply and not be executed again (RFC 1813, section 4.8.1).
	Cached bool
	// Inline: Do never blocks, so that it runs on the connection's goroutine even if there
	// are workers.
	Inline bool
}

// Options of a Server.
type Options struct {
	// Workers is how many goroutines execute procedures. With 0 the connection's goroutine
	// does, which is fastest if nothing blocks: right for a store in memory, wrong for one
	// that reads disks.
	Workers int
	// Squash maps users (exports(5) of Linux has the same words).
	Squash Squash
	// AnonUID and AnonGID stand for squashed users, and for callers with AUTH_NONE. 0 means
	// 65534 (nobody): root cannot be chosen.
	AnonUID, AnonGID uint32
	// Flavors are what guarded programs may be called with: AUTH_SYS, AUTH_NONE, pseudo
	// flavors of Kerberos; the preferred ones first. nil stands for AUTH_SYS and AUTH_NONE.
	Flavors []oncrpc.Flavor
	// Replies is how many replies to calls that are not idempotent are kept for
	// duplicates; 0 stands for 16384, less than 0 for none.
	Replies int
	// ReplyBytes is how much memory they may take together; 0 stands for 16 MiB. A
	// reply that is larger than an eighth of it is not kept.
	ReplyBytes int
}

// Squash selects the users that become anonymous.
type Squash uint8

// Squash modes.
const (
	NoSquash Squash = iota
	RootSquash
	AllSquash
)

const nobody = 65534

// Server serves registered programs.
type Server struct {
	opt      Options
	programs []*program
	seed     maphash.Seed
	replies  *replyCache
	strays   sync.Pool // calls of no program
	conns    conns

	queue   chan *Call
	workers sync.WaitGroup
	quit    chan struct{}
	closed  atomic.Bool

	calls, failed, duplicates atomic.Uint64
}

// program is a Program with the memory and counts of its calls.
type program struct {
	Program
	pool   sync.Pool
	counts []atomic.Uint64
}

// New makes a server without programs.
func New(opt Options) *Server {
	if opt.AnonUID == 0 {
		opt.AnonUID = nobody
	}
	if opt.AnonGID == 0 {
		opt.AnonGID = nobody
	}
	if opt.Flavors == nil {
		opt.Flavors = []oncrpc.Flavor{oncrpc.AuthSys, oncrpc.AuthNone}
	}
	if opt.Replies == 0 {
		opt.Replies = 16384
	}
	if opt.ReplyBytes <= 0 {
		opt.ReplyBytes = 16 << 20
	}
	s := &Server{opt: opt, seed: maphash.MakeSeed(), quit: make(chan struct{})}
	if opt.Replies > 0 {
		s.replies = newReplyCache(opt.Replies, opt.ReplyBytes)
	}
	s.strays.New = func() any { return newCall(s, nil) }
	if opt.Workers > 0 {
		s.queue = make(chan *Call, 4*opt.Workers)
		for range opt.Workers {
			s.workers.Go(s.work)
		}
	}
	return s
}

// Register adds a program. All are registered before the first call.
func (s *Server) Register(p Program) {
	own := &program{Program: p, counts: make([]atomic.Uint64, len(p.Procedures))}
	own.pool.New = func() any { return newCall(s, own) }
	s.programs = append(s.programs, own)
}

// ServeRPC answers a call.
func (s *Server) ServeRPC(x transport.Exchange) {
	s.calls.Add(1)
	m := x.Call()
	head, ok := oncrpc.Peek(m.Stream)
	var p *program
	if ok && head.Type == oncrpc.TypeCall {
		p = s.find(head.Program, head.Version)
	}
	pool := &s.strays
	if p != nil {
		pool = &p.pool
	}
	c := pool.Get().(*Call)
	c.begin(x, m)
	if !c.header() {
		return
	}
	if p == nil {
		c.noProgram()
		return
	}
	n := c.Header.Procedure
	if uint64(n) >= uint64(len(p.Procedures)) || p.Procedures[n].Do == nil {
		c.Fail(oncrpc.ProcUnavail)
		return
	}
	proc := &p.Procedures[n]
	p.counts[n].Add(1)
	if !c.authenticate() {
		return
	}
	if p.Guarded && n != 0 && !c.Allowed() {
		c.denyAuth(oncrpc.AuthTooWeak)
		return
	}
	if proc.Cached && s.replies != nil && !s.replies.admit(c) {
		return
	}
	c.proc = proc
	if s.queue == nil || proc.Inline {
		proc.Do(c)
		return
	}
	select {
	case s.queue <- c:
		if s.closed.Load() {
			s.drain() // no worker may be left to do it
		}
	case <-s.quit:
		c.Drop()
	}
}

func (s *Server) work() {
	for {
		select {
		case c := <-s.queue:
			c.proc.Do(c)
		case <-s.quit:
			return
		}
	}
}

func (s *Server) find(number, version uint32) *program {
	for _, p := range s.programs {
		if p.Number == number && p.Version == version {
			return p
		}
	}
	return nil
}

// versions returns the lowest and the highest version of a program; ok is false if there is
// no such program.
func (s *Server) versions(number uint32) (low, high uint32, ok bool) {
	for _, p := range s.programs {
		if p.Number != number {
			continue
		}
		if !ok {
			low, high, ok = p.Version, p.Version, true
		}
		low, high = min(low, p.Version), max(high, p.Version)
	}
	return low, high, ok
}

// Close stops the workers when their current procedures end. Calls that wait for a worker,
// and later ones, are dropped. Close the transports first. Programs close what belongs to
// them.
func (s *Server) Close() {
	if s.closed.Swap(true) || s.queue == nil {
		return
	}
	close(s.quit)
	s.workers.Wait()
	s.drain()
}

func (s *Server) drain() {
	for {
		select {
		case c := <-s.queue:
			c.Drop()
		default:
			return
		}
	}
}

// Stats has counts since the start of a Server.
type Stats struct {
	Calls      uint64
	Failed     uint64 // calls with an RPC-level error
	Duplicates uint64 // calls answered with, or waiting for, another's reply
	Replies    ReplyStats
	Procedures []ProcedureStats
}

// ProcedureStats counts the calls of a procedure.
type ProcedureStats struct {
	Program   string
	Version   uint32
	Procedure string
	Calls     uint64
}

// Stats returns the counts; of procedures, only those that were called.
func (s *Server) Stats() Stats {
	st := Stats{Calls: s.calls.Load(), Failed: s.failed.Load(), Duplicates: s.duplicates.Load(), Replies: s.replies.stats()}
	for _, p := range s.programs {
		for i := range p.counts {
			if n := p.counts[i].Load(); n != 0 {
				st.Procedures = append(st.Procedures, ProcedureStats{p.Name, p.Version, p.Procedures[i].Name, n})
			}
		}
	}
	return st
}
