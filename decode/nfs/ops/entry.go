package ops

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Class says what a call may do to a file system. The zero Class stands for
// what is not known.
type Class uint8

// Classes.
const (
	// Unknown is not in the table.
	Unknown Class = iota
	// Nothing that is stored changes, apart from times of last access.
	Nothing
	// Holds: nothing that is stored changes, but other clients may be blocked as long as
	// the state lasts: opens, locks, delegations, layouts.
	Holds
	// Changes: what is stored changes: content, names, attributes.
	Changes
	// Never: not replayed, wherever it acts. It reaches beyond the file system
	// (callbacks, locks of other protocols, the server's registry), or makes the
	// server call another host.
	Never
	// Composed: a COMPOUND, as strong as its strongest operation.
	Composed
)

var classNames = [...]string{"unknown", "changes nothing", "holds", "changes", "never replayed", "composed"}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// Effect says what an operation does to the file handles of a COMPOUND.
type Effect uint8

// Effects.
const (
	// Keeps leaves both as they are.
	Keeps Effect = iota
	// Puts makes the handle among the arguments the current one (PUTFH).
	Puts
	// PutsRoot and PutsPublic go to the server's root and public file handle.
	PutsRoot
	PutsPublic
	// Descends goes to a name in the current directory: LOOKUP, CREATE, and OPEN
	// by name.
	Descends
	// Ascends goes to the parent (LOOKUPP).
	Ascends
	// EntersAttributes goes to the directory of named attributes (OPENATTR).
	EntersAttributes
	// Saves and Restores copy one to the other.
	Saves
	Restores
	// Consumes leaves no current file handle (SECINFO, RFC 8881, section
	// 2.6.3.1.1.8). In NFSv4.0 it stays, but that must not be relied on.
	Consumes
)

// Entry is what is known of a procedure or operation.
type Entry struct {
	// Class is the strongest one that any arguments lead to. Act reports the class of one call.
	Class Class
	// Effect is what it does to the file handles of a COMPOUND.
	Effect Effect
	// Minor is the first minor version of NFSv4 that has the operation.
	Minor uint8
	// State: it changes what the server keeps for its clients (opens, locks,
	// sessions), whatever its Class.
	State bool
	// Use is what it does with the state id among its arguments.
	Use Use
	// Weight and Purpose describe its COMPOUND.
	Weight  Weight
	Purpose Purpose
	// Feature is the optional feature that the operation belongs to. Clients stop using a feature that the server lacks.
	Feature Feature
	// Gives is what its results give to later calls.
	Gives Gives
	// Reply is what can be known of its results before they come.
	Reply Reply

	act     func(m xdr.Message, a *Act)     // adds places; may weaken the class, or turn it into Never
	outcome func(m xdr.Message, o *Outcome) // of successful results
	held    func(m xdr.Message) *nfs4.Stateid4
}

// Act tells what a call with these arguments does. Arguments of another type than
// the procedure's are never replayed.
func (e *Entry) Act(args xdr.Message, a *Act) {
	a.reset(e.Class)
	if e.act != nil {
		e.act(args, a)
	}
}

// HasPlaces reports whether calls may have places. If not, Act reports only the Class.
func (e *Entry) HasPlaces() bool { return e.act != nil }

// Outcome fills in what successful results say. After a failure it is empty.
func (e *Entry) Outcome(results xdr.Message, o *Outcome) {
	*o = Outcome{}
	if e.outcome == nil {
		return
	}
	if s, ok := results.(xdr.Status); ok {
		if code, _ := s.StatusCode(); code != 0 {
			return
		}
	}
	e.outcome(results, o)
}

// Held returns the state id of the open, lock or delegation that the operation depends on;
// nil if there is none. READ and WRITE depend on none, since the anonymous state id serves
// as well.
func (e *Entry) Held(args xdr.Message) *nfs4.Stateid4 {
	if e.held == nil {
		return nil
	}
	return e.held(args)
}

// EndsState reports whether the state that its state id stands for is gone afterwards.
func (e *Entry) EndsState() bool { return e.Use == Closes || e.Use == Returns || e.Use == Frees }

// MovesFile reports whether another file is the current one afterwards.
func (e *Entry) MovesFile() bool { return e.Effect != Keeps && e.Effect != Saves }

// Feature is an optional feature of servers.
type Feature uint8

// The optional features.
const (
	Required       Feature = iota // none: clients go on using the operation
	Layouts                       // pNFS
	Xattrs                        // extended attributes
	DirDelegations                // delegations of directories
)

// Weight says how typical an operation is of what its COMPOUND is for.
type Weight uint8

// Weights, the most typical first.
const (
	// Main is what the COMPOUND is there for.
	Main Weight = iota
	// Look looks around: LOOKUP.
	Look
	// Aside accompanies something else: GETATTR, ACCESS.
	Aside
	// Noise moves file handles, or occurs in every COMPOUND.
	Noise
)

// Purpose is whom a COMPOUND with the operation serves.
type Purpose uint8

// Purposes.
const (
	// Files: an application that works with files.
	Files Purpose = iota
	// Lease: the client, which renews its lease, also beside other operations.
	Lease
	// Mounting: the client, which walks to the directory that it mounts.
	Mounting
	// Clients: the client, which registers or leaves: client ids, sessions.
	Clients
)

// PlainName reports whether a name can only lead to an entry of its directory: it is not
// empty, not "." or "..", and has no slash or NUL.
func PlainName(name []byte) bool {
	switch string(name) {
	case "", ".", "..":
		return false
	}
	return bytes.IndexByte(name, '/') < 0 && bytes.IndexByte(name, 0) < 0
}
