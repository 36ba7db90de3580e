// Package invariant judges the replies of one NFS server: against their calls, and against what the server said before. It needs no second
// server and knows no transport, so that it serves captures and replays alike.
package invariant

import (
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Kind is what is wrong with a reply.
type Kind uint8

// Kinds of breaches.
const (
	Contradiction Kind = iota + 1 // the results contradict the arguments or each other: Breach.Why says how
	CookieZero                    // an entry of a directory has cookie 0, with which a listing begins: Now is its place in the page
	CookieTwice                   // cookies of a page came before in the listing: Now is the first, Was how many
	NoEntries                     // a page has no entry and is not the last: a client would ask forever
	ChangeKept                    // a directory was changed, its change attribute Now was not
	ChangeBack                    // the change attribute of a directory is Now as before a change that made it Was
	ChangeForeign                 // change_info gave Was for the change attribute of a directory, which is Now as before: its values are of another kind
	TimeBack                      // the change time Now lies before Was, which an earlier reply had; nanoseconds
	Moved                         // Attribute was Was and is Now, although the change attribute, or change time, is the same
	Replaced                      // Attribute, which never changes, was Was and is Now for the same file handle
	NotAsked                      // Attribute was returned or set, and was not asked for
	NotSet                        // Attribute was to be set; the operation succeeded and did not set it
)

// Breach is one thing that is wrong with a reply.
type Breach struct {
	Kind Kind
	At   int // the operation of a COMPOUND, from 0; -1 for a procedure
	// Attribute is a FATTR4_ number, also for NFSv3.
	Attribute uint32
	Was, Now  uint64 // owners as hashes of their names
	Why       string
}

// Exchange is a call that was executed, and its reply.
type Exchange struct {
	// Server distinguishes servers: equal file handles of two servers are two objects.
	Server uint64
	// Args and Result are of NFSv3, or of a COMPOUND of NFSv4 or its callbacks; others are not judged. They are not used after Judge.
	Args, Result xdr.Message
	// Sent is when the first copy of the call was seen, Replied when its reply was, both in nanoseconds of one clock.
	Sent, Replied int64
	// Bytes is the size of the RPC reply, data in chunks included; 0 if unknown, or more than its results need (RPCSEC_GSS).
	Bytes uint64
	// Again says that the call was sent more than once, so that the reply may be an old one from the reply cache.
	Again bool
}

// Checker judges the replies of any number of servers. It keeps a bounded number of objects and listings.
type Checker struct {
	// Settled is how long a version must have been constant, in nanoseconds, before a change without a new version counts: some file systems have
	// clocks that tick only every few seconds.
	Settled  int64
	objects  map[key]*object
	order    ring // of objects
	recent   [recentObjects]recentObject
	listings map[key]*listing
	listed   ring
	sessions map[[16]byte]uint64 // the largest reply that each allows
	number   uint64              // of the Exchange
	x        *Exchange
	at       int
	found    []Breach
	judged   uint16 // a bit for each Kind
	walk     ops.FileWalk
	attrs    nfs4.Attrs
	cookies  map[uint64]struct{}
	encoded  []byte
}

// key is a file handle of a server.
type key struct {
	server, handle uint64
}

// sum is a hash of a file handle or a name. Unlike those of hash/maphash it is the same in each process, since a Checker may be part
// of a saved state.
func sum(b []byte) uint64 {
	h := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
	}
	rest := uint64(0)
	for _, x := range b {
		rest = rest<<8 | uint64(x)
	}
	return mix(h ^ rest)
}

// mix is the finalizer of SplitMix64, which is a permutation.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// ring is the keys of a map in the order in which they were added.
type ring struct {
	keys []key
	next int
}

// add adds a key. In a full ring it replaces the oldest key, which is returned.
func (r *ring) add(k key, most int) (old key, full bool) {
	if len(r.keys) < most {
		r.keys = append(r.keys, k)
		return old, false
	}
	old, r.keys[r.next] = r.keys[r.next], k
	r.next = (r.next + 1) % most
	return old, true
}

const (
	maxObjects  = 1 << 14
	maxListings = 64
	maxSessions = 1024
	// maxFound bounds the breaches of one reply: a page of a directory may have thousands.
	maxFound = 16
	// defaultSettled is three seconds.
	defaultSettled = 3e9
)

