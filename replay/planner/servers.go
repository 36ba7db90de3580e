package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// A server may have several addresses. Handles, state ids, client ids and sessions seen at one of
// them are valid at the others, so the plan must treat them as one server. Each call is checked
// for evidence before it is added: as a rule, evidence comes before anything else is known of the
// second address. If it comes later, the plan is already wrong, and has to be made again.

// identity is what distinguishes servers, and what shows that two are one.
type identity struct {
	b *Builder
	// into is the number of the server that each one turned out to be; 0 for itself.
	into []int
	// used are servers of which the plan already has objects or clients.
	used []bool
	// owners are the server owners of EXCHANGE_ID, by server; byOwner is the reverse.
	owners  map[int]ownerKey
	byOwner map[ownerKey]int
	// found counts names that were created at one server and found at another.
	found map[[2]int]int
	made  map[madeKey]*obj // what calls have made, by number
	late  []plan.SameServer
}

func (s *identity) init(b *Builder) {
	*s = identity{b: b, into: []int{0}, used: []bool{false}, owners: map[int]ownerKey{}, byOwner: map[ownerKey]int{}, found: map[[2]int]int{}, made: map[madeKey]*obj{}}
}

// add makes room for a server.
func (s *identity) add() { s.into, s.used = append(s.into, 0), append(s.used, false) }

// real returns the server that this one turned out to be.
func (s *identity) real(server int) int {
	for s.into[server] != 0 {
		server = s.into[server]
	}
	return server
}

// assigned returns the server that the user assigned an address to; 0 if it is a new one.
func (s *identity) assigned(addr string) (server int, why plan.SameServer) {
	for _, x := range s.b.opt.Same {
		other := x.Addr
		switch addr {
		case x.Addr:
			other = x.As
		case x.As:
		default:
			continue
		}
		if id := s.b.servers[other]; id != 0 {
			return s.real(id), plan.SameServer{Addr: addr, As: other, Why: x.Why, Detail: x.Detail}
		}
	}
	return 0, why
}

// look finds out whether the server of a call is already known by another address.
func (s *identity) look(c *call) {
	if len(s.b.t.Servers) > 1 && handles(c.v, func(h []byte) bool { return s.handle(c, h) }) {
		c.server = s.real(c.server)
	}
	a, ok := c.v.Args().(*nfs4.CompoundArgs)
	r, replied := c.v.Result().(*nfs4.CompoundRes)
	if !ok || !replied || c.v.ArgsErr != nil {
		return
	}
	for i := range min(len(a.Ops), len(r.Ops)) {
		switch m := r.Ops[i].Body.(type) {
		case *nfs4.EXCHANGE_ID4res:
			if m.EirStatus == nfs4.NFS4_OK {
				s.owner(c, m.EirResok4.EirServerOwner.SoMajorId, m.EirResok4.EirServerScope)
			}
		case *nfs4.SEQUENCE4res:
			if q, ok := a.Ops[i].Body.(*nfs4.SEQUENCE4args); ok && m.SrStatus == nfs4.NFS4_OK {
				s.session(c, q.SaSessionid)
			}
		case *nfs4.BIND_CONN_TO_SESSION4res:
			if m.BctsrStatus == nfs4.NFS4_OK {
				s.session(c, m.BctsrResok4.BctsrSessid)
			}
		}
	}
	c.server = s.real(c.server)
}

// owner learns the server owner of an EXCHANGE_ID: equal major ids in the same scope mean one
// server (RFC 8881, section 2.10.5).
func (s *identity) owner(c *call, major, scope []byte) {
	if len(major) == 0 || len(major) > nfs4.NFS4_OPAQUE_LIMIT || len(scope) > nfs4.NFS4_OPAQUE_LIMIT {
		return
	}
	k := ownerKey(sha256.Sum256(fmt.Appendf(nil, "%q %q", major, scope)))
	if s.owners[c.server] == (ownerKey{}) && len(s.owners) < maxServers {
		s.owners[c.server] = k
	}
	other := s.byOwner[k]
	if other == 0 {
		if len(s.byOwner) < maxServers {
			s.byOwner[k] = c.server
		}
		return
	}
	if !common(string(major)) {
		s.same(c.server, s.real(other), plan.SameOwner, printed(major))
	}
}

