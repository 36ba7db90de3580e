package verdict

import "iter"

// Reason is why a call got its verdict: a code and its arguments. The comment of a
// Code names the fields that it uses; the others are zero. Reasons can be compared
// with ==.
type Reason struct {
	Code     Code
	At       Place
	Now, Was string // what this server gave, and what the captured one gave
	Call     Call   // another call of the plan
	Detail   string // text from elsewhere: of an error, of the plan
	N, M     uint64 // numbers
	// Own is the verdict that this reason alone would have led to. Judgement.Worsen sets it.
	Own Verdict
}

// Place is where in a reply something differs.
type Place struct {
	// Path is the way through the results: "READ[1].resok4.eof". Of a status it is
	// the operation of a COMPOUND alone: "READ".
	Path string
	// Field is the last part of Path.
	Field string
	// Entry is the name of the directory entry that the field belongs to, if Listed.
	Entry  string
	Listed bool
}

// Call is a call of the plan.
type Call struct {
	ID   int
	XID  uint32 // as captured
	What string
}

// Code says what a Reason is.
type Code uint8

// Codes of what makes no difference to a client, in the order in which a report lists
// them for one call.
const (
	// None is the zero Code: there is no reason.
	None Code = iota
	// StateProtection: machine credentials need RPCSEC_GSS.
	StateProtection
	// DirectorySize: the size or link count of a directory.
	DirectorySize
	// ACLOrder: the entries of an access control list are in another order.
	ACLOrder
	// LinkMode: the mode of a symbolic link.
	LinkMode
	// LockEnd: the number for a lock up to the end of the file.
	LockEnd
	// ServerLimits: limits and properties of the server differ.
	ServerLimits
	// UserNames: users or groups are written in another way.
	UserNames
	// Optional: what a server may leave out or add.
	Optional
	// ExclusiveCreate: what an exclusive create leaves undefined.
	ExclusiveCreate
	// AboveBase: it is about directories above the base.
	AboveBase
	// Listing: a directory is split or ordered in another way. N is 1 if the
	// captured listing ended before this one.
	Listing
	// Holes: READ_PLUS divides a range into other parts, or shows other zeros as holes.
	Holes
	// NotCaptured: the capture has no reply to compare with.
	NotCaptured
	// PartialResults: the capture lacks a part of the results.
	PartialResults
	// UnreadableResults: the captured results cannot be read.
	UnreadableResults
	// DataNotCaptured: the capture lacks a part of the data.
	DataNotCaptured
	// NoReplyEither: there was no reply, as in the capture.
	NoReplyEither
	// ModeOnly: the server keeps no access control lists, and the captured one says no more than the mode.
	ModeOnly
)

// Codes of how a call went out.
const (
	// LayoutTooSmall: the captured chunks do not fit this server's handles.
	LayoutTooSmall Code = iota + 32
	// ReplyRoom: the captured chunks have no room for the reply.
	ReplyRoom
	// Undelegated: an open or the anonymous state id replaced a delegation.
	Undelegated
	// Patience: the server asked for the call to be sent again later.
	Patience
	// StateMovedOn: it was sent again since its state id had changed.
	StateMovedOn
	// Restarted: it was sent again since the server had forgotten its client.
	Restarted
	// Stateless: an open or the anonymous state id replaced a state that this server has
	// not given, or has lost.
	Stateless
	// Uncalled: the server did not call when it granted the lock, and was asked.
	Uncalled
	// Unkept: it was sent again, since the server had executed it and not kept its reply.
	Unkept
	// Adapted: the server does not support what it asked for, and was asked for what it does.
	Adapted
)

// Codes of calls that are not sent because there is nothing to do.
const (
	// NoDelegation: the server gave no delegation that could be returned.
	NoDelegation Code = iota + 48
	// Returned: the delegation was returned when the server recalled it.
	Returned
	// NoConfirm: the server did not ask for OPEN_CONFIRM.
	NoConfirm
	// NoRoot: the directory given is the root.
	NoRoot
	// NoState: the state was not established on this server.
	NoState
	// NoValue: a symbol has no value here: Detail.
	NoValue
	// Follows: Call was to give what is needed; Now is what became of it.
	Follows
	// NotAsked: the server has said that it lacks what the call asks for, and a client does not ask again.
	NotAsked
)

