package plan

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Class says how much of something was seen in the capture.
type Class string

// Classes, from the best to the worst.
const (
	// Exact was seen in the capture.
	Exact Class = "exact"
	// Inferred follows from what was seen.
	Inferred Class = "inferred"
	// Synthesised was made up where the capture says nothing.
	Synthesised Class = "synthesised"
	// Impossible cannot be replayed.
	Impossible Class = "impossible"
)

// Worse reports whether less of something was seen than another class says.
func (c Class) Worse(than Class) bool { return c.rank() > than.rank() }

func (c Class) rank() int {
	switch c {
	case Inferred:
		return 1
	case Synthesised:
		return 2
	case Impossible:
		return 3
	}
	return 0
}

// Header is the first line of a plan.
type Header struct {
	Format  string   `json:"format"`
	Tool    string   `json:"tool,omitempty"`
	Sources []string `json:"sources"`
	// Start is the time of the first call in nanoseconds since the Unix epoch;
	// all times of the plan count from it.
	Start    int64 `json:"start"`
	Duration int64 `json:"duration"` // ns, to the end of the last reply
	// Payload says what became of file data.
	Payload PayloadMode `json:"payload"`
	// Data is the side file with captured data, relative to the plan; empty if
	// there is none.
	Data      string   `json:"data,omitempty"`
	DataBytes int64    `json:"data_bytes,omitempty"`
	Fabrics   []string `json:"fabrics"`
	Summary   *Summary `json:"summary"`
	// Facts are nil in plans of earlier versions, and where they are not known.
	Facts *Facts `json:"facts,omitempty"`
}

// Facts are what an executor that reads the ops as it goes has to know of them before the
// first. Together with the tables and the summary they stand for a reading of all ops.
type Facts struct {
	// Root says that an op goes to the root of the server (PUTROOTFH).
	Root bool `json:"root,omitempty"`
	// Above are the directories above the bases, with their parents.
	Above []Ascent `json:"above,omitempty"`
	// Examples are calls of NFSv4, one for each client that has any, and one for all (client 0).
	Examples []Example `json:"examples,omitempty"`
}

// Ascent is a step from a base, or a directory above it, to the directory that it is in.
type Ascent struct {
	Object int `json:"object"`
	Parent int `json:"parent"`
}

// Example says over which connection, and as which user, a client has made a call.
type Example struct {
	Client     int `json:"client,omitempty"`
	Connection int `json:"conn"`
	Credential int `json:"cred"`
}

// DataName is the name of the side file of a plan, "" if there is none.
func DataName(plan string, h *Header) string {
	if h.Data == "" || strings.ContainsAny(h.Data, "/\\") || h.Data == ".." {
		return ""
	}
	return filepath.Join(filepath.Dir(plan), h.Data)
}

// PayloadMode says where the content of files comes from.
type PayloadMode string

// Payload modes.
const (
	Captured PayloadMode = "captured" // as captured, in the side file
	Pattern  PayloadMode = "pattern"  // made by FillPattern, from the file and the offset
	Sparse   PayloadMode = "sparse"   // zeros
)

// Server is a captured server.
type Server struct {
	ID       int      `json:"id"`
	Addr     string   `json:"addr"`
	Versions []string `json:"versions,omitempty"` // "3", "4.1"
	// Same are further addresses of it.
	Same []SameServer `json:"same,omitempty"`
}

// SameServer says that two addresses are of one server.
type SameServer struct {
	Addr   string  `json:"addr"`
	As     string  `json:"as"`
	Why    SameWhy `json:"why"`
	Detail string  `json:"detail,omitempty"` // what shows it
}

// SameWhy is what shows that two addresses are of one server.
type SameWhy string

// What shows it.
const (
	SameOwner   SameWhy = "owner"   // EXCHANGE_ID returned the same server owner and scope
	SameSession SameWhy = "session" // a session of one was accepted by the other
	SameHandle  SameWhy = "handle"  // both gave the same file handle
	SameMade    SameWhy = "made"    // what was made at one was found at the other
	SameByUser  SameWhy = "told"    // the user says so
)

// String says it in words.
func (s SameServer) String() string {
	why := string(s.Why)
	switch s.Why {
	case SameOwner:
		why = "EXCHANGE_ID returned the same server owner " + strconv.Quote(s.Detail)
	case SameSession:
		why = "session " + s.Detail + " was accepted by both"
	case SameHandle:
		why = "both have the file handle " + s.Detail
	case SameMade:
		why = strconv.Quote(s.Detail) + " was created at one and found at the other"
	case SameByUser:
		why = "as was asked for"
	}
	return s.Addr + " and " + s.As + " are one server: " + why
}