// common reports names of machines that nobody has named: Linux returns its host name.
func common(major string) bool {
	name := strings.ToLower(strings.TrimRight(major, "\x00"))
	return strings.HasPrefix(name, "localhost") || slices.Contains([]string{"", "(none)", "linux", "debian", "ubuntu", "nfs", "server"}, name)
}

// session learns a session that a server has accepted: its id is known at another address only if
// both are one server.
func (s *identity) session(c *call, id [16]byte) {
	if len(s.b.t.Servers) < 2 || s.b.states.sessions[sessionKey{c.server, id}] != nil {
		return
	}
	s.others(c.server, func(other int) bool {
		if s.b.states.sessions[sessionKey{other, id}] == nil {
			return false
		}
		return s.same(c.server, other, plan.SameSession, hex.EncodeToString(id[:]))
	})
}

// others visits servers, the latest first, until f returns true.
func (s *identity) others(than int, f func(other int) bool) {
	for i, n := len(s.b.t.Servers), 0; i > 0 && n < maxCompared; i, n = i-1, n+1 {
		if s.into[i] == 0 && i != than && f(i) {
			return
		}
	}
}

// ownerKey stands for a server owner with its scope, which may be long.
type ownerKey [sha256.Size]byte

// maxLate bounds the evidence that is found too late.
const maxLate = 64

// maxCompared is how many servers each one is compared with.
const maxCompared = 16

// handle learns a handle of a server. It reports whether the server turned out to be another one.
func (s *identity) handle(c *call, h []byte) (is bool) {
	own := s.b.space.byHandle[handleKey{c.server, string(h)}].real()
	if own != nil {
		return false
	}
	s.others(c.server, func(other int) bool {
		o := s.b.space.byHandle[handleKey{other, string(h)}].real()
		switch {
		case o == nil:
			return false
		case telling(h):
			is = s.same(c.server, other, plan.SameHandle, hex.EncodeToString(h[:min(len(h), 32)]))
		case o.origin == plan.Created && o.created.End >= 0 && o.created.End <= c.start && o.named:
			// A small handle may be the same by chance, but hardly the handle of an object just
			// created elsewhere.
			is = s.same(c.server, other, plan.SameMade, printed([]byte(o.name)))
		}
		return is
	})
	return is
}

// telling reports whether a handle can identify a server: servers that number file systems and
// files from 1 have the same small handles.
func telling(h []byte) bool {
	if len(h) < 16 {
		return false
	}
	var seen [256]bool
	n := 0
	for _, b := range h {
		if !seen[b] {
			seen[b] = true
			n++
		}
	}
	return n >= 8
}

// numbered learns the number of a file when it is first seen: if a file of that number and name
// has been created at another address, both are one server.
func (s *identity) numbered(o *obj, id fileID) {
	switch {
	case !o.named || o.name == "":
	case o.origin == plan.Created:
		if len(s.made) < maxMade && o.created.End >= 0 {
			s.made[madeKey{o.server, id}] = o
		}
	case len(s.b.t.Servers) > 1:
		s.others(o.server, func(other int) bool {
			x := s.made[madeKey{other, id}].real()
			if x == nil || x.name != o.name || x.created.End > s.b.call.start {
				return false
			}
			k := [2]int{o.server, other}
			if s.found[k]++; s.found[k] < namesNeeded {
				return false
			}
			return s.same(o.server, other, plan.SameMade, printed([]byte(o.name)))
		})
	}
}

// namesNeeded is how many names must agree before two servers count as one: two that run the same
// workload may give the same numbers.
const namesNeeded = 2

// fileID is the number of a file as its server shows it: fsid and fileid.
type fileID struct {
	fsid   [2]uint64
	fileid uint64
}

type madeKey struct {
	server int
	id     fileID
}

// maxMade bounds the files that are remembered by number.
const maxMade = 1 << 12

