package ops

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Class says what a call may do to a file system. The zero Class is that of what
// is not known.
type Class uint8

// Classes.
const (
	// Unknown is not in the table.
	Unknown Class = iota
	// Nothing changes nothing that is stored. Times of last access do not count.
	Nothing
	// Holds changes nothing that is stored, but keeps others from what they want
	// to do while it lasts: opens, locks, delegations, layouts.
	Holds
	// Changes what is stored: content, names, attributes.
	Changes
	// Never is not replayed, wherever it acts: it reaches beyond the file system
	// (callbacks, locks of other protocols, the server's registry), or makes the
	// server call another host.
	Never
	// Composed is a COMPOUND: as strong as the strongest of its operations.
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
	// PutsRoot and PutsPublic go to the places that the server has for them.
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
	// 2.6.3.1.1.8). NFSv4.0 keeps it, and nobody may rely on that.
	Consumes
)

// Entry is what is known of a procedure or operation.
type Entry struct {
	// Class is the strongest that its arguments can make of it, Composed apart. Act reports that of a call.
	Class Class
	// Effect is on the file handles of a COMPOUND.
	Effect Effect
	// Minor is the first minor version of NFSv4 that has the operation.
	Minor uint8
	// State: it changes what the server keeps for its clients (opens, locks,
	// sessions), whatever its Class.
	State bool
	// Use is what it does with the state id among its arguments.
	Use Use
	// Weight and Purpose say what it tells about the COMPOUND that it stands in.
	Weight  Weight
	Purpose Purpose
	// Gives says what its results hold for later calls.
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
	*a = Act{Class: e.Class}
	if e.act != nil {
		e.act(args, a)
	}
}

// HasPlaces reports whether calls may have places: Act tells no more than the Class
// of those that have none.
func (e *Entry) HasPlaces() bool { return e.act != nil }

// Outcome tells what results say; of those that report a failure, nothing.
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

// Held is the state id of an open, a lock or a delegation without which the
// operation makes no sense; nil if there is none. READ and WRITE have none: the
// anonymous one serves them as well.
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

// Weight says how much an operation tells about its COMPOUND.
type Weight uint8

// Weights, from the most telling to the least.
const (
	// Main is what the COMPOUND is there for.
	Main Weight = iota
	// Look looks around: LOOKUP.
	Look
	// Aside is asked beside something else: GETATTR, ACCESS.
	Aside
	// Noise moves file handles about, or stands in every COMPOUND.
	Noise
)

// Purpose is whom a COMPOUND serves that holds the operation.
type Purpose uint8

// Purposes.
const (
	// Files: an application that works with files.
	Files Purpose = iota
	// Lease: the client, which keeps its lease. It stands beside others, too.
	Lease
	// Mounting: the client, which looks for what it mounts.
	Mounting
	// Clients: the client, which makes itself known or takes its leave: client ids,
	// sessions.
	Clients
)

// PlainName reports whether a name is that of an entry of the directory that it is
// looked up in, and leads nowhere else: not empty, not "." or "..", without slash
// and NUL.
func PlainName(name []byte) bool {
	switch string(name) {
	case "", ".", "..":
		return false
	}
	return bytes.IndexByte(name, '/') < 0 && bytes.IndexByte(name, 0) < 0
}
