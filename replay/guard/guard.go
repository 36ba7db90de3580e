// Package guard decides for each call of a replay whether it may be sent. It looks only at the
// encoded call that the transport will send, and trusts nothing that a plan says.
//
// A call is sent if it can be decoded to its last byte, if package ops knows it,
// and if what it changes lies below the base: each handle that decides where a
// change lands has to be one that the server returned for an object inside, and
// each name must be a plain one. The guard learns such handles from replies to calls about
// objects inside. Base tells it the handle of the base.
package guard

import (
	"bytes"
	"sync"

	"github.com/rpcrdma/toolkit/decode/nfs/ops"
)

// Options of a Guard.
type Options struct {
	// Write allows calls that change something, below the base.
	Write bool
	// Owner is the prefix of the names of this run's NFSv4 clients. A name that others may
	// have would end their state.
	Owner []byte
	// LockHost is the prefix of the names of this run's hosts, by which a lock manager knows
	// them (NLM).
	LockHost []byte
}

// Guard keeps what is known about a server. Its methods may be called from any goroutine. The
// zero Guard knows no base and lets nothing change.
type Guard struct {
	opt      Options
	checkers sync.Pool
	lessons  sync.Pool

	mu        sync.RWMutex
	inside    set // handles of the base and of what is below it
	outside   set // handles of what is above: never inside, whatever the server says
	clients   map[uint64]struct{}
	sessions  map[[16]byte]struct{}
	states    map[[12]byte]struct{} // of NFSv4.0, by stateid4.other
	callbacks set                   // addresses where this run can be called, as in netaddr4
	making    *making
}

// set holds byte strings. Looking one up allocates nothing.
type set map[string]struct{}

func (s set) has(b []byte) bool { _, ok := s[string(b)]; return ok }

// maxKnown bounds each set, so that a server cannot fill our memory. Later objects stay
// unknown, and so are not changed.
const maxKnown = 1 << 20

func (s *set) add(b []byte) {
	if *s == nil {
		*s = set{}
	}
	if !s.has(b) && len(*s) < maxKnown {
		(*s)[string(b)] = struct{}{}
	}
}

func remember[K comparable](m *map[K]struct{}, k K) {
	if *m == nil {
		*m = map[K]struct{}{}
	}
	if len(*m) < maxKnown {
		(*m)[k] = struct{}{}
	}
}

// making is the directory that may be made although its parent is outside.
type making struct{ parent, name []byte }

// New returns a Guard without a base.
func New(o Options) *Guard { return &Guard{opt: o} }

// Base allows changes in a directory and below it. It ends the permission of MakeBase.
func (g *Guard) Base(handle []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside.add(handle)
	g.making = nil
}

// Above forbids changes in a directory above the base, even if the server returns its handle
// for something below.
func (g *Guard) Above(handle []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.outside.add(handle)
}

// MakeBase allows the base itself to be made: one directory of that name in a
// directory outside.
func (g *Guard) MakeBase(parent []byte, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.making = &making{bytes.Clone(parent), []byte(name)}
}

// Callback says where the server may call this run: a universal address (RFC
// 5665).
func (g *Guard) Callback(address []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.callbacks.add(address)
}

// OwnClient says that a client is this run's although no reply told so, for a
// rehearsal without a server.
func (g *Guard) OwnClient(id uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	remember(&g.clients, id)
}

// OwnSession is like OwnClient.
func (g *Guard) OwnSession(id [16]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	remember(&g.sessions, id)
}

// OwnState is like OwnClient, for stateid4.other of NFSv4.0.
func (g *Guard) OwnState(other [12]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	remember(&g.states, other)
}

// knows reports whether a handle belongs to an object inside.
func (g *Guard) knows(handle []byte) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.inside.has(handle) && !g.outside.has(handle)
}

// mayMake reports whether a directory is the base that is about to be made.
func (g *Guard) mayMake(parent, name []byte) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.making != nil && bytes.Equal(g.making.parent, parent) && bytes.Equal(g.making.name, name)
}

// file is what the guard knows of a file: whether it is inside, and its handle if
// that stood in the call.
type file struct {
	inside bool
	handle []byte
}

// space is the ops.Space of a Guard. What is reached from inside by plain names is
// inside; a parent may be the base's own.
type space struct{ g *Guard }

func (s space) Handle(h []byte) file { return file{s.g.knows(h), h} }
func (s space) Root() file           { return file{} }
func (s space) Public() file         { return file{} }
func (s space) Entry(dir file, name []byte) file {
	return file{inside: dir.inside && ops.PlainName(name)}
}
func (s space) Parent(file) file       { return file{} }
func (s space) Attributes(f file) file { return file{inside: f.inside} }
