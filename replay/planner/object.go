package planner

import (
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// obj is an object as a Builder knows it.
type obj struct {
	s      *space
	id     int // in the plan; 0 until an op refers to it, or Finish
	server int
	handle string
	into   *obj // this one turned out to be another name of that one
	typ    string
	origin plan.ObjectOrigin
	isBase bool

	parent    *obj // first name
	name      string
	named     bool
	nameClass plan.Class
	now       nameKey // latest name
	count     int     // names known at present

	created order.Flight // by an op
	removed order.Flight // the op that removed the last name

	fsid      [2]uint64
	fsidKnown bool
	mode      *uint32
	uid, gid  *uint32
	size      uint64
	sizeClass plan.Class
	latest    uint64 // size that a reply has shown last; 0 at first
	// What the workload has already changed.
	sizeChanged, modeChanged, ownerChanged, aclChanged, linksChanged bool
	nlink                                                            uint32 // names at the start; 0 is not known

	bound  [2]bool // a reply has given its handle, to NFSv3 and to NFSv4
	others bool    // a client that is not in the capture has changed it
	stale  bool    // the server has refused its handle
	alive  bool    // the server has accepted it

	attr order.History
	*details
}

// details are fields that most objects do not need: many are names in a directory that nobody
// uses. They are read directly, and changed through own.
type details struct {
	base         string    // export path, if isBase is set
	links        []nameKey // other names from before the capture
	owner, group string
	target       string
	major, minor uint32
	acl          []byte // secattr of NFSACL, if it says more than the mode

	written, known spans
	content        []plan.Extent
	pieces         map[uint64]int // of content, by offset
	readEnd        uint64         // end of what was read before a change
	notes          []plan.Note

	commit  order.Flight      // the latest COMMIT
	held    []*state          // its latest states
	cookies map[uint64]cookie // of READDIR, the latest of each
	ends    map[end]cookie    // those that a reply ended with
	xattrs  map[uint64]cookie // of LISTXATTRS

	bytes, dir, locks order.History
}

// none is shared by objects without details.
var none details

// nameKey is a name in a directory.
type nameKey struct {
	dir  *obj
	name string
}

// nameState is what is known of a name.
type nameState struct {
	key     nameKey
	obj     *obj
	touched bool // the workload has made, moved or removed it
	absent  bool // it was looked up and not there
	pending int  // op without a reply that may have made it
}

type handleKey struct {
	server int
	handle string
}

// own returns the details of an object for changing.
func (o *obj) own() *details {
	if o.details == &none {
		o.details = new(details)
		o.s.b.room.take(detailsSize)
	}
	return o.details
}

// real returns the object that this one turned out to be.
func (o *obj) real() *obj {
	for o != nil && o.into != nil {
		o = o.into
	}
	return o
}

func (o *obj) note(k plan.NoteKind, name string) {
	n := plan.Note{Kind: k, Name: name}
	if len(o.notes) < 8 && !slices.Contains(o.notes, n) {
		o.own().notes = append(o.notes, n)
		o.s.b.room.take(linkSize)
	}
}