// Connection is a captured connection. Calls of one connection are one stream
// in the order of the plan.
type Connection struct {
	ID      int    `json:"id"`
	Fabric  string `json:"fabric"`
	Client  string `json:"client"` // address and port
	Server  int    `json:"server"`
	Address string `json:"address"` // of the server, with port
	First   int64  `json:"first"`   // ns from the start
	Last    int64  `json:"last"`
	Ops     int    `json:"ops"`
	// MaxInFlight is the largest number of calls that were outstanding at once.
	MaxInFlight int `json:"max_in_flight"`
	// Program is "nlm" for calls of the lock manager, which has a port of its own.
	Program string `json:"program,omitempty"`
	// Credits as the client asked and the server granted, the largest values.
	CreditsAsked   uint32 `json:"credits_asked,omitempty"`
	CreditsGranted uint32 `json:"credits_granted,omitempty"`
	// Inline thresholds in bytes, 0 if the setup was not captured.
	InlineSend    uint32 `json:"inline_send,omitempty"`    // client to server
	InlineReceive uint32 `json:"inline_receive,omitempty"` // server to client
}

// Credential is an AUTH_SYS or AUTH_NONE identity of calls.
type Credential struct {
	ID      int      `json:"id"`
	Flavor  string   `json:"flavor"` // "none", "sys", "gss"
	Machine string   `json:"machine,omitempty"`
	UID     uint32   `json:"uid"`
	GID     uint32   `json:"gid"`
	GIDs    []uint32 `json:"gids,omitempty"`
	Note    string   `json:"note,omitempty"`
}

// Client is an NFSv4 client as its server knows it.
type Client struct {
	ID       int    `json:"id"`
	Server   int    `json:"server"`
	Addr     string `json:"addr"`
	Minor    uint32 `json:"minor"`
	Owner    string `json:"owner,omitempty"` // co_ownerid or nfs_client_id4.id, "" if not seen
	OwnerHex []byte `json:"owner_bytes,omitempty"`
	Verifier []byte `json:"verifier,omitempty"`
	ClientID string `json:"clientid,omitempty"` // as captured, hexadecimal
	// DefinedBy is the op whose reply gave the client id; 0: it has to be
	// established before the start.
	DefinedBy int   `json:"defined_by,omitempty"`
	Class     Class `json:"class"`
}

// Session is an NFSv4.1 session.
type Session struct {
	ID        int    `json:"id"`
	Client    int    `json:"client"`
	SessionID string `json:"sessionid,omitempty"` // as captured, hexadecimal
	// Slots is the number of slots of the fore channel as negotiated, or the
	// highest slot seen plus one.
	Slots       uint32 `json:"slots"`
	MaxRequest  uint32 `json:"max_request,omitempty"`
	MaxResponse uint32 `json:"max_response,omitempty"`
	MaxCached   uint32 `json:"max_cached,omitempty"`
	MaxOps      uint32 `json:"max_ops,omitempty"`
	DefinedBy   int    `json:"defined_by,omitempty"`
	Class       Class  `json:"class"`
}

// Owner is an open owner or a lock owner.
type Owner struct {
	ID     int    `json:"id"`
	Client int    `json:"client"` // 0 for OwnerNLM
	Kind   string `json:"kind"`   // "open", "lock" or OwnerNLM
	Bytes  []byte `json:"bytes,omitempty"`
	// Host and Svid are for OwnerNLM: caller_name and svid as captured.
	Host  string `json:"host,omitempty"`
	Svid  int32  `json:"svid,omitempty"`
	Class Class  `json:"class,omitempty"` // Synthesised if it was never seen
}

// OwnerNLM is the kind of an owner of locks of NFSv3.
const OwnerNLM = "nlm"

// StateKind is what a state id stands for.
type StateKind string

// Kinds of state.
const (
	OpenState       StateKind = "open"
	LockState       StateKind = "lock"
	DelegationState StateKind = "delegation"
	LayoutState     StateKind = "layout"
	CopyState       StateKind = "copy"
	UnknownState    StateKind = "unknown" // first seen in a call
)