// same joins two servers, unless something contradicts that. It reports whether they are one.
func (s *identity) same(a, b int, why plan.SameWhy, detail string) bool {
	x, y := s.owners[a], s.owners[b]
	if a == b {
		return false
	}
	if s.b.opt.Separate || x != (ownerKey{}) && y != (ownerKey{}) && x != y {
		return false
	}
	keep, drop := b, a
	if s.used[a] && !s.used[b] {
		keep, drop = a, b
	}
	note := plan.SameServer{Addr: s.b.t.Servers[drop-1].Addr, As: s.b.t.Servers[keep-1].Addr, Why: why, Detail: detail}
	if s.used[keep] && s.used[drop] {
		known := func(x plan.SameServer) bool {
			return x.Addr == note.Addr && x.As == note.As || x.Addr == note.As && x.As == note.Addr
		}
		if len(s.late) < maxLate && !slices.ContainsFunc(s.late, known) {
			s.late = append(s.late, note)
		}
		return false
	}
	s.merge(keep, drop, note)
	return true
}

// merge makes a server that has nothing yet another address of an existing one.
func (s *identity) merge(keep, drop int, note plan.SameServer) {
	s.into[drop] = keep
	if x, known := s.owners[drop]; known && s.owners[keep] == (ownerKey{}) {
		s.owners[keep] = x
	}
	k := &s.b.t.Servers[keep-1]
	k.Same = append(k.Same, note)
	k.Same = append(k.Same, s.b.t.Servers[drop-1].Same...)
	for _, v := range s.b.t.Servers[drop-1].Versions {
		s.b.version(keep, v)
	}
}

// finish leaves out servers that turned out to be others, and numbers the rest.
func (s *identity) finish() {
	t := &s.b.t
	number := make([]int, len(s.into))
	kept := t.Servers[:0]
	for i := range t.Servers {
		if s.into[i+1] == 0 {
			x := t.Servers[i]
			x.ID = len(kept) + 1
			number[i+1] = x.ID
			kept = append(kept, x)
		}
	}
	t.Servers = kept
	of := func(server int) int { return number[s.real(server)] }
	for i := range t.Connections {
		t.Connections[i].Server = of(t.Connections[i].Server)
	}
	for i := range t.Clients {
		t.Clients[i].Server = of(t.Clients[i].Server)
	}
	for _, o := range s.b.space.objects {
		o.server = of(o.server)
	}
}

// handles shows f the handles of a call and its reply until it returns true.
func handles(v *rpc.View, f func(h []byte) bool) bool {
	if a, ok := v.Args().(*nfs4.CompoundArgs); ok {
		r, _ := v.Result().(*nfs4.CompoundRes)
		for i := range a.Ops {
			if p, ok := a.Ops[i].Body.(*nfs4.PUTFH4args); ok && r != nil && i < len(r.Ops) && f(p.Object) {
				return true
			}
		}
		for i := 0; r != nil && i < len(r.Ops); i++ {
			if g, ok := r.Ops[i].Body.(*nfs4.GETFH4res); ok && g.Status == nfs4.NFS4_OK && f(g.Resok4.Object) {
				return true
			}
		}
		return false
	}
	e := ops.Procedure(v.Tx.Program, v.Tx.Version, v.Tx.Procedure)
	if e == nil || v.Tx.Program != nfs3.NFS_PROGRAM || v.Args() == nil || v.Tx.Procedure == 0 {
		return false
	}
	if s, ok := v.Result().(xdr.Status); !ok || failed(s) {
		return false // a refused handle shows nothing
	}
	var act ops.Act
	e.Act(v.Args(), &act)
	for _, p := range act.Places() {
		if len(p.Handle) > 0 && f(p.Handle) {
			return true
		}
	}
	return false
}

func failed(s xdr.Status) bool {
	code, _ := s.StatusCode()
	return code != 0
}

// printed is an opaque value in readable form.
func printed(b []byte) string {
	s := string(b[:min(len(b), 64)])
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return s
	}
	return hex.EncodeToString([]byte(s))
}

// ParseSame parses two addresses of one server, as a user gives them.
func ParseSame(text string) (plan.SameServer, error) {
	a, b, ok := strings.Cut(text, ",")
	x, errA := netip.ParseAddr(strings.TrimSpace(a))
	y, errB := netip.ParseAddr(strings.TrimSpace(b))
	if !ok || errA != nil || errB != nil || x == y {
		return plan.SameServer{}, fmt.Errorf("%q is not two addresses with a comma between them", text)
	}
	return plan.SameServer{Addr: x.String(), As: y.String(), Why: plan.SameByUser}, nil
}