// Codes of calls that cannot be sent, or have no reply.
const (
	// Refused: the guard did not let it pass: Detail.
	Refused Code = iota + 64
	// NoSlot: no slot of the session is left whose state is known.
	NoSlot
	// NoReply: Detail says why.
	NoReply
	// BadReply: what came cannot be decoded: Detail.
	BadReply
)

// Codes of differences.
const (
	// RPCExecuted: the captured server's RPC layer said Was; here the call was done.
	RPCExecuted Code = iota + 80
	// RPCFailed: the RPC layer says Now; the captured call was done.
	RPCFailed
	// RPCDiffers: the RPC layer says Now, was Was.
	RPCDiffers
	// Succeeds: At.Path succeeded; the captured status was Was.
	Succeeds
	// SucceedsWrongly: At.Path succeeded; the captured status was Was, which is a refusal
	// that must be.
	SucceedsWrongly
	// Fails: At.Path failed with Now; the captured one succeeded.
	Fails
	// StatusDiffers: At.Path failed with Now, was Was.
	StatusDiffers
	// OperationCount: N operations of the COMPOUND were executed, were M.
	OperationCount
	// FieldDiffers: At has Now, was Was.
	FieldDiffers
	// NamesMissing: N names are not listed, Detail has some.
	NamesMissing
	// NamesAdded: N names are listed that were not there, Detail has some.
	NamesAdded
	// DataShort: N of M bytes of data came.
	DataShort
	// TextDiffers: a link leads to Now, was Was.
	TextDiffers
	// DataDiffer: N bytes at M are not the captured ones.
	DataDiffer
	// PatternDiffers: the data are not those made up, at N.
	PatternDiffers
	// WrittenLost: zeros stand at N, where the preparation or the replay has written.
	WrittenLost
	// HoleFilled: data stand at N, where the replay has made a hole.
	HoleFilled
	// ChunkDiffers: Write chunk N was used for Now bytes, was Was.
	ChunkDiffers
	// NotStable: a WRITE was to be stored as Was, and the reply says Now.
	NotStable
	// VerifierChanged: a COMMIT has another verifier than the WRITE before it.
	VerifierChanged
	// NameTwice: a listing has the name Detail twice.
	NameTwice
	// WrittenDiffers: the bytes at N are not those that the preparation or the replay wrote.
	WrittenDiffers
	// FileShort: the file ends at N, though the preparation or the replay wrote behind that.
	FileShort
	// StoodStill: At.Field is still Now after a change that came later.
	StoodStill
	// TimeNotSet: At.Field is Now, and a client has set it to Was.
	TimeNotSet
	// HandleShared: the handle of Detail belongs to another file.
	HandleShared
	// NameLost: the name, which was made, is not there.
	NameLost
	// NameLeft: the name, which was removed, is still there.
	NameLeft
	// OtherObject: the name leads to another object than the one that got it.
	OtherObject
	// SeeksBack: SEEK found something at N, before the offset M.
	SeeksBack
	// LockedTwice: the owner of Call has a lock that excludes this one.
	LockedTwice
	// Invariant: the reply breaks a rule that holds for all servers: At.Path has Now, and Was describes a correct reply.
	Invariant
)

// Codes of explanations.
const (
	// Cut: the capture lacks parts of calls before it. Detail may say what is missing
	// here.
	Cut Code = iota + 112
	// Strangers: somebody who is not in the capture had changed the object.
	Strangers
	// Unhappened: what Call changed in the capture has not happened here.
	Unhappened
	// Planned: the plan says why: Detail.
	Planned
	// Unsupported: At.Path failed with Now, which says that the server does not have
	// it.
	Unsupported
	// NoACL: the server does not have NFSACL; its RPC layer says Now.
	NoACL
	// NoLocks: the lock manager of the server cannot be reached.
	NoLocks
	// Together: the call, Was, was under way together with Call, which changes the
	// same object.
	Together
	// SentAgain: the call was sent again, and so at another time than captured.
	SentAgain
	// AnyOrder: the captured order was given up.
	AnyOrder
	// OnlyHere: what Call changed here has not happened in the capture.
	OnlyHere
	// LocksTogether: the call, Was, was under way together with Call, which locks or unlocks the
	// same bytes for another owner.
	LocksTogether
	// NoACLKept: the server keeps no access control lists.
	NoACLKept
	// LockWaits: Call, of another owner, waits for a lock of the same bytes, and the server decides who
	// gets it first.
	LockWaits
	// Squashed: the server takes root for the user Now.
	Squashed
	// ReadOnly: the server's file system is read-only.
	ReadOnly
	// Shared: other clones change the same files.
	Shared

	codes
)