// New returns an empty Checker.
func New() *Checker {
	return &Checker{
		Settled: defaultSettled, objects: make(map[key]*object), listings: make(map[key]*listing), cookies: make(map[uint64]struct{}),
		sessions: make(map[[16]byte]uint64),
	}
}

// Latest returns the change attribute and the size that the server has given last for a file handle; ok is false if it has not given both.
func (c *Checker) Latest(server uint64, handle []byte) (change, bytes uint64, ok bool) {
	o := c.objects[key{server, sum(handle)}]
	if o == nil || !o.known(version) || !o.known(size) {
		return 0, 0, false
	}
	return o.fact[version], o.fact[size], true
}

// Judge returns the breaches of a reply. Exchanges of one server come roughly in the order of their calls. The result is valid until the next
// call of Judge.
func (c *Checker) Judge(x *Exchange) []Breach {
	c.x, c.found, c.at, c.judged = x, c.found[:0], -1, 0
	c.number++
	switch a := x.Args.(type) {
	case *nfs4.CompoundArgs:
		if r, ok := x.Result.(*nfs4.CompoundRes); ok {
			c.illegal(a, r)
			c.compound(a.Ops, r.Ops, true)
		}
	case *nfs4.CbCompoundArgs:
		if r, ok := x.Result.(*nfs4.CbCompoundRes); ok {
			c.compound(a.Ops, r.Ops, false)
		}
	default:
		c.contradiction(x.Args, x.Result)
		c.nfs3()
	}
	c.x = nil
	return c.found
}

// Judged returns the kinds of breaches for which the last Exchange was judged, one bit each. Kinds that are found together have one bit.
func (c *Checker) Judged() uint16 { return c.judged }

func (c *Checker) add(b Breach) {
	if len(c.found) < maxFound {
		b.At = c.at
		c.found = append(c.found, b)
	}
}

func (c *Checker) contradiction(args, result xdr.Message) {
	c.judged |= 1 << Contradiction
	if why := ops.Disagreement(args, result); why != "" {
		c.add(Breach{Kind: Contradiction, Why: why})
	}
}

// lastOf is the last operation that each minor version has defined (RFC 7530, 8881, 7862). Servers need not know those of extensions (RFC
// 8178, section 4.2).
var lastOf = [...]uint32{uint32(nfs4.OP_RELEASE_LOCKOWNER), uint32(nfs4.OP_RECLAIM_COMPLETE), uint32(nfs4.OP_CLONE)}

// illegal judges OP_ILLEGAL, the result of numbers that the minor version does not define (RFC 8881, section 15.1.3.4): servers answer those
// that they do not support with NFS4ERR_NOTSUPP.
func (c *Checker) illegal(a *nfs4.CompoundArgs, r *nfs4.CompoundRes) {
	i := len(r.Ops) - 1
	if i < 0 || i >= len(a.Ops) || r.Ops[i].Number != uint32(nfs4.OP_ILLEGAL) || a.NoMinorversion || a.Minorversion >= uint32(len(lastOf)) {
		return
	}
	c.judged |= 1 << Contradiction
	if n := a.Ops[i].Number; n >= uint32(nfs4.OP_ACCESS) && n <= lastOf[a.Minorversion] {
		c.at = i
		c.add(Breach{Kind: Contradiction, Why: fmt.Sprintf("OP_ILLEGAL for an operation that NFSv4.%d defines: NFS4ERR_NOTSUPP says that the server lacks it", a.Minorversion)})
		c.at = -1
	}
}

// compound judges the operations that were executed. fore is false for callbacks, which have no current file.
func (c *Checker) compound(args, results []nfs4.Op, fore bool) {
	c.walk.Reset()
	for i := range min(len(args), len(results)) {
		a, r := &args[i], &results[i]
		if a.Number != r.Number {
			return // another rule reports that
		}
		c.at = i
		c.contradiction(a.Body, r.Body)
		if status, _, ok := r.Status(); ok && status != uint32(nfs4.NFS4_OK) {
			return
		}
		if !fore {
			if g, ok := r.Body.(*nfs4.CB_GETATTR4res); ok {
				c.subset(g.Resok4.ObjAttributes.Attrmask.Bitmap4, a.Body.(*nfs4.CB_GETATTR4args).AttrRequest.Bitmap4)
			}
			continue
		}
		directory := c.walk.Current.Handle
		c.walk.Step(a.Number, a.Body, r.Body)
		c.operation(a.Body, r.Body, directory)
	}
}