// State is something that a state id of NFSv4 stands for.
type State struct {
	ID     int       `json:"id"`
	Kind   StateKind `json:"kind"`
	Client int       `json:"client"`
	Object int       `json:"object,omitempty"`
	Owner  int       `json:"owner,omitempty"`
	Access uint32    `json:"access,omitempty"` // OPEN4_SHARE_ACCESS_*, or what it must have been
	Other  string    `json:"other,omitempty"`  // as captured, hexadecimal
	// DefinedBy is the op whose reply gave it first; 0: it has to be acquired
	// before the start: a file opened, a lock taken.
	DefinedBy int   `json:"defined_by,omitempty"`
	Class     Class `json:"class"`
}

// ObjectOrigin says where an object comes from.
type ObjectOrigin string

// Origins.
const (
	// Before: it was there before the first call, and is to be prepared.
	Before ObjectOrigin = "before"
	// Created: an op of the plan makes it.
	Created ObjectOrigin = "created"
	// Above: a directory of the server above the base, which is not prepared.
	Above ObjectOrigin = "above"
	// Stale: a handle that the server refused from the start; there is no such
	// object.
	Stale ObjectOrigin = "stale"
)

// Object is a file, directory or other thing with a file handle.
type Object struct {
	ID     int          `json:"id"`
	Server int          `json:"server"`
	Type   string       `json:"type"` // "file", "dir", "symlink", "fifo", "socket", "block", "char"
	Origin ObjectOrigin `json:"origin"`
	// Base marks the directory that stands for the one given to the executor:
	// the root of what was mounted.
	Base bool `json:"base,omitempty"`
	// Path is for readers, from the base; Parent and Name are what counts.
	// They are the first known name: at the start of the capture, or where it
	// was created. A base has none.
	Path   string `json:"path"`
	Parent int    `json:"parent,omitempty"`
	Name   string `json:"name,omitempty"`
	// NameBytes is the name if it is not UTF-8.
	NameBytes []byte `json:"name_bytes,omitempty"`
	NameClass Class  `json:"name_class"`
	// Links are further names that existed before the capture.
	Links     []Link `json:"links,omitempty"`
	CreatedBy int    `json:"created_by,omitempty"` // op, if Origin is Created

	// Attributes as of the start, for those to be prepared; null if not known.
	Mode  *uint32 `json:"mode,omitempty"`
	UID   *uint32 `json:"uid,omitempty"`
	GID   *uint32 `json:"gid,omitempty"`
	Owner string  `json:"owner,omitempty"`       // NFSv4
	Group string  `json:"owner_group,omitempty"` // NFSv4
	Size  uint64  `json:"size,omitempty"`
	// Nlink is how many names it had at the start, if that is not the number of those that are prepared, Name and
	// Links. Directories have none.
	Nlink uint32 `json:"nlink,omitempty"`
	// SizeClass is Exact if an attribute told it, Inferred if reads did.
	SizeClass Class  `json:"size_class,omitempty"`
	Target    string `json:"target,omitempty"` // of a symlink
	// TargetBytes is the target if it is not UTF-8.
	TargetBytes []byte `json:"target_bytes,omitempty"`
	Major       uint32 `json:"major,omitempty"`
	Minor       uint32 `json:"minor,omitempty"`
	// ACL are the access control lists as of the start, a secattr of NFSACL in
	// XDR; absent if they say no more than the mode.
	ACL []byte `json:"acl,omitempty"`
	// Content is what was read of it before it was written to; what lies
	// between is filled by the pattern.
	Content []Extent `json:"content,omitempty"`
	Handle  string   `json:"handle,omitempty"` // as captured, hexadecimal
	// Notes are what is strange about it. Sentences are the same in words, for
	// readers of the file: a Writer makes them, and a Reader takes the notes of
	// older plans from them.
	Notes     []Note   `json:"note_codes,omitempty"`
	Sentences []string `json:"notes,omitempty"`
}

// Link is a name of an object.
type Link struct {
	Parent    int    `json:"parent"`
	Name      string `json:"name"`
	NameBytes []byte `json:"name_bytes,omitempty"`
}

// Extent is a piece of a file whose bytes are in the side file.
type Extent struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
	At     int64  `json:"at"` // in the side file
}

// Tables are all lines of a plan but the ops. IDs count from 1 and are those
// of the index plus one.
type Tables struct {
	Header      Header
	Servers     []Server
	Connections []Connection
	Credentials []Credential
	Clients     []Client
	Sessions    []Session
	Owners      []Owner
	States      []State
	Objects     []Object
}