// Written reports whether a Reason says that bytes are not what this run has put there.
// Whatever the captured call did, it is not on this server: nothing explains them.
func (c Code) Written() bool {
	switch c {
	case DataShort, PatternDiffers, WrittenLost, HoleFilled, WrittenDiffers, FileShort:
		return true
	}
	return false
}

// String is the name of a code in JSON.
func (c Code) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return "unknown"
}

// MarshalText is for JSON.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Codes are all codes that are defined.
func Codes() iter.Seq[Code] {
	return func(yield func(Code) bool) {
		for c := range codes {
			if codeNames[c] != "" && c != None && !yield(c) {
				return
			}
		}
	}
}

var codeNames = [codes]string{
	None: "none",

	ServerLimits: "server_limits", Optional: "optional", DirectorySize: "directory_size", AboveBase: "above_base", LinkMode: "link_mode",
	ExclusiveCreate: "exclusive_create", UserNames: "user_names", ACLOrder: "acl_order", StateProtection: "state_protection",
	LockEnd: "lock_end", Listing: "listing", Holes: "holes", NotCaptured: "not_captured", PartialResults: "partial_results",
	UnreadableResults: "unreadable_results", DataNotCaptured: "data_not_captured", NoReplyEither: "no_reply_either", ModeOnly: "mode_only",

	LayoutTooSmall: "layout_too_small", ReplyRoom: "reply_room", Undelegated: "undelegated", Patience: "patience", StateMovedOn: "state_moved_on",
	Restarted: "restarted", Stateless: "stateless", Uncalled: "uncalled", Unkept: "unkept", Adapted: "adapted",

	NoDelegation: "no_delegation", Returned: "returned", NoConfirm: "no_confirm", NoRoot: "no_root", NoState: "no_state", NoValue: "no_value", Follows: "follows", NotAsked: "not_asked",

	Refused: "refused", NoSlot: "no_slot", NoReply: "no_reply", BadReply: "bad_reply",

	RPCExecuted: "rpc_executed", RPCFailed: "rpc_failed", RPCDiffers: "rpc_differs", Succeeds: "succeeds", SucceedsWrongly: "succeeds_wrongly", Fails: "fails",
	StatusDiffers: "status_differs", OperationCount: "operation_count", FieldDiffers: "field_differs", NamesMissing: "names_missing",
	NamesAdded: "names_added", DataShort: "data_short", TextDiffers: "text_differs", DataDiffer: "data_differ",
	PatternDiffers: "pattern_differs", WrittenLost: "written_lost", HoleFilled: "hole_filled", ChunkDiffers: "chunk_differs",
	NotStable: "not_stable", VerifierChanged: "verifier_changed", NameTwice: "name_twice",
	WrittenDiffers: "written_differs", FileShort: "file_short", StoodStill: "stood_still", TimeNotSet: "time_not_set",
	HandleShared: "handle_shared", NameLost: "name_lost", NameLeft: "name_left", OtherObject: "other_object", LockedTwice: "locked_twice", Invariant: "invariant", SeeksBack: "seeks_back",

	Cut: "cut", Strangers: "strangers", Unhappened: "unhappened", Planned: "planned", Unsupported: "unsupported", NoACL: "no_acl", NoLocks: "no_locks",
	Together: "together", SentAgain: "sent_again", AnyOrder: "any_order", OnlyHere: "only_here",
	NoACLKept: "no_acl_kept", LocksTogether: "locks_together", LockWaits: "lock_waits", Squashed: "squashed", ReadOnly: "read_only", Shared: "shared",
}
